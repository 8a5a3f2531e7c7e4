// A raw MQTT client of a few packets, for what muster itself does not do: to watch, and to take over a session.
import assert from "node:assert/strict";
import { createConnection } from "node:net";

const text = (string) => Buffer.concat([Buffer.from([string.length >> 8, string.length & 255]), Buffer.from(string)]);
const packet = (first, ...parts) => {
  const body = Buffer.concat(parts);
  assert.ok(body.length < 128);
  return Buffer.concat([Buffer.from([first, body.length]), body]);
};

// Connects as clientId (version 5), with a subscription to filter where one is given. publishes: topics that came, with
// the retain flag. resumed: the broker had a session of it, which only who does not start clean is told.
export async function rawClient(port, clientId, filter, { clean = true } = {}) {
  const socket = createConnection({ host: "127.0.0.1", port });
  const client = { publishes: [], resumed: false, close: () => socket.destroy() };
  let buffer = Buffer.alloc(0);
  const granted = new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("data", (data) => {
      buffer = Buffer.concat([buffer, data]);
      for (;;) {
        let size = 0;
        let head = 1;
        for (; head < buffer.length && head < 5; head++) {
          size += (buffer[head] & 127) * 128 ** (head - 1);
          if (buffer[head] < 128) break;
        }
        head++;
        if (head > buffer.length || buffer.length < head + size) return;
        const body = buffer.subarray(head, head + size);
        const type = buffer[0] >> 4;
        if (type === 3) {
          client.publishes.push({
            topic: body.subarray(2, 2 + body.readUInt16BE(0)).toString(),
            retained: (buffer[0] & 1) === 1,
          });
        }
        if (type === 2) client.resumed = (body[0] & 1) === 1;
        if (type === (filter ? 9 : 2)) resolve();
        buffer = buffer.subarray(head + size);
      }
    });
  });
  socket.write(packet(0x10, text("MQTT"), Buffer.from([5, clean ? 2 : 0, 0, 60, 0]), text(clientId)));
  if (filter) socket.write(packet(0x82, Buffer.from([0, 1, 0]), text(filter), Buffer.from([0])));
  await granted;
  return client;
}

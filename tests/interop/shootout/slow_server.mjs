// websocket-shootout's JSON protocol served by npm's ws, with a known price: a broadcast to N clients leaves N times
// DELAY microseconds after the one before it has left (or after it came, if that is later). The price is waiting and
// not CPU, so it is the same on a busy machine: with C broadcasts in flight a result takes at least C * N * DELAY.
// Usage: node slow_server.mjs DELAY_US; prints "ready: ws://127.0.0.1:PORT/ws" and ends with its standard input.
import { WebSocketServer } from "ws";

const delayMs = Number(process.argv[2]) / 1000;
if (!(delayMs >= 0)) throw new Error("usage: slow_server.mjs DELAY_US");

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, path: "/ws", perMessageDeflate: false, backlog: 4096 });
const waiting = []; // broadcasts in the order of their coming
let busy = false;
let freeAt = 0;

function leave({ sender, payload }) {
  const text = JSON.stringify({ type: "broadcast", payload });
  for (const client of server.clients) client.send(text);
  sender.send(JSON.stringify({ type: "broadcastResult", payload, listenCount: server.clients.size }));
}

function serve() {
  busy = waiting.length > 0;
  if (!busy) return;
  freeAt = Math.max(freeAt, waiting[0].cameAt) + server.clients.size * delayMs;
  const wait = () => {
    const rest = freeAt - performance.now();
    if (rest > 0) return setTimeout(wait, rest);
    leave(waiting.shift());
    serve();
  };
  wait();
}

server.on("connection", (socket) => {
  socket.on("error", () => socket.terminate());
  socket.on("message", (data) => {
    const { type, payload } = JSON.parse(data);
    if (type === "echo") socket.send(JSON.stringify({ type, payload }));
    if (type !== "broadcast") return;
    waiting.push({ sender: socket, payload, cameAt: performance.now() });
    if (!busy) serve();
  });
});
server.on("listening", () => console.log(`ready: ws://127.0.0.1:${server.address().port}/ws`));
process.stdin.on("end", () => process.exit(0)).resume();

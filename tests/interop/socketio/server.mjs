// The reference server of muster's Socket.IO contract (docs/drivers.md), on npm's socket.io:
//   server.mjs [PORT [PING_INTERVAL_MS PING_TIMEOUT_MS [CERTIFICATE KEY]]]
// prints "port=N pid=N" when it listens on loopback. Namespaces:
//   /        join(room, callback), publish(room, content, callback); message(content) goes to the room but its sender
//   /echo    the same, and the sender gets it too
//   /chat    the same under other names: enter, say, said
//   /locked  lets in only who gives the user alice with the password $SOCKETIO_TEST_PASSWORD
//   /quota   refuses every second publish with the code 429
//   /binary  sends the content as a buffer
//   /asking  wants an acknowledgement of each message from its recipients, and prints asked=N, how many there were, at
//            the end of each client
import { readFileSync } from "node:fs";
import { createServer as createSecureServer } from "node:https";
import { createServer } from "node:http";
import { Server } from "socket.io";

const [port = "0", pingInterval = "25000", pingTimeout = "20000", certificate, key] = process.argv.slice(2);
const http = certificate
  ? createSecureServer({ cert: readFileSync(certificate), key: readFileSync(key) })
  : createServer();
const io = new Server(http, {
  serveClient: false,
  transports: ["websocket"],
  pingInterval: Number(pingInterval),
  pingTimeout: Number(pingTimeout),
});

const isText = (value) => typeof value === "string" && value.length > 0;

function serve(name, { events = ["join", "publish", "message"], deliver }) {
  const [join, publish, message] = events;
  const namespace = io.of(name);
  namespace.on("connection", (socket) => {
    socket.on(join, (room, callback) => {
      if (!isText(room)) return callback?.({ status: "error", code: 400 });
      socket.join(room);
      callback?.({ status: "ok" });
    });
    socket.on(publish, (room, content, callback) => {
      if (!isText(room)) return callback?.({ status: "error", code: 400 });
      const refused = deliver({ namespace, socket, room, message, content });
      callback?.(refused ? { status: "error", code: refused } : { status: "ok" });
    });
  });
  return namespace;
}

const toOthers = ({ socket, room, message, content }) => void socket.to(room).emit(message, content);
const toAll = ({ namespace, room, message, content }) => void namespace.to(room).emit(message, content);

serve("/", { deliver: toOthers });
serve("/echo", { deliver: toAll });
serve("/chat", { events: ["enter", "say", "said"], deliver: toOthers });
serve("/locked", { deliver: toOthers }).use((socket, next) => {
  const { user, password } = socket.handshake.auth;
  next(user === "alice" && password === process.env.SOCKETIO_TEST_PASSWORD ? undefined : new Error("not authorized"));
});
let published = 0;
serve("/quota", { deliver: (what) => (published++ % 2 ? 429 : toOthers(what)) });
serve("/binary", {
  deliver: ({ socket, room, message, content }) => void socket.to(room).emit(message, Buffer.from(content)),
});
let asked = 0;
serve("/asking", {
  deliver: ({ namespace, room, message, content }) => {
    const callback = (error, answers) => void (asked += error ? 0 : answers.length);
    namespace.to(room).timeout(5000).emit(message, content, callback);
  },
}).on("connection", (socket) => socket.on("disconnect", () => console.log(`asked=${asked}`)));

http.listen(Number(port), "127.0.0.1", () => console.log(`port=${http.address().port} pid=${process.pid}`));

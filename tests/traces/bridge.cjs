// Runs the trace processor's WebAssembly build, made for a browser's worker, in node: RPC frames over stdin and stdout.
// Each way a frame is its length (uint32, little-endian) and its bytes. Started by tests/traces/processor.py.
"use strict";
const fs = require("fs");
const path = require("path");
const { MessageChannel } = require("worker_threads");

const folder = process.argv[2];

// What the bundle looks for to believe that it is a worker.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.importScripts = () => {};
globalThis.location = { href: "file://" + path.join(folder, "engine_bundle.js") };
Object.defineProperty(process, "type", { value: "renderer" });
globalThis.XMLHttpRequest = class {
  open(_method, url) {
    this.url = url;
  }
  setRequestHeader() {}
  send() {
    const bytes = fs.readFileSync(path.join(folder, path.basename(this.url)));
    this.status = 200;
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
};
for (const name of ["log", "info", "warn", "error"]) {
  console[name] = (...words) => process.stderr.write(words.join(" ") + "\n");
}
(0, eval)(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"));

const { port1, port2 } = new MessageChannel();
port1.on("message", (reply) => {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(reply.length);
  process.stdout.write(Buffer.concat([length, Buffer.from(reply)]));
});
globalThis.onmessage({ data: port2 });

let waiting = Buffer.alloc(0);
process.stdin.on("data", (bytes) => {
  waiting = Buffer.concat([waiting, bytes]);
  while (waiting.length >= 4 && waiting.length >= 4 + waiting.readUInt32LE(0)) {
    const end = 4 + waiting.readUInt32LE(0);
    port1.postMessage(new Uint8Array(waiting.subarray(4, end)));
    waiting = waiting.subarray(end);
  }
});
process.stdin.on("end", () => process.exit(0));

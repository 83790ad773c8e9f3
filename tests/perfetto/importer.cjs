// Perfetto's importer, run by node: reads a trace, and prints the rows of queries as JSON.
//
//     node importer.cjs WEB_DIST TRACE SQL..
//
// The user interface runs it in a worker of the browser: `engine_bundle.js` takes a port for messages, loads
// `trace_processor.wasm`, and answers requests that are messages of protobuf, each behind its length
// (protos/perfetto/trace_processor/trace_processor.proto: TraceProcessorRpcStream). Here the worker is this file.

"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

// Methods and fields of TraceProcessorRpc.
const APPEND = 1n;
const FINALIZE = 2n;
const QUERY = 3n;
const FIELD = { rpc: 1, seq: 1, request: 2, fatal: 5, appendData: 101, queryArgs: 103, appended: 201, rows: 203 };
// Bytes of a trace in one request: one of 64 MiB is refused.
const MOST_BYTES = 16 << 20;
// Kinds of the cells of a row, in QueryResult.CellsBatch.
const CELL = { none: 1n, integer: 2n, float: 3n, text: 4n, bytes: 5n };

// Protobuf: what is needed to write requests.

function varint(number) {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(number)); ; rest >>= 7n) {
    if (rest < 0x80n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

// Protobuf: what is needed to read answers.

class Reader {
  constructor(buffer) {
    this.buffer = buffer;
    this.at = 0;
  }

  get isAtEnd() {
    return this.at >= this.buffer.length;
  }

  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (this.isAtEnd) throw new Error("the answer ends within a number");
      const byte = this.buffer[this.at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
  }

  bytes(length) {
    this.at += length;
    return this.buffer.subarray(this.at - length, this.at);
  }

  // All fields in their order: pairs of number and value.
  *fields() {
    while (!this.isAtEnd) {
      const key = Number(this.varint());
      switch (key & 7) {
        case 0: yield [key >> 3, this.varint()]; break;
        case 1: yield [key >> 3, this.bytes(8)]; break;
        case 2: yield [key >> 3, this.bytes(Number(this.varint()))]; break;
        case 5: yield [key >> 3, this.bytes(4)]; break;
        default: throw new Error(`the answer has a field of unknown type, ${key}`);
      }
    }
  }

  *varints() {
    while (!this.isAtEnd) yield this.varint();
  }
}

// A worker's surroundings, as far as the bundle and the importer look at them. Returns it when it can take requests.

async function startWorker(folder) {
  const noop = () => {};
  const file = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));
  const self = { location: { href: "file:///engine_bundle.js" }, addEventListener: noop, postMessage: noop };
  const surroundings = {
    self,
    importScripts: noop,
    WorkerGlobalScope: function WorkerGlobalScope() {},
    XMLHttpRequest: class {
      open(method, url) {
        this.url = url;
      }

      send() {
        const { buffer, byteOffset, byteLength } = file(this.url);
        this.status = 200;
        this.response = buffer.slice(byteOffset, byteOffset + byteLength);
      }
    },
  };
  Object.assign(globalThis, surroundings);
  // Without what makes the importer take this for node, where it would look for files.
  const hidden = ["process", "require", "module", "exports", "__filename", "__dirname"];
  const bundle = file("engine_bundle.js").toString();
  vm.runInThisContext(`(function (${hidden.join(", ")}) {${bundle}\n})`)();
  // It has read its module now, but not yet prepared it; requests before that would damage it.
  await new Promise((resolve) => setTimeout(resolve, 0));
  return self;
}

// Requests and their answers.

class Importer {
  constructor(worker) {
    this.received = Buffer.alloc(0);
    this.seq = 0n;
    this.onAnswer = () => {};
    this.port = { onmessage: null, postMessage: (data) => this.receive(Buffer.from(data)) };
    worker.onmessage({ data: this.port });
  }

  receive(data) {
    this.received = Buffer.concat([this.received, data]);
    for (;;) {
      const reader = new Reader(this.received);
      let message;
      try {
        reader.varint(); // The key, which all messages have.
        const length = Number(reader.varint());
        if (reader.at + length > this.received.length) return;
        message = reader.bytes(length);
      } catch {
        return;
      }
      this.received = this.received.subarray(reader.at);
      const fields = new Map(new Reader(message).fields());
      if (fields.has(FIELD.fatal)) throw new Error(fields.get(FIELD.fatal).toString());
      this.onAnswer(fields);
    }
  }

  // Sends a request, and hands each part of the answer on until one was the last.
  request(method, parameters, take) {
    return new Promise((resolve, reject) => {
      this.onAnswer = (fields) => {
        try {
          if (take(fields)) resolve();
        } catch (error) {
          reject(error);
        }
      };
      const message = Buffer.concat([number(FIELD.seq, this.seq), number(FIELD.request, method), parameters]);
      this.port.onmessage({ data: new Uint8Array(bytes(FIELD.rpc, message)) });
      this.seq += 1n;
    });
  }

  async read(trace) {
    for (let at = 0; at < trace.length; at += MOST_BYTES) {
      const part = trace.subarray(at, at + MOST_BYTES);
      await this.request(APPEND, bytes(FIELD.appendData, part), checkAppended);
    }
    await this.request(FINALIZE, Buffer.alloc(0), () => true);
  }

  async query(sql) {
    const columns = [];
    const rows = [];
    let row = [];
    await this.request(QUERY, bytes(FIELD.queryArgs, bytes(1, Buffer.from(sql))), (fields) => {
      let isLast = false;
      for (const [field, value] of new Reader(fields.get(FIELD.rows)).fields()) {
        if (field === 1) columns.push(value.toString());
        else if (field === 2 && value.length > 0) throw new Error(`${sql}: ${value}`);
        else if (field === 3) {
          const batch = readBatch(value);
          isLast ||= batch.isLast;
          for (const cell of batch.cells) {
            row.push(cell);
            if (row.length === columns.length) {
              rows.push(Object.fromEntries(columns.map((column, place) => [column, row[place]])));
              row = [];
            }
          }
        }
      }
      return isLast;
    });
    return rows;
  }
}

function checkAppended(fields) {
  for (const [field, value] of new Reader(fields.get(FIELD.appended) ?? Buffer.alloc(0)).fields()) {
    if (field === 2 && value.length > 0) throw new Error(value.toString());
  }
  return true;
}

function readBatch(buffer) {
  let kinds = [];
  let texts = [];
  let isLast = false;
  const integers = [];
  const floats = [];
  for (const [field, value] of new Reader(buffer).fields()) {
    if (field === 1) kinds = [...new Reader(value).varints()];
    else if (field === 2) integers.push(...new Reader(value).varints());
    else if (field === 3) for (let at = 0; at < value.length; at += 8) floats.push(value.readDoubleLE(at));
    else if (field === 5) texts = value.toString().split("\0");
    else if (field === 6) isLast = value !== 0n;
  }
  const cells = kinds.map((kind) => {
    switch (kind) {
      case CELL.none: return null;
      case CELL.integer: return integers.shift();
      case CELL.float: return floats.shift();
      case CELL.text: return texts.shift();
      default: throw new Error("a column of bytes has no form in JSON");
    }
  });
  return { cells, isLast };
}

// Integers of 64 bits as they are: JSON has no bound, but the numbers of JavaScript have.
function json(value) {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${json(item)}`).join(",")}}`;
}

async function main([folder, trace, ...queries]) {
  const importer = new Importer(await startWorker(folder));
  await importer.read(fs.readFileSync(trace));
  const results = [];
  for (const sql of queries) results.push(await importer.query(sql));
  process.stdout.write(`${json(results)}\n`, () => process.exit(0));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});

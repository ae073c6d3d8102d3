// The model @NAME in WebAssembly. Written by Rushlight; needs nothing else.
//
//     import { load, tensor } from "./@NAME.js";
//     const model = await load();                       // @FILES beside this file
//     const model = await load({ threads: 4 });         // @NAME-threads.wasm, where the page is cross-origin isolated
//     const result = model.@METHOD(...);
//     model.free();
//
// Tensors are { data, sizes }: a typed array in row-major order, and how many elements each dimension has. Results are copies.
// Where the model writes to an input, as the method's signature says, the input's own array has the new values after the call.

const STATUS = ["ok", "bad argument", "bad weights", "failed", "no memory"];
const KINDS = ["none", "bool", "int", "float", "string", "tensor", "list", "tuple", "dict"];
const [NONE, BOOL, INT, FLOAT, STRING, TENSOR, LIST, TUPLE, DICT] = KINDS.keys();
const ARRAYS = [
  null, Float32Array, Float64Array, Uint16Array, Uint16Array, BigInt64Array, Int32Array, Int16Array, Int8Array, Uint8Array, Uint8Array,
  Float32Array, Float64Array,
];
const DTYPES = [
  null, "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128",
];
const RANK = 8, COMPLEX = 11; // dtypes from here on: pairs of real and imaginary parts
const MOST_THREADS = 64, STACK_BYTES = 1 << 20;
// Where fields lie in the structures of the C header, with addresses of 32 bits.
const TENSOR_DTYPE = 4, TENSOR_RANK = 8, TENSOR_SIZES = 16, TENSOR_STRIDES = 80;
const VALUE_AS = 8, VALUE_BYTES = 152;
const PARAMETER_RANK = 12, PARAMETER_SIZES = 16, PARAMETER_TEXT = 208, PARAMETER_WRITTEN = 212, PARAMETER_BYTES = 216;

/** What the model says of a call that failed. */
export class ModelError extends Error {}

/** A tensor of a typed array and sizes. `dtype` is needed for float16 and bfloat16 (bits in a Uint16Array), bool (Uint8Array),
 * complex64 and complex128 (both parts of each number in a Float32Array or Float64Array). */
export function tensor(data, sizes, dtype) {
  const count = sizes.reduce((product, size) => product * size, DTYPES.indexOf(dtype) >= COMPLEX ? 2 : 1);
  if (count !== data.length) throw new ModelError(`sizes [${sizes}] are of ${count} elements, and the array has ${data.length}`);
  return dtype === undefined ? { data, sizes } : { data, sizes, dtype };
}

/** A handle of the model: its methods are functions of this object. */
class Model {
  constructor(instance, memory) {
    this._exports = instance.exports;
    this._memory = memory;
    this._handle = this._weights = 0;
    this._workers = [];
    this.threads = 1;
    this._taken = [];
  }

  _function(name) {
    return this._exports["@NAME_" + name];
  }

  _view() {
    return new DataView(this._memory.buffer);
  }

  _take(bytes) {
    const address = this._exports.malloc(bytes || 1);
    if (!address) throw new ModelError("there is no memory left");
    this._taken.push(address);
    new Uint8Array(this._memory.buffer, address, bytes).fill(0);
    return address;
  }

  _giveBack() {
    for (const address of this._taken.splice(0)) this._exports.free(address);
  }

  // Copies of bytes: a decoder takes none of memory that is shared.
  _text(address, size) {
    const bytes = new Uint8Array(this._memory.buffer, address);
    const end = size === undefined ? bytes.indexOf(0) : size;
    return new TextDecoder().decode(bytes.slice(0, end));
  }

  _check(status) {
    if (status) throw new ModelError(this._text(this._function("error")(this._handle)) || STATUS[status]);
  }

  // Weights are bytes, or null where they are compiled in.
  _open(weights) {
    const place = this._take(4), message = this._take(512);
    let status;
    if (weights === null) {
      status = this._function("create")(0, place, message, 512);
    } else {
      this._weights = this._exports.malloc(weights.length + 64);
      if (!this._weights) throw new ModelError("there is no memory for the weights");
      const aligned = Math.ceil(this._weights / 64) * 64;
      new Uint8Array(this._memory.buffer, aligned, weights.length).set(weights);
      status = this._function("create_from_memory")(aligned, weights.length, place, message, 512);
    }
    const said = this._text(message);
    this._handle = this._view().getUint32(place, true);
    this._giveBack();
    if (status) throw new ModelError(said);
    this._readMethods();
  }

  _readMethods() {
    const view = this._view();
    this.signatures = {};
    for (let index = 0; index < this._function("method_count")(); ++index) {
      const at = this._function("method_at")(index);
      const [name, inputs, inputCount, outputs, outputCount] = [0, 4, 8, 12, 16].map((offset) => view.getUint32(at + offset, true));
      const listed = (first, count) =>
        Array.from({ length: count }, (_, place) =>
          this._text(view.getUint32(first + place * PARAMETER_BYTES + PARAMETER_TEXT, true)));
      const called = this._text(name);
      this.signatures[called] = `${called}(${listed(inputs, inputCount).join(", ")}) -> ${listed(outputs, outputCount).join(", ")}`;
      const written = Array.from({ length: inputCount }, (_, place) =>
        view.getUint8(inputs + place * PARAMETER_BYTES + PARAMETER_WRITTEN) !== 0);
      this[called] = (...values) => this._run(index, called, written, outputCount, values);
    }
  }

  _run(index, name, written, outputCount, values) {
    const inputCount = written.length;
    if (!this._handle) throw new ModelError("the model was freed");
    if (values.length !== inputCount) throw new ModelError(`${this.signatures[name]} takes ${inputCount} values, got ${values.length}`);
    try {
      const inputs = this._take(VALUE_BYTES * inputCount), outputs = this._take(VALUE_BYTES * outputCount);
      const copies = []; // [bytes of the caller's array, address of its copy], for arrays that the model writes to
      values.forEach((value, place) => this._put(inputs + place * VALUE_BYTES, value, written[place] ? copies : null));
      const status = this._function("run")(this._handle, index, inputs, inputCount, outputs, outputCount);
      for (const [bytes, address] of copies) bytes.set(new Uint8Array(this._memory.buffer, address, bytes.length));
      this._check(status);
      const results = Array.from({ length: outputCount }, (_, place) => this._get(outputs + place * VALUE_BYTES));
      return outputCount === 1 ? results[0] : results;
    } finally {
      this._giveBack();
    }
  }

  // Puts a value into memory. `copies`, if the model writes to it, receives the bytes of each array and where their copy is.
  _put(at, value, copies) {
    const kind = (number) => this._view().setInt32(at, number, true);
    if (value === null || value === undefined) return kind(NONE);
    if (typeof value === "boolean") {
      kind(BOOL);
      return this._view().setBigInt64(at + VALUE_AS, BigInt(value), true);
    }
    if (typeof value === "bigint" || Number.isSafeInteger(value)) {
      kind(INT);
      return this._view().setBigInt64(at + VALUE_AS, BigInt(value), true);
    }
    if (typeof value === "number") {
      kind(FLOAT);
      return this._view().setFloat64(at + VALUE_AS, value, true);
    }
    if (value instanceof Real) {
      kind(FLOAT);
      return this._view().setFloat64(at + VALUE_AS, value.number, true);
    }
    if (typeof value === "string") {
      const bytes = new TextEncoder().encode(value), place = this._take(bytes.length);
      new Uint8Array(this._memory.buffer, place, bytes.length).set(bytes);
      kind(STRING);
      return this._pair(at, place, bytes.length);
    }
    if (ArrayBuffer.isView(value)) value = tensor(value, [value.length]);
    if (Array.isArray(value)) return this._putItems(at, LIST, value, copies);
    if (value instanceof Map) return this._putItems(at, DICT, [...value].flat(), copies);
    if (value.data !== undefined && value.sizes !== undefined) return this._putTensor(at, value, copies);
    return this._putItems(at, DICT, Object.entries(value).flat(), copies);
  }

  _pair(at, address, count) {
    this._view().setUint32(at + VALUE_AS, address, true);
    this._view().setUint32(at + VALUE_AS + 4, count, true);
  }

  _putItems(at, kind, items, copies) {
    const place = this._take(VALUE_BYTES * items.length);
    items.forEach((item, index) => this._put(place + index * VALUE_BYTES, item, copies));
    this._view().setInt32(at, kind, true);
    this._pair(at, place, items.length);
  }

  _putTensor(at, { data, sizes, dtype }, copies) {
    tensor(data, sizes, dtype);
    const number = dtype === undefined ? ARRAYS.findIndex((kind) => kind && data instanceof kind && kind !== Uint16Array) : DTYPES.indexOf(dtype);
    if (number < 1 || !(data instanceof ARRAYS[number])) throw new ModelError(`a tensor's data is no array of ${dtype ?? "a known type"}`);
    if (sizes.length > RANK) throw new ModelError(`tensors have at most ${RANK} dimensions, got ${sizes.length}`);
    const place = this._take(data.byteLength);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    new Uint8Array(this._memory.buffer, place, data.byteLength).set(bytes);
    copies?.push([bytes, place]);
    const view = this._view(), first = at + VALUE_AS;
    view.setInt32(at, TENSOR, true);
    view.setUint32(first, place, true);
    view.setInt32(first + TENSOR_DTYPE, number, true);
    view.setInt32(first + TENSOR_RANK, sizes.length, true);
    let step = 1;
    for (let dim = sizes.length - 1; dim >= 0; --dim) {
      view.setBigInt64(first + TENSOR_SIZES + 8 * dim, BigInt(sizes[dim]), true);
      view.setBigInt64(first + TENSOR_STRIDES + 8 * dim, BigInt(step), true);
      step *= Math.max(sizes[dim], 1);
    }
  }

  _get(at) {
    const view = this._view(), kind = view.getInt32(at, true), first = at + VALUE_AS;
    if (kind === BOOL) return view.getBigInt64(first, true) !== 0n;
    if (kind === INT) {
      const found = view.getBigInt64(first, true);
      return Number.isSafeInteger(Number(found)) ? Number(found) : found;
    }
    if (kind === FLOAT) return view.getFloat64(first, true);
    if (kind === STRING) return this._text(view.getUint32(first, true), view.getUint32(first + 4, true));
    if (kind === TENSOR) return this._getTensor(first);
    if (kind === NONE) return null;
    const items = view.getUint32(first, true), count = view.getUint32(first + 4, true);
    const found = Array.from({ length: count }, (_, place) => this._get(items + place * VALUE_BYTES));
    if (kind !== DICT) return found;
    return new Map(Array.from({ length: count / 2 }, (_, place) => [found[2 * place], found[2 * place + 1]]));
  }

  _getTensor(at) {
    const view = this._view(), dtype = view.getInt32(at + TENSOR_DTYPE, true), rank = view.getInt32(at + TENSOR_RANK, true);
    const row = (offset) => Array.from({ length: rank }, (_, dim) => Number(view.getBigInt64(at + offset + 8 * dim, true)));
    const sizes = row(TENSOR_SIZES), strides = row(TENSOR_STRIDES), kind = ARRAYS[dtype];
    const count = sizes.reduce((product, size) => product * size, 1);
    const parts = dtype >= COMPLEX ? 2 : 1, data = new kind(parts * count), address = view.getUint32(at, true);
    if (count) {
      const reach = 1 + sizes.reduce((sum, size, dim) => sum + (size - 1) * strides[dim], 0);
      const memory = new kind(this._memory.buffer, address, parts * reach);
      const index = new Array(rank).fill(0);
      for (let place = 0, from = 0; place < count; ++place) {
        for (let part = 0; part < parts; ++part) data[parts * place + part] = memory[parts * from + part];
        for (let dim = rank - 1; dim >= 0; --dim) {
          from += strides[dim];
          if (++index[dim] < sizes[dim]) break;
          from -= strides[dim] * sizes[dim];
          index[dim] = 0;
        }
      }
    }
    return dtype === 3 || dtype === 4 || dtype >= 10 ? { data, sizes, dtype: DTYPES[dtype] } : { data, sizes };
  }

  /** Gives the model the state back that it had when it was exported. */
  reset() {
    this._check(this._function("reset")(this._handle));
  }

  /** Where random numbers begin. */
  seed(number) {
    this._function("seed")(this._handle, BigInt(number));
  }

  /** Gives all memory back. */
  free() {
    this._function("destroy")(this._handle); // workers have left when it returns
    for (const { memory } of this._workers.splice(0)) this._exports.free(memory);
    this._exports.free(this._weights);
    this._handle = this._weights = 0;
  }

  // Starts the workers of so many threads, each with a stack of its own in the memory that all share.
  async _share(module, threads) {
    const tls = this._exports.__tls_size.value;
    const started = Array.from({ length: threads - 1 }, async () => {
      const memory = this._exports.malloc(STACK_BYTES + tls + 64);
      if (!memory) throw new ModelError("there is no memory for another thread");
      const top = (memory + STACK_BYTES) & ~15, worker = await workerOf(WORKER);
      await worker.ask({ module, memory: this._memory, stack: top, tls: (top + 63) & ~63 });
      this._workers.push({ memory });
      worker.send(this._function("add_worker")(this._handle));
    });
    await Promise.all(started);
    this.threads = threads;
    this._check(this._function("set_threads")(this._handle, threads));
  }
}

class Real {
  constructor(number) {
    this.number = number;
  }
}

/** A float, where a whole number would be taken for an int. */
export function float(number) {
  return new Real(number);
}

// What a worker does: it makes itself ready, says so, is given the address of its handle's threads, and works until that ends.
const WORKER = `
let exports;
receive(async (given) => {
  if (exports) {
    exports.@NAME_work(given);
    return finish();
  }
  const system = new Proxy({}, { get: () => () => 52 });
  const env = new Proxy({ memory: given.memory }, { get: (own, name) => own[name] ?? (() => 52) });
  const instance = await WebAssembly.instantiate(given.module, { wasi_snapshot_preview1: system, env });
  instance.exports.__stack_pointer.value = given.stack;
  instance.exports.__wasm_init_tls(given.tls);
  exports = instance.exports;
  send("ready");
});`;
const PAGE_WORKER = "const receive = (act) => { onmessage = (event) => act(event.data); }, send = postMessage, finish = close;";
const NODE_WORKER = 'const { parentPort } = require("node:worker_threads"); ' +
  'const receive = (act) => parentPort.on("message", act), send = (word) => parentPort.postMessage(word), finish = () => process.exit();';

const inNode = typeof process !== "undefined" && process.versions?.node !== undefined && typeof window === "undefined";
const mayShare = typeof SharedArrayBuffer !== "undefined" && (inNode || globalThis.crossOriginIsolated === true);

// A worker that runs a text: `ask` sends and resolves at the next answer, `send` sends.
async function workerOf(text) {
  if (inNode) {
    const { Worker } = await import("node:worker_threads");
    const worker = new Worker(NODE_WORKER + text, { eval: true });
    worker.unref();
    const answer = () => new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    return { ask: (given) => (worker.postMessage(given), answer()), send: (given) => worker.postMessage(given) };
  }
  const address = URL.createObjectURL(new Blob([PAGE_WORKER + text], { type: "text/javascript" }));
  const worker = new Worker(address);
  const answer = () => new Promise((resolve, reject) => {
    worker.onmessage = resolve;
    worker.onerror = (event) => reject(new ModelError("a worker failed: " + event.message));
  });
  return {
    ask: (given) => (worker.postMessage(given), answer().finally(() => URL.revokeObjectURL(address))),
    send: (given) => worker.postMessage(given),
  };
}

async function bytesOf(source) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  const response = await fetch(source);
  if (!response.ok) throw new ModelError(`${source} cannot be fetched: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * A handle of the model. `wasm` and `weights` are bytes or addresses; by default @FILES beside this module. Of `threads`, this
 * thread is one and workers are the others, where the page may share memory; else there is one.
 */
export async function load({ threads = 1, wasm, weights = @WEIGHTS } = {}) {
  if (!Number.isInteger(threads) || threads < 1 || threads > MOST_THREADS)
    throw new ModelError(`a model runs on 1 to ${MOST_THREADS} threads, not on ${threads}`);
  const shared = threads > 1 && mayShare;
  wasm ??= new URL(shared ? "./@NAME-threads.wasm" : "./@NAME.wasm", import.meta.url);
  const [code, numbers] = await Promise.all([bytesOf(wasm), weights === null ? null : bytesOf(weights)]);
  const module = await WebAssembly.compile(code);
  const system = new Proxy({}, { get: () => () => 52 }); // whatever the C library asks for, there is none
  const isShared = WebAssembly.Module.imports(module).some(({ kind }) => kind === "memory");
  const memory = isShared && new WebAssembly.Memory({ initial: @FIRST_PAGES, maximum: @MAX_PAGES, shared: true });
  const env = new Proxy({ memory }, { get: (own, name) => own[name] || (() => 52) });
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: system, env });
  instance.exports._initialize?.();
  const model = new Model(instance, memory || instance.exports.memory);
  model._open(numbers);
  if (shared && isShared) await model._share(module, threads);
  return model;
}

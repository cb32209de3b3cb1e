
/** What a file or an input has, and what is needed, in one sentence. */
export class HybridError extends Error {
  name = "HybridError";
}

/** @param {string} sentence @returns {never} */
function refuse(sentence) {
  throw new HybridError(sentence);
}

/** How elements lie in memory. @type {Record<string, any>} */
const STORE = {
  float32: Float32Array, float64: Float64Array, uint8: Uint8Array, int32: Int32Array,
  int8: Int8Array, int64: BigInt64Array, bool: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};
/** What the program may call: functions of numbers, and nothing else of the page. */
const MATH = {
  __proto__: Math,
  /** @param {number} a @param {number} b */
  fmod: (a, b) => a % b,
  /** @param {number} a @param {number} b */
  pow: (a, b) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b),
};

/** @typedef {{shape: number[], dtype: string, data: any}} Tensor
 * @typedef {{shape: (number | number[])[], dtype: string, at: number[]}} Spec
 * @typedef {ArrayBuffer | ArrayBufferView} Bytes */

/** @param {number[]} shape */
const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1);

/** a + b n. @param {number | number[]} line @param {number} n */
const length = (line, n) => (typeof line === "number" ? line : line[0] + line[1] * n);

/** @param {any} shape */
const isShape = (shape) => Array.isArray(shape) &&
  shape.every((n) => Number.isSafeInteger(n) && n >= 0);

/** Numbers as an array; integers of 64 bits are kept as doubles.
 * @param {ArrayLike<number>} numbers @param {number[]} shape @returns {Tensor} */
export function tensor(numbers, shape, dtype = "float32") {
  if (!Object.hasOwn(STORE, dtype)) refuse(`an array cannot have the dtype '${dtype}'`);
  if (!isShape(shape) || numbers.length !== sizeOf(shape))
    refuse(`${numbers.length} numbers do not make an array of shape [${shape}]`);
  const Kind = dtype.endsWith("int64") ? Float64Array : STORE[dtype];
  return { shape: [...shape], dtype, data: new Kind(numbers) };
}

/** A trained net: a program, with the weights in its memory. */
export class Net {
  /** @param {Bytes | WebAssembly.Module} program the bytes of `.wasm` */
  constructor(program) {
    /** @type {any} */
    let exports = {};
    try {
      const module = program instanceof WebAssembly.Module ? program
        : new WebAssembly.Module(checked(program));
      exports = new WebAssembly.Instance(module, { math: MATH }).exports;
    } catch (error) {
      if (error instanceof HybridError) throw error;
      refuse(`the program cannot be used: ${error instanceof Error ? error.message : error}; ` +
        "export the net again");
    }
    if (!(exports.memory instanceof WebAssembly.Memory && typeof exports.predict === "function"))
      refuse("the program cannot be used: it is not that of a net; export the net again");
    this.exports = exports;
  }

  /** The outputs for some inputs. @param {...Tensor} inputs @returns {Tensor[]} */
  predict(...inputs) {
    if (inputs.length !== INPUTS.length)
      refuse(`${inputs.length} inputs are given, but ${INPUTS.length} are needed`);
    const open = INPUTS.findIndex(({ shape }) => Array.isArray(shape[0]));
    const n = open < 0 ? 1 : inputs[open]?.shape?.[0] ?? 0;
    inputs.forEach((input, i) => {
      const { shape, dtype } = INPUTS[i], wanted = shape.map((line) => length(line, n));
      if (!isShape(input?.shape) || input.dtype !== dtype ||
          String(input.shape) !== String(wanted) || !(n >= 1) ||
          input.data?.length !== sizeOf(wanted)) {
        const [found] = `${input?.dtype}[${input?.shape}]`.split("\n");
        const names = shape.map((line) => (typeof line === "number" ? line : "n"));
        refuse(`input ${i} is ${found}, but this program takes ${dtype}[${names}]` +
          (open < 0 ? "; export the net for another shape" : ", n of at least 1"));
      }
    });
    this.grow(length(END, n));
    inputs.forEach(({ data }, i) => this.view(INPUTS[i], n)
      .set(INPUTS[i].dtype.endsWith("int64") ? Array.from(data, BigInt) : data));
    this.exports.predict(n);
    return OUTPUTS.map((spec) => {
      const data = this.view(spec, n), { dtype } = spec;
      return tensor(dtype.endsWith("int64") ? Array.from(data, Number) : data,
        spec.shape.map((line) => length(line, n)), dtype);
    });
  }

  /** Make room for so many bytes. @param {number} nbytes */
  grow(nbytes) {
    const { memory } = this.exports, pages = Math.ceil((nbytes - memory.buffer.byteLength) / 65536);
    try {
      if (pages > 0) memory.grow(pages);
    } catch {
      refuse(`the batch needs ${nbytes} bytes, which there are not; predict it in parts`);
    }
  }

  /** The elements of an input or output, in the program's memory.
   * @param {Spec} spec @param {number} n */
  view({ shape, dtype, at }, n) {
    const size = sizeOf(shape.map((line) => length(line, n)));
    return new STORE[dtype](this.exports.memory.buffer, length(at, n), size);
  }
}

/** The program's bytes, if they can be this net's. @param {Bytes} program @returns {any} */
function checked(program) {
  if (program.byteLength !== NBYTES)
    refuse(`the program has ${program.byteLength} bytes, but ${NBYTES} are needed; the file is ` +
      "cut off or is that of another net");
  return program;
}

/** The net in the file beside this module, or in another one.
 * @param {string | URL} program @returns {Promise<Net>} */
export async function load(program = import.meta.url.replace(/\.m?js([?#].*)?$/, ".wasm")) {
  const address = new URL(program, import.meta.url);
  if (address.protocol === "file:") {
    const { readFile } = await import(/* @vite-ignore */ "node:fs/promises");
    return new Net(await readFile(address));
  }
  const answer = await fetch(address, { integrity: PROGRAM });
  if (!answer.ok) refuse(`cannot read ${address}: ${answer.status} ${answer.statusText}`);
  return new Net(await WebAssembly.compile(checked(await answer.arrayBuffer())));
}

// -- files: bytes of strangers ------------------------------------------------------------
// Sizes are checked before memory is taken; names are looked up, and nothing is evaluated.

/** What a file, an input or an operator has, and what is needed, in one sentence. */
export class HybridError extends Error {
  name = "HybridError";
}

/** @param {string} sentence @returns {never} */
function refuse(sentence) {
  const legible = sentence.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) =>
    "\\u{" + /** @type {number} */ (c.codePointAt(0)).toString(16) + "}");
  throw new HybridError(legible.slice(0, 2000));
}

/** A value as part of a sentence. @param {unknown} value */
const shown = (value) => (JSON.stringify(value) ?? String(value)).slice(0, 60);

/** Types of elements, and where they are kept; int64 holds what a double can.
 * @typedef {Float32Array|Float64Array|Int32Array|Uint32Array|Int16Array|Uint16Array|Int8Array|
 *   Uint8Array} Numbers
 * @type {Record<string, new (n: any) => any>} */
const STORE = {
  float32: Float32Array, float64: Float64Array, uint8: Uint8Array, int32: Int32Array,
  int8: Int8Array, int64: Float64Array, bool: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, uint32: Uint32Array, uint64: Float64Array,
};
const FLAGS = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool",
  "int16", "uint16", "uint32", "uint64", "bfloat16"];
const WIDTHS = [4, 8, 2, 1, 4, 1, 8, 1, 2, 2, 4, 8, 2];
const DEEPEST = 32, LARGEST = 2 ** 60, MAX_ARRAYS = 2 ** 16;
const MAX_TEXT = 2 ** 23, MAX_NODES = 2 ** 16, MAX_INPUTS = 2 ** 18, MAX_HEADS = 2 ** 16;
const MAX_DEPTH = 500;
const CUT_OFF = "the file is cut off or is no parameter file";

/** @typedef {{shape: number[], dtype: string, data: any}} Tensor
 * @typedef {ArrayBuffer | ArrayBufferView} Bytes */

/** @param {Bytes} file @returns {Uint8Array} whose `slice` copies, unlike that of a Buffer */
const bytesOf = (file) => (file instanceof ArrayBuffer ? new Uint8Array(file)
  : new Uint8Array(file.buffer, file.byteOffset, file.byteLength));

/** How many numbers a shape has. @param {number[]} shape */
const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1);

/** The arrays of a `.params` file by name.
 * @param {Bytes} file @returns {Map<string, Tensor>} */
export function readParams(file) {
  const bytes = bytesOf(file);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  /** @param {string} what @returns {never} */
  const fail = (what) => refuse(`parameters, byte ${at}: ${what}`);
  /** @param {number} n @param {string} what */
  const take = (n, what) => {
    const left = bytes.length - at;
    if (n > left) fail(`${what} needs ${n} bytes, but ${left} are left; ${CUT_OFF}`);
    return (at += n) - n;
  };
  /** @param {string} what */
  const u64 = (what) => Number(view.getBigUint64(take(8, what), true));
  /** @param {string} what */
  const u32 = (what) => view.getUint32(take(4, what), true);
  /** @param {string} what */
  const i32 = (what) => view.getInt32(take(4, what), true);
  /** @param {string} what @param {number} each */
  const count = (what, each) => {
    const n = u64(`the number of ${what}`);
    if (n * each > bytes.length - at)
      fail(`${n} ${what} need more bytes than are left; ${CUT_OFF}`);
    return n;
  };
  /** @param {boolean} old @param {number} axes */
  const shape = (old, axes) => {
    if (axes < 0 || axes > DEEPEST)
      fail(`an array of ${axes} axes; at most ${DEEPEST} are allowed`);
    const found = Array.from({ length: axes }, () => old ? u32("an axis")
      : Number(view.getBigInt64(take(8, "an axis"), true)));
    if (found.some((n) => n < 0)) fail(`shape ${shown(found)} has a negative length`);
    if (sizeOf(found.filter((n) => n)) > LARGEST / 8)
      fail(`shape ${shown(found)} is larger than any memory`);
    return found;
  };
  const array = () => {
    const mark = u32("an array's mark"), old = mark <= DEEPEST;
    if (!old && ![0xf993fac8, 0xf993fac9, 0xf993faca].includes(mark))
      fail(`the array's mark is ${mark}; needed: that of one of four versions`);
    if (mark >= 0xf993fac9 && i32("the storage type") !== 0)
      fail("a sparse array cannot be read here; save it as a dense one");
    const lengths = shape(old, old ? mark : i32("the number of axes"));
    if (!lengths.length && mark !== 0xf993faca)
      fail("an array without a shape has no numbers; it was saved before it was initialized");
    take(8, "the device");
    const flag = i32("the dtype");
    if (!(flag in FLAGS)) fail(`dtype number ${flag} is unknown; there are 0 to 12`);
    const n = sizeOf(lengths), nbytes = n * WIDTHS[flag];
    const start = take(nbytes, `an array of shape ${shown(lengths)}`);
    return decoded(bytes.slice(start, start + nbytes).buffer, FLAGS[flag], lengths);
  };
  const mark = u64("the file's mark");
  if (mark !== 0x112) fail(`the file's mark is ${mark}, but 274 is needed; no parameter file`);
  u64("a reserved number");
  const n = count("arrays", 4);
  if (n > MAX_ARRAYS) fail(`${n} arrays in one file; at most ${MAX_ARRAYS} are allowed`);
  const arrays = Array.from({ length: n }, array), nNames = count("names", 8);
  if (nNames !== 0 && nNames !== n) fail(`${nNames} names for ${n} arrays`);
  const found = new Map();
  for (let i = 0; i < nNames; i++) {
    const length = u64("a name's length"), start = take(length, "a name");
    const name = utf8(bytes.subarray(start, start + length), "a name");
    if (found.has(name)) fail("two arrays have one name");
    found.set(name, arrays[i]);
  }
  if (at < bytes.length) fail(`${bytes.length - at} bytes are left over`);
  return found;
}

/** Bytes as numbers; floats of 16 bits become float32. @returns {Tensor}
 * @param {ArrayBuffer} buffer @param {string} dtype @param {number[]} shape */
function decoded(buffer, dtype, shape) {
  if (dtype === "int64" || dtype === "uint64") {
    const whole = Float64Array.from(
      dtype === "int64" ? new BigInt64Array(buffer) : new BigUint64Array(buffer), Number);
    if (whole.some((v) => !Number.isSafeInteger(v)))
      refuse(`parameters: a number of type ${dtype} is beyond 2^53, which JavaScript cannot hold`);
    return { shape, dtype, data: whole };
  }
  if (dtype === "bfloat16") {
    const bits = Uint32Array.from(new Uint16Array(buffer), (half) => half << 16);
    return { shape, dtype: "float32", data: new Float32Array(bits.buffer) };
  }
  if (dtype === "float16") {
    return { shape, dtype: "float32", data: Float32Array.from(new Uint16Array(buffer), half) };
  }
  const data = new STORE[dtype](buffer);
  if (dtype === "bool") data.forEach((/** @type {number} */ v, /** @type {number} */ i) => {
    data[i] = v && 1;
  });
  return { shape, dtype, data };
}

/** The number whose 16 bits these are. @param {number} bits */
function half(bits) {
  const sign = bits >> 15 ? -1 : 1, power = (bits >> 10) & 31, rest = bits & 1023;
  if (power === 31) return rest ? NaN : sign * Infinity;
  return sign * (power ? 2 ** (power - 25) * (1024 + rest) : 2 ** -24 * rest);
}

/** @param {Uint8Array} bytes @param {string} what */
function utf8(bytes, what) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuse(`${what} is not UTF-8 text`);
  }
}

/** What JSON text says: no key twice, no half of a surrogate pair.
 * @param {Uint8Array} bytes @returns {any} */
function parsedJson(bytes) {
  if (bytes.length > MAX_TEXT)
    refuse(`the graph has ${bytes.length} bytes; a file of JSON may have ${MAX_TEXT}`);
  const text = utf8(bytes, "the graph");
  let data;
  try {
    data = JSON.parse(text);
  } catch (error) {
    refuse(`the graph is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  /** The keys of the objects that are open; a list has none. @type {Set<string>[]} */
  const open = [];
  for (const [sign, word, colon] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*(:?)|[[\]{}]/g)) {
    if (sign === "{" || sign === "[") open.push(new Set());
    else if (word === undefined) open.pop();
    else {
      const said = JSON.parse(word), keys = open[open.length - 1];
      if (/[\ud800-\udfff]/u.test(said)) refuse("the graph is not JSON: half a surrogate pair");
      if (colon && keys.has(said)) refuse("the graph is not JSON: an object has a key twice");
      if (colon) keys.add(said);
    }
    if (open.length > MAX_DEPTH) refuse(`the graph is nested more than ${MAX_DEPTH} deep`);
  }
  return data;
}

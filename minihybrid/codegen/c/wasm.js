
/** What a file or an input has, and what is needed, in one sentence. */
export class HybridError extends Error {
  name = "HybridError";
}

/** @param {string} sentence @returns {never} */
function refuse(sentence) {
  throw new HybridError(sentence);
}

/** How numbers lie in memory. @type {Record<string, new (...given: any[]) => any>} */
const STORE = {
  float32: Float32Array, float64: Float64Array, uint8: Uint8Array, int32: Int32Array,
  int8: Int8Array, int64: BigInt64Array, bool: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};

/** @typedef {{shape: number[], dtype: string, data: any}} Tensor
 * @typedef {ArrayBuffer | ArrayBufferView} Bytes */

/** @param {number[]} shape */
const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1);

/** Numbers as an array; whole ones of 64 bits are kept as doubles.
 * @param {ArrayLike<number>} numbers @param {number[]} shape @returns {Tensor} */
export function tensor(numbers, shape, dtype = "float32") {
  if (!Object.hasOwn(STORE, dtype)) refuse(`an array cannot have the dtype '${dtype}'`);
  if (numbers.length !== sizeOf(shape))
    refuse(`${numbers.length} numbers do not make an array of shape [${shape}]`);
  const Kind = dtype.endsWith("int64") ? Float64Array : STORE[dtype];
  return { shape: [...shape], dtype, data: new Kind(numbers) };
}

/** A trained net: a program, and the weights in its memory. */
export class Net {
  /** @param {Bytes | WebAssembly.Module} program of `.wasm` @param {Bytes} weights */
  constructor(program, weights) {
    const bytes = weights instanceof ArrayBuffer ? new Uint8Array(weights)
      : new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength);
    if (bytes.length !== NBYTES)
      refuse(`the weights have ${bytes.length} bytes, but ${NBYTES} are needed; the file is cut ` +
        "off or is that of another net");
    try {
      const module = program instanceof WebAssembly.Module ? program
        : new WebAssembly.Module(/** @type {any} */ (program));
      // It is given nothing of the page, so it can do nothing but compute.
      this.exports = /** @type {any} */ (new WebAssembly.Instance(module, {}).exports);
      this.memory().set(bytes, this.exports.net_weights());
    } catch (error) {
      refuse(`the program cannot be used: ${error instanceof Error ? error.message : error}; ` +
        "export the net again");
    }
    const why = this.exports.net_wrong();
    if (why) refuse(`weights: ${this.text(why)}`);
  }

  /** The outputs for some inputs. @param {...Tensor} inputs @returns {Tensor[]} */
  predict(...inputs) {
    if (inputs.length !== INPUTS.length)
      refuse(`${inputs.length} inputs are given, but ${INPUTS.length} are needed`);
    inputs.forEach(({ shape, dtype, data }, i) => {
      const [kind, wanted] = INPUTS[i];
      if (dtype !== kind || String(shape) !== String(wanted))
        refuse(`input ${i} is ${dtype}[${shape}], but this program takes ${kind}[${wanted}]; ` +
          "export the net for another shape");
      this.view(i, INPUTS[i]).set(kind.endsWith("int64") ? Array.from(data, BigInt) : data);
    });
    this.exports.net_run();
    return OUTPUTS.map(([dtype, shape], i) => {
      const data = this.view(INPUTS.length + i, [dtype, shape]);
      return tensor(dtype.endsWith("int64") ? Array.from(data, Number) : data, shape, dtype);
    });
  }

  memory() {
    return new Uint8Array(this.exports.memory.buffer);
  }

  /** The numbers of an input or output, in the program's memory.
   * @param {number} i @param {any[]} spec */
  view(i, [dtype, shape]) {
    return new STORE[dtype](this.exports.memory.buffer, this.exports.net_array(i), sizeOf(shape));
  }

  /** @param {number} at where a text of C begins */
  text(at) {
    const memory = this.memory();
    return new TextDecoder().decode(memory.slice(at, memory.indexOf(0, at)));
  }
}

/** The net in the two files that stand beside this module, or in others. Another program
 * than ours is not run. @param {string | URL} program @param {string | URL} weights
 * @returns {Promise<Net>} */
export async function load(program = beside(".wasm"), weights = beside(".weights")) {
  const [made, bytes] = await Promise.all([[program, { integrity: PROGRAM }], [weights, {}]].map(
    async ([address, options]) => {
      const answer = await fetch(/** @type {URL} */ (address), options);
      if (!answer.ok) refuse(`cannot read ${address}: ${answer.status} ${answer.statusText}`);
      return answer.arrayBuffer();
    }));
  return new Net(await WebAssembly.compile(made), bytes);
}

/** @param {string} ending */
const beside = (ending) => import.meta.url.replace(/\.m?js([?#].*)?$/, "") + ending;

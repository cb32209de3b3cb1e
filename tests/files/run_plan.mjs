// A plan of a page, run in a memory with objects as CPython and NumPy lay them out on 32 bits.
// Use: node run_plan.mjs JOB, a JSON file: the module, the bytes of each array of a call, the
// arena and the parameters, and how many kernels may run. Prints the arrays after the call.
import { readFileSync } from "node:fs";

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const memory = new WebAssembly.Memory({ initial: 64 });
const words = new DataView(memory.buffer);
let end = 1 << 20; // below it is scratch
const put = (bytes) => {
  const at = end;
  new Uint8Array(memory.buffer).set(bytes, at);
  end += Math.ceil((bytes.length + 8) / 16) * 16;
  return at;
};
const object = (data, flags) => {
  const at = put(new Uint8Array(48));
  words.setUint32(at + 8, data, true);
  words.setUint32(at + 32, flags, true);
  return at;
};
const arrays = job.arrays.map(put);
const table = put(new Uint8Array(8 * job.params.length + 8));
job.params.map(put).forEach((at, i) => words.setUint32(table + 8 * i, at, true));
const objects = arrays.map((at) => object(at, job.flags));
objects.push(object(put(new Uint8Array(job.arena)), 0x101), object(table, 0x101), 0);
const until = put(new Uint8Array(16));
words.setUint16(until + 12, job.until, true);
objects.push(until, 0, 0);
const args = put(new Uint8Array(4 * objects.length));
objects.forEach((at, i) => words.setUint32(args + 4 * i, at, true));
const env = { memory, ...Object.fromEntries(Object.getOwnPropertyNames(Math).map((n) => [n, Math[n]])) };
const { instance } = await WebAssembly.instantiate(readFileSync(job.module), { env });
const answer = instance.exports.part0(0, args, objects.length);
const after = arrays.map((at, i) => [...new Uint8Array(memory.buffer, at, job.arrays[i].length)]);
console.log(JSON.stringify([answer, after]));

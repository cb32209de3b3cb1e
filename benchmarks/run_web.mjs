// Times nets in Node.js: node run_web.mjs jobs.json answers.json, a list of
// [engine, files, input, shape]; engine is "wasm" or the folder of onnxruntime-web.
import { readFileSync as read, writeFileSync as write } from "node:fs";
import { pathToFileURL } from "node:url";

const LEAST_MS = 1000;
const [jobs, answers] = process.argv.slice(2);

async function ours([module, program], numbers, shape) {
  const { Net, tensor } = await import(pathToFileURL(module));
  const net = new Net(read(program)), x = tensor(numbers, shape);
  return async () => net.predict(x)[0].data;
}

async function theirs(folder, [model], numbers, shape) {
  const ort = await import(pathToFileURL(`${folder}/dist/ort.node.min.mjs`));
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(read(model));
  const x = { [session.inputNames[0]]: new ort.Tensor("float32", Float32Array.from(numbers), shape) };
  return async () => (await session.run(x))[session.outputNames[0]].data;
}

/** The least time of a call in microseconds, after the compiler has seen it often. */
async function timed(call) {
  const answer = Array.from(await call(), String);
  for (const start = performance.now(); performance.now() - start < LEAST_MS; ) await call();
  let best = Infinity;
  for (const start = performance.now(); performance.now() - start < LEAST_MS; ) {
    const from = performance.now();
    await call();
    best = Math.min(best, performance.now() - from);
  }
  return [1000 * best, answer];
}

const found = [];
for (const [engine, files, numbers, shape] of JSON.parse(read(jobs))) {
  const made = engine === "wasm" ? ours(files, numbers, shape) : theirs(engine, files, numbers, shape);
  found.push(await made.then(timed).catch(String));
}
write(answers, JSON.stringify(found));

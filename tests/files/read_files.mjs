// What the readers say: node read_files.mjs module jobs.json answers.json, a list of [kind, file].
import { readFileSync as read, writeFileSync as write } from "node:fs";

const [module, jobs, answers] = process.argv.slice(2);
const { HybridError, readGraph, readParams } = await import(module);
const readers = { graph: readGraph, params: readParams };
write(answers, JSON.stringify(JSON.parse(read(jobs)).map(([kind, file]) => {
  try {
    readers[kind](read(file));
    return "";
  } catch (error) {
    return error instanceof HybridError ? error.message : `BROKEN ${error.stack}`;
  }
})));

// Runs exported nets: node run_net.mjs jobs.json answers.json, a list of [module, program, inputs].
import { readFileSync as read, writeFileSync as write } from "node:fs";

const answers = [];
for (const [module, program, inputs] of JSON.parse(read(process.argv[2]))) {
  try {
    const { Net, tensor } = await import(module);
    const net = new Net(read(program));
    const outs = net.predict(...inputs.map(([x, ...spec]) => tensor(x.map(Number), ...spec)));
    answers.push(outs.map(({ data, shape, dtype }) => [Array.from(data, String), shape, dtype]));
  } catch (error) {
    answers.push(String(error));
  }
}
write(process.argv[3], JSON.stringify(answers));

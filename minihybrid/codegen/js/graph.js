// -- graphs: nodes, each made of those before it ------------------------------------------

/** @typedef {{inputs: any, outputs: number | null,
 *   attrs: Record<string, [string, any?]>,
 *   gives?: Record<string, string>, each?: (n: any) => (...numbers: number[]) => number}} Operator
 * @typedef {{name: string, op: string | null, attrs: any, inputs: [Node, number][],
 *   outputs: number}} Node
 * @typedef {{nodes: Node[], heads: [Node, number][]}} Graph */

// What attributes may say: a number, a word, or a tuple of them, at most two deep.
const ATOM = "(?:None|True|False|true|false|nan|[+-]?(?:inf|(?:0|[1-9][0-9]{0,39})L?" +
  "|(?:[0-9]{1,40}\\.[0-9]{0,40}|\\.[0-9]{1,40}|[0-9]{1,40}(?=[eE]))(?:[eE][+-]?[0-9]{1,3})?))";
/** @param {string} item */
const tupleOf = (item) => [["\\(", "\\)"], ["\\[", "\\]"]]
  .map(([open, close]) => `${open} *(?:${item} *, *)*(?:${item} *)?${close}`).join("|");
const ITEM = `(?:${ATOM}|${tupleOf(ATOM)})`;
const LITERAL = new RegExp(`^(?:${ITEM}|${tupleOf(ITEM)})$`);
/** @type {Record<string, any>} */
const WORDS = { None: null, True: true, False: false, true: true, false: false, nan: NaN };

/** Attributes that change what an operator computes, and what they may say here.
 * @type {Record<string, string[]>} */
const COMPUTED = {
  initial: ["None"], repeat: ["1"], use_length: ["False", "0"], reflect_type: ["even"],
  returned: ["False", "0"],
};

/** What a text stands for; a name such as `relu` is itself. @param {string} text @returns {any} */
function meant(text) {
  const cut = text.replace(/^ +| +$/g, "");
  return cut.length <= 2 ** 16 && LITERAL.test(cut) ? valueOf(cut) : text;
}

/** @param {string} text @returns {any} */
function valueOf(text) {
  if (/^[([]/.test(text))
    return (text.slice(1, -1).match(/\([^()]*\)|\[[^[\]]*\]|[^ ,]+/g) ?? []).map(valueOf);
  if (Object.hasOwn(WORDS, text)) return WORDS[text];
  return Number(text.replace("inf", "Infinity").replace(/L$/, ""));
}

/** A value in the form of its kind, or `undefined`. @type {Record<string, (v: any) => any>} */
const KINDS = {
  any: (v) => v,
  integer: (v) => (Number.isSafeInteger(v) ? v : undefined),
  length: (v) => (Number.isSafeInteger(v) && v >= 0 ? v : undefined),
  count: (v) => (Number.isSafeInteger(v) && v >= 1 ? v : undefined),
  number: (v) => (typeof v === "number" || typeof v === "boolean" ? Number(v) : undefined),
  finite: (v) => (Number.isFinite(KINDS.number(v)) ? Number(v) : undefined),
  positive: (v) => (KINDS.finite(v) > 0 ? Number(v) : undefined),
  not_negative: (v) => (KINDS.finite(v) >= 0 ? Number(v) : undefined),
  share: (v) => (KINDS.finite(v) >= 0 && v <= 1 ? Number(v) : undefined),
  rate: (v) => (KINDS.finite(v) >= 0 && v < 1 ? Number(v) : undefined),
  chance: (v) => (KINDS.finite(v) > 0 && v <= 1 ? Number(v) : undefined),
  boolean: (v) => ([0, 1, false, true].includes(v) ? Boolean(v) : undefined),
  shape: (v) => every(Array.isArray(v) ? v : [v], KINDS.integer),
  axes: (v) => (v === null ? null : Array.isArray(v)
    ? v.length ? KINDS.shape(v) : null : KINDS.integer(v)),
  bounds: (v) => every(Array.isArray(v) ? v : [v], (b) => (b === null ? null : KINDS.integer(b))),
  dtype: (v) => (v === null || v === "None" ? null : Object.hasOwn(STORE, v) ? v : undefined),
};

/** @param {any[]} values @param {(v: any) => any} kind */
function every(values, kind) {
  const found = values.map(kind);
  return found.includes(undefined) ? undefined : found;
}

/** @param {string} kind such as "optional choice NCW NCHW" @param {any} value @returns {any} */
function checked(kind, value) {
  const [first, ...rest] = kind.split(" ");
  if (first === "optional")
    return value === null || value === "None" ? null : checked(rest.join(" "), value);
  if (first === "choice") return rest.includes(value) ? value : undefined;
  return KINDS[first](value);
}

/** A node's attributes, completed. @param {string} op @param {Operator} known
 * @param {Record<string, string>} texts @param {string} where */
function completed(op, known, texts, where) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const [key, [kind, ...fallback]] of Object.entries(known.attrs)) {
    if (Object.hasOwn(texts, key) && key !== "num_arrays") {
      found[key] = checked(kind, meant(texts[key]));
      if (found[key] === undefined)
        refuse(`${where}: ${op}: ${key}=${shown(texts[key])} does not fit; needed: ${kind}`);
    } else if (fallback.length) [found[key]] = fallback;
    else refuse(`${where}: ${op}: the argument '${key}' is missing; needed: ${kind}`);
  }
  for (const [key, values] of Object.entries(COMPUTED))
    if (Object.hasOwn(texts, key) && !Object.hasOwn(known.attrs, key) && !values.includes(texts[key]))
      refuse(`${where}: ${op}: ${key}=${shown(texts[key])} cannot be computed here; ` +
        `${key}=${values[0]} can`);
  return found;
}

/** The graph of a `-symbol.json` file. An operator that is not among `operators` can be
 * read, but not run. @param {Bytes} file @param {Record<string, Operator>} operators
 * @returns {Graph} */
export function readGraph(file, operators = OPERATORS) {
  const data = parsedJson(bytesOf(file)), entries = data?.nodes;
  if (!isObject(data) || !Array.isArray(entries))
    refuse("the graph has no list 'nodes'; needed: a symbol file");
  const own = data.attrs === undefined ? {} : data.attrs;
  const version = isObject(own) && "mxnet_version" in own ? own.mxnet_version : ["int", 800];
  if (!Array.isArray(version) || version.length !== 2 || !Number.isInteger(version[1]))
    refuse(`the version ${shown(version)} is not readable; needed: ["int", 10901]`);
  if (version[1] < 10901)
    refuse(`the graph was written by version ${version[1]}; read it in Python, and export again`);
  const lists = entries.map((e) => e?.inputs).filter(Array.isArray);
  const nInputs = lists.reduce((n, refs) => n + refs.length, 0);
  if (entries.length > MAX_NODES || nInputs > MAX_INPUTS)
    refuse(`the graph has ${entries.length} nodes with ${nInputs} inputs; ` +
      `at most ${MAX_NODES} with ${MAX_INPUTS} are allowed`);
  const asked = new Map(); // of nodes whose operator is unknown: how many outputs are read
  for (const ref of [...lists.flat(), ...(Array.isArray(data.heads) ? data.heads : [])])
    if (Array.isArray(ref) && ref.every(Number.isInteger))
      asked.set(ref[0], Math.max(asked.get(ref[0]) ?? 1, ref[1] + 1));
  /** @type {Node[]} */
  const nodes = [];
  for (const [i, entry] of entries.entries()) {
    if (!isObject(entry) || typeof entry.name !== "string")
      refuse(`node ${i}: an object with a name is needed`);
    nodes.push(readNode(entry, nodes, operators, asked.get(i) ?? 1,
      `node ${i} (${shown(entry.name)})`));
  }
  const heads = data.heads === undefined ? [[nodes.length - 1, 0, 0]] : data.heads;
  if (Array.isArray(heads) && !(heads.length && heads.length <= MAX_HEADS))
    refuse(`the graph has ${heads.length} heads; needed: 1 to ${MAX_HEADS}`);
  return reached(nodes, readRefs(heads, nodes, "heads"));
}

/** @param {any} v */
const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);

/** @param {any} entries @param {Node[]} nodes @param {string} where @returns {[Node, number][]} */
function readRefs(entries, nodes, where) {
  if (!Array.isArray(entries)) refuse(`${where}: a list of inputs is needed`);
  return entries.map((/** @type {any} */ ref) => {
    const good = Array.isArray(ref) && (ref.length === 2 || ref.length === 3) &&
      ref.every(Number.isInteger) && ref[0] >= 0 && ref[0] < nodes.length;
    if (!good) refuse(`${where}: input ${shown(ref)} is not a node before this one`);
    const node = nodes[ref[0]];
    if (ref[1] < 0 || ref[1] >= node.outputs)
      refuse(`${where}: input ${shown(ref)} asks for an output that there is not`);
    return [node, ref[1]];
  });
}

/** @param {any} entry @param {Node[]} nodes @param {Record<string, Operator>} operators
 * @param {number} asked @param {string} where @returns {Node} */
function readNode(entry, nodes, operators, asked, where) {
  const inputs = readRefs(entry.inputs === undefined ? [] : entry.inputs, nodes, where);
  const { op, name } = entry;
  /** @type {Record<string, string>} */
  const texts = Object.assign(Object.create(null), entry.param, entry.attr, entry.attrs);
  for (const part of [entry.param, entry.attr, entry.attrs])
    if (part !== undefined && !(isObject(part) && Object.values(part).every(isText)))
      refuse(`${where}: attributes must be text, found ${shown(part)}`);
  if (op === "null") {
    if (inputs.length) refuse(`${where}: a variable has no inputs, found ${inputs.length}`);
    checkSpec(texts, where);
    return { name, op: null, attrs: {}, inputs, outputs: 1 };
  }
  if (!isText(op)) refuse(`${where}: an operator's name is needed, found ${shown(op)}`);
  if (!Object.hasOwn(operators, op)) return { name, op, attrs: texts, inputs, outputs: asked };
  const known = operators[op], attrs = completed(op, known, texts, where);
  const outputs = known.outputs ?? OUTPUTS[op]?.(attrs) ?? asked;
  if (!(outputs >= 1 && outputs <= 4096))
    refuse(`${where}: ${op}: ${outputs} outputs were asked for; 1 to 4096 are possible`);
  const wanted = known.inputs?.by ? known.inputs[String(attrs[known.inputs.by])] : known.inputs;
  if (wanted === null ? !inputs.length : inputs.length !== wanted)
    refuse(`${where}: ${op} needs ${wanted ?? "some"} inputs, found ${inputs.length}`);
  return { name, op, attrs, inputs, outputs };
}

/** @param {any} v */
const isText = (v) => typeof v === "string";

/** What a variable says of its shape and dtype must be possible.
 * @param {Record<string, string>} texts @param {string} where */
function checkSpec({ __dtype__: dtype, __shape__: text }, where) {
  const shape = text === undefined ? [] : KINDS.shape(meant(text));
  const kind = dtype === undefined || /^-[0-9]+$/.test(dtype) ? "float32"
    : /^[0-9]+$/.test(dtype) ? FLAGS[Number(dtype)] : dtype;
  const good = shape && shape.length <= DEEPEST && FLAGS.slice(0, 8).includes(kind) &&
    sizeOf(shape.filter((/** @type {number} */ n) => n > 0)) <= LARGEST;
  if (!good) refuse(`${where}: the shape or dtype is not readable: ${shown(text)}`);
}

/** The part of a graph that its heads are made of; no two variables may have one name.
 * @param {Node[]} nodes @param {[Node, number][]} heads @returns {Graph} */
function reached(nodes, heads) {
  const found = new Set(heads.map(([node]) => node)), names = new Set();
  for (const node of nodes.toReversed())
    if (found.has(node)) for (const [input] of node.inputs) found.add(input);
  const kept = nodes.filter((node) => found.has(node));
  for (const { op, name } of kept.filter((node) => node.op === null)) {
    if (names.has(name)) refuse(`two variables are called ${shown(name)}`);
    names.add(name);
  }
  return { nodes: kept, heads };
}

// -- the net -------------------------------------------------------------------------------

/** A trained net: a graph and the arrays of its parameters. */
export class Net {
  /** @param {Bytes} graph of `-symbol.json` @param {Bytes} params of `.params` */
  constructor(graph, params) {
    this.graph = readGraph(graph);
    /** @type {Map<string, Tensor>} */
    this.params = new Map();
    for (const [name, array] of readParams(params))
      this.params.set(name.replace(/^(arg|aux):/, ""), array);
    const free = this.graph.nodes.filter(({ op, name }) => op === null && !this.params.has(name));
    /** The variables that are no parameters, in the order in which Python takes them. */
    this.inputs = ORDER.map((i) => free[i]?.name);
    if (free.length !== ORDER.length)
      refuse(`the net has ${ORDER.length} inputs, but ${free.length} variables have no parameter`);
    for (const { op, attrs } of this.graph.nodes) {
      if (op === null) continue;
      if (!runs(op)) refuse(`this module has no operator ${shown(op)}; export the net again`);
      for (const [key, value] of Object.entries(ONLY[op] ?? {}))
        if (attrs[key] !== value) refuse(`${op}: ${key}=${attrs[key]} is not computed here`);
    }
  }

  /** The outputs for some inputs. @param {...Tensor} inputs @returns {Tensor[]} */
  predict(...inputs) {
    const values = this.trace(...inputs);
    return this.graph.heads.map(([node, i]) => /** @type {Tensor[]} */ (values.get(node))[i]);
  }

  /** What each node of the graph gives, for whoever wants to look inside.
   * @param {...Tensor} inputs @returns {Map<Node, Tensor[]>} */
  trace(...inputs) {
    if (inputs.length !== this.inputs.length)
      refuse(`${inputs.length} inputs are given, but ${this.inputs.join(", ")} are needed`);
    const given = new Map(this.params);
    inputs.forEach((x, i) => given.set(this.inputs[i], tensor(x.data, x.shape, x.dtype)));
    const values = new Map();
    for (const node of this.graph.nodes) {
      const { op, attrs, name } = node;
      if (op === null) values.set(node, [given.get(name)]);
      else {
        const read = node.inputs.map(([before, i]) => values.get(before)[i]);
        const found = LAYERS[op] ? LAYERS[op](attrs, ...read) : applied(op, attrs, ...read);
        values.set(node, [found].flat());
      }
    }
    return values;
  }
}

/** Whether an operator can be computed. @param {string} op */
const runs = (op) => Object.hasOwn(OPERATORS, op) &&
  (Object.hasOwn(LAYERS, op) || OPERATORS[op].each !== undefined);

/** The net in the two files that stand beside this module, or in others.
 * @param {string | URL} graph @param {string | URL} params @returns {Promise<Net>} */
export async function load(graph = beside("-symbol.json"), params = beside(PARAMS)) {
  const [a, b] = await Promise.all([graph, params].map(async (address) => {
    const answer = await fetch(address);
    if (!answer.ok) refuse(`cannot read ${address}: ${answer.status} ${answer.statusText}`);
    return answer.arrayBuffer();
  }));
  return new Net(a, b);
}

/** @param {string} ending */
const beside = (ending) => import.meta.url.replace(/\.m?js([?#].*)?$/, "") + ending;

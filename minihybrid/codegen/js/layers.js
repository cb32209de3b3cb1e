// -- operators that are more than one number at each place ---------------------------------

/** From attributes and inputs to the output, or to a list of several.
 * @type {Record<string, (n: any, ...inputs: Tensor[]) => Tensor | Tensor[]>} */
const LAYERS = {};
/** How many outputs, where attributes say it. @type {Record<string, (n: any) => number>} */
const OUTPUTS = {};
/** The only values of attributes that are computed here. @type {Record<string, any>} */
const ONLY = {};

/** An elementwise operator, on arrays. @param {string} name @param {any} n
 * @param {Tensor[]} inputs @returns {Tensor} */
function applied(name, n, ...inputs) {
  const { each, gives } = OPERATORS[name] ?? {}, { dtype } = inputs[0];
  if (!each) refuse(`this module has no operator '${name}'; export the net again`);
  if (inputs.some((x) => x.dtype !== dtype))
    refuse(`${name}: the inputs are ${inputs.map((x) => x.dtype).join(" and ")}; ` +
      "one dtype is needed");
  return mapped(gives?.[dtype] ?? dtype, each(n), ...inputs);
}

/** @param {Tensor} x what functions leave the whole numbers for */
const floating = (x) => (x.dtype === "float64" ? "float64" : "float32");

// -- products
LAYERS.FullyConnected = (n, x, weight, bias) => {
  const [m, k] = weight.shape, lead = n.flatten ? x.shape.slice(0, 1) : x.shape.slice(0, -1);
  const rows = sizeOf(lead);
  if (weight.shape.length !== 2 || x.data.length !== rows * k)
    refuse(`FullyConnected: data ${shown(x.shape)} does not fit weights ${shown(weight.shape)}`);
  const out = made([...lead, m], x.dtype);
  products(x.data, weight.data, out.data, rows, m, k);
  return bias ? mapped(x.dtype, (a, b) => a + b, out, bias) : out;
};
LAYERS.batch_dot = (n, a, b) => {
  const axes = a.shape.length, turned = [...a.shape.keys()];
  turned.push(...turned.splice(axes - 2).reverse());
  const left = n.transpose_a ? transposed(a, turned) : a;
  const right = n.transpose_b ? b : transposed(b, turned);
  const [m, k] = left.shape.slice(axes - 2), lead = left.shape.slice(0, -2);
  const wide = right.shape[axes - 2], batch = sizeOf(lead);
  if (axes < 3 || !same(right.shape, [...lead, wide, k]))
    refuse(`batch_dot: shapes ${shown(a.shape)} and ${shown(b.shape)} do not go together`);
  const out = made([...lead, m, wide], a.dtype);
  for (let i = 0; i < batch; i++)
    products(left.data, right.data, out.data, m, wide, k, [i * m * k, i * wide * k, i * m * wide]);
  return out;
};
LAYERS.dot = (n, a, b) => {
  const turn = (/** @type {Tensor} */ x) => transposed(x, [...x.shape.keys()].reverse());
  const left = n.transpose_a ? turn(a) : a, k = left.shape[left.shape.length - 1];
  const right = n.transpose_b ? b : transposed(b, [...b.shape.keys()].map((i, _, { length }) =>
    (i + 1) % length));
  const lead = left.shape.slice(0, -1), shape = [...lead, ...right.shape.slice(0, -1)];
  if (k !== right.shape[right.shape.length - 1])
    refuse(`dot: shapes ${shown(a.shape)} and ${shown(b.shape)} do not go together`);
  const out = made(shape.length ? shape : [1], a.dtype), rows = sizeOf(lead);
  products(left.data, right.data, out.data, rows, sizeOf(shape.slice(lead.length)), k);
  return out;
};

// -- normalization: (x - mean) * scale * gamma + beta
/** @param {Tensor} x @param {(place: number) => number} group of a place: which mean is its
 * @param {(place: number) => number} channel which gamma @param {ArrayLike<number>} mean
 * @param {ArrayLike<number>} scale @param {ArrayLike<number>} gamma @param {Tensor} beta */
function normalized(x, group, channel, mean, scale, gamma, beta) {
  const out = made(x.shape, x.dtype);
  for (let i = 0; i < x.data.length; i++) {
    const g = group(i), c = channel(i);
    out.data[i] = (x.data[i] - mean[g]) * scale[g] * gamma[c] + beta.data[c];
  }
  return out;
}
/** Mean and 1 / deviation of each row. @param {Tensor} rows @param {number} eps */
function statistics({ data, shape: [count, n] }, eps) {
  const mean = new Float64Array(count), scale = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    let sum = 0, squares = 0;
    for (let j = i * n; j < i * n + n; j++) sum += data[j];
    mean[i] = sum / n;
    for (let j = i * n; j < i * n + n; j++) squares += (data[j] - mean[i]) ** 2;
    scale[i] = 1 / Math.sqrt(squares / n + eps);
  }
  return { mean, scale };
}
ONLY.BatchNorm = { "output_mean_var": false };
LAYERS.BatchNorm = (n, x, gamma, beta, mean, variance) => {
  const axis = axisOf(n.axis, x.shape.length), inner = sizeOf(x.shape.slice(axis + 1));
  const count = x.shape[axis], out = made(x.shape, x.dtype);
  for (const v of [gamma, beta, mean, variance])
    if (v.data.length !== count) refuse(`BatchNorm: ${count} channels, ${v.data.length} numbers`);
  const scale = Float64Array.from(variance.data, (v) => 1 / Math.sqrt(v + n.eps));
  const factor = n.fix_gamma ? new Float64Array(count).fill(1) : gamma.data;
  for (let at = 0, c = 0; at < x.data.length; at += inner, c = (c + 1) % count)
    for (let i = at; i < at + inner; i++)
      out.data[i] = (x.data[i] - mean.data[c]) * scale[c] * factor[c] + beta.data[c];
  return out;
};
ONLY.LayerNorm = { "output_mean_var": false };
LAYERS.LayerNorm = (n, x, gamma, beta) => {
  const axis = axisOf(n.axis, x.shape.length), count = x.shape[axis];
  const inner = sizeOf(x.shape.slice(axis + 1));
  const { mean, scale } = statistics(asRows(x, [axis]), n.eps);
  return normalized(x, (i) => Math.floor(i / (inner * count)) * inner + (i % inner),
    (i) => Math.floor(i / inner) % count, mean, scale, gamma.data, beta);
};
ONLY.GroupNorm = { "output_mean_var": false };
LAYERS.GroupNorm = (n, x, gamma, beta) => {
  const [batch, channels] = x.shape, inner = sizeOf(x.shape.slice(2));
  if (!(channels % n.num_groups === 0)) refuse(`GroupNorm: ${channels} channels do not divide`);
  const size = (channels / n.num_groups) * inner, wide = gamma.data.length;
  const rows = shaped(x, [batch * n.num_groups, size]);
  const { mean, scale } = statistics(rows, n.eps), part = (channels * inner) / wide;
  return normalized(x, (i) => Math.floor(i / size), (i) => Math.floor(i / part) % wide,
    mean, scale, gamma.data, beta);
};
LAYERS.InstanceNorm = (n, x, gamma, beta) =>
  LAYERS.GroupNorm({ num_groups: x.shape[1], eps: n.eps }, x, gamma, beta);
LAYERS.L2Normalization = (n, x) => {
  const all = [...x.shape.keys()];
  /** @type {Record<string, number[]>} */
  const over = { instance: all.slice(1), channel: [1], spatial: all.slice(2) };
  const total = reduced(x, { axis: over[n.mode], keepdims: true },
    (row, i, end) => { let s = 0; for (; i < end; i++) s += row[i] * row[i]; return s; });
  return mapped(x.dtype, (a, s) => a / Math.sqrt(s + n.eps), x, total);
};
ONLY.Dropout = { "mode": "training" };
LAYERS.Dropout = (_, x) => x;

// -- activations
LAYERS.Activation = (n, x) => applied(n.act_type, {}, x);
LAYERS.LeakyReLU = (n, x, gamma) => {
  const alpha = 1.6732632423543772, lambda = 1.0507009873554805, kind = floating(x);
  const slope = n.act_type === "rrelu" ? (n.lower_bound + n.upper_bound) / 2 : n.slope;
  if (n.act_type === "prelu") {
    const after = x.shape.length > 1 ? x.shape.length - 2 : 0;
    const wide = shaped(gamma, [gamma.data.length, ...Array(after).fill(1)]);
    return mapped(kind, (a, g) => (a > 0 ? a : a * g), x, wide);
  }
  /** @type {Record<string, (a: number) => number>} */
  const kinds = {
    gelu: (a) => a * (erf(a * Math.SQRT1_2) + 1) * 0.5,
    elu: (a) => (a > 0 ? a : Math.expm1(a) * slope),
    selu: (a) => lambda * (a > 0 ? a : alpha * Math.expm1(a)),
  };
  return mapped(kind, kinds[n.act_type] ?? ((a) => (a > 0 ? a : a * slope)), x);
};
/** @param {any} n @param {Tensor} x @param {boolean} log */
function softmax({ axis: at, temperature, dtype }, x, log) {
  const axis = axisOf(at, x.shape.length), n = x.shape[axis];
  const inner = sizeOf(x.shape.slice(axis + 1)), out = made(x.shape, dtype ?? floating(x));
  const hot = temperature ?? 1, y = out.data;
  for (let start = 0; start < y.length; start += (start + 1) % inner ? 1 : inner * (n - 1) + 1) {
    const end = start + n * inner;
    let top = -Infinity, sum = 0;
    for (let i = start; i < end; i += inner) top = Math.max(top, x.data[i] / hot);
    for (let i = start; i < end; i += inner) sum += Math.exp(x.data[i] / hot - top);
    for (let i = start; i < end; i += inner) {
      const a = x.data[i] / hot - top;
      y[i] = log ? a - Math.log(sum) : Math.exp(a) / sum;
    }
  }
  return out;
}
ONLY.softmax = { "use_length": false };
LAYERS.softmax = (n, x) => softmax(n, x, false);
LAYERS.log_softmax = (n, x) => softmax(n, x, true);
LAYERS.SoftmaxActivation = (n, x) => softmax({ axis: n.mode === "channel" ? 1 : -1 }, x, false);

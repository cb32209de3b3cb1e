// -- the same numbers in other places, and fewer numbers -----------------------------------

LAYERS.Flatten = (_, x) => shaped(x, [x.shape[0], sizeOf(x.shape.slice(1))]);
LAYERS.Reshape = (n, x) => shaped(x, n.reverse
  ? reshaped([...x.shape].reverse(), [...n.shape].reverse()).reverse()
  : reshaped(x.shape, n.shape));
/** The shape that Reshape's codes mean: 0 keeps a length, -1 is found, -2 keeps the rest,
 * -3 joins two, -4 splits one. @param {number[]} old @param {number[]} codes */
function reshaped(old, codes) {
  const found = [];
  for (let i = 0, c = 0; c < codes.length; c++) {
    const code = codes[c];
    if (code === -2) { found.push(...old.slice(i)); i = old.length; }
    else if (code === -3) { found.push(old[i] * old[i + 1]); i += 2; }
    else if (code === -4) {
      const [left, right] = [codes[++c], codes[++c]];
      found.push(left === -1 ? old[i] / right : left, right === -1 ? old[i] / left : right);
      i++;
    } else { found.push(code === 0 ? old[i] : code); i++; }
  }
  const rest = sizeOf(old) / sizeOf(found.filter((v) => v !== -1));
  const out = found.map((v) => (v === -1 ? rest : v));
  if (!out.every((v) => v >= 0 && Number.isInteger(v)) || sizeOf(out) !== sizeOf(old))
    refuse(`Reshape: ${shown(old)} does not fit into ${shown(codes)}`);
  return out;
}
ONLY.reshape_like = { "lhs_begin": null, "lhs_end": null, "rhs_begin": null, "rhs_end": null };
LAYERS.reshape_like = (_, x, like) => shaped(x, like.shape);
LAYERS.expand_dims = (n, x) =>
  shaped(x, x.shape.toSpliced(axisOf(n.axis, x.shape.length + 1), 0, 1));
LAYERS.squeeze = (n, x) => {
  const gone = n.axis === null ? [...x.shape.keys()].filter((i) => x.shape[i] === 1)
    : [n.axis].flat().map((i) => axisOf(i, x.shape.length));
  const kept = x.shape.filter((_, i) => !gone.includes(i));
  return shaped(x, kept.length ? kept : [1]);
};
LAYERS._copy = LAYERS.BlockGrad = LAYERS.make_loss = LAYERS.MakeLoss = (_, x) => x;
LAYERS.Cast = (n, x) => cast(x, n.dtype);
/** @param {Tensor} x @param {string} dtype */
function cast(x, dtype) {
  if (x.dtype === dtype) return x;
  const out = made(x.shape, dtype), whole = !dtype.startsWith("float");
  for (let i = 0; i < x.data.length; i++)
    out.data[i] = dtype === "bool" ? Number(x.data[i] !== 0)
      : !whole ? x.data[i] : Number.isFinite(x.data[i]) ? Math.trunc(x.data[i]) : -(2 ** 31);
  return out;
}
LAYERS.transpose = (n, x) =>
  transposed(x, n.axes.length ? n.axes : [...x.shape.keys()].reverse());
LAYERS.SwapAxis = (n, x) => {
  const axes = [...x.shape.keys()], [a, b] = [n.dim1, n.dim2].map((i) => axisOf(i, axes.length));
  [axes[a], axes[b]] = [b, a];
  return transposed(x, axes);
};
LAYERS.broadcast_to = (n, x) => spread(x, n.shape.map(
  (/** @type {number} */ v, /** @type {number} */ i) => v || x.shape[i]));
ONLY.broadcast_like = { "lhs_axes": null, "rhs_axes": null };
LAYERS.broadcast_like = (_, x, like) => spread(x, like.shape);
/** @param {Tensor} x @param {number[]} shape */
function spread(x, shape) {
  if (!same(common([x, { ...x, shape }]), shape))
    refuse(`an array of shape ${shown(x.shape)} cannot be stretched to ${shown(shape)}`);
  return stretched(x, shape);
}
LAYERS.reverse = (n, x) => {
  const steps = stepsOf(x.shape);
  /** @type {number[]} */
  const turned = n.axis.map((/** @type {number} */ i) => axisOf(i, steps.length));
  const offset = turned.reduce((at, i) => at + (x.shape[i] - 1) * steps[i], 0);
  return gathered(x, x.shape, steps.map((s, i) => (turned.includes(i) ? -s : s)), offset);
};

// -- parts and wholes
/** Python's slices of each axis. @param {Tensor} x @param {(number | null)[]} begin
 * @param {(number | null)[]} end @param {(number | null)[]} step */
function sliced(x, begin, end, step = []) {
  if (begin.length > x.shape.length) refuse(`slice: too many ranges for ${shown(x.shape)}`);
  const steps = stepsOf(x.shape);
  let offset = 0;
  const parts = x.shape.map((n, i) => {
    const by = step[i] ?? 1, low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
    if (by === 0) refuse("slice: a step is 0");
    const place = (/** @type {number | null | undefined} */ v, /** @type {number} */ edge) =>
      v == null ? edge : Math.min(Math.max(v < 0 ? v + n : v, low), high);
    const start = place(begin[i], by > 0 ? low : high), stop = place(end[i], by > 0 ? high : low);
    const length = Math.max(0, Math.ceil((stop - start) / by));
    offset += length ? start * steps[i] : 0;
    return [length, by * steps[i]];
  });
  return gathered(x, parts.map(([n]) => n), parts.map(([, by]) => by), offset);
}
LAYERS.slice = (n, x) => sliced(x, n.begin, n.end, n.step);
LAYERS.slice_axis = (n, x) => {
  const before = Array(axisOf(n.axis, x.shape.length)).fill(null);
  return sliced(x, [...before, n.begin], [...before, n.end]);
};
LAYERS.slice_like = (n, x, like) => {
  const axes = n.axes.length ? n.axes : [...x.shape.keys()], wanted = [...x.shape];
  for (const i of axes)
    wanted[axisOf(i, wanted.length)] = like.shape[axisOf(i, like.shape.length)];
  return sliced(x, [], wanted);
};
OUTPUTS.SliceChannel = (n) => n.num_outputs;
LAYERS.SliceChannel = (n, x) => {
  const axis = axisOf(n.axis, x.shape.length), part = x.shape[axis] / n.num_outputs;
  if (!Number.isInteger(part) || (n.squeeze_axis && part !== 1))
    refuse(`SliceChannel: ${shown(x.shape)} does not split into ${n.num_outputs} equal parts`);
  const before = Array(axis).fill(null);
  return Array.from({ length: n.num_outputs }, (_, i) => {
    const found = sliced(x, [...before, i * part], [...before, (i + 1) * part]);
    return n.squeeze_axis ? LAYERS.squeeze({ axis }, found) : found;
  }).flat();
};
LAYERS.Concat = (n, ...parts) => {
  const [{ shape, dtype }] = parts, axis = axisOf(n.dim, shape.length);
  const rest = shape.toSpliced(axis, 1);
  if (parts.some((p) => !same(p.shape.toSpliced(axis, 1), rest) || p.dtype !== dtype))
    refuse(`Concat: ${shown(parts.map((p) => p.shape))} do not go together`);
  const total = parts.reduce((sum, p) => sum + p.shape[axis], 0);
  const out = made(shape.with(axis, total), dtype), outer = sizeOf(shape.slice(0, axis));
  let at = 0;
  for (let i = 0; i < outer; i++)
    for (const { data } of parts) {
      const n = data.length / outer;
      out.data.set(data.subarray(i * n, i * n + n), at);
      at += n;
    }
  return out;
};
LAYERS.stack = (n, ...parts) => {
  const wide = parts.map((x) => LAYERS.expand_dims({ axis: n.axis }, x)).flat();
  return LAYERS.Concat({ dim: axisOf(n.axis, wide[0].shape.length) }, ...wide);
};
LAYERS.take = (n, x, index) => {
  const axis = axisOf(n.axis, x.shape.length), length = x.shape[axis];
  const inner = sizeOf(x.shape.slice(axis + 1)), outer = sizeOf(x.shape.slice(0, axis));
  const out = made(x.shape.toSpliced(axis, 1, ...index.shape), x.dtype);
  if (!length && index.data.length) refuse("take: there is nothing to take from");
  let to = 0;
  for (let i = 0; i < outer; i++)
    for (const place of index.data) {
      const at = Math.trunc(place) || 0;
      const kept = n.mode === "wrap" ? mod(at, length) : Math.min(Math.max(at, 0), length - 1);
      const from = (i * length + kept) * inner;
      for (let j = 0; j < inner; j++) out.data[to++] = x.data[from + j];
    }
  return out;
};
LAYERS.Embedding = (_, index, weight) => LAYERS.take({ axis: 0, mode: "clip" }, weight, index);
LAYERS.one_hot = (n, index) => {
  const out = made([...index.shape, n.depth], n.dtype);
  out.data.fill(n.off_value);
  index.data.forEach((/** @type {number} */ at, /** @type {number} */ i) => {
    if (at >= 0 && at < n.depth) out.data[i * n.depth + Math.trunc(at)] = n.on_value;
  });
  return out;
};
LAYERS.where = (_, test, a, b) => {
  const row = test.shape.length === 1 && a.shape.length > 1; // then it chooses rows
  const wide = row ? shaped(test, [test.shape[0], ...a.shape.slice(1).fill(1)]) : test;
  return mapped(a.dtype, (t, x, y) => (t ? x : y), wide, a, b);
};
LAYERS.add_n = (_, ...parts) =>
  parts.reduce((sum, x) => mapped(sum.dtype, (a, b) => a + b, sum, x));

// -- reductions
/** Where a number, or NaN, is first. @param {any} row @param {number} wanted */
const place = (row, wanted) => row.findIndex((/** @type {number} */ v) =>
  v === wanted || Object.is(v, wanted));
/** @type {Record<string, (row: any, start: number, end: number) => number>} */
const ENDS = {
  sum: (row, i, end) => { let s = 0; for (; i < end; i++) s += row[i]; return s; },
  prod: (row, i, end) => { let s = 1; for (; i < end; i++) s *= row[i]; return s; },
  max: (row, i, end) => {
    let s = row[i];
    for (; i < end; i++) if (row[i] > s || row[i] !== row[i]) s = row[i];
    return s;
  },
  min: (row, i, end) => {
    let s = row[i];
    for (; i < end; i++) if (row[i] < s || row[i] !== row[i]) s = row[i];
    return s;
  },
  mean: (row, i, end) => ENDS.sum(row, i, end) / (end - i),
  argmax: (row, i, end) => place(row.subarray(i, end), ENDS.max(row, i, end)),
  argmin: (row, i, end) => place(row.subarray(i, end), ENDS.min(row, i, end)),
};
LAYERS.sum = (n, x) => reduced(x, n, ENDS.sum);
LAYERS.prod = (n, x) => reduced(x, n, ENDS.prod);
LAYERS.max = (n, x) => reduced(x, n, ENDS.max);
LAYERS.min = (n, x) => reduced(x, n, ENDS.min);
LAYERS.mean = (n, x) => reduced(cast(x, floating(x)), n, ENDS.mean);
LAYERS.argmax = (n, x) => reduced(cast(x, "float32"), n, ENDS.argmax);
LAYERS.argmin = (n, x) => reduced(cast(x, "float32"), n, ENDS.argmin);

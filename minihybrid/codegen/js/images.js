// -- windows over images (N, C, *size), whose size has one to three axes -------------------

/** The numbers of windows, always of three axes.
 * @typedef {{size: number[], outs: number[], kernel: number[], stride: number[],
 *   dilate: number[], pad: number[]}} Windows */

/** @param {string} op @param {any} n attributes @param {number[]} shape of the data
 * @returns {Windows} without `outs` */
function windows(op, n, shape) {
  const axes = n.kernel.length, more = 3 - axes;
  if (axes < 1 || axes > 3 || shape.length !== axes + 2)
    refuse(`${op}: data of shape ${shown(shape)} does not fit kernel=${shown(n.kernel)}`);
  /** @param {string} name @param {number} usual @param {number} least */
  const three = (name, usual, least) => {
    const own = n[name]?.length ? n[name] : Array(axes).fill(usual);
    if (own.length !== axes || own.some((/** @type {number} */ v) => v < least))
      refuse(`${op}: ${name}=${shown(own)} does not fit kernel=${shown(n.kernel)}`);
    return [...Array(more).fill(usual), ...own];
  };
  return {
    size: [...Array(more).fill(1), ...shape.slice(2)], outs: [],
    kernel: [...Array(more).fill(1), ...three("kernel", 1, 1).slice(more)],
    stride: three("stride", 1, 1), dilate: three("dilate", 1, 1), pad: three("pad", 0, 0),
  };
}

/** Where each tap of the kernel meets the data: rows of (tap, first output, first number,
 * how many), in which outputs lie side by side, and numbers a stride apart.
 * @param {Windows} g */
function meetings({ size, outs, kernel, stride, dilate, pad }) {
  const taps = sizeOf(kernel), [, , across] = stride;
  /** @type {number[]} */
  const found = [];
  if (!(taps * outs[0] * outs[1] <= 2 ** 24)) refuse(`windows of ${taps} taps are too many here`);
  for (let tap = 0; tap < taps; tap++) {
    const at = [Math.floor(tap / kernel[1] / kernel[2]), Math.floor(tap / kernel[2]) % kernel[1],
      tap % kernel[2]];
    const from = at.map((k, i) => k * dilate[i] - pad[i]);
    const first = Math.max(0, Math.ceil(-from[2] / across));
    const count = Math.min(outs[2], Math.ceil((size[2] - from[2]) / across)) - first;
    if (count <= 0) continue;
    for (let z = 0; z < outs[0]; z++) {
      const deep = z * stride[0] + from[0];
      if (deep < 0 || deep >= size[0]) continue;
      for (let y = 0; y < outs[1]; y++) {
        const high = y * stride[1] + from[1];
        if (high < 0 || high >= size[1]) continue;
        const out = (z * outs[1] + y) * outs[2] + first;
        const data = (deep * size[1] + high) * size[2] + first * across + from[2];
        const last = found.length - 4; // does this row go on where the one before ends?
        if (across === 1 && found[last] === tap && found[last + 1] + found[last + 3] === out &&
          found[last + 2] + found[last + 3] === data) found[last + 3] += count;
        else found.push(tap, out, data, count);
      }
    }
  }
  return Int32Array.from(found);
}

/** @param {Windows} g how long the outputs of a convolution are, axis by axis */
const lengths = ({ size, kernel, stride, dilate, pad }) => size.map((n, i) =>
  Math.floor((n + 2 * pad[i] - dilate[i] * (kernel[i] - 1) - 1) / stride[i]) + 1);

/** @param {string} op @param {Tensor} x @param {Tensor} weight @param {any} n
 * @param {number[]} wanted the first two lengths of the weights */
function checkWeights(op, x, weight, n, wanted) {
  const groups = n.num_group;
  if (groups < 1 || x.shape[1] % groups || n.num_filter % groups ||
    !same(weight.shape, [...wanted, ...n.kernel]))
    refuse(`${op}: data ${shown(x.shape)}, weights ${shown(weight.shape)} and ` +
      `num_group=${groups} do not fit`);
}

LAYERS.Convolution = (n, x, weight, bias) => {
  const g = windows("Convolution", n, x.shape), [batch, channels] = x.shape;
  const filters = n.num_filter, inner = channels / n.num_group, per = filters / n.num_group;
  checkWeights("Convolution", x, weight, n, [filters, inner]);
  g.outs = lengths(g);
  const out = made([batch, filters, ...g.outs.slice(3 - n.kernel.length)], x.dtype);
  const size = sizeOf(g.size), taps = sizeOf(g.kernel), k = inner * taps, wide = sizeOf(g.outs);
  const rows = meetings(g), step = g.stride[2], { data } = x;
  // What each output reads becomes a row, and then all is a product; padding stays zero.
  const { data: seen } = made([wide, k], x.dtype);
  for (let part = 0; part < batch * n.num_group; part++) {
    for (let c = 0; c < inner; c++) {
      const from = (part * inner + c) * size;
      for (let r = 0; r < rows.length; r += 4) {
        const end = rows[r + 1] + rows[r + 3], tap = c * taps + rows[r];
        for (let i = rows[r + 1], j = from + rows[r + 2]; i < end; i++, j += step)
          seen[i * k + tap] = data[j];
      }
    }
    const group = part % n.num_group;
    products(weight.data, seen, out.data, per, wide, k, [group * per * k, 0, part * per * wide]);
  }
  if (bias) for (let o = 0; o < batch * filters; o++)
    for (let i = o * wide; i < (o + 1) * wide; i++) out.data[i] += bias.data[o % filters];
  return out;
};

LAYERS.Deconvolution = (n, x, weight, bias) => {
  const small = windows("Deconvolution", n, x.shape), more = 3 - n.kernel.length;
  const [batch, channels] = x.shape, filters = n.num_filter;
  const inner = filters / n.num_group, per = channels / n.num_group;
  checkWeights("Deconvolution", x, weight, n, [channels, inner]);
  const full = small.size.map((s, i) =>
    (s - 1) * small.stride[i] + small.dilate[i] * (small.kernel[i] - 1) + 1);
  const before = Array(more).fill(0);
  const adj = [...before, ...n.adj], target = [...before, ...n.target_shape];
  const size = full.map((f, i) => (n.target_shape.length ? target[i] || f
    : f - 2 * small.pad[i] + (adj[i] ?? 0)));
  const pad = n.target_shape.length ? full.map((f, i) => Math.ceil((f - size[i]) / 2)) : small.pad;
  const g = { ...small, size, pad, outs: small.size };
  if (!same(lengths(g), small.size) || pad.some((p) => p < 0))
    refuse(`Deconvolution: data ${shown(x.shape)} cannot give the size ${shown(size)}`);
  const out = made([batch, filters, ...size.slice(more)], x.dtype);
  const plane = new Float64Array(sizeOf(size)), taps = sizeOf(g.kernel);
  const rows = meetings(g), step = g.stride[2], { data } = x, w = weight.data;
  for (let o = 0; o < batch * filters; o++) {
    const filter = o % filters, image = (o - filter) / filters, group = Math.floor(filter / inner);
    plane.fill(bias ? bias.data[filter] : 0);
    for (let c = group * per; c < group * per + per; c++) {
      const from = (image * channels + c) * sizeOf(g.outs);
      for (let r = 0; r < rows.length; r += 4) {
        const factor = w[(c * inner + (filter % inner)) * taps + rows[r]];
        const end = from + rows[r + 1] + rows[r + 3];
        for (let j = from + rows[r + 1], i = rows[r + 2]; j < end; j++, i += step)
          plane[i] += factor * data[j];
      }
    }
    out.data.set(plane, o * plane.length);
  }
  return out;
};

LAYERS.Pooling = (n, x) => {
  const sizes = x.shape.slice(2), ones = sizes.map(() => 1);
  const whole = { kernel: sizes, stride: ones, pad: ones.map(() => 0) };
  const own = n.global_pool ? { ...n, ...whole } : n, g = windows("Pooling", own, x.shape);
  const { kernel, stride, pad, size } = g, type = n.pool_type;
  if (kernel.some((k, i) => pad[i] >= k || k > size[i] + 2 * pad[i]))
    refuse(`Pooling: kernel=${shown(own.kernel)} does not fit data ${shown(x.shape)}`);
  const convention = n.global_pool ? "valid" : n.pooling_convention;
  g.outs = size.map((s, i) => convention === "same" ? Math.ceil((s + 2 * pad[i]) / stride[i])
    : Math.floor((s + 2 * pad[i] - kernel[i] + (convention === "full" ? stride[i] - 1 : 0))
      / stride[i]) + 1);
  const out = made([...x.shape.slice(0, 2), ...g.outs.slice(3 - sizes.length)],
    type === "lp" && n.p_value === 2 ? floating(x) : x.dtype);
  const counts = countsOf(g, type === "avg" && n.count_include_pad !== false && !n.global_pool);
  const plane = new Float64Array(sizeOf(g.outs)), rows = meetings(g), [, , step] = stride;
  const lowest = x.dtype === "float64" ? -Number.MAX_VALUE : -3.4028234663852886e38;
  for (let c = 0; c < x.shape[0] * x.shape[1]; c++) {
    const from = c * sizeOf(size);
    plane.fill(type === "max" ? -Infinity : 0);
    for (let r = 0; r < rows.length; r += 4) {
      const end = rows[r + 1] + rows[r + 3];
      for (let i = rows[r + 1], j = from + rows[r + 2]; i < end; i++, j += step) {
        const v = x.data[j];
        if (type === "max") plane[i] = v > plane[i] || v !== v ? v : plane[i];
        else plane[i] += type === "lp" && n.p_value === 2 ? v * v : v;
      }
    }
    if (type === "avg") for (let i = 0; i < plane.length; i++) plane[i] /= counts[i];
    if (type === "max")
      for (let i = 0; i < plane.length; i++) if (!counts[i]) plane[i] = lowest;
    if (type === "lp" && n.p_value === 2) plane.forEach((v, i) => (plane[i] = Math.sqrt(v)));
    out.data.set(plane, c * plane.length);
  }
  return out;
};

/** How many numbers each window has; with padding, if it counts. @param {Windows} g
 * @param {boolean} padding */
function countsOf({ size, outs, kernel, stride, pad }, padding) {
  const along = size.map((n, i) => Array.from({ length: outs[i] }, (_, at) => {
    const start = at * stride[i] - pad[i], more = padding ? pad[i] : 0;
    return Math.max(0, Math.min(start + kernel[i], n + more) - Math.max(start, -more));
  }));
  return along[0].flatMap((a) => along[1].flatMap((b) => along[2].map((c) => a * b * c)));
}

LAYERS.Pad = (n, x) => {
  const wide = n.pad_width, axes = x.shape.length;
  if (wide.length !== 2 * axes || wide.some((/** @type {number} */ v) => v < 0))
    refuse(`Pad: pad_width=${shown(wide)} does not fit data ${shown(x.shape)}`);
  const out = made(x.shape.map((s, i) => wide[2 * i] + s + wide[2 * i + 1]), x.dtype);
  const from = stepsOf(x.shape), to = stepsOf(out.shape);
  for (let i = 0; i < out.data.length; i++) {
    let at = 0;
    for (let axis = 0; axis < axes && at >= 0; axis++) {
      const s = x.shape[axis];
      const place = (Math.floor(i / to[axis]) % out.shape[axis]) - wide[2 * axis];
      const mirrored = place < 0 ? -place : place >= s ? 2 * s - 2 - place : place;
      const kept = n.mode === "reflect" ? mirrored : Math.min(Math.max(place, 0), s - 1);
      if (kept < 0 || kept >= s) refuse(`Pad: data ${shown(x.shape)} is too small to be reflected`);
      at = n.mode === "constant" && kept !== place ? -1 : at + kept * from[axis];
    }
    out.data[i] = at < 0 ? n.constant_value : x.data[at];
  }
  return out;
};

// -- arrays: numbers side by side, and the ways through them -------------------------------

const MOST = 2 ** 28; // numbers of one array here

/** @param {number[]} shape @param {string} dtype @returns {Tensor} */
function made(shape, dtype) {
  if (!(sizeOf(shape) <= MOST) || shape.length > DEEPEST || shape.some((n) => n < 0))
    refuse(`an array of shape ${shown(shape)} is too large; at most ${MOST} numbers are possible`);
  return { shape, dtype, data: new STORE[dtype](sizeOf(shape)) };
}

/** Whether two shapes are one. @param {number[]} a @param {number[]} b */
const same = (a, b) => a.length === b.length && a.every((n, i) => n === b[i]);

/** Numbers as an array: a copy in its dtype. @param {ArrayLike<number>} numbers
 * @param {number[]} shape @param {string} dtype @returns {Tensor} */
export function tensor(numbers, shape, dtype = "float32") {
  if (!Object.hasOwn(STORE, dtype)) refuse(`an array cannot have the dtype ${shown(dtype)}`);
  if (!Array.isArray(shape) || !shape.every(KINDS.integer) || numbers.length !== sizeOf(shape))
    refuse(`${numbers.length} numbers do not make an array of shape ${shown(shape)}`);
  const out = made([...shape], dtype);
  out.data.set(numbers);
  return out;
}

/** The same numbers under another shape. @param {Tensor} x @param {number[]} shape */
function shaped(x, shape) {
  if (sizeOf(shape) !== x.data.length)
    refuse(`an array of shape ${shown(x.shape)} cannot have the shape ${shown(shape)}`);
  return { ...x, shape };
}

/** An axis, counted from the front. @param {number} axis @param {number} n how many there are */
function axisOf(axis, n) {
  if (!(axis >= -n && axis < n)) refuse(`axis ${axis} is none of ${n} axes`);
  return axis < 0 ? axis + n : axis;
}

/** How far each axis is from one number to the next. @param {number[]} shape */
function stepsOf(shape) {
  const steps = [];
  for (let i = shape.length - 1, step = 1; i >= 0; step *= shape[i--]) steps[i] = step;
  return steps;
}

/** The numbers of x that begin at an offset and lie so many steps apart.
 * @param {Tensor} x @param {number[]} shape @param {number[]} steps @param {number} offset */
function gathered(x, shape, steps, offset = 0) {
  const out = made(shape, x.dtype), { data } = x, places = shape.map(() => 0);
  const n = out.data.length, last = shape.length - 1;
  const length = shape[last] ?? 1, step = steps[last] ?? 0;
  for (let i = 0, at = offset; i < n; ) {
    for (let j = 0, from = at; j < length; j++, from += step) out.data[i++] = data[from];
    for (let axis = last - 1; axis >= 0; axis--) {
      at += steps[axis];
      if (++places[axis] < shape[axis]) break;
      at -= steps[axis] * shape[axis];
      places[axis] = 0;
    }
  }
  return out;
}

/** @param {Tensor} x @param {number[]} axes */
function transposed(x, axes) {
  const steps = stepsOf(x.shape), order = axes.map((axis) => axisOf(axis, x.shape.length));
  if (order.length !== steps.length || new Set(order).size !== order.length)
    refuse(`axes ${shown(axes)} are not each axis of ${shown(x.shape)} once`);
  return gathered(x, order.map((axis) => x.shape[axis]), order.map((axis) => steps[axis]));
}

/** The shape that arrays stretch to, by NumPy's rule. @param {Tensor[]} arrays */
function common(arrays) {
  const n = Math.max(...arrays.map((x) => x.shape.length));
  return Array.from({ length: n }, (_, i) => {
    const lengths = arrays.map(({ shape }) => shape[shape.length - n + i] ?? 1);
    const wanted = lengths.find((m) => m !== 1) ?? 1;
    if (lengths.some((m) => m !== 1 && m !== wanted))
      refuse(`shapes ${shown(arrays.map((x) => x.shape))} do not go together`);
    return wanted;
  });
}

/** @param {Tensor} x @param {number[]} shape one that it can be stretched to */
function stretched(x, shape) {
  if (same(x.shape, shape)) return x;
  const less = shape.length - x.shape.length, steps = stepsOf(x.shape);
  return gathered(x, shape, shape.map((_, i) => ((x.shape[i - less] ?? 1) === 1 ? 0
    : steps[i - less])));
}

/** A function of numbers at each place of arrays. @param {string} dtype of the result
 * @param {(...numbers: number[]) => number} f @param {Tensor[]} arrays */
function mapped(dtype, f, ...arrays) {
  const out = made(common(arrays), dtype), y = out.data, n = y.length;
  const [a, b, c] = arrays.map((x) => stretched(x, out.shape).data);
  if (!b) for (let i = 0; i < n; i++) y[i] = f(a[i]);
  else if (!c) for (let i = 0; i < n; i++) y[i] = f(a[i], b[i]);
  else for (let i = 0; i < n; i++) y[i] = f(a[i], b[i], c[i]);
  return out;
}

/** An array as rows: those axes last, which then are one. @returns {Tensor}
 * @param {Tensor} x @param {number[]} axes in order, counted from the front */
function asRows(x, axes) {
  const kept = x.shape.map((_, i) => i).filter((i) => !axes.includes(i));
  const order = [...kept, ...axes];
  const moved = order.every((axis, i) => axis === i) ? x : transposed(x, order);
  const length = sizeOf(axes.map((i) => x.shape[i]));
  return shaped(moved, [sizeOf(kept.map((i) => x.shape[i])), length]);
}

/** One number for each row. @param {Tensor} x
 * @param {{axis?: any, keepdims?: boolean, exclude?: boolean}} n
 * @param {(row: any, start: number, end: number) => number} f */
function reduced(x, { axis, keepdims, exclude }, f) {
  const all = x.shape.map((_, i) => i);
  const named = axis == null ? all : [axis].flat().map((i) => axisOf(i, all.length));
  const gone = axis == null ? all : all.filter((i) => named.includes(i) !== Boolean(exclude));
  const kept = all.filter((i) => keepdims || !gone.includes(i))
    .map((i) => (gone.includes(i) ? 1 : x.shape[i]));
  const out = made(kept.length ? kept : [1], x.dtype), rows = asRows(x, gone), n = rows.shape[1];
  for (let i = 0; i < out.data.length; i++) out.data[i] = f(rows.data, i * n, i * n + n);
  return out;
}

/** Rows of a times rows of b: (M, K), (N, K) -> (M, N). Two rows of a meet four of b, so
 * that six numbers are loaded for eight products; at the end some are the last row again.
 * @param {ArrayLike<number>} a @param {ArrayLike<number>} b @param {any} out
 * @param {number} m @param {number} n @param {number} k
 * @param {number[]} at where a, b and the result begin */
function products(a, b, out, m, n, k, [atA, atB, atOut] = [0, 0, 0]) {
  for (let i = 0; i < m; i += 2) {
    const i1 = Math.min(i + 1, m - 1), p0 = atA + i * k, p1 = atA + i1 * k;
    const to0 = atOut + i * n, to1 = atOut + i1 * n;
    for (let j = 0; j < n; j += 4) {
      const j1 = Math.min(j + 1, n - 1), j2 = Math.min(j + 2, n - 1), j3 = Math.min(j + 3, n - 1);
      const q0 = atB + j * k, q1 = atB + j1 * k, q2 = atB + j2 * k, q3 = atB + j3 * k;
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      for (let p = 0; p < k; p++) {
        const v = a[p0 + p], w = a[p1 + p];
        const x0 = b[q0 + p], x1 = b[q1 + p], x2 = b[q2 + p], x3 = b[q3 + p];
        s0 += v * x0, s1 += v * x1, s2 += v * x2, s3 += v * x3;
        t0 += w * x0, t1 += w * x1, t2 += w * x2, t3 += w * x3;
      }
      out[to0 + j] = s0, out[to0 + j1] = s1, out[to0 + j2] = s2, out[to0 + j3] = s3;
      out[to1 + j] = t0, out[to1 + j1] = t1, out[to1 + j2] = t2, out[to1 + j3] = t3;
    }
  }
}

/** @param {number} x */
function sigmoid(x) {
  const small = Math.exp(-Math.abs(x));
  return (x < 0 ? small : 1) / (1 + small);
}

/** The remainder with the sign of b. @param {number} a @param {number} b */
const mod = (a, b) => { const rest = a % b; return rest && rest < 0 !== b < 0 ? rest + b : rest; };

/** 2 / sqrt(pi) times the integral of exp(-t t) from 0 to x: a series near 0, else Lentz's
 * continued fraction. Source: Abramowitz and Stegun, 7.1.6 and 7.1.14. @param {number} x */
function erf(x) {
  const a = Math.abs(x), scale = Math.exp(-a * a) / Math.sqrt(Math.PI);
  if (!(a < 6)) return Math.sign(x);
  if (a > 2.5) {
    let rest = 0;
    for (let k = 60; k > 0; k--) rest = k / 2 / (a + rest);
    return Math.sign(x) * (1 - scale / (a + rest));
  }
  let term = a, sum = a;
  for (let k = 1; term > 1e-17 * sum; k++) sum += term *= (2 * a * a) / (2 * k + 1);
  return Math.sign(x) * 2 * scale * sum;
}

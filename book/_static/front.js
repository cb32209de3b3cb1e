// The front page: paper to draw on, and the exported network that reads it.
const $ = (id) => document.getElementById(id);

const RECORD = JSON.parse($("record").textContent);

/* The network, exported to WebAssembly: this function alone knows the format of files. */
async function load() {
  const { load, tensor } = await import(new URL("net/digits.mjs", import.meta.url));
  const net = await load();
  return (pixels) => net.predict(tensor(pixels, [1, 64])).map(({ data }) => data);
}
const layers = await load();
function softmax(y) {
  const top = Math.max(...y), e = Array.from(y, (v) => Math.exp(v - top)), sum = e.reduce((a, b) => a + b);
  return e.map((v) => v / sum);
}

/* Strokes become 8 x 8 dots as in the data: the frame filled, in the middle, and with as much ink as an average digit. */
function scan(strokes, N = 32, ink = 19.5) {
  const all = strokes.flat(), xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  const [l, r, t, b] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const sy = (N - 4.8) / Math.max(b - t, (r - l) / 2.2, 1e-6), sx = Math.min(sy, 20.2 / Math.max(r - l, 1e-9));
  const far = new Float32Array(N * N).fill(1e9);
  for (const s of strokes) {
    const q = s.map(([x, y]) => [(x - (l + r) / 2) * sx + N / 2, (y - (t + b) / 2) * sy + N / 2]);
    for (let i = Math.min(1, q.length - 1); i < q.length; i++) {
      const [ax, ay] = q[Math.max(i - 1, 0)], dx = q[i][0] - ax, dy = q[i][1] - ay, long = dx * dx + dy * dy;
      for (let k = 0; k < N * N; k++) {
        const x = k % N + .5 - ax, y = (k / N | 0) + .5 - ay, u = long && Math.min(Math.max((x * dx + y * dy) / long, 0), 1);
        far[k] = Math.min(far[k], Math.hypot(x - u * dx, y - u * dy));
      }
    }
  }
  const cover = (d) => Math.min(Math.max(radius - d + .5, 0), 1);
  let [thin, thick] = [1.5, 3.6], radius;
  for (let i = 0; i < 8; i++) {  // the pen that leaves this much ink
    radius = (thin + thick) / 2;
    if (far.reduce((s, d) => s + cover(d), 0) / 16 < ink) thin = radius; else thick = radius;
  }
  const dots = new Float32Array(64);
  far.forEach((d, k) => dots[(k / N >> 2) * 8 + (k % N >> 2)] += cover(d) / 16);
  return dots;
}

/* One run: what it computes at once is shown 20,000 times slower. */
const SLOWER = 20, calm = matchMedia("(prefers-reduced-motion: reduce)");
const IDLE = RECORD.eager_us - RECORD.layers.reduce((sum, { us }) => sum + us, 0);  // of the container
const mode = () => document.querySelector("[name=mode]:checked").value;
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
let strokes = [], isRunning = false, isStale = false, answer = "";

function show(id, values) {
  const cells = $(id).querySelectorAll("rect"), most = id === "n0" ? 1 : Math.max(...values.map(Math.abs), 1e-9);
  values.forEach((v, i) => { cells[i].style.setProperty("--v", Math.abs(v) / most); cells[i].classList.toggle("minus", v < 0); });
}
function glow(ids, ms) {
  for (const id of ids) { $(id).classList.add("lit"); setTimeout(() => $(id).classList.remove("lit"), Math.max(ms, 60)); }
}
async function run() {
  if (isRunning) { isStale = true; return; }
  isRunning = true;
  do {
    isStale = false;
    const x = strokes.length ? scan(strokes) : new Float32Array(64), [z, h, y] = layers(x);
    const isEager = mode() === "eager", slow = (us) => calm.matches ? 0 : us * SLOWER;
    const steps = isEager ? [[["n1"], z, "p0"], [["n2"], h, "p1"], [["n3"], y, "p2"]] : [[["k0", "n2"], h], [["k1", "n3"], y]];
    show("n0", x);
    if (!strokes.length) ["n1", "n2", "n3"].forEach((id) => show(id, new Float32Array(64).slice(0, id === "n3" ? 10 : 64)));
    else for (const [i, [ids, values, python]] of steps.entries()) {
      const layer = RECORD.layers[i];
      if (python) {
        const ms = slow(layer.overhead_us + (i ? 0 : IDLE));
        if (ms) { glow([python], ms); $(ids[0]).classList.add("lit"); await wait(ms); }
        show("n1", z);
      }
      show(ids.at(-1), values);
      const ms = slow(isEager ? layer.us - layer.overhead_us : RECORD.hybrid_us / steps.length);
      if (ms) { glow(ids, ms); await wait(ms); }
    }
    score(strokes.length ? softmax(y) : null);
  } while (isStale);
  isRunning = false;
}
function score(p) {
  const order = p && [...p.keys()].sort((a, b) => p[b] - p[a]), part = (i) => `${Math.round(100 * p[i])} %`;
  [...$("bars").children].forEach((row, i) => {
    row.classList.toggle("best", !!p && i === order[0]);
    row.querySelector("i").style.setProperty("--p", p ? p[i] : 0);
    row.querySelector("span").textContent = p && p[i] > .005 ? part(i) : "";
  });
  $("bars").dataset.best = p ? order[0] : "";
  const second = p && p[order[1]] > .005 ? `, or else like ${order[1]} (${part(order[1])})` : "";
  answer = p ? `This looks like ${order[0]} (${part(order[0])})${second}.` : "The paper is empty.";
  $("turn").textContent = !p ? "Draw a digit" : isSample ? "Your turn" : "";
  $("hint").textContent = p && !isSample ? answer
    : "Draw a digit. A network that minihybrid exported reads it, in your browser.";
}

/* The paper: a mouse, a finger, or the keyboard. */
let place = [50, 50], isDown = false, isSample = false, turn = 0;
function draw() {
  $("ink").innerHTML = strokes.map((s) => `<polyline points="${[s[0], ...s].join(" ")}"/>`).join("");
  $("pen").setAttribute("cx", place[0]); $("pen").setAttribute("cy", place[1]); $("pen").classList.toggle("down", isDown);
  run();
}
function clear() { turn++; strokes = []; isDown = isSample = false; draw(); }
function go(x, y) {
  place = [x, y].map((v) => Math.min(Math.max(v, 3), 97));
  const last = isDown && strokes.at(-1).at(-1);
  if (last && Math.hypot(place[0] - last[0], place[1] - last[1]) > .7) strokes.at(-1).push(place);
}
function lower(down) {
  if (down && isSample) clear();
  isDown = down;
  if (down) strokes.push([place]);
}
const say = async () => { while (isRunning) await wait(50); $("said").textContent = answer; };
const spot = (e) => { const r = $("paper").getBoundingClientRect(); return [(e.clientX - r.left) / r.width * 100, (e.clientY - r.top) / r.height * 100]; };
$("paper").addEventListener("pointerdown", (e) => { $("paper").setPointerCapture(e.pointerId); isDown = false; go(...spot(e)); lower(true); draw(); });
$("paper").addEventListener("pointermove", (e) => {
  if (!isDown || !$("paper").hasPointerCapture(e.pointerId)) return;
  for (const one of e.getCoalescedEvents?.() ?? []) go(...spot(one));
  go(...spot(e)); draw();
});
for (const end of ["pointerup", "pointercancel"]) $("paper").addEventListener(end, () => { lower(false); draw(); say(); });
$("paper").addEventListener("keydown", (e) => {
  const way = {ArrowLeft: [-4, 0], ArrowRight: [4, 0], ArrowUp: [0, -4], ArrowDown: [0, 4]}[e.key];
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (way) go(place[0] + way[0], place[1] + way[1]);
  else if (e.key === " ") lower(!isDown);
  else if (e.key === "Backspace" || e.key === "Delete") clear();
  else if (/^\d$/.test(e.key)) write(+e.key).then(say);
  else return;
  e.preventDefault(); draw();
});
$("clear").addEventListener("click", () => { clear(); $("paper").focus({preventScroll: true}); });
$("modes").addEventListener("change", () => { $("net").classList.toggle("hybrid", mode() === "hybrid"); run(); });
$("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { for (const key of ["mode", "theme"]) localStorage.setItem(key, theme); } catch { /* not kept */ }
});
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/* Ten digits that the page can write itself: points xxyy, joined by smooth curves. */
const SAMPLES = JSON.parse($("samples").textContent);
function smooth(p) {
  const q = [p[0], ...p, p.at(-1)], out = [];
  for (let i = 1; i < q.length - 2; i++) for (let t = 0; t < 1; t += .125) out.push([0, 1].map((k) => {
    const [a, b, c, d] = q.slice(i - 1, i + 3).map((v) => v[k]);
    return (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t + (3 * b - a - 3 * c + d) * t ** 3) / 2;
  }));
  return [...out, p.at(-1)];
}
async function write(digit) {
  clear();
  const mine = turn;
  isSample = true;
  for (const text of SAMPLES[digit].split(" ")) {
    strokes.push([]);
    for (const point of smooth(text.match(/..../g).map((p) => [+p.slice(0, 2), +p.slice(2)]))) {
      strokes.at(-1).push(place = point);
      if (!calm.matches) { draw(); await wait(16); }
      if (turn !== mine) return;
    }
  }
  draw();
}

/* The static parts that repeat. */
const grid = (wide, high) => `<svg viewBox="0 0 ${wide} ${high}" preserveAspectRatio="none" aria-hidden="true">${Array.from({length: wide * high}, (_, i) => `<rect x="${i % wide + .05}" y="${(i / wide | 0) + .05}" width=".9" height=".9" rx=".12"/>`).join("")}</svg>`;
for (const id of ["n0", "n1", "n2", "n3"]) $(id).insertAdjacentHTML("afterbegin", id === "n3" ? grid(1, 10) : grid(8, 8));
$("bars").innerHTML = Array.from({length: 10}, (_, i) => `<li><b>${i}</b><i></i><span></span></li>`).join("");
window.front = { scan, layers };  // for a look from outside
score(null);
document.documentElement.dataset.ready = "";
write(3);

// A canvas: strokes become dots as a scanner saw them, and an exported net reads those.
{  // a block: its names stay here, however often a page has it
  for (const host of document.querySelectorAll(".mh-look:not(.ready)")) {
    const view = host.querySelector(":scope > .mh-canvas");
    if (!view) continue;
    host.classList.add("ready");
    host.attachShadow({mode: "open"}).append(view);  // styles neither leak in nor out
    run(view).catch((error) =>
      view.querySelector(".without").textContent = `The net cannot run here: ${error}`);
  }

  async function run(view) {
    const part = (selector) => view.querySelector(selector);
    const paper = part(".paper"), ink = part(".ink"), pen = part(".pen"), said = part(".said");
    const unpacked = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const packed = new Blob([unpacked(part("template").content.textContent)]);
    const {module, program, nodes, shape} = await new Response(
      packed.stream().pipeThrough(new DecompressionStream("gzip"))).json();
    const DOTS = 32, WIDE = 24, RADIUS = 2.6, STEP = 2;  // digits of the data are this wide
    const side = Math.sqrt(shape.reduce((a, b) => a * b, 1)), block = DOTS / side;
    const BLUE = [0, 114, 178], ORANGE = [213, 94, 0];  // above and below zero
    let strokes = [], place = [DOTS / 2, DOTS / 2], isDown = false;

    function element(name, parent, options = {}) {
      const made = document.createElement(name);
      parent.append(Object.assign(made, options));
      return made;
    }

    /** What was drawn, moved to the middle and made as high as the frame, like the data. */
    function scanned() {
      const points = strokes.flat();
      const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
      const [left, top] = [Math.min(...xs), Math.min(...ys)];
      const wide = Math.max(...xs) - left, high = Math.max(...ys) - top;
      const tall = Math.max(high, wide / 2, DOTS / 4);
      const down = (DOTS - 2 * RADIUS) / tall;
      const across = Math.min(down, (WIDE - 2 * RADIUS) / Math.max(wide, 1e-9));
      return strokes.map((stroke) => stroke.map(([x, y]) => [
        DOTS / 2 + (x - left - wide / 2) * across, DOTS / 2 + (y - top - high / 2) * down]));
    }

    /** How far a dot is from a part of a stroke. */
    function distance(x, y, [ax, ay], [bx, by]) {
      const dx = bx - ax, dy = by - ay, long = dx * dx + dy * dy;
      const along = long && Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / long, 0), 1);
      return Math.hypot(x - ax - along * dx, y - ay - along * dy);
    }

    /** The net's input: of each block of dots, which share has ink. */
    function pixels() {
      const found = new Float32Array(side * side);
      const parts = scanned().flatMap((stroke) =>
        stroke.map((point, i) => [stroke[Math.max(i - 1, 0)], point]));
      for (let y = 0; y < DOTS; y++)
        for (let x = 0; x < DOTS; x++)
          if (parts.some(([a, b]) => distance(x + 0.5, y + 0.5, a, b) <= RADIUS))
            found[Math.floor(y / block) * side + Math.floor(x / block)] += 1 / block ** 2;
      return found;
    }

    /** Numbers as dots of pictures that stand side by side; the paler, the nearer to zero. */
    function pictures(drawing, [high, wide], data, largest) {
      const n = data.length / (high * wide), columns = Math.min(n, 8);
      drawing.width = columns * (wide + 1) - 1;
      drawing.height = Math.ceil(n / columns) * (high + 1) - 1;
      drawing.style.width = `${drawing.width * 5}px`;
      const context = drawing.getContext("2d");
      data.forEach((value, i) => {
        const k = Math.floor(i / (high * wide)), at = i % (high * wide);
        context.fillStyle =
          `rgb(${value < 0 ? ORANGE : BLUE}, ${0.08 + 0.92 * Math.abs(value) / largest})`;
        context.fillRect((k % columns) * (wide + 1) + at % wide,
          Math.floor(k / columns) * (high + 1) + Math.floor(at / wide), 1, 1);
      });
    }

    /** Numbers as bars, up and down from zero. */
    function columns(drawing, data) {
      const high = 64, each = Math.max(2, Math.floor(280 / data.length));
      const top = Math.max(0, ...data), scale = high / (top - Math.min(0, ...data) || 1);
      [drawing.width, drawing.height] = [each * data.length, high + 1];
      const context = drawing.getContext("2d");
      data.forEach((value, i) => {
        const [from, to] = [top - Math.max(value, 0), top - Math.min(value, 0)].map(
          (v) => Math.round(v * scale));
        context.fillStyle = `rgb(${value < 0 ? ORANGE : BLUE})`;
        context.fillRect(i * each, from, each - 1, to - from + 1);
      });
    }

    /** A node of the graph: its numbers in words, and a picture of them. */
    function look(item, node, {shape: lengths, data}) {
      const dots = lengths.slice(-2), areMaps = lengths.length > 2;
      const n = areMaps ? data.length / (dots[0] * dots[1]) : data.length;
      const [lowest, highest] = [Math.min(...data), Math.max(...data)];
      const what = areMaps ? `${n} picture${n > 1 ? "s" : ""} of ${dots.join(" by ")}`
        : `${n} numbers`;
      const range = [lowest, highest].map((v) => v.toFixed(2)).join(" to ");
      item.querySelector("span").textContent = `${what}, from ${range}`;
      const drawing = item.querySelector("canvas");
      drawing.setAttribute("aria-label", `${node.op}: ${what}`);
      if (areMaps) pictures(drawing, dots, data, Math.max(-lowest, highest) || 1);
      else columns(drawing, data);
    }

    function show(net, tensor) {
      const input = pixels(), values = net.predict(tensor(input, shape));
      const {data} = values.at(-1);
      view.found = {input: [...input], output: [...data]};  // for a look from outside
      for (const [i, node] of nodes.entries()) {
        let item = part(".graph").children[i];
        if (!item) {
          item = element("li", part(".graph"));
          element("b", item, {textContent: node.op});
          element("i", item, {textContent: ` ${node.name}`});
          element("span", item);
          element("canvas", item, {role: "img"});
        }
        look(item, node, values[i]);
      }
      const order = [...data.keys()].sort((a, b) => data[b] - data[a]);
      const share = (i) => `${(100 * data[i]).toFixed(1)} %`;
      for (const i of data.keys()) {
        const bar = part(".bars").children[i] ?? element("li", part(".bars"), {
          innerHTML: "<b></b><span class='bar'><span></span></span><span class='share'></span>"});
        bar.classList.toggle("best", strokes.length > 0 && i === order[0]);
        bar.querySelector("b").textContent = i;
        bar.querySelector(".bar span").style.width = `${100 * Math.max(data[i], 0)}%`;
        bar.querySelector(".share").textContent = share(i);
      }
      return strokes.length ? `This looks like ${order[0]} (${share(order[0])}), or else like ${
        order[1]} (${share(order[1])}).` : "Draw a digit with a mouse or a finger, or Tab to the " +
        "canvas: arrow keys move the pen, Space lowers and lifts it.";
    }

    const address = URL.createObjectURL(new Blob([module], {type: "text/javascript"}));
    const {Net, tensor} = await import(address);
    const net = new Net(unpacked(program));
    let answer;

    /** Draws and asks; a screen reader is told at the end of a stroke only. */
    function draw() {
      ink.innerHTML = strokes.map((stroke) => `<polyline points="${
        [stroke[0], ...stroke].join(" ")}" stroke-width="${2 * RADIUS}"/>`).join("");
      pen.setAttribute("cx", place[0]);
      pen.setAttribute("cy", place[1]);
      pen.classList.toggle("down", isDown);
      answer = show(net, tensor);
    }
    const say = () => said.textContent = answer;

    function go(x, y) {
      place = [x, y].map((v) => Math.min(Math.max(v, 0), DOTS));
      if (isDown) strokes.at(-1).push(place);
      draw();
    }
    function lower(down) {
      isDown = down;
      if (down) strokes.push([place]);
      draw();
    }
    function again() {
      [strokes, isDown] = [[], false];
      draw();
      say();
    }
    function spot(event) {
      const area = paper.getBoundingClientRect();
      return [(event.clientX - area.left) / area.width * DOTS,
        (event.clientY - area.top) / area.height * DOTS];
    }
    paper.addEventListener("pointerdown", (event) => {
      paper.setPointerCapture(event.pointerId);
      isDown = false;
      go(...spot(event));
      lower(true);
    });
    paper.addEventListener("pointermove", (event) => {
      if (paper.hasPointerCapture(event.pointerId)) go(...spot(event));
    });
    for (const end of ["pointerup", "pointercancel"])
      paper.addEventListener(end, () => { lower(false); say(); });
    paper.addEventListener("keydown", (event) => {
      const [x, y] = place;
      const way = {ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP],
        ArrowDown: [0, STEP]}[event.key];
      if (way) go(x + way[0], y + way[1]);
      else if (event.key === " ") lower(!isDown);
      else if (event.key === "Backspace") again();
      else return;
      event.preventDefault();
      if (strokes.length) say();
    });
    part("button").addEventListener("click", again);
    again();
    view.classList.add("on");
  }
}

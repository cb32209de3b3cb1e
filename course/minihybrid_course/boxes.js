// Boxes to drag: up and down, in whole cache lines. Where two of one time meet, they say so.
for (const host of document.querySelectorAll(".mh-look:not(.ready)")) {
  const view = host.querySelector(":scope > .mh-boxes");
  if (!view) continue;
  host.classList.add("ready");
  host.attachShadow({mode: "open"}).append(view);  // styles neither leak in nor out
  view.classList.add("on");
  const svg = view.querySelector("svg"), said = view.querySelector(".said");
  const {scale, high, unit, bound} = Object.fromEntries(
    Object.entries(svg.dataset).map(([key, text]) => [key, Number(text)]));
  const boxes = [...svg.querySelectorAll(".box")].map((g) => ({
    g, name: g.dataset.name, first: +g.dataset.first, last: +g.dataset.last,
    size: +g.dataset.bytes, at: +g.dataset.at, start: +g.dataset.at,
    planner: +g.dataset.planner, x: g.getAttribute("transform").match(/[\d.]+/)[0]}));
  const total = boxes.reduce((sum, box) => sum + box.size, 0);
  const meet = (a, b) => a !== b && a.first <= b.last && b.first <= a.last;
  const clash = (a, b) =>
    meet(a, b) && a.at < b.at + b.size && b.at < a.at + a.size;

  function draw() {
    const pairs = [];
    boxes.forEach((box, i) => {
      const y = high - (box.at + box.size) * scale;
      box.g.setAttribute("transform", `translate(${box.x} ${y.toFixed(2)})`);
      const others = boxes.filter((other) => clash(box, other));
      box.g.classList.toggle("clash", others.length > 0);
      pairs.push(...others.filter((other) => boxes.indexOf(other) > i)
        .map((other) => `${box.name} and ${other.name}`));
    });
    const top = Math.max(0, ...boxes.map((box) => box.at + box.size));
    said.textContent = `Your pile: ${top.toLocaleString("en")} bytes. ` + (
      pairs.length ? `At one time at the same bytes: ${pairs.join(", ")}.`
      : top === bound ? "No overlap, and no plan can be lower."
      : "No overlap. Drag a box, or Tab to one and use the arrow keys " +
        "(with Shift: to the next edge).");
  }

  function move(box, at) {
    const most = total - box.size;
    box.at = Math.min(Math.max(Math.round(at / unit) * unit, 0), most);
    draw();
  }

  // Where a box can lie on or below one of its time: near these the mouse lets it snap.
  const edges = (box) => [0, ...boxes.filter((other) => meet(box, other)).flatMap(
    (other) => [other.at + other.size, other.at - box.size])].filter((at) => at >= 0);

  boxes.forEach((box, i) => {
    const {g} = box;
    g.tabIndex = i ? -1 : 0;
    let grip = null;
    g.addEventListener("pointerdown", (event) => {
      grip = {y: event.clientY, at: box.at};
      g.setPointerCapture(event.pointerId);
      focus(i);
      event.preventDefault();
    });
    g.addEventListener("pointermove", (event) => {
      if (!grip) return;
      const pixels = svg.getScreenCTM().d * scale;  // a byte on this screen
      const at = grip.at + (grip.y - event.clientY) / pixels;
      const near = edges(box).find((edge) => Math.abs(edge - at) * pixels < 6);
      move(box, near ?? at);
    });
    for (const end of ["pointerup", "pointercancel"])
      g.addEventListener(end, () => grip = null);
    g.addEventListener("keydown", (event) => {
      const up = {ArrowUp: 1, ArrowDown: -1}[event.key];
      const along = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (along) focus((i + along + boxes.length) % boxes.length);
      else if (up && event.shiftKey) {
        const ahead = edges(box).filter((at) => (at - box.at) * up > 0);
        if (ahead.length) move(box, up > 0 ? Math.min(...ahead) : Math.max(...ahead));
      } else if (up) move(box, box.at + up * unit);
      else if (event.key === "Home") move(box, 0);
      else return;
      event.preventDefault();
    });
  });

  function focus(i) {
    boxes.forEach((box, k) => box.g.tabIndex = k === i ? 0 : -1);
    boxes[i].g.focus();
  }

  view.querySelector(".buttons").addEventListener("click", (event) => {
    const what = event.target.dataset.do;
    if (!what) return;
    for (const box of boxes) box.at = what === "again" ? box.start : box.planner;
    draw();
  });
  draw();
}

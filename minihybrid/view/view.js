// The hybrid view: what has a number of its key in common lights up together.
for (const host of document.querySelectorAll(".mh-look:not(.ready)")) {
  const view = host.querySelector(":scope > .mh-view");
  if (!view) continue;
  host.classList.add("ready");
  host.attachShadow({mode: "open"}).append(view);  // styles neither leak in nor out
  view.classList.add("on");
  const linked = [...view.querySelectorAll("[data-k]")];
  const panels = [...view.querySelectorAll(".panel")];
  const said = view.querySelector(".said");
  const keys = (element) => element.dataset.k.split(" ");
  const visible = (element) => element.getClientRects().length > 0;
  let held = null;  // what was clicked stays lit
  // So does what the keyboard is at, when the page scrolls away under a resting mouse.
  const kept = () => held || view.querySelector("[data-k]:focus-visible");

  function light(chosen) {
    const wanted = new Set(chosen ? keys(chosen) : []);
    for (const element of linked)
      element.classList.toggle("lit", keys(element).some((key) => wanted.has(key)));
    said.textContent = chosen ? "Lit: " + panels.map(count).filter(Boolean).join(", ")
      : "Point at a line, a node or a buffer: what belongs to it lights up. " +
        "By keyboard: Tab to a part, then arrows; Enter keeps it lit, Escape lets go.";
  }

  function point(event) {  // elsewhere a panel is scrolled only when it is pointed at
    const chosen = target(event);
    light(chosen || kept());
    if (chosen) panels.forEach((panel) => panel.contains(chosen) || reveal(panel));
  }

  function count(panel) {
    const rows = [...panel.querySelectorAll(".lit")].filter(visible);
    const drawn = rows.filter((element) => element.matches("svg .lit"));
    const n = panel.dataset.kind === "node" ? drawn.length
      : rows.length - drawn.length;
    return n && `${n} ${n > 1 ? panel.dataset.kind.replace(/^\w+/, "$&s") :
      panel.dataset.kind}`;
  }

  function reveal(panel) {  // scroll the panel, not the page, to the first lit part
    const first = [...panel.querySelectorAll(".lit")].find(visible);
    if (!first) return;
    const part = first.getBoundingClientRect(), frame = panel.getBoundingClientRect();
    if (part.top < frame.top || part.bottom > frame.bottom)
      panel.scrollTop += part.top - frame.top - frame.height / 4;
  }

  // One stop of Tab a panel; the arrows move inside.
  function rove(panel, chosen) {
    const parts = [...panel.querySelectorAll("[data-k]")];
    parts.forEach((part) => part.tabIndex = -1);
    const stop = chosen || parts.find(visible);
    if (stop) stop.tabIndex = 0;
  }
  view.querySelectorAll("pre, [role=group]").forEach(
    (part) => part.querySelector("[data-k]") && part.removeAttribute("tabindex"));
  panels.forEach((panel) => rove(panel));

  const target = (event) => event.target.closest?.("[data-k]");
  view.addEventListener("mouseover", point);
  view.addEventListener("mouseleave", () => light(kept()));
  view.addEventListener("focusin", point);
  view.addEventListener("focusout", () => light(held));
  view.addEventListener("click", (event) => {
    const chosen = target(event);
    if (chosen) light(held = held === chosen ? null : chosen);
  });
  view.addEventListener("keydown", (event) => {
    const chosen = target(event);
    if (event.key === "Escape") light(held = null);
    if (!chosen) return;
    if (event.key === "Enter" || event.key === " ") {
      light(held = held === chosen ? null : chosen);
      event.preventDefault();
    }
    const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const panel = chosen.closest(".panel");
    const parts = [...panel.querySelectorAll("[data-k]")].filter(visible);
    const next = parts[parts.indexOf(chosen) + step];
    if (next) { rove(panel, next); next.focus(); }
  });

  // The slider: one pass at a time; where it changes nothing, the graph before stays.
  const slider = view.querySelector(".slider input");
  const stages = [...view.querySelectorAll(".stage")];
  function go() {
    const now = Number(slider.value);
    let shown = now;
    while (!stages[shown].querySelector("svg")) shown -= 1;
    stages.forEach((stage, i) => {
      stage.classList.toggle("now", i === now);
      stage.classList.toggle("shown", i === shown);
    });
    slider.setAttribute("aria-valuetext", stages[now].querySelector(".pass").textContent);
    rove(slider.closest(".panel"));
  }
  slider.addEventListener("input", go);
  go();

  // Bars beside the times, drawn from the numbers that stand there.
  const units = {ns: 1e-9, "µs": 1e-6, us: 1e-6, ms: 1e-3, s: 1};
  const cells = [...view.querySelectorAll(".panel[data-kind=step] tbody td:last-child")];
  const times = cells.map((cell) => {
    const [, number, unit] = cell.textContent.match(/([\d.]+)\s*(\S+)/) || [0, 0, "s"];
    return number * units[unit];
  });
  const parts = cells.map((cell) => "k" in cell.parentNode.dataset);
  const most = Math.max(...times.filter((_, i) => parts[i]));
  cells.forEach((cell, i) => {
    if (!parts[i]) return;
    const bar = cell.appendChild(document.createElement("span"));
    bar.className = "bar";
    bar.style.width = `${Math.max(100 * times[i] / most, 1)}%`;
  });
  light(null);
}

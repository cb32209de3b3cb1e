// The tape walked back: a step shows who hands gradients on, and who has which by now.
for (const host of document.querySelectorAll(".mh-look:not(.ready)")) {
  const view = host.querySelector(":scope > .mh-tape");
  if (!view) continue;
  host.classList.add("ready");
  host.attachShadow({mode: "open"}).append(view);  // styles neither leak in nor out
  view.classList.add("on");
  const slider = view.querySelector("input");
  const buttons = [...view.querySelectorAll("button")];
  const steps = [...view.querySelectorAll(".steps li")];
  const parts = [...view.querySelectorAll("[data-name]")];
  view.querySelector(".steps").setAttribute("aria-live", "polite");

  const bare = (name) => name.replace(/\[\d+\]$/, "");  // a node of several outputs

  function go() {
    const now = Number(slider.value), {node, to} = steps[now].dataset;
    const gets = new Set(to.split(" ").flatMap((name) => [name, bare(name)]));
    steps.forEach((step, i) => step.classList.toggle("now", i === now));
    for (const part of parts) {
      const {name} = part.dataset;
      part.classList.toggle("gives", now > 0 && bare(name) === node);
      part.classList.toggle("gets", gets.has(name));
    }
    for (const cell of view.querySelectorAll(".grad")) {
      const spans = [...cell.querySelectorAll("span")];
      const last = spans.findLast((span) => Number(span.dataset.from) <= now);
      spans.forEach((span) => span.classList.toggle("now", span === last));
    }
    buttons[0].disabled = now === 0;
    buttons[1].disabled = now === steps.length - 1;
    slider.setAttribute("aria-valuetext", steps[now].textContent);
  }
  slider.addEventListener("input", go);
  for (const button of buttons)
    button.addEventListener("click", () => {
      slider.value = Number(slider.value) + Number(button.dataset.do);
      go();
      if (button.disabled) slider.focus();
    });
  go();
}

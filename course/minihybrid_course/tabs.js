// A tab for each library. All tabs of a page go together: who reads JAX reads JAX below, too.
for (const host of document.querySelectorAll(".mh-look:not(.ready)")) {
  const view = host.querySelector(":scope > .mh-tabs");
  if (!view) continue;
  host.classList.add("ready");
  host.attachShadow({mode: "open"}).append(view);  // styles neither leak in nor out
  view.classList.add("on");
  const bar = view.querySelector(".bar"), sections = [...view.querySelectorAll("section")];
  bar.setAttribute("role", "tablist");
  bar.setAttribute("aria-label", "libraries");
  const tabs = sections.map((section) => {
    const {name} = section.dataset, tab = bar.appendChild(document.createElement("button"));
    Object.assign(tab, {type: "button", id: `tab-${name}`,
      textContent: section.getAttribute("aria-label")});
    section.id = `part-${name}`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", section.id);
    section.setAttribute("role", "tabpanel");
    section.setAttribute("aria-labelledby", tab.id);
    section.removeAttribute("aria-label");
    return tab;
  });

  function show(now) {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === now);
      tab.tabIndex = i === now ? 0 : -1;
      sections[i].classList.toggle("now", i === now);
    });
  }

  function choose(now) {  // what was clicked stays where it is, whatever grows above it
    const before = bar.getBoundingClientRect().top;
    document.dispatchEvent(new CustomEvent("mh-tab", {detail: sections[now].dataset.name}));
    window.scrollBy(0, bar.getBoundingClientRect().top - before);
    tabs[now].focus({preventScroll: true});
  }

  document.addEventListener("mh-tab", (event) => {
    const now = sections.findIndex((section) => section.dataset.name === event.detail);
    if (now >= 0) show(now);
  });
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => choose(i));
    tab.addEventListener("keydown", (event) => {
      const n = tabs.length;
      const next = {ArrowRight: (i + 1) % n, ArrowLeft: (i + n - 1) % n, Home: 0, End: n - 1}[
        event.key];
      if (next === undefined) return;
      event.preventDefault();
      choose(next);
    });
  });
  show(0);
}

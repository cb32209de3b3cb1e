// One slide at a time: keys and buttons. What has `data-step` comes before the next slide does.
const slides = [...document.querySelectorAll(".slide")];
const nav = document.querySelector("nav");
let at = 0;

const steps = () => [...slides[at].querySelectorAll("[data-step]")];

// Smaller letters where a slide is too tall, down to two thirds; what is taller yet scrolls.
function fit() {
  const page = document.documentElement;
  for (let size = 1; size > 0.64; size -= 0.07) {
    slides[at].style.fontSize = `${size}em`;
    if (page.scrollHeight <= window.innerHeight) break;
  }
}

function show(k, whole) {
  at = Math.max(0, Math.min(slides.length - 1, k));
  slides.forEach((slide, i) => { slide.hidden = i !== at; });
  steps().forEach((step) => { step.hidden = false; });
  fit();
  steps().forEach((step) => { step.hidden = !whole; });
  nav.querySelector("output").textContent = `${at + 1} of ${slides.length}`;
  history.replaceState(null, "", `#${at + 1}`);
  slides[at].focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function go(way) {
  const waiting = steps().filter((step) => step.hidden);
  if (way > 0 && waiting.length) waiting.forEach((step) => { step.hidden = false; });
  else if (slides[at + way]) show(at + way, way < 0);
}

const KEYS = {
  ArrowRight: () => go(1), PageDown: () => go(1), " ": () => go(1),
  ArrowLeft: () => go(-1), PageUp: () => go(-1),
  Home: () => show(0), End: () => show(slides.length - 1, true),
  n: () => slides[at].querySelectorAll(".notes").forEach((n) => { n.open = !n.open; }),
  f: () => (document.fullscreenElement
    ? document.exitFullscreen() : document.documentElement.requestFullscreen()),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  // A picture with keys of its own, or a program that scrolls, keeps them; Escape leaves it.
  const free = event.target === document.body || event.target.matches(".slide");
  const onButton = event.target.closest("nav") && event.key !== " ";
  if (event.key === "Escape") slides[at].focus();
  else if (KEYS[event.key] && (free || onButton)) {
    event.preventDefault();
    KEYS[event.key]();
  }
});
nav.addEventListener("click", (event) => {
  const way = Number(event.target.dataset.go);
  if (way) go(way);
});
window.addEventListener("resize", () => show(at, true));
window.addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1));
nav.hidden = false;
show(Number(location.hash.slice(1) || 1) - 1);

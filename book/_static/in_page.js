// A chapter runs in its page when the reader asks: JupyterLite in a frame below the button,
// made by book/_ext/run_here.py. Before that, nothing of it is loaded.
for (const box of document.querySelectorAll(".in-page")) {
  box.hidden = false;
  box.querySelector("button").addEventListener("click", () => openChapter(box));
}

async function openChapter(box) {
  const frame = document.createElement("iframe");
  frame.title = `${document.querySelector("article h1").firstChild.textContent}: a notebook`;
  const alone = document.createElement("a");
  Object.assign(alone, { href: box.dataset.address, target: "_blank", rel: "noopener" });
  alone.textContent = "In a window of its own";
  const line = document.createElement("p");
  line.append(alone, "; what you change is kept in this browser.");
  const progress = Object.assign(document.createElement("progress"), { max: box.dataset.bytes });
  const loading = document.createElement("p");
  loading.append(progress, " Python is loading. You can read and edit meanwhile.");
  box.replaceChildren(line, loading, frame);
  const missing = (file) => {
    frame.before(loading);
    loading.setAttribute("role", "alert");
    loading.textContent =
      `${file} couldn't be loaded, so this notebook can't run. Reload the page when you're online; ` +
      "if that doesn't help, run the chapter in Jupyter.";
  };
  navigator.serviceWorker?.addEventListener("message", ({ data }) => {
    if (!data.ok) missing(data.path.split("/").pop());
    else progress.value += data.bytes;
  });
  if (!(await keepFiles(box.dataset.address))) {
    const page = await fetch(box.dataset.address).catch(() => ({}));
    if (!page.ok) return missing("JupyterLite");
  }
  frame.src = box.dataset.address;
  frame.focus();
  let begun = false;
  const waiting = setInterval(() => {
    const shows = (kind) => frame.contentDocument?.querySelector(`.jp-KernelStatus-${kind}`);
    begun ||= shows("spinner");
    if (!begun || !shows("success")) return;
    clearInterval(waiting);
    if (!loading.hasAttribute("role")) loading.remove();
  }, 200);
}

// The worker that keeps what is loaded (book/keep.js) is there before the first file.
async function keepFiles(address) {
  const worker = new URL("../service-worker.js?enableCache=false", new URL(address, location));
  const registration = await navigator.serviceWorker?.register(worker).catch(() => null);
  const starting = registration?.installing ?? registration?.waiting;
  while (starting && !["activated", "redundant"].includes(starting.state))
    await new Promise((resolve) => starting.addEventListener("statechange", resolve, { once: true }));
  return registration;
}

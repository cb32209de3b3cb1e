// A chapter runs in its page when the reader asks: JupyterLite in a frame below the button,
// made by book/_ext/run_here.py. Before that, nothing of it is loaded.
for (const box of document.querySelectorAll(".in-page")) {
  box.hidden = false;
  box.querySelector("button").addEventListener("click", () => {
    const frame = document.createElement("iframe");
    frame.src = box.dataset.address;
    frame.title = `${document.querySelector("article h1").firstChild.textContent}: a notebook`;
    const alone = document.createElement("a");
    Object.assign(alone, { href: frame.src, target: "_blank", rel: "noopener" });
    alone.textContent = "In a window of its own";
    const line = document.createElement("p");
    line.append(alone, "; what you change is kept in this browser.");
    box.replaceChildren(line, frame);
    frame.focus();
  });
}

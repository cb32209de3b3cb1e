// The reader predicts, and only then sees what the next cell shows. What was predicted stays
// in this browser. The answers are fingerprints, written by book/_ext/predictions.py.
(() => {
  const forms = [...document.querySelectorAll("form.predict")];
  if (!forms.length) return;

  // -- what counts as right ------------------------------------------------------------
  const fingerprint = (salt, text) => {
    let value = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(`${salt}:${text}`)) {
      value = Math.imul(value ^ byte, 0x01000193) >>> 0;
    }
    return value.toString(16).padStart(8, "0");
  };
  const words = (text) =>
    text.toLowerCase().replace(/[^a-z0-9.,+*\/=<>_-]/g, "").replace(/^,+|,+$/g, "");
  const number = (text) => {
    const plain = text.replace(/[\s'_%]/g, "").replace("\u2212", "-")
      .replace(/,(?=\d{3}(\D|$))/g, "").replace(",", ".");
    return plain === "" ? NaN : Number(plain);
  };
  const written = (form, box) =>
    (form.elements[box.name || box.querySelector("input").name].value || "").trim();
  const isRight = (form, box) => {
    const { right, step } = box.dataset;
    const text = written(form, box);
    const plain = step ? String(Math.floor(number(text) / step + 0.5)) : words(text);
    return right.split(" ").includes(fingerprint(form.dataset.salt, plain));
  };

  // -- what was predicted before, if the browser lets us keep it -------------------------
  const key = (form) => `minihybrid predicts ${form.dataset.salt}`;
  const kept = (form) => {
    try { return JSON.parse(localStorage.getItem(key(form))); } catch { return null; }
  };
  const keep = (form) => {
    const values = [...new FormData(form)];
    try { localStorage.setItem(key(form), JSON.stringify(values)); } catch { /* not kept */ }
  };
  const forget = (form) => {
    try { localStorage.removeItem(key(form)); } catch { /* nothing was kept */ }
  };

  // -- what a form hides: its folded answer, and the outputs of the cells that answer ----
  const hiddenBy = new Map(forms.map((form) => [form, [
    ...[...(form.closest("blockquote") || form).querySelectorAll("details")]
      .filter((fold) => fold.querySelector("summary").textContent.trim() === "Answer")]]));
  let asking = null;
  for (const part of document.querySelectorAll("form.predict, .cell.tag_answer")) {
    if (part.matches("form")) asking = part;
    else if (asking) hiddenBy.get(asking).push(...part.querySelectorAll(".cell_output"));
  }
  const say = (form, text, mood) => {
    const status = form.querySelector("[role=status]");
    status.textContent = text;
    status.className = mood;
  };
  const show = (form) => {
    for (const part of hiddenBy.get(form)) {
      if (part.matches("details")) part.open = true;
      else part.previousElementSibling?.matches(".waits") && part.previousElementSibling.remove();
      part.hidden = false;
    }
    form.querySelector(".show").hidden = true;
    keep(form);
  };
  const hide = (form) => {
    for (const part of hiddenBy.get(form)) {
      part.hidden = true;
      if (part.matches("details")) continue;
      const note = document.createElement("p");
      const button = document.createElement("button");
      note.className = "waits";
      note.innerHTML = `The output waits for <a href="#${form.id}">your prediction</a>. `;
      button.textContent = "Show it";
      button.addEventListener("click", () => {
        part.tabIndex = -1;
        show(form);
        part.focus();
      });
      note.append(button);
      part.before(note);
    }
  };

  // -- the reader commits ----------------------------------------------------------------
  const judge = (form) => {
    const boxes = [...form.querySelectorAll("[data-right]")];
    if (!boxes.length) {
      const text = form.querySelector("textarea").value.trim();
      say(form, text ? "Kept. Now compare." : "Write a line first, or let it be shown.", "");
      return text !== "";
    }
    const empty = boxes.find((box) => !written(form, box));
    const unread = boxes.find((box) => box.dataset.step && isNaN(number(written(form, box))));
    if (empty || unread) {
      const wanted = (empty || unread).dataset.step ? "Write a number" : "Make your choice";
      say(form, `${wanted} first, or let the answer be shown.`, "");
      return false;
    }
    const right = boxes.filter((box) => isRight(form, box)).length;
    const part = right ? `${right} of ${boxes.length} right. ` : "";
    if (right === boxes.length) say(form, "Right.", "right");
    else say(form, `${part}Not yet: ${form.dataset.hint}.`, "wrong");
    return right === boxes.length;
  };

  for (const form of forms) {
    form.hidden = false;
    hide(form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (judge(form)) show(form);
    });
    form.querySelector(".show").addEventListener("click", () => {
      say(form, "Shown.", "");
      show(form);
      form.querySelector("button").focus();
    });
    const before = kept(form);
    if (before) {
      for (const [name, value] of before) form.elements[name].value = value;
      if (before.some(([, value]) => value)) judge(form);
      show(form);
    }
  }

  // -- all at once, for those who read again ----------------------------------------------
  const bar = document.createElement("p");
  bar.className = "predict-all";
  for (const [label, act] of [
    ["Show all answers of this page", () => forms.forEach(show)],
    ["Ask me again", () => { forms.forEach(forget); location.reload(); }],
  ]) {
    const button = document.createElement("button");
    button.textContent = label;
    button.addEventListener("click", act);
    bar.append(button);
  }
  (forms[0].closest("blockquote") || forms[0]).after(bar);
})();

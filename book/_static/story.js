// Chapter 35: a network with a key-value cache continues the reader's text.

/** Writes characters one by one. `predict` takes letters, a place and the cache. */
export class Writer {
  constructor(net, tensor, { letters, slot, arrays }) {
    Object.assign(this, { net, tensor, letters });
    const size = slot.reduce((a, b) => a * b, 1);
    this.cache = Array.from({ length: arrays }, () => tensor(new Float32Array(size), slot));
    this.codes = [0, 0, 0, 0];  // line ends
    this.place = 0;
  }

  /** Reads a text; characters that the network doesn't know become spaces. */
  read(text) {
    const space = this.letters.indexOf(" ");
    for (const c of text) {
      const code = this.letters.indexOf(c);
      this.codes.push(code < 0 ? space : code);
    }
  }

  /** The next character. */
  write(temperature = 0.6, random = Math.random) {
    let scores;
    for (; this.place + 5 <= this.codes.length; this.place++) {
      const x = this.tensor(this.codes.slice(this.place, this.place + 5), [1, 5]);
      const place = this.tensor([this.place], [1, 1]);
      [scores, ...this.cache] = this.net.predict(x, place, ...this.cache);
    }
    const top = Math.max(...scores.data);
    const chances = Array.from(scores.data, (s) => Math.exp((s - top) / temperature));
    let left = random() * chances.reduce((a, b) => a + b);
    let code = chances.findIndex((p) => (left -= p) < 0);
    if (code < 0) code = chances.indexOf(1);
    this.codes.push(code);
    return this.letters[code];
  }
}

function show(place, loaded) {
  place.innerHTML = '<form><label>A beginning<br><textarea rows="2" maxlength="400"></textarea>' +
    '</label><p><button>continue</button> <span role="status"></span></p></form>' +
    '<p class="text"></p>';
  const [form, text] = [place.querySelector("form"), place.querySelector(".text")];
  const [status, start] = [place.querySelector("span"), place.querySelector("textarea")];
  start.value = "Dorothy looked at the Tin Woodman and ";
  let run = 0;
  form.onsubmit = async (event) => {
    event.preventDefault();
    const mine = ++run;
    status.textContent = "loading the network …";
    const { net, tensor, facts } = await (loaded.files ??= loaded());
    const writer = new Writer(net, tensor, facts), begin = performance.now();
    const given = document.createElement("b");
    given.textContent = start.value;
    text.replaceChildren(given);
    writer.read(start.value || "\n");
    for (let n = 1, busy = 0; n <= 500 && mine === run; n++) {
      const before = performance.now();
      text.append(writer.write());
      busy += performance.now() - before;
      if (n % 10 === 0) {
        status.textContent = `${Math.round(1000 * n / busy)} characters a second`;
        await new Promise(requestAnimationFrame);
      }
    }
  };
}

async function files() {
  const [{ load, tensor }, { default: facts }] = await Promise.all(["oz.mjs", "oz_facts.mjs"]
    .map((name) => import(new URL(`net/${name}`, import.meta.url))));
  return { net: await load(), tensor, facts };
}

if (globalThis.document)
  for (const place of document.querySelectorAll(".continue-text")) show(place, files);

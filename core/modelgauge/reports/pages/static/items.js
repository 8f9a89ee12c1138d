"use strict";
// The items of a run: a table with search, filters and sorting, and a view of one item. A `source` gives the data:
// `rows()` the columns of all items, `part(n)` the records of a part. All texts become text nodes, never markup.

const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const MOST_SHOWN = 20000;
const ROW = 34; // pixels, as in the style sheet

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A text with its invisible characters shown as U+200B.
function shown(text) {
  const fragment = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    fragment.append(text.slice(end, match.index), make("span", { className: "invisible" }, `U+${code}`));
    end = match.index + match[0].length;
  }
  fragment.append(text.slice(end));
  return fragment;
}

// A text in a box of its own; of a very long one the beginning, and a button for the rest.
function box(text, className = "") {
  const content = make("pre", { className: `text ${className}`, dir: "auto" }, shown(text.slice(0, MOST_SHOWN)));
  if (text.length <= MOST_SHOWN) return content;
  const more = make("button", { type: "button" }, `Show all ${text.length.toLocaleString("en")} characters`);
  more.onclick = () => { content.replaceChildren(shown(text)); more.remove(); };
  return make("div", {}, content, more);
}

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const number = (value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4))));

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// The items that stand in this very file, as blocks with ids.
function embedded(run) {
  const block = (name) => unpack(document.getElementById(`run-${run}-${name}`).textContent);
  const parts = new Map();
  return {
    block,
    rows: () => block("rows"),
    part(place) {
      if (!parts.has(place)) parts.set(place, block(`part-${place}`));
      return parts.get(place);
    },
  };
}

// --- one item ---------------------------------------------------------------------------------------

function section(title, ...content) {
  return make("section", {}, make("h3", {}, shown(title)), ...content);
}

function folded(summary, ...content) {
  return make("details", {}, make("summary", {}, shown(summary)), ...content);
}

function promptView(one) {
  const turns = one.prompt.messages ?? [{ role: "user", text: one.prompt.text }];
  const chat = make("div", { className: "chat" });
  for (const turn of turns) {
    chat.append(make("div", { className: `turn ${turn.role}` }, make("b", {}, turn.role), box(turn.text)));
  }
  return chat;
}

function annotationView(name, value) {
  const score = value?.value ?? value?.score;
  const reason = value?.reason;
  if (typeof score !== "number") return section(name, box(asText(value)));
  const rest = reason ? [box(reason)] : [];
  return section(`${name}: ${number(score)}`, ...rest, folded("all of it", box(asText(value))));
}

function completionView({ completion, annotations }) {
  const parts = [box(completion.text, "answer")];
  const words = (completion.reasoning ?? "").split(/\s+/).filter(Boolean).length;
  if (completion.reasoning) parts.unshift(folded(`reasoning, ${words.toLocaleString("en")} words`, box(completion.reasoning)));
  if (completion.finish_reason) parts.push(make("p", { className: "note" }, "ended: ", shown(completion.finish_reason)));
  for (const call of completion.tool_calls ?? []) parts.push(section(`tool ${call.name}`, box(asText(call))));
  const metadata = Object.entries(completion.metadata ?? {}).filter(([name]) => name !== "trace");
  if (metadata.length) parts.push(folded("metadata", box(asText(Object.fromEntries(metadata)))));
  for (const [name, value] of Object.entries(annotations ?? {})) parts.push(annotationView(name, value));
  return make("div", {}, ...parts);
}

function usageText(usage) {
  if (!usage) return "";
  const tokens = [usage.input_tokens, usage.output_tokens].filter((one) => one != null).join(" → ");
  return [tokens && `${tokens} tokens`, usage.cost_usd != null && `$${usage.cost_usd}`].filter(Boolean).join(" · ");
}

function traceView(trace) {
  const whole = Math.max(trace.seconds ?? 0, 1e-9);
  const depth = new Map([[null, -1], [undefined, -1]]);
  const tree = make("ul", { className: "spans" });
  for (const span of trace.spans) {
    depth.set(span.id, depth.get(span.parent ?? null) + 1);
    const bar = make("span", { className: "time" }, make("span"));
    bar.firstChild.style.marginLeft = `${(100 * span.start) / whole}%`;
    bar.firstChild.style.width = `${Math.max(1, (100 * (span.seconds ?? 0)) / whole)}%`;
    const about = `${span.name} (${span.type}) ${span.seconds == null ? "not ended" : `${number(span.seconds)} s`}`;
    const line = folded(about, ...["input", "output", "error", "metadata"].filter((name) => span[name] != null)
      .map((name) => section(name, box(asText(span[name])))));
    const row = make("li", {}, line, bar);
    row.style.paddingLeft = `${depth.get(span.id)}rem`;
    tree.append(row);
  }
  return section(`Spans of ${trace.name}, ${number(trace.seconds ?? 0)} s`, tree);
}

function failureView(failure) {
  const title = `Failed at ${failure.stage} (${failure.source_uid}): ${failure.error_type}`;
  return section(title, box(failure.message ?? ""), folded("traceback", box(failure.traceback ?? "")));
}

const contextOf = (value) => (value == null ? [] : [folded("context, which the SUT does not see", box(asText(value)))]);

function itemView(record, expected) {
  const parts = [];
  const asked = record.interactions ?? [];
  const failures = record.kind === "exception" ? [record] : record.failed_repeats ?? [];
  for (const failure of failures) parts.push(failureView(failure));
  const measured = Object.entries(record.measurements ?? {}).map(([name, value]) => `${name} = ${number(value)}`);
  if (expected) measured.push(`expected: ${expected}`);
  parts.push(make("p", { className: "measured" }, shown(measured.join(" · ") || "nothing measured")));
  for (const [place, prompt] of (record.test_item?.prompts ?? []).entries()) {
    parts.push(section("Prompt", promptView(prompt)), ...contextOf(prompt.context));
    const same = JSON.stringify(prompt.prompt);
    for (const one of asked.filter((each) => JSON.stringify(each.prompt.prompt) === same)) {
      const repeat = asked.length > 1 && one.repeat ? `, repeat ${one.repeat + 1}` : "";
      const title = [`Answer${repeat}`, usageText(one.response.usage)].filter(Boolean).join(" · ");
      parts.push(section(title, ...one.response.completions.map(completionView)));
      for (const { completion } of one.response.completions) {
        const trace = completion.metadata?.trace;
        if (trace?.spans) parts.push(traceView(trace));
      }
    }
    if (place === 0) parts.push(...contextOf(record.test_item.context));
  }
  for (const failure of failures) for (const trace of failure.traces ?? []) parts.push(traceView(trace));
  return parts;
}

// --- the table --------------------------------------------------------------------------------------

class Items {
  constructor(run, root, source) {
    this.run = run;
    this.root = root;
    this.source = source;
    this.find = (query) => root.querySelector(query);
    this.controls = this.find(".controls");
    this.viewport = this.find(".table");
    this.sheet = this.find(".item");
    this.chosen = 0; // the place among those that are listed
    this.listed = [];
  }

  async load() {
    this.rows = await this.source.rows();
    this.count = this.rows.id.length;
    this.names = Object.keys(this.rows.measured).filter((name) => !/(^|\.)passed$/.test(name)); // the filter has these
    this.fillControls();
    this.head = make("tr", {}, ...["#", "question", "answer", "expected", ...this.names].map((name) =>
      make("th", { scope: "col", className: name === "#" || this.names.includes(name) ? "number" : "" }, shown(name))));
    this.body = make("tbody");
    const table = make("table", {}, make("thead", {}, this.head), this.body);
    table.setAttribute("aria-rowcount", this.count + 1);
    this.viewport.replaceChildren(table);
    this.viewport.onscroll = () => this.draw();
    this.controls.oninput = () => this.setAddress();
    this.controls.onsubmit = (event) => event.preventDefault();
    this.body.onclick = (event) => {
      const row = event.target.closest("tr[data-place]");
      if (row) this.open(Number(row.dataset.place));
    };
    new ResizeObserver(() => this.draw()).observe(this.viewport);
  }

  fillControls() {
    const counts = {};
    for (const state of this.rows.state) counts[state] = (counts[state] ?? 0) + 1;
    const option = (value, text = value) => make("option", { value }, shown(text));
    const states = Object.keys(counts).filter((state) => state !== "ok").sort();
    const { show, sort } = this.controls;
    show.replaceChildren(option("", `all ${this.count.toLocaleString("en")}`),
      ...states.map((state) => option(state, `${state} ${counts[state].toLocaleString("en")}`)));
    sort.replaceChildren(option("", "in order"),
      ...this.names.flatMap((name) => [option(`${name}<`, `${name}, lowest first`), option(`${name}>`, `${name}, highest first`)]));
    const facets = Object.entries(this.rows.facets).map(([name, facet]) => {
      const select = make("select", { name: `is-${name}` }, option("", "all"), ...facet.values.map((value) => option(value)));
      return make("label", {}, shown(name), " ", select);
    });
    this.find(".facets").replaceChildren(...facets);
  }

  // The address says what is searched, filtered, sorted and open: it can be shared.
  setAddress(item = null) {
    const address = new URLSearchParams([["run", this.run]]);
    for (const [name, value] of new FormData(this.controls)) if (value) address.set(name, value);
    if (item !== null) address.set("item", this.rows.id[item]);
    const next = `#${address}`;
    if (next === location.hash) this.follow(address);
    else if (item === null) { history.replaceState(null, "", next); this.follow(address); } // no step back for each letter
    else location.hash = next;
  }

  follow(address) {
    for (const field of this.controls.elements) if (field.name) field.value = address.get(field.name) ?? "";
    this.list();
    const id = address.get("item");
    const place = id === null ? -1 : this.rows.id.indexOf(id);
    if (place >= 0) this.show(place);
    else this.showTable();
  }

  list() {
    const query = this.controls.q.value.toLowerCase();
    const state = this.controls.show.value;
    const facets = Object.entries(this.rows.facets)
      .map(([name, facet]) => [facet.of, facet.values.indexOf(this.controls.elements[`is-${name}`].value)])
      .filter(([, wanted]) => wanted >= 0);
    this.listed = [];
    for (let place = 0; place < this.count; place += 1) {
      if (state && this.rows.state[place] !== state) continue;
      if (facets.some(([of, wanted]) => of[place] !== wanted)) continue;
      if (query && !this.rows.search[place].includes(query)) continue;
      this.listed.push(place);
    }
    const sort = this.controls.sort.value;
    if (sort) {
      const values = this.rows.measured[sort.slice(0, -1)];
      const sign = sort.endsWith("<") ? 1 : -1;
      const last = (value) => (value == null ? Infinity : sign * value); // items without a value stand last
      this.listed.sort((one, other) => (last(values[one]) < last(values[other]) ? -1 : last(values[one]) > last(values[other]) ? 1 : one - other));
    }
    this.chosen = Math.min(this.chosen, Math.max(0, this.listed.length - 1));
    this.find("output").textContent = `${this.listed.length.toLocaleString("en")} of ${this.count.toLocaleString("en")}`;
    this.draw();
  }

  // Only the rows in sight are in the page; two empty rows keep the room of the others.
  draw() {
    const first = Math.max(0, Math.floor(this.viewport.scrollTop / ROW) - 5);
    const last = Math.min(this.listed.length, first + Math.ceil(this.viewport.clientHeight / ROW) + 10);
    const room = (count) => {
      const row = make("tr", { "aria-hidden": "true" }, make("td"));
      row.style.height = `${count * ROW}px`;
      return row;
    };
    const rows = [];
    for (let at = first; at < last; at += 1) rows.push(this.row(this.listed[at], at));
    const empty = this.listed.length ? [] : [make("tr", {}, make("td", { colSpan: 4 + this.names.length }, "No item is like this."))];
    this.body.replaceChildren(room(first), ...rows, ...empty, room(this.listed.length - last));
  }

  row(place, at) {
    const { rows } = this;
    const cell = (text, className = "") => make("td", { className, dir: "auto" }, shown(text));
    const link = make("a", { href: `#${new URLSearchParams([["run", this.run], ["item", rows.id[place]]])}`, tabIndex: -1 }, String(place + 1));
    const values = this.names.map((name) => {
      const value = rows.measured[name][place];
      return cell(value == null ? (rows.state[place] === "failed" ? "failed" : "") : number(value), "number");
    });
    const row = make("tr", { className: `${rows.state[place].replaceAll(" ", "-")}${at === this.chosen ? " chosen" : ""}` },
      make("td", { className: "number" }, link), cell(rows.question[place]), cell(rows.answer[place]), cell(rows.expected[place]), ...values);
    row.dataset.place = place;
    row.setAttribute("aria-rowindex", at + 2);
    return row;
  }

  showTable() {
    this.sheet.hidden = true;
    this.viewport.hidden = this.controls.hidden = false;
    this.draw();
  }

  open(place) {
    this.setAddress(place);
  }

  async show(place) {
    const at = this.listed.indexOf(place);
    if (at >= 0) this.chosen = at;
    const records = await this.source.part(Math.floor(place / this.rows.part));
    const record = records[place % this.rows.part];
    const where = at < 0 ? "not among those listed" : `${(at + 1).toLocaleString("en")} of ${this.listed.length.toLocaleString("en")} listed`;
    const button = (text, action) => make("button", { type: "button", onclick: action }, text);
    const title = make("h2", { tabIndex: -1 }, `Item ${place + 1} `, make("code", {}, shown(this.rows.id[place])));
    const moves = make("p", { className: "moves" }, where, " ", button("← previous", () => this.step(-1)),
      button("next →", () => this.step(1)), button("back to the table", () => this.back()));
    this.sheet.replaceChildren(title, moves, ...itemView(record, this.rows.expected[place]));
    this.sheet.hidden = false;
    this.viewport.hidden = this.controls.hidden = true;
    this.sheet.scrollIntoView({ block: "nearest" });
    title.focus({ preventScroll: true });
  }

  step(by) {
    const at = Math.min(Math.max(this.chosen + by, 0), this.listed.length - 1);
    if (at < 0) return;
    this.chosen = at;
    if (!this.sheet.hidden) this.open(this.listed[at]);
    else {
      const top = at * ROW;
      if (top < this.viewport.scrollTop) this.viewport.scrollTop = top;
      const least = top + 2 * ROW - this.viewport.clientHeight + ROW;
      if (least > this.viewport.scrollTop) this.viewport.scrollTop = least;
      this.draw();
    }
  }

  back() {
    this.setAddress();
    this.viewport.focus({ preventScroll: true });
  }

  key(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
    const isOpen = !this.sheet.hidden;
    const actions = {
      j: () => this.step(1),
      k: () => this.step(-1),
      ArrowRight: isOpen && (() => this.step(1)),
      ArrowLeft: isOpen && (() => this.step(-1)),
      Enter: !isOpen && this.listed.length > 0 && event.target.tagName !== "A" && event.target.tagName !== "BUTTON" && event.target.tagName !== "SUMMARY" && (() => this.open(this.listed[this.chosen])),
      Escape: () => (isOpen ? this.back() : event.target.blur()),
      "/": () => { if (isOpen) this.back(); this.controls.q.focus(); },
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}

async function start() {
  const tables = new Map();
  const table = async (run) => {
    if (!tables.has(run)) {
      const root = document.querySelector(`.run[data-run="${CSS.escape(run)}"] .items`);
      const items = new Items(run, root, embedded(run));
      await items.load();
      tables.set(run, items);
    }
    return tables.get(run);
  };
  const runs = [...document.querySelectorAll(".run")];
  const overview = document.querySelector(".overview");
  const follow = async () => {
    const address = new URLSearchParams(location.hash.slice(1));
    const run = overview ? address.get("run") : "0";
    for (const one of runs) one.hidden = one.dataset.run !== run;
    const known = runs.some((one) => !one.hidden);
    if (overview) overview.hidden = known;
    current = known ? await table(run) : null;
    current?.follow(address);
  };
  let current = null;
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => current?.key(event));
  await follow();
  document.documentElement.dataset.ready = "true";
}

start();

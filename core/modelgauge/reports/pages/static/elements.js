"use strict";
// What all views are made of. All texts become text nodes, never markup.

const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const MOST_SHOWN = 20000;
const UNMEASURED = "not measured";
const MOST_UNSCROLLED = 1000;

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

// A name that may be broken into lines: behind "_" and ".", and before a capital letter.
const breakable = (name) => name.split(/(?<=[a-z])(?=[A-Z])|(?<=[_.])/).flatMap((part, at) => [...at ? [make("wbr")] : [], shown(part)]);

// A text in a box of its own; of a very long one the beginning, and a button for the rest.
function box(text, className = "") {
  const content = make("pre", { className: `text ${className}`, dir: "auto" }, shown(text.slice(0, MOST_SHOWN)));
  if (text.length > MOST_UNSCROLLED || text.split("\n", 24).length === 24) content.tabIndex = 0; // it may scroll: by keyboard, too
  if (text.length <= MOST_SHOWN) return content;
  const more = make("button", { type: "button" }, `Show all ${counted(text.length)} characters`);
  more.onclick = () => { content.replaceChildren(shown(text)); more.remove(); };
  return make("div", {}, content, more);
}

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const counted = (value) => value.toLocaleString("en");
const amount = (value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4))));


function secondsText(value) {
  if (value < 0.0005) return "under 1 ms";
  if (value < 0.0095) return `${Number((1000 * value).toPrecision(1))} ms`;
  if (value < 60) return `${Number(value.toPrecision(2))} s`;
  return `${Math.floor(value / 60)} min ${String(Math.round(value % 60)).padStart(2, "0")} s`;
}

const dollarsText = (value) => `$${value < 0.1 ? Number(value.toPrecision(2)) : value.toFixed(2)}`;

// Copies the address of what is shown; where a browser does not allow that, the address stands there to be copied.
function copyButton() {
  const button = make("button", { type: "button" }, "copy link to this item");
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "copied";
    } catch {
      const field = make("input", { readOnly: true, value: location.href, ariaLabel: "Link to this item" });
      button.replaceWith(field);
      field.select();
    }
  };
  return button;
}

function section(title, ...content) {
  return make("section", {}, make("h3", {}, shown(title)), ...content);
}

function folded(summary, ...content) {
  return make("details", {}, make("summary", {}, shown(summary)), ...content);
}

async function unpack(text) {
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const MOST_SEARCHED = 20e6; // characters of all items, which are searched in less than 100 ms
const MOST_OF_ONE = 20000;

// The data of a block: it stands in this very file, or a server has it where the page says.
async function embedded(id) {
  const block = document.getElementById(id);
  if (block) return unpack(block.textContent);
  const answer = await fetch(document.querySelector("[data-blocks]").dataset.blocks + id);
  if (!answer.ok) throw new Error(`${id}: ${answer.status}`);
  return unpack(await answer.text());
}

// The items of a run in this file; what was asked for once is kept.
const sources = new Map();
function sourceOf(run) {
  if (!sources.has(run)) {
    const block = (name) => embedded(`run-${run}-${name}`);
    const kept = new Map();
    const once = (name, make) => kept.get(name) ?? kept.set(name, make()).get(name);
    sources.set(run, { part: (place) => once(place, () => block(`part-${place}`)), rows: () => once("rows", () => rowsOf(block)) });
  }
  return sources.get(run);
}

// What the table shows of all items, as columns. `search` has short texts at first; it has the whole texts when `read` is done.
async function rowsOf(block) {
  const [[rows], texts] = await Promise.all([block("rows"), block("texts")]);
  const column = (at) => texts.map((row) => row[at]);
  const [id, question, answer, expected] = [0, 1, 2, 3].map(column);
  const state = rows.state.of.map((at) => rows.state.values[at]);
  const search = texts.map((row) => row.join("\n").toLowerCase());
  const hasTexts = [question, answer].some((column) => column.some(Boolean)); // a page may be written without them
  return { ...rows, id, question, answer, expected, hasTexts, state, search, read: readTexts(block, rows.part, search) };
}

// Read the texts of all items into what is searched, a part at a time, so that the page stays quick.
async function readTexts(block, size, search) {
  const most = Math.min(MOST_OF_ONE, Math.max(240, MOST_SEARCHED / search.length));
  for (let place = 0; place * size < search.length; place += 1) {
    for (const [at, record] of (await block(`part-${place}`)).entries()) {
      const texts = textsOf(record).join("\n");
      const both = texts.length <= most ? texts : `${texts.slice(0, most / 2)}\n${texts.slice(-most / 2)}`;
      search[place * size + at] = `${search[place * size + at]}\n${both}`.toLowerCase(); // one string, not a chain of two
    }
    await new Promise((done) => setTimeout(done)); // what a person does goes first
  }
}

// The texts of an item by which a person looks for it.
function textsOf(record) {
  const prompts = (record.test_item?.prompts ?? []).map(({ prompt }) => turnsOf(prompt).at(-1).text);
  const answers = (record.interactions ?? []).flatMap((interaction) => interaction.response.completions.map(({ completion }) => completion.text));
  return [...answers, record.message ?? "", ...prompts];
}

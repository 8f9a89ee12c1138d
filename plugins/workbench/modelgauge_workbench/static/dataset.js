// The table of a data set: cells by keyboard, pages of rows, and what is said to the server.

import { Rows, MARK, columnOf, copy, textOf, typed, valueOf, OF_CUSTOM } from "./dataset_rows.js";
import { counted, editText, editTurns, made, showConflicts, showDraft, showImport } from "./dataset_forms.js";
import { Drafts, storage, unpacked } from "./dataset_drafts.js";

const root = document.getElementById("dataset"), address = root.dataset.address, readOnly = Boolean(root.dataset.readOnly);
const PAGE = 100, at = { page: 0, sort: "", down: false, row: 0, column: 0 };
const named = (name) => root.querySelector(`[name="${name}"]`);
const table = root.querySelector("table"), message = document.getElementById("message");
const drafts = new Drafts(address), order = new Intl.Collator(undefined, { numeric: true });
// `base` is the version that is edited; what is wrong with a row is asked once, since rows are never edited in place.
let base = null, rows = new Rows([]), chosen = new Set(), problems = new WeakMap(), checked = new WeakSet(), isKept = true;

// What is said is of the rows that are shown with it: it goes when they change.
let isNew = false, saidOf = null;
const say = (text) => {
  message.replaceChildren(text);
  isNew = Boolean(text);
  saidOf = null;
  if (text) message.focus();
};
function forgetWhatWasSaid() {
  if (isNew) saidOf = rows.list;
  else if (saidOf && saidOf !== rows.list) say("");
  isNew = false;
}
async function ask(path, options) {
  const answer = await fetch(path, { headers: options?.body instanceof FormData ? {} : { "Content-Type": "application/json" }, ...options }).catch(() => {
    throw new Error("The workbench does not answer. Start it again; what you typed is here, and can be saved then.");
  });
  const kind = answer.headers.get("content-type") ?? "";
  if (!kind.includes("json")) throw new Error(`The workbench answered ${answer.status}: reload the page, and look at its terminal.`);
  return { status: answer.status, said: await answer.json() };
}

addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  say(event.reason.message);
});

// --- what is kept by the browser until it is saved

function keep(list = rows.list) {
  const texts = readOnly ? {} : { author: named("author").value, message: named("message").value };
  if (readOnly || (list === rows.list && !rows.changed)) drafts.forget(), (isKept = true);
  else isKept = drafts.keep(base, rows, list, texts);
}

async function offerDrafts() {
  const versions = (await ask(`${address}/versions.json`)).said.versions, latest = versions.at(-1);
  for (const draft of drafts.found(versions)) {
    const since = latest && latest.number !== draft.base?.number ? latest : null;
    showDraft(document.getElementById("drafts"), { ...draft, since }, () => restore(draft, since), () => drafts.discard(draft.key));
  }
}

// Take up edits where they were left: of their own version, also where there is a later one, which saving then merges.
async function restore(draft, since) {
  if (rows.changed) return say("Save or undo what you changed here first, then restore those edits."), false;
  begin(draft.base, draft.base ? (await ask(`${address}/rows.json?version=${draft.base.number}`)).said.rows : [], draft.extra);
  rows.change(unpacked(draft, rows));
  for (const name of ["author", "message"]) named(name).value = draft[name];
  drafts.discard(draft.key);
  say(`Your edits are in the table again.${since ? ` They are of ${base ? `version ${base.number}` : "no version"}, and version ${since.number} is the latest: when you save, you see both and choose.` : ""}`);
  show();
  return true;
}

// --- what is shown

let shownRows = [];

// Begin with the rows of a version, which nobody has changed yet.
function begin(version, saved, extra = []) {
  base = version;
  rows = new Rows(saved, extra);
  chosen = new Set();
  for (const row of saved) checked.add(row);
  root.closest("main").querySelector(".when").textContent = version ? `version ${version.number} · ${version.time.slice(0, 16).replace("T", " ")} UTC${version.author ? ` · ${version.author}` : ""}` : "not saved yet";
}

function listed() {
  const wanted = named("filter").value.toLowerCase(), doubles = rows.doubles(), flagged = named("flagged").checked;
  const found = rows.list.filter((entry) => (!wanted || JSON.stringify(entry.row).toLowerCase().includes(wanted)) && (!flagged || doubles.has(entry.key) || problems.has(entry.row)));
  if (at.sort) {
    const texts = new Map(found.map((entry) => [entry.key, textOf(valueOf(entry.row, at.sort))]));
    found.sort((one, other) => (at.down ? -1 : 1) * order.compare(texts.get(one.key), texts.get(other.key)));
  }
  return [found, doubles];
}

function show(focus = false) {
  forgetWhatWasSaid();
  const [found, doubles] = listed(), columns = rows.columns();
  shownRows = found;
  at.page = Math.max(0, Math.min(at.page, Math.ceil(found.length / PAGE) - 1));
  at.row = Math.max(0, Math.min(at.row, found.length - 1 - at.page * PAGE));
  at.column = Math.min(at.column, columns.length - 1);
  const head = made("tr"), all = Object.assign(made("input"), { type: "checkbox", checked: found.length > 0 && found.every((entry) => chosen.has(entry.key)), ariaLabel: "choose all rows shown" });
  all.onchange = () => (found.forEach((entry) => (all.checked ? chosen.add(entry.key) : chosen.delete(entry.key))), show(), table.tHead.querySelector("input").focus());
  head.append(made("th"));
  head.firstChild.append(all, " Row");
  for (const column of columns) {
    const cell = head.appendChild(made("th")), button = cell.appendChild(made("button"));
    button.append(window.shown(column.replace(OF_CUSTOM, "")), at.sort === column ? (at.down ? " ↓" : " ↑") : "");
    button.type = "button";
    cell.scope = "col";
    if (at.sort === column) cell.ariaSort = at.down ? "descending" : "ascending";
    button.onclick = () => {
      at.down = at.sort === column && !at.down;
      at.sort = column;
      show();
    };
  }
  table.tHead.replaceChildren(head);
  const places = new Map(rows.list.map((entry, place) => [entry.key, place + 1]));
  table.tBodies[0].replaceChildren(...found.slice(at.page * PAGE, (at.page + 1) * PAGE).map((entry, line) => rowOf(entry, line, columns, places, doubles)));
  const filled = named("filled");
  if (filled) filled.replaceChildren(...columns.filter((column) => column !== "turns").map((column) => new Option(column.replace(OF_CUSTOM, ""), column, false, filled.value === column)));
  const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
  document.getElementById("pages").textContent = `page ${at.page + 1} of ${last + 1}`;
  for (const [name, is] of [["before", at.page > 0], ["after", at.page < last], ["undo", rows.done.length], ["redo", rows.undone.length]]) if (named(name)) named(name).disabled = !is;
  showState(doubles);
  if (named("order")) named("order").hidden = !at.sort;
  check();
  if (focus) cellAt(at.row, at.column)?.focus();
}

function showState(doubles = rows.doubles()) {
  const wrong = rows.list.filter((entry) => problems.has(entry.row)).length;
  chosen = new Set(rows.list.filter((entry) => chosen.has(entry.key)).map((entry) => entry.key));
  keep();
  document.getElementById("state").textContent = [
    `${shownRows.length.toLocaleString("en")} of ${counted(rows.list.length, "row")}`,
    chosen.size && `${chosen.size.toLocaleString("en")} chosen`,
    rows.changed && (isKept ? "not saved yet" : "not saved yet, and too much for this browser to keep over a reload: save a version soon"),
    doubles.size && `${doubles.size.toLocaleString("en")} rows are duplicates`,
    wrong && `${counted(wrong, "row")} cannot be saved`,
  ].filter(Boolean).join(" · ");
}

function rowOf(entry, line, columns, places, doubles) {
  const row = made("tr"), head = row.appendChild(made("th"));
  const label = head.appendChild(made("label", ` ${places.get(entry.key)}`)), box = Object.assign(made("input"), { type: "checkbox", checked: chosen.has(entry.key) });
  label.prepend(box);
  box.onchange = () => (box.checked ? chosen.add(entry.key) : chosen.delete(entry.key), showState());
  for (const note of [(entry.row[MARK] || entry.row.actual_output) && "test case", doubles.get(entry.key), problems.get(entry.row)]) if (note) head.append(made("small", note, note === "test case" ? "" : "bad"));
  columns.forEach((column, place) => {
    const cell = row.appendChild(made("td")), value = valueOf(entry.row, column);
    const text = column === "turns" ? (value ?? []).map((turn) => `${turn.role}: ${turn.content}`).join("\n") : textOf(value);
    cell.append(made("div"));
    cell.firstChild.append(window.shown(text.length > 600 ? `${text.slice(0, 600)}…` : text)); // invisible characters, too
    cell.firstChild.dir = "auto";
    cell.tabIndex = line === at.row && place === at.column ? 0 : -1;
    Object.assign(cell.dataset, { line, place });
    cell.role = "gridcell";
    if (entry.origin === null || textOf(valueOf(rows.saved[entry.origin] ?? {}, column)) !== textOf(value)) cell.classList.add("changed");
  });
  return row;
}

const cellAt = (line, place) => table.querySelector(`td[data-line="${line}"][data-place="${place}"]`);

function move(down, right) {
  const lines = table.tBodies[0].rows.length, columns = rows.columns().length;
  cellAt(at.row, at.column)?.setAttribute("tabindex", "-1");
  at.row = Math.max(0, Math.min(lines - 1, at.row + down));
  at.column = Math.max(0, Math.min(columns - 1, at.column + right));
  const cell = cellAt(at.row, at.column);
  cell?.setAttribute("tabindex", "0");
  cell?.focus();
}

// --- editing

function edit(first) {
  const cell = cellAt(at.row, at.column), entry = shownRows[at.page * PAGE + at.row], column = rows.columns()[at.column];
  if (readOnly || !cell || !entry) return;
  const before = valueOf(entry.row, column);
  const finish = (value) => {
    if (value !== before) rows.set(new Set([entry.key]), column, value);
    show(true);
  };
  const typing = (value) => keep(rows.with(new Set([entry.key]), column, value));
  if (column === "turns") return editTurns(cell, before ?? [], { typing, finish, cancel: () => show(true) });
  editText(cell, textOf(before), {
    first,
    label: `${column.replace(OF_CUSTOM, "")} of row ${at.page * PAGE + at.row + 1}`,
    typing: (text) => typing(typed(column, text, before)),
    finish: (text, down, right) => (finish(text === textOf(before) ? before : typed(column, text, before)), (down || right) && move(down, right)),
  });
}

// Ask what is wrong with the rows that are new; a good row beside them tells questions from conversations.
let waiting;
function check() {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const asked = rows.list.map((entry) => entry.row).filter((row) => !checked.has(row) && Object.keys(row).length);
    if (!asked.length) return;
    const good = rows.list.find(({ row }) => checked.has(row) && !problems.has(row)), sent = good ? [good.row, ...asked] : asked;
    const { said } = await ask(`${address}/check.json`, { method: "POST", body: JSON.stringify({ rows: sent }) });
    for (const row of asked) checked.add(row);
    for (const { row, problem } of said.problems) problems.set(sent[row], problem);
    if (said.problems.length && !table.querySelector("td textarea")) show(table.contains(document.activeElement));
  }, 200);
}

table.addEventListener("focusin", ({ target }) => {
  if (target.tagName === "TD") Object.assign(at, { row: Number(target.dataset.line), column: Number(target.dataset.place) });
});
table.addEventListener("dblclick", () => edit());
table.addEventListener("keydown", (event) => {
  if (event.target.tagName !== "TD" || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0] }[event.key];
  const entry = shownRows[at.page * PAGE + at.row];
  if (moves) move(...moves);
  else if (event.key === "Enter" || event.key === "F2") edit();
  else if (event.key === "Delete" && entry && !readOnly) rows.set(new Set([entry.key]), rows.columns()[at.column], undefined), show(true);
  else if (event.key === " " && entry) chosen.has(entry.key) ? chosen.delete(entry.key) : chosen.add(entry.key), show(true);
  else if (event.key.length === 1) edit(event.key);
  else return;
  event.preventDefault();
  event.stopPropagation();
});
addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || readOnly) return;
  const inField = /^(INPUT|TEXTAREA)$/.test(event.target.tagName), key = event.key.toLowerCase();
  if (key === "s") save();
  else if (!inField && key === "z" && !event.shiftKey) rows.undo(), show(true);
  else if (!inField && (key === "y" || key === "z")) rows.redo(), show(true);
  else return;
  event.preventDefault();
});

// --- buttons

const keysShown = () => new Set(shownRows.map((entry) => entry.key));
const keysChosen = () => (chosen.size ? chosen : new Set([shownRows[at.page * PAGE + at.row]?.key]));
const actions = {
  undo: () => rows.undo(),
  redo: () => rows.redo(),
  add: () => addRows([{}]),
  duplicate: () => rows.duplicate(keysChosen()),
  remove: () => (rows.remove(keysChosen()), chosen.clear()),
  order: () => {
    const keys = keysShown();
    rows.change([...shownRows, ...rows.list.filter((entry) => !keys.has(entry.key))]);
    at.sort = "";
  },
  "add-column": () => named("column").value.trim() && rows.extra.add(columnOf(named("column").value.trim())),
  replace: () => say(`${counted(named("find").value ? rows.replace(keysShown(), named("find").value, named("replacement").value) : 0, "row")} changed.`),
  fill: () => {
    const column = named("filled").value, write = (row) => typed(column, named("value").value, valueOf(row, column));
    say(chosen.size ? `${counted(rows.set(chosen, column, write), "row")} changed.` : "Choose rows first, by the boxes before them; the box above them chooses all that are shown.");
  },
  before: () => (at.page -= 1),
  after: () => (at.page += 1),
  save: () => void save(),
  import: () => void importFile(),
};
for (const [name, act] of Object.entries(actions)) named(name)?.addEventListener("click", () => (act(), show(table.contains(document.activeElement))));
for (const name of ["filter", "flagged"]) named(name).addEventListener("input", () => ((at.page = 0), show()));
for (const name of ["author", "message"]) named(name)?.addEventListener("input", () => keep());
for (const name of ["file", "import-encoding"]) named(name)?.addEventListener("change", () => named("file").files.length && void importFile());
// Edits would stay behind, under the name that the data set had.
document.getElementById("whole")?.addEventListener("submit", (event) => {
  if (!rows.changed || event.target.action.endsWith("/copy")) return;
  event.preventDefault();
  say("Save or undo your edits first: they are not saved yet.");
});
addEventListener("beforeunload", (event) => rows.changed && !isKept && event.preventDefault());

function addRows(added) {
  rows.add(added);
  Object.assign(at, { sort: "", page: Math.floor((rows.list.length - 1) / PAGE), row: (rows.list.length - 1) % PAGE, column: 0 });
  named("filter").value = "";
  show(true);
}

// Put an item into the golden that asks the same, or into a new row; return what happened.
function addItem(item) {
  const before = rows.list, place = rows.answer(item), expected = item.expected_output ?? item.expected_outcome;
  const asked = `its ${item.turns ? "turns" : "input"}${expected === undefined ? "" : " and what is expected"}`;
  const what = item.actual_output === undefined ? asked : `${asked}, and its answer as actual_output`;
  const next = expected === undefined ? "Write what was expected, and save." : "Look at it, and save.";
  if (place < 0) return addRows([item]), `The item is in row ${rows.list.length}, with ${what}. ${next}`;
  Object.assign(at, { page: Math.floor(place / PAGE), row: place % PAGE, column: 0 });
  return rows.list === before ? `Row ${place + 1} has this item already: nothing was added.` : `The item is in row ${place + 1}, which asks the same, with ${what}. ${next}`;
}

async function importFile(columns, focused) {
  const body = new FormData(), [file] = named("file").files;
  body.append("csrf", root.dataset.csrf);
  body.append("encoding", named("import-encoding").value);
  if (columns) body.append("columns", JSON.stringify(columns));
  if (file) body.append("file", file);
  const { status, said } = await ask(`${address}/import.json`, { method: "POST", body });
  if (status !== 200) return say(`${said.problem} ${said.fix}`);
  say("");
  const take = () => (say(`${counted(said.rows.length, "row")} added to the table, and not saved yet.`), addRows(said.rows));
  showImport(message, said, { again: (chosen, name) => void importFile(chosen, name), take });
  [...message.querySelectorAll("select")].find((select) => select.name === focused)?.focus();
}

async function save() {
  document.activeElement?.blur?.();
  const list = rows.list, sent = { parent: base?.number ?? null, rows: list.map((entry) => entry.row), origins: list.map((entry) => entry.origin), author: named("author").value, message: named("message").value };
  const { status, said } = await ask(`${address}/versions.json`, { method: "POST", body: JSON.stringify(sent) });
  if (status === 201) {
    const isSame = base?.number === said.version.number;
    begin(said.version, sent.rows.map(copy), rows.extra);
    named("message").value = "";
    document.getElementById("saved").hidden = false;
    storage?.setItem("author", sent.author);
    const answer = await fetch(location.pathname);
    document.getElementById("ran").replaceWith(new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("ran"));
    say(isSame ? `Version ${base.number} has these rows already: no version was made.` : `Saved as version ${base.number}.`);
  } else if (said.conflicts) {
    showConflicts(message, said, (merged) => {
      begin(said.latest, said.theirs, rows.extra);
      rows.change(merged.map(({ row, origin }) => ({ ...rows.made(row), origin })));
      say(`Both are in the table now, after version ${base.number}. Look at it, and save.`);
      show();
    });
  } else {
    for (const { row, problem } of said.problems ?? []) problems.set(list[row].row, problem);
    say(`${said.problem} ${said.fix}`);
  }
  show();
}

const kept = root.dataset.version ? (await ask(`${address}/rows.json?version=${root.dataset.version}`)).said : null;
begin(kept?.version ?? null, kept?.rows ?? [], root.dataset.kind === "conversations" ? ["scenario"] : []);
root.hidden = false;
const asked = new URLSearchParams(location.search), add = asked.get("add");
if (!readOnly) named("author").value = storage?.getItem("author") ?? "";
if (add && !readOnly) {
  const { status, said } = await ask(`/datasets-golden/${add}${asked.get("answer") ? "?answer=1" : ""}`);
  history.replaceState(null, "", location.pathname); // a reload offers the row as an unsaved edit
  if (status === 200) say(addItem(said.row));
  else say(`${said.problem} ${said.fix}`);
}
show();
if (!readOnly) await offerDrafts();
root.dataset.ready = "";

// The table of a data set: cells by keyboard, pages of rows, and what is said to the server.

import { Rows, MARK, columnOf, copy, same, textOf, typed, valueOf, OF_CUSTOM } from "./dataset_rows.js";
import { editTurns, showConflicts, showImport } from "./dataset_forms.js";

const root = document.getElementById("dataset"), address = root.dataset.address, readOnly = Boolean(root.dataset.readOnly);
const PAGE = 100, at = { page: 0, sort: "", down: false, row: 0, column: 0 };
const named = (name) => root.querySelector(`[name="${name}"]`);
const table = root.querySelector("table"), message = document.getElementById("message");
let parent = root.dataset.version ? Number(root.dataset.version) : null, rows = new Rows([]), chosen = new Set(), problems = new Map();

const say = (text) => {
  message.replaceChildren(text);
  if (text) message.focus();
};
const made = (tag, text = "", name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });

async function ask(path, options) {
  const answer = await fetch(path, { headers: options?.body instanceof FormData ? {} : { "Content-Type": "application/json" }, ...options });
  const kind = answer.headers.get("content-type") ?? "";
  if (!kind.includes("json")) throw new Error(`The workbench answered ${answer.status}: reload the page, and look at its terminal.`);
  return { status: answer.status, said: await answer.json() };
}

// --- what is shown

let shownRows = [];

function listed() {
  const wanted = named("filter").value.toLowerCase(), doubles = rows.doubles(), flagged = named("flagged").checked;
  const found = rows.list.filter((one) => (!wanted || JSON.stringify(one.row).toLowerCase().includes(wanted)) && (!flagged || doubles.has(one.key) || problems.has(one.key)));
  if (at.sort) {
    const texts = new Map(found.map((one) => [one.key, textOf(valueOf(one.row, at.sort))]));
    found.sort((one, other) => (at.down ? -1 : 1) * texts.get(one.key).localeCompare(texts.get(other.key), undefined, { numeric: true }));
  }
  return [found, doubles];
}

function show(focus = false) {
  const [found, doubles] = listed(), columns = rows.columns();
  shownRows = found;
  at.page = Math.max(0, Math.min(at.page, Math.ceil(found.length / PAGE) - 1));
  const head = made("tr");
  head.append(made("th", "Row"));
  for (const column of columns) {
    const cell = head.appendChild(made("th")), button = cell.appendChild(made("button", column.replace(OF_CUSTOM, "") + (at.sort === column ? (at.down ? " ↓" : " ↑") : "")));
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
  const places = new Map(rows.list.map((one, place) => [one.key, place + 1]));
  table.tBodies[0].replaceChildren(...found.slice(at.page * PAGE, (at.page + 1) * PAGE).map((one, line) => rowOf(one, line, columns, places, doubles)));
  const filled = named("filled");
  if (filled) filled.replaceChildren(...columns.map((column) => new Option(column.replace(OF_CUSTOM, ""), column, false, filled.value === column)));
  document.getElementById("pages").textContent = `page ${at.page + 1} of ${Math.max(1, Math.ceil(found.length / PAGE))}`;
  const counted = [`${found.length.toLocaleString("en")} of ${rows.list.length.toLocaleString("en")} rows`];
  if (rows.changed) counted.push("not saved yet");
  if (doubles.size) counted.push(`${doubles.size} rows are duplicates`);
  if (problems.size) counted.push(`${problems.size} rows cannot be saved`);
  document.getElementById("state").textContent = counted.join(" · ");
  if (focus) cellAt(at.row, at.column)?.focus();
}

function rowOf(one, line, columns, places, doubles) {
  const row = made("tr"), head = row.appendChild(made("th"));
  const label = head.appendChild(made("label", ` ${places.get(one.key)}`)), box = Object.assign(made("input"), { type: "checkbox", checked: chosen.has(one.key) });
  label.prepend(box);
  box.onchange = () => (box.checked ? chosen.add(one.key) : chosen.delete(one.key));
  for (const note of [(one.row[MARK] || one.row.actual_output) && "test case", doubles.get(one.key), problems.get(one.key)]) if (note) head.append(made("small", note, note === "test case" ? "" : "bad"));
  columns.forEach((column, place) => {
    const cell = row.appendChild(made("td")), value = valueOf(one.row, column);
    const text = column === "turns" ? (value ?? []).map((turn) => `${turn.role}: ${turn.content}`).join("\n") : textOf(value);
    cell.append(made("div", text.length > 600 ? `${text.slice(0, 600)}…` : text));
    cell.firstChild.dir = "auto";
    cell.tabIndex = line === at.row && place === at.column ? 0 : -1;
    Object.assign(cell.dataset, { line, place });
    cell.role = "gridcell";
    if (one.origin === null || textOf(valueOf(rows.saved[one.origin] ?? {}, column)) !== textOf(value)) cell.classList.add("changed");
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
  const cell = cellAt(at.row, at.column), one = shownRows[at.page * PAGE + at.row], column = rows.columns()[at.column];
  if (readOnly || !cell || !one) return;
  const before = valueOf(one.row, column);
  const finish = (value, down = 0) => {
    if (value !== before) rows.set(new Set([one.key]), column, value);
    check([one.key]);
    show(true);
    if (down) move(down, 0);
  };
  if (column === "turns") return editTurns(cell, before ?? [], finish, () => show(true));
  const field = made("textarea");
  field.value = first ?? textOf(before);
  field.rows = Math.min(12, field.value.split("\n").length + 1);
  field.ariaLabel = `${column.replace(OF_CUSTOM, "")} of row ${at.page * PAGE + at.row + 1}`;
  let over = false;
  const end = (value, down) => {
    if (over) return;
    over = true;
    finish(value, down);
  };
  const value = () => (field.value === textOf(before) ? before : typed(column, field.value, before));
  field.onblur = () => end(value());
  field.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key === "Escape") end(before);
    else if (event.key === "Enter" && !event.shiftKey) event.preventDefault(), end(value(), 1);
    else if (event.key === "Tab") event.preventDefault(), end(value()), move(0, event.shiftKey ? -1 : 1);
  };
  cell.replaceChildren(field);
  field.focus();
}

let waiting;
function check(keys) {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const ones = rows.list.filter((one) => keys.includes(one.key) && Object.keys(one.row).length);
    const { said } = await ask(`${address}/check.json`, { method: "POST", body: JSON.stringify({ rows: ones.map((one) => one.row) }) });
    for (const one of ones) problems.delete(one.key);
    for (const found of said.problems ?? []) problems.set(ones[found.row].key, found.problem);
    if (!table.querySelector("td textarea")) show(table.contains(document.activeElement));
  }, 200);
}

table.addEventListener("focusin", ({ target }) => {
  if (target.tagName === "TD") Object.assign(at, { row: Number(target.dataset.line), column: Number(target.dataset.place) });
});
table.addEventListener("dblclick", () => edit());
table.addEventListener("keydown", (event) => {
  if (event.target.tagName !== "TD" || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0] }[event.key];
  const one = shownRows[at.page * PAGE + at.row];
  if (moves) move(...moves);
  else if (event.key === "Enter" || event.key === "F2") edit();
  else if (event.key === "Delete" && one && !readOnly) rows.set(new Set([one.key]), rows.columns()[at.column], undefined), check([one.key]), show(true);
  else if (event.key === " " && one) chosen.has(one.key) ? chosen.delete(one.key) : chosen.add(one.key), show(true);
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

const keysShown = () => new Set(shownRows.map((one) => one.key));
const keysChosen = () => (chosen.size ? chosen : new Set([shownRows[at.page * PAGE + at.row]?.key]));
const actions = {
  undo: () => rows.undo(),
  redo: () => rows.redo(),
  add: () => addRows([{}]),
  duplicate: () => rows.duplicate(keysChosen()),
  remove: () => (rows.remove(keysChosen()), chosen.clear()),
  "add-column": () => named("column").value.trim() && rows.extra.add(columnOf(named("column").value.trim())),
  replace: () => {
    const wanted = named("find").value, by = named("replacement").value;
    const count = !wanted ? 0 : rows.map(keysShown(), (row) => JSON.parse(JSON.stringify(row), (_, value) => (typeof value === "string" ? value.replaceAll(wanted, () => by) : value)));
    say(`${count} rows changed.`);
  },
  fill: () => rows.set(new Set(chosen), named("filled").value, (row) => typed(named("filled").value, named("value").value, valueOf(row, named("filled").value))),
  before: () => (at.page -= 1),
  after: () => (at.page += 1),
  save: () => void save(),
  import: () => void importFile(),
};
for (const [name, act] of Object.entries(actions)) named(name)?.addEventListener("click", () => (act(), show(table.contains(document.activeElement))));
for (const name of ["filter", "flagged"]) named(name).addEventListener("input", () => ((at.page = 0), show()));
addEventListener("beforeunload", (event) => rows.changed && event.preventDefault());

function addRows(added) {
  rows.add(added);
  Object.assign(at, { sort: "", page: Math.floor((rows.list.length - 1) / PAGE), row: (rows.list.length - 1) % PAGE, column: 0 });
  named("filter").value = "";
  show(true);
}

// The number of the row: of the golden that asks the same, which takes over the answer, or of a new one.
function addItem(item) {
  const asks = ({ row }) => !row[MARK] && ["input", "scenario", "turns"].every((name) => same(row[name], item[name]));
  const known = rows.list.find(asks);
  if (!known) return addRows([item]), rows.list.length;
  const metadata = { ...known.row.additional_metadata, ...item.additional_metadata };
  rows.map(new Set([known.key]), (row) => ({ ...item, ...row, actual_output: item.actual_output, additional_metadata: metadata }));
  Object.assign(at, { page: Math.floor(rows.list.indexOf(rows.list.find(asks)) / PAGE), row: rows.list.findIndex(asks) % PAGE, column: 0 });
  return rows.list.findIndex(asks) + 1;
}

async function importFile() {
  const body = new FormData();
  body.append("csrf", root.dataset.csrf);
  body.append("column", named("input-column").value);
  if (named("file").files[0]) body.append("file", named("file").files[0]);
  const { status, said } = await ask(`${address}/import.json`, { method: "POST", body });
  if (status !== 200) return say(`${said.problem} ${said.fix}`);
  showImport(message, said, () => (say(`${said.rows.length} rows are in the table, and not saved yet.`), addRows(said.rows)));
}

async function save() {
  document.activeElement?.blur?.();
  const sent = { parent, rows: rows.list.map((one) => one.row), origins: rows.list.map((one) => one.origin), author: named("author").value, message: named("message").value };
  const { status, said } = await ask(`${address}/versions.json`, { method: "POST", body: JSON.stringify(sent) });
  if (status === 201) {
    parent = said.version.number;
    rows = new Rows(sent.rows.map(copy), rows.extra);
    problems = new Map();
    chosen = new Set();
    named("message").value = "";
    document.getElementById("saved").hidden = false;
    localStorage.setItem("author", sent.author);
    const answer = await fetch(location.pathname);
    document.getElementById("ran").replaceWith(new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("ran"));
    root.closest("main").querySelector(".when").textContent = `version ${parent}`;
    say(`Saved as version ${parent}.`);
  } else if (said.conflicts) {
    showConflicts(message, said, (merged) => {
      const mine = new Rows(said.theirs);
      mine.change(merged.map(({ row, origin }) => ({ ...mine.made(row), origin })));
      rows = mine;
      parent = said.latest.number;
      say(`Both are in the table now, after version ${parent}. Look at it, and save.`);
      show();
    });
  } else {
    problems = new Map((said.problems ?? []).map((one) => [rows.list[one.row]?.key, one.problem]));
    say(`${said.problem} ${said.fix}`);
  }
  show();
}

const begun = parent === null ? [] : (await ask(`${address}/rows.json?version=${parent}`)).said.rows;
rows = new Rows(begun);
root.hidden = false;
const add = new URLSearchParams(location.search).get("add");
if (!readOnly) named("author").value = localStorage.getItem("author") ?? "";
if (add && !readOnly) {
  const { status, said } = await ask(`/datasets-golden/${add}`);
  if (status === 200) say(`The item is in row ${addItem(said.row)}, with its answer as actual_output. Write what was expected, and save.`);
  else say(`${said.problem} ${said.fix}`);
}
show();

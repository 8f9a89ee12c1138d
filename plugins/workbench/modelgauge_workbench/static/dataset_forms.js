// Forms beside the table of a data set: the turns of a conversation, a file to import, a draft, a conflict of two people.

import { OF_CUSTOM, Rows, textOf, valueOf } from "./dataset_rows.js";

export const made = (tag, text = "", name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });
function text(value) {
  const box = Object.assign(made("pre", "", "text"), { tabIndex: 0, dir: "auto" });
  box.append(window.shown(value));
  return box;
}
export const button = (text, act) => Object.assign(made("button", text), { type: "button", onclick: act });
const shown = (value) => (value === null || value === undefined ? "nothing" : typeof value === "string" ? value : JSON.stringify(value, null, 1));

// A text in place of a cell: Enter and Tab lead on, Escape leaves it as it was.
export function editText(cell, before, { first, label, typing, finish }) {
  const field = Object.assign(made("textarea"), { value: first ?? before, ariaLabel: label });
  field.rows = Math.min(12, field.value.split("\n").length + 1);
  let over = false;
  const end = (text, down = 0, right = 0) => {
    if (over) return;
    over = true;
    finish(text, down, right);
  };
  field.onblur = () => end(field.value);
  field.oninput = () => typing(field.value);
  field.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key === "Escape") end(before);
    else if (event.key === "Enter" && !event.shiftKey) event.preventDefault(), end(field.value, 1);
    else if (event.key === "Tab") event.preventDefault(), end(field.value, 0, event.shiftKey ? -1 : 1);
  };
  cell.replaceChildren(field);
  field.focus();
  if (first !== undefined) typing(first);
}

export function editTurns(cell, turns, { typing, finish, cancel }) {
  const form = made("div", "", "turns"), list = form.appendChild(made("div", "", "turns"));
  const add = (turn) => {
    const line = list.appendChild(made("div")), role = line.appendChild(made("select")), text = line.appendChild(made("textarea"));
    for (const name of ["user", "assistant"]) role.append(new Option(name, name, false, turn.role === name));
    role.ariaLabel = "who speaks";
    text.ariaLabel = "what is said";
    text.value = turn.content ?? "";
    line.append(button("Remove this turn", () => (line.remove(), typing(read()))));
    line.read = () => ({ ...turn, role: role.value, content: text.value });
    return text;
  };
  const read = () => (list.children.length ? [...list.children].map((line) => line.read()) : undefined);
  turns.forEach(add);
  form.append(
    button("Add a turn", () => add({ role: list.children.length % 2 ? "assistant" : "user" }).focus()),
    button("Done", () => finish(read())),
    button("Cancel", cancel),
  );
  form.addEventListener("input", () => typing(read()));
  form.addEventListener("keydown", (event) => (event.stopPropagation(), event.key === "Escape" && cancel()));
  cell.replaceChildren(form);
  (list.querySelector("textarea") ?? form.querySelector("button")).focus();
}

export const counted = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

function firstRows(rows) {
  const box = Object.assign(made("div", "", "scroll"), { tabIndex: 0, role: "region", ariaLabel: "The first rows" }), table = box.appendChild(made("table", "", "rows"));
  const columns = new Rows(rows).columns(), head = table.createTHead().insertRow();
  for (const column of columns) head.append(Object.assign(made("th", column.replace(OF_CUSTOM, "")), { scope: "col" }));
  for (const row of rows) {
    const line = (table.tBodies[0] ?? table.createTBody()).insertRow();
    for (const column of columns) Object.assign(line.insertCell(), { className: "wrap", dir: "auto" }).append(window.shown(textOf(valueOf(row, column)).slice(0, 600)));
  }
  return box;
}

// What a file would add: what each of its columns becomes, which a person can choose, and the first rows.
export function showImport(place, said, { again, take }) {
  const { rows, columns, problems, unread, doubts } = said;
  const parts = [made("h2", "What the file holds"), made("p", `${counted(rows.length, "row")} can be used, ${unread.toLocaleString("en")} cannot.`)];
  const choices = made("div", "", "columns"), words = { "": "a column of your own", "-": "left out", input: "input: what is asked", expected_output: "expected_output: a right answer" };
  for (const { name, becomes, can } of columns) {
    const label = choices.appendChild(made("label")), select = Object.assign(made("select"), { name });
    const title = label.appendChild(made("span"));
    title.append(window.shown(name || "(no name)"));
    for (const field of can.includes(becomes) ? can : [becomes, ...can]) select.append(new Option(words[field] ?? field, field, false, field === becomes));
    select.onchange = () => again(Object.fromEntries([...choices.querySelectorAll("select")].map((each) => [each.name, each.value])), name);
    label.append(" becomes ", select);
  }
  parts.push(choices);
  for (const problem of [...problems, ...doubts]) parts.push(made("p", problem, "bad"));
  if (unread && rows.length) parts.push(made("p", "What cannot be used is left out: correct the file and look at it again, or add the others."));
  if (rows.length) parts.push(firstRows(rows.slice(0, 3)));
  const buttons = made("p", "", "inline");
  if (rows.length) buttons.append(button(`Add ${counted(rows.length, "row")} to the table`, take));
  buttons.append(button("Leave it", () => place.replaceChildren()));
  parts.push(buttons);
  place.replaceChildren(...parts);
}

// Edits of an earlier visit; `since` is the latest version where somebody saved one meanwhile.
export function showDraft(place, { time, base, list, since }, restore, discard) {
  const changed = list.filter((entry) => typeof entry !== "number").length, gone = (base?.rows ?? 0) - list.filter((entry) => typeof entry === "number" || entry[0] !== null).length;
  const what = [counted(changed, "row"), ...(gone ? [`${counted(gone, "deleted row")}`] : [])].join(" and ");
  const of = base ? `of version ${base.number}` : "of no version yet";
  const later = since ? ` Version ${since.number}${since.author ? ` by ${since.author}` : ""} was saved since: you see both before anything is saved.` : "";
  const line = place.appendChild(made("p", `This browser has unsaved edits ${of}, from ${new Date(time).toLocaleString()}: ${what}. Another window may still have them open.${later} `));
  const again = button("Restore your unsaved edits", async () => (await restore()) && line.remove());
  line.append(again, " ", button("Discard", () => {
    const back = discard();
    line.replaceChildren("Discarded. ", button("Put the edits back", () => (back(), line.remove(), showDraft(place, { time, base, list, since }, restore, discard))));
  }));
}

export function showConflicts(place, said, take) {
  const by = said.latest.author ? ` by ${said.latest.author}` : "";
  const parts = [made("h2", "Somebody saved meanwhile"), made("p", `Version ${said.latest.number}${by}: ${said.latest.message || "without a message"}. What you both did is put together.`)];
  const choices = said.conflicts.map((conflict, number) => {
    const set = made("fieldset");
    set.append(made("legend", conflict.column ? `${conflict.column.replace("custom:", "")} of row ${conflict.row + 1}` : `Row ${conflict.row + 1}: one of you deleted it`));
    for (const [name, title] of [["theirs", "theirs"], ["mine", "yours"]]) {
      const label = set.appendChild(made("label")), radio = Object.assign(made("input"), { type: "radio", name: `conflict${number}`, value: name });
      label.append(radio, ` ${title}: `, text(conflict[name] === null && !conflict.column ? "deleted" : shown(conflict[name])));
    }
    parts.push(set);
    return [conflict, set];
  });
  const problem = made("p", "", "bad");
  parts.push(
    problem,
    button(choices.length ? "Put both into the table with these choices" : "Put both into the table", () => {
      const rows = said.rows.map((row) => structuredClone(row));
      const gone = new Set();
      for (const [conflict, set] of choices) {
        const choice = set.querySelector("input:checked")?.value;
        if (!choice) return (problem.textContent = "Choose one in each place.");
        const value = conflict[choice], custom = conflict.column.startsWith("custom:");
        const into = custom ? (rows[conflict.row].custom_column_key_values ??= {}) : rows[conflict.row], name = conflict.column.replace("custom:", "");
        if (!conflict.column && value === null) gone.add(conflict.row);
        else if (!conflict.column) rows[conflict.row] = value;
        else if (value === null) delete into[name];
        else into[name] = value;
      }
      take(rows.map((row, at) => ({ row, origin: said.origins[at], at })).filter(({ at }) => !gone.has(at)));
    }),
  );
  place.replaceChildren(...parts);
  place.focus();
}

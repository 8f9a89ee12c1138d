// Forms beside the table of a data set: the turns of a conversation, a file to import, and a conflict of two people.

const made = (tag, text = "", name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });
const button = (text, act) => Object.assign(made("button", text), { type: "button", onclick: act });
const shown = (value) => (value === null || value === undefined ? "nothing" : typeof value === "string" ? value : JSON.stringify(value, null, 1));

export function editTurns(cell, turns, finish, cancel) {
  const form = made("div", "", "turns"), list = form.appendChild(made("div", "", "turns"));
  const add = (turn) => {
    const line = list.appendChild(made("div")), role = line.appendChild(made("select")), text = line.appendChild(made("textarea"));
    for (const name of ["user", "assistant"]) role.append(new Option(name, name, false, turn.role === name));
    role.ariaLabel = "who speaks";
    text.ariaLabel = "what is said";
    text.value = turn.content ?? "";
    line.append(button("remove this turn", () => line.remove()));
    line.read = () => ({ ...turn, role: role.value, content: text.value });
    return text;
  };
  turns.forEach(add);
  form.append(
    button("add a turn", () => add({ role: list.children.length % 2 ? "assistant" : "user" }).focus()),
    button("done", () => finish(list.children.length ? [...list.children].map((line) => line.read()) : undefined)),
    button("cancel", cancel),
  );
  form.addEventListener("keydown", (event) => (event.stopPropagation(), event.key === "Escape" && cancel()));
  cell.replaceChildren(form);
  (list.querySelector("textarea") ?? form.querySelector("button")).focus();
}

export function showImport(place, said, take) {
  const parts = [made("h2", "What the file holds"), made("p", `${said.rows.length} rows can be used, ${said.unread} cannot. Its columns: ${said.columns.join(", ")}.`)];
  for (const one of [...said.problems, ...said.doubts]) parts.push(made("p", one, "bad"));
  if (said.rows.length) parts.push(made("pre", said.rows.slice(0, 3).map((row) => JSON.stringify(row, null, 1)).join("\n"), "text"), button(`add ${said.rows.length} rows to the table`, take));
  parts.push(button("leave it", () => place.replaceChildren()));
  place.replaceChildren(...parts);
}

export function showConflicts(place, said, take) {
  const by = said.latest.author ? ` by ${said.latest.author}` : "";
  const parts = [made("h2", "Somebody saved meanwhile"), made("p", `Version ${said.latest.number}${by}: ${said.latest.message || "without a message"}. What you both did is put together.`)];
  const choices = said.conflicts.map((one, number) => {
    const set = made("fieldset");
    set.append(made("legend", one.column ? `${one.column.replace("custom:", "")} of row ${one.row + 1}` : `Row ${one.row + 1}: one of you deleted it`));
    for (const [name, title] of [["theirs", "theirs"], ["mine", "yours"]]) {
      const label = set.appendChild(made("label")), radio = Object.assign(made("input"), { type: "radio", name: `conflict${number}`, value: name });
      label.append(radio, ` ${title}: `, made("pre", one[name] === null && !one.column ? "deleted" : shown(one[name]), "text"));
    }
    parts.push(set);
    return [one, set];
  });
  const problem = made("p", "", "bad");
  parts.push(
    problem,
    button(choices.length ? "put both into the table with these choices" : "put both into the table", () => {
      const rows = said.rows.map((row) => structuredClone(row));
      const gone = new Set();
      for (const [one, set] of choices) {
        const choice = set.querySelector("input:checked")?.value;
        if (!choice) return (problem.textContent = "Choose one in each place.");
        const value = one[choice], custom = one.column.startsWith("custom:");
        const into = custom ? (rows[one.row].custom_column_key_values ??= {}) : rows[one.row], name = one.column.replace("custom:", "");
        if (!one.column && value === null) gone.add(one.row);
        else if (!one.column) rows[one.row] = value;
        else if (value === null) delete into[name];
        else into[name] = value;
      }
      take(rows.map((row, at) => ({ row, origin: said.origins[at], at })).filter(({ at }) => !gone.has(at)));
    }),
  );
  place.replaceChildren(...parts);
  place.focus();
}

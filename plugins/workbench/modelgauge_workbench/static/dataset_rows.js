// The rows of a data set while somebody edits them: columns, cells, one list of changes to undo and redo.

// Texts that a program reads: whose turn it is, and what marks a test case.
const KEPT = new Set(["role", "modelgauge_member"]);

export const CUSTOM = "custom_column_key_values", OF_CUSTOM = "custom:", MARK = "modelgauge_member";
const TEXTS = new Set(["input", "actual_output", "expected_output", "name", "comments", "source_file", "scenario", "expected_outcome", "user_description", "chatbot_role"]);
const ORDER = ["input", "scenario", "turns", "expected_output", "expected_outcome", "actual_output", "context", "retrieval_context"];

const FIELDS = new Set([...TEXTS, ...ORDER, "tools_called", "expected_tools", "token_cost", "completion_time", "tags", "additional_metadata"]);

// The column that a name means: a field, or else a custom column.
export const columnOf = (name) => (FIELDS.has(name) ? name : OF_CUSTOM + name);
export const copy = (value) => structuredClone(value);
export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
export const isText = (column) => TEXTS.has(column) || column.startsWith(OF_CUSTOM);

export function valueOf(row, column) {
  return column.startsWith(OF_CUSTOM) ? row[CUSTOM]?.[column.slice(OF_CUSTOM.length)] : row[column];
}

export function withValue(row, column, value) {
  const made = copy(row), name = column.startsWith(OF_CUSTOM) ? column.slice(OF_CUSTOM.length) : column;
  const into = column === name ? made : (made[CUSTOM] ??= {});
  if (value === undefined || value === null || value === "") delete into[name];
  else into[name] = value;
  if (made[CUSTOM] && !Object.keys(made[CUSTOM]).length) delete made[CUSTOM];
  return made;
}

export const textOf = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value));

// What a person typed: a text, or JSON in columns of lists and objects, where a plain text is a list of one.
export function typed(column, text, before) {
  if (text === "") return undefined;
  if (isText(column) && (before === undefined || before === null || typeof before === "string")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return isText(column) ? text : column === "token_cost" || column === "completion_time" || column === "additional_metadata" ? text : [text];
  }
}

export class Rows {
  constructor(rows, extra = []) {
    this.saved = rows;
    this.list = rows.map((row, origin) => ({ row, origin, key: `${origin}` }));
    this.done = [];
    this.undone = [];
    this.next = 0;
    this.extra = new Set(extra);
  }

  columns() {
    const found = new Set(this.extra);
    for (const { row } of this.list) {
      for (const name of Object.keys(row)) if (name !== CUSTOM && name !== MARK) found.add(name);
      for (const name of Object.keys(row[CUSTOM] ?? {})) found.add(OF_CUSTOM + name);
    }
    for (const name of found.has("scenario") || found.has("turns") ? ["scenario", "turns", "expected_outcome"] : ["input", "expected_output"]) found.add(name);
    const place = (name) => (ORDER.indexOf(name) + 1 || (name.startsWith(OF_CUSTOM) ? 99 : 50));
    return [...found].sort((one, other) => place(one) - place(other) || one.localeCompare(other));
  }

  get changed() {
    return this.done.length > 0;
  }

  // One change, whatever it touches, is one list: rows are never edited in place, so a list is all that undo needs.
  change(list) {
    this.done.push(this.list);
    this.undone = [];
    this.list = list;
  }

  undo() {
    if (this.done.length) this.undone.push(this.list), (this.list = this.done.pop());
  }

  redo() {
    if (this.undone.length) this.done.push(this.list), (this.list = this.undone.pop());
  }

  made(row) {
    return { row, origin: null, key: `new${this.next++}` };
  }

  // The list with another value in some rows; `changeTo` makes it so.
  with(keys, column, value) {
    return this.edited(keys, (row) => withValue(row, column, typeof value === "function" ? value(row) : value));
  }

  set(keys, column, value) {
    return this.changeTo(this.with(keys, column, value));
  }

  edited(keys, edit) {
    return this.list.map((entry) => {
      const row = keys.has(entry.key) ? edit(entry.row) : entry.row;
      return row === entry.row || same(row, entry.row) ? entry : { ...entry, row };
    });
  }

  // Make a change, unless it touches no row; return how many it touches.
  changeTo(list) {
    const touched = list.filter((entry, place) => entry !== this.list[place]).length;
    if (touched) this.change(list);
    return touched;
  }

  replace(keys, wanted, by) {
    const replaced = (name, value) => (typeof value === "string" && !KEPT.has(name) ? value.replaceAll(wanted, () => by) : value);
    return this.changeTo(this.edited(keys, (row) => JSON.parse(JSON.stringify(row), replaced)));
  }

  add(rows) {
    const made = rows.map((row) => this.made(row));
    this.change([...this.list, ...made]);
    return made[0]?.key;
  }

  // Let the golden that asks what an item asked take over its answer, and what it lacks; return its place, or -1 where there is none.
  answer(item) {
    const place = this.list.findIndex(({ row }) => !row[MARK] && ["input", "scenario", "turns"].every((name) => same(row[name], item[name])));
    if (place < 0) return place;
    const { key, row } = this.list[place], answered = item.actual_output !== undefined;
    const said = answered ? { actual_output: item.actual_output, additional_metadata: { ...row.additional_metadata, ...item.additional_metadata } } : {};
    const { additional_metadata, ...fields } = item;
    this.changeTo(this.edited(new Set([key]), () => ({ ...fields, ...row, ...said })));
    return place;
  }

  remove(keys) {
    this.change(this.list.filter((entry) => !keys.has(entry.key)));
  }

  duplicate(keys) {
    this.change(this.list.flatMap((entry) => (keys.has(entry.key) ? [entry, this.made(copy(entry.row))] : [entry])));
  }

  // By key: how many rows ask the same, or have the same name.
  doubles() {
    const found = new Map();
    for (const what of ["input", "scenario", "name"]) {
      const seen = new Map();
      for (const entry of this.list) {
        const text = entry.row[what];
        if (typeof text !== "string" || entry.row[MARK]) continue;
        if (!seen.has(text)) seen.set(text, []);
        seen.get(text).push(entry.key);
      }
      for (const keys of seen.values()) if (keys.length > 1) for (const key of keys) found.set(key, `${keys.length} rows have this ${what}`);
    }
    return found;
  }
}

// The columns of a table that people choose, as an address has them.

const NO_COLUMN = ","; // in an address, where people chose no column

// The titles that an address names; null where it names none, so that the usual columns are shown.
const chosenTitles = (names) => (names ? names.split(",").map(decodeURIComponent) : null);

// A box for each column ({ title, isShown }). The boxes write a hidden field of the form; `show(names)` checks those of an address.
function columnChoice(columns) {
  const field = make("input", { type: "hidden", name: "columns" });
  const boxes = columns.map((column) => Object.assign(make("input", { type: "checkbox" }), { column }));
  const isUsual = () => boxes.every((box) => box.checked === Boolean(box.column.isShown));
  const oninput = () => {
    const titles = boxes.filter((box) => box.checked).map(({ column }) => encodeURIComponent(column.title));
    field.value = isUsual() ? "" : titles.join(",") || NO_COLUMN;
  };
  const labels = boxes.map((box) => make("label", {}, box, " ", shown(box.column.title)));
  const element = make("div", { oninput }, folded("columns", make("p", { className: "folded" }, ...labels)), field);
  const show = (names) => {
    const chosen = chosenTitles(names);
    field.value = names;
    for (const box of boxes) box.checked = chosen ? chosen.includes(box.column.title) : Boolean(box.column.isShown);
  };
  return { element, show };
}

// The items of a run with thresholds: each row has its verdict and the reason, failed items come first.

// The verdict on an item, from its measurement `passed`: "failed", "not judged" or "passed".
function verdictAt(rows, place) {
  const passed = rows.measured.passed[place];
  return passed == null ? "not judged" : passed >= 1 ? "passed" : "failed";
}

function verdictColumn(rows) {
  const looks = { failed: "missed", passed: "", "not judged": "not-measured" };
  return {
    title: "result",
    reason: true,
    text: (place) => rows.reasons.values[rows.reasons.of[place]],
    look: (place) => looks[verdictAt(rows, place)],
  };
}

const VERDICTS = { yes: "passed", no: "failed", none: "not judged" };

function verdictFilter(rows) {
  const counts = { passed: 0, failed: 0, "not judged": 0 };
  for (const place of rows.id.keys()) counts[verdictAt(rows, place)] += 1;
  return {
    name: "passed",
    title: "Result",
    options: [["", `all ${counted(rows.id.length)}`], ...["no", "none", "yes"].map((value) => [value, `${VERDICTS[value]} ${counted(counts[VERDICTS[value]])}`])],
    keeps: (value) => VERDICTS[value] && ((place) => verdictAt(rows, place) === VERDICTS[value]),
  };
}

// What could not be judged is no failure of the app.
function judgedColumn(column) {
  const isUnjudged = (place) => column.text(place) === "failed";
  return {
    ...column,
    text: (place) => (isUnjudged(place) ? "not judged" : column.text(place)),
    look: (place) => (isUnjudged(place) ? "not-measured" : column.look(place)),
  };
}

// What the table of such a run has besides that of any other run.
function asAppItems(model, rows) {
  const [first, ...others] = model.columns;
  const rank = { failed: 0, "not judged": 1, passed: 2 };
  return {
    ...model,
    rowHeight: 52, // two lines of the question and of the reason
    columns: [first, verdictColumn(rows), ...others.map((column) => (column.number ? { ...judgedColumn(column), spare: true } : column))],
    filters: [verdictFilter(rows), ...model.filters.map((filter) => ({ ...filter, folded: true }))],
    order: { title: "failed first", key: (place) => rank[verdictAt(rows, place)] },
    sorts: [{ value: "place", title: "in order", key: (place) => place }, ...model.sorts],
  };
}

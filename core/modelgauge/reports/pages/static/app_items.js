// The items of a run with thresholds: each row has its verdict and the reason, failed items come first.

const MOST_METRICS = 6; // beside the verdict, before people choose
const FEW_METRICS = 3; // leave room for the answer

// The verdict on an item, from its measurement `passed`: "failed", "not judged" or "passed".
function verdictAt(rows, place) {
  const passed = rows.measured.passed[place];
  return passed == null ? "not judged" : passed >= 1 ? "passed" : "failed";
}

const isBelow = (rows, name, place) => {
  const passed = rows.measured[`${name}.passed`]?.[place];
  return passed != null && passed < 1;
};

// How a value missed its threshold: "below 0.5"; of several repeats the mean may have reached it.
function missOf(rows, name, place) {
  const [limit, higherIsBetter] = rows.thresholds[name] ?? [];
  const value = rows.measured[name]?.[place];
  if (limit == null || value == null || (higherIsBetter ? value >= limit : value <= limit)) return "failed";
  return `${higherIsBetter ? "below" : "above"} ${amount(limit)}`;
}

// Why an item has its verdict: "below 0.5: faithfulness, bias", or what failed.
function reasonAt(rows, names, place) {
  const misses = new Map();
  for (const name of names.filter((each) => isBelow(rows, each, place))) {
    const miss = missOf(rows, name, place);
    misses.set(miss, [...misses.get(miss) ?? [], name]);
  }
  const why = [...misses].map(([miss, of]) => `${miss}: ${of.join(", ")}`).join("; ");
  const verdict = verdictAt(rows, place);
  if (verdict === "failed") return why || "failed";
  return verdict === "passed" ? verdict : [verdict, why || rows.failures.titles[rows.failures.values[rows.failures.of[place]] - 1]].filter(Boolean).join(": ");
}

function verdictColumn(rows, names) {
  const looks = { failed: "missed", passed: "", "not judged": "not-measured" };
  return {
    title: "result",
    reason: true,
    text: (place) => reasonAt(rows, names, place),
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

// A metric's column, where what could not be judged is no failure of the app.
function judgedColumn(column) {
  const isUnjudged = (place) => column.text(place) === "failed";
  return {
    ...column,
    text: (place) => (isUnjudged(place) ? "not judged" : column.text(place)),
    look: (place) => (isUnjudged(place) ? "not-measured" : column.look(place)),
  };
}

// What the table of such a run has besides that of any other run.
function asAppItems(model, rows, names) {
  const failures = (name) => rows.id.reduce((sum, _, place) => sum + isBelow(rows, name, place), 0);
  const counts = new Map(names.map((name) => [name, failures(name)]));
  const worst = [...names].sort((one, other) => counts.get(other) - counts.get(one));
  const [first, ...others] = model.columns.filter(({ title }) => !names.includes(title));
  const metrics = worst.map((name, at) => ({ ...judgedColumn(model.columns.find(({ title }) => title === name)), spare: true, isShown: at < MOST_METRICS }));
  const texts = others.map((column) => ({ ...column, isShown: column.title === "answer" && names.length <= FEW_METRICS }));
  const rank = { failed: 0, "not judged": 1, passed: 2 };
  return {
    ...model,
    columns: [first, verdictColumn(rows, names), ...[...texts, ...metrics].map((column) => ({ ...column, isOptional: true }))],
    filters: [verdictFilter(rows), ...model.filters.map((filter) => ({ ...filter, folded: true }))],
    order: { title: "failed first", key: (place) => rank[verdictAt(rows, place)] },
    sorts: [{ value: "place", title: "in order", key: (place) => place }, ...model.sorts],
  };
}

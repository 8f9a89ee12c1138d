// The verdict on an item: each metric with its score, its threshold, the reason, and the cost of its judge.

const isScore = (value) => value !== null && typeof value === "object" && typeof (value.value ?? value.score) === "number";

// A measurement's own verdict; that of all metrics is `passed`.
const isVerdict = (name, measurements) => (name === "passed" && Object.keys(measurements).some((other) => other.endsWith(".passed")))
  || (name.endsWith(".passed") && name.slice(0, -".passed".length) in measurements);

// The measurement of a score: in a component it has the name of the component in front, and no number behind.
function measurementOf(key, component, measurements) {
  if (!component) return key;
  const prefix = `${component}.`;
  const fits = Object.keys(measurements).filter((name) => name.startsWith(prefix) && key.startsWith(name.slice(prefix.length)));
  return fits.sort((one, other) => other.length - one.length)[0] ?? prefix + key;
}

// The scores of a record by the names of their measurements; several where an item has several answers.
function scoresOf({ interactions, measurements }) {
  const found = new Map();
  for (const { completion, annotations } of (interactions ?? []).flatMap(({ response }) => response.completions)) {
    for (const [key, value] of Object.entries(annotations ?? {}).filter(([, each]) => isScore(each))) {
      const name = measurementOf(key, completion.metadata?.span, measurements ?? {});
      found.set(name, [...found.get(name) ?? [], value]);
    }
  }
  return found;
}

// What is known of each metric, those that failed first. `thresholds` has a value for each, and whether higher is better.
function metricsOf(record, thresholds = {}) {
  const measurements = record.measurements ?? {};
  const scores = scoresOf(record);
  const names = new Set([...Object.keys(measurements).filter((name) => !isVerdict(name, measurements)), ...scores.keys()]);
  const metrics = [...names].map((name) => {
    const own = scores.get(name) ?? [];
    const values = own.map((score) => score.value ?? score.score);
    const passed = measurements[`${name}.passed`];
    const costs = own.map(({ cost }) => cost).filter((cost) => cost != null);
    return {
      name,
      value: measurements[name] ?? (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null),
      threshold: thresholds[name],
      verdict: passed != null ? (passed >= 1 ? "passed" : "failed") : thresholds[name] ? "not judged" : "",
      scores: own,
      cost: costs.length ? costs.reduce((sum, cost) => sum + cost, 0) : null,
    };
  });
  const isFailed = ({ verdict }) => verdict === "failed";
  return [...metrics.filter(isFailed), ...metrics.filter((metric) => !isFailed(metric))];
}

const limitText = ([limit, higherIsBetter]) => `${higherIsBetter ? "≥" : "≤"} ${amount(limit)}`;

// The reasons of scores; of several, each with its value. What else a judge said is folded.
function reasonsView(scores) {
  return scores.flatMap((score) => {
    const { value, score: other, reason, cost, ...rest } = score;
    const before = scores.length > 1 ? `${amount(value ?? other)}: ` : "";
    const details = filledIn(rest);
    return [
      ...reason || before ? [box(`${before}${reason ?? ""}`, "prose")] : [],
      ...isFilled(details) ? [folded("details", box(asText(details)))] : [],
    ];
  });
}

const METRIC_LOOKS = { failed: "missed", passed: "", "not judged": "not-measured", "": "" };

// The metrics as a table; plain measurements, which have neither threshold nor reason, as a line.
function metricsView(record, thresholds, expected) {
  const metrics = metricsOf(record, thresholds);
  const isJudged = ({ verdict, scores }) => verdict || scores.length;
  const judged = metrics.filter(isJudged);
  const plain = metrics.filter((metric) => !isJudged(metric)).map(({ name, value }) => `${name} = ${amount(Number(value))}`);
  if (expected && !promptsOf(record).some(({ context }) => isCase(context))) plain.push(`expected: ${expected}`);
  if (!judged.length && !plain.length) plain.push("nothing measured");
  const line = plain.length ? [make("p", { className: "measured" }, shown(plain.join(" · ")))] : [];
  return [...judged.length ? [metricsTable(judged)] : [], ...line];
}

function metricsTable(metrics) {
  const columns = [
    ["metric", "name", ({ name }) => make("span", {}, ...breakable(name))],
    ["score", "number", ({ value }) => (value == null ? "none" : amount(Number(value)))],
    ["threshold", "number", ({ threshold }) => (threshold ? limitText(threshold) : "")],
    ["result", "verdict-cell", ({ verdict }) => verdict],
    ["reason", "why", ({ scores }) => make("div", {}, ...reasonsView(scores))],
    ["cost", "number cost", ({ cost }) => (cost == null ? "" : dollarsText(cost))],
  ].filter(([title, , cell]) => ["metric", "score", "reason"].includes(title) || metrics.some(cell));
  const head = make("tr", {}, ...columns.map(([title, look]) => make("th", { scope: "col", className: look }, title)));
  const rows = metrics.map((metric) => make("tr", { className: METRIC_LOOKS[metric.verdict] }, ...columns.map(([title, look, cell], at) =>
    make(at ? "td" : "th", { className: look, "data-head": title, ...at ? {} : { scope: "row" } }, cell(metric)))));
  return make("table", { className: "metrics" }, make("thead", {}, head), make("tbody", {}, ...rows));
}

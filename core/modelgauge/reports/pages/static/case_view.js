// A test case of an app, from the context of its prompt: each field by its name.

const isCase = (context) => context != null && typeof context === "object" && "input" in context && "actual_output" in context;

const isFilled = (value) => value != null && value !== "" && !(typeof value === "object" && Object.keys(value).length === 0);

// The filled fields of a value, as deep as it goes: no null of a field that nobody gave.
function filledIn(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(filledIn);
  return Object.fromEntries(Object.entries(value).filter(([, part]) => isFilled(part)).map(([name, part]) => [name, filledIn(part)]));
}

const textsView = (title, texts) => (isFilled(texts) ? [section(title, ...[texts].flat().map((text) => box(asText(filledIn(text)))))] : []);

// The tools that were called and those that were expected; expected ones that were not called are named.
function toolsView(called, expected) {
  if (!isFilled(called) && !isFilled(expected)) return [];
  const callText = ({ name, input_parameters: parameters }) =>
    `${name}(${Object.entries(parameters ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ")})`;
  const names = new Set((called ?? []).map(({ name }) => name));
  const missing = (expected ?? []).filter(({ name }) => !names.has(name)).map(({ name }) => name);
  const facts = [["called", (called ?? []).map(callText).join("\n") || "none"]];
  if (isFilled(expected)) facts.push(["expected", expected.map(({ name }) => name).join(", ")]);
  const more = (called ?? []).some(({ output, reasoning }) => isFilled(output) || isFilled(reasoning))
    ? [folded("all of the calls", box(asText(filledIn(called))))] : [];
  const missed = missing.length ? [make("p", { className: "missed" }, shown(`not called: ${missing.join(", ")}`))] : [];
  return [section("Tools", factsView(facts), ...missed, ...more)];
}

function factsView(facts) {
  return make("dl", { className: "facts" }, ...facts.map(([name, value]) =>
    make("div", {}, make("dt", {}, shown(name)), make("dd", {}, shown(asText(filledIn(value)))))));
}

// What shows an answer beside the expected one, with the differences marked.
function besideExpected(expected) {
  if (!isFilled(expected)) return undefined;
  return (text) => make("div", { className: "sides" },
    make("div", { className: "side" }, section("Actual", differenceBox(text, expected, "del"))),
    make("div", { className: "side" }, section("Expected", differenceBox(expected, text, "ins"))));
}

// What a test case has beside its input, its answer and the expected one.
function caseView(context) {
  const { metadata, custom_column_key_values: columns } = context;
  const facts = [
    ["time", context.completion_time == null ? null : secondsText(context.completion_time)],
    ["cost", context.token_cost == null ? null : dollarsText(context.token_cost)],
    ["tags", context.tags?.join(", ")],
    ["comments", context.comments],
    ...Object.entries({ ...columns, ...metadata }),
  ].filter(([, value]) => isFilled(value));
  return [
    ...textsView("Retrieved", context.retrieval_context),
    ...textsView("Context", context.context),
    ...toolsView(context.tools_called, context.expected_tools),
    ...facts.length ? [section("Metadata", factsView(facts))] : [],
  ];
}

// A test case of an app, from the context of its prompt: each field by its name.

// A test case has the app's answer; a golden leaves that to the answer of the SUT. Both may be conversations.
const isCase = (context) => context != null && typeof context === "object"
  && ("input" in context ? "expected_output" in context : "expected_outcome" in context && "turns" in context);

const isFilled = (value) => value != null && value !== "" && !(typeof value === "object" && Object.keys(value).length === 0);

// The filled fields of a value, as deep as it goes: no null of a field that nobody gave.
function filledIn(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(filledIn);
  return Object.fromEntries(Object.entries(value).filter(([, part]) => isFilled(part)).map(([name, part]) => [name, filledIn(part)]));
}

// Texts with their numbers, as an app finds them: the best first.
function textsView(title, texts) {
  if (!isFilled(texts)) return [];
  const boxes = [texts].flat().map((text) => box(asText(filledIn(text)), "prose"));
  return [section(title, boxes.length > 1 ? make("ol", { className: "texts" }, ...boxes.map((each) => make("li", {}, each))) : boxes[0])];
}

const callText = ({ name, input_parameters: parameters }) =>
  `${name}(${Object.entries(parameters ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ")})`;

// The tools that were called and those that were expected; expected ones that were not called are named.
function toolsView(called, expected, title = "Tools") {
  if (!isFilled(called) && !isFilled(expected)) return [];
  const names = new Set((called ?? []).map(({ name }) => name));
  const missing = (expected ?? []).filter(({ name }) => !names.has(name)).map(({ name }) => name);
  const facts = [["called", (called ?? []).map(callText).join("\n") || "none"]];
  if (isFilled(expected)) facts.push(["expected", expected.map(callText).join("\n").replaceAll("()", "")]);
  const more = (called ?? []).some(({ output, reasoning }) => isFilled(output) || isFilled(reasoning))
    ? [folded("what they returned", box(asText(filledIn(called))))] : [];
  const missed = missing.length ? [make("p", { className: "missed" }, shown(`not called: ${missing.join(", ")}`))] : [];
  return [section(title, factsView(facts), ...missed, ...more)];
}

function factsView(facts) {
  return make("dl", { className: "facts" }, ...facts.map(([name, value]) =>
    make("div", {}, make("dt", {}, ...breakable(name)), make("dd", {}, shown(asText(filledIn(value)))))));
}

// What shows an answer beside the expected one, with the differences marked.
function besideExpected(expected) {
  if (!isFilled(expected)) return undefined;
  return (text) => make("div", { className: "sides" },
    make("div", { className: "side" }, section("Actual", differenceBox(text, expected, "del"))),
    make("div", { className: "side" }, section("Expected", differenceBox(expected, text, "ins"))));
}

const CASE_FIELDS = new Set(["input", "actual_output", "expected_output", "expected_outcome", "retrieval_context", "context", "tools_called", "expected_tools", "turns",
  "name", "metadata", "additional_metadata", "custom_column_key_values", "completion_time", "token_cost", "tags"]);

// What a test case has beside its input, its answer and the expected one. `completion` is the SUT's, which may have some of it.
function caseView(context, completion = {}) {
  const answered = completion.metadata ?? {};
  const time = context.completion_time ?? answered.completion_time, cost = context.token_cost ?? answered.token_cost;
  const { metadata, additional_metadata: additional, custom_column_key_values: columns } = context;
  const facts = [
    ["time", time == null ? null : secondsText(time)],
    ["cost", cost == null ? null : dollarsText(cost)],
    ["tags", context.tags?.join(", ")],
    ...Object.entries(context).filter(([name]) => !CASE_FIELDS.has(name)),
    ...Object.entries({ ...columns, ...additional, ...metadata }),
  ].filter(([, value]) => isFilled(value));
  const turns = (context.turns ?? []).flatMap((turn, at) => [
    ...textsView(`Retrieved in turn ${at + 1}`, turn.retrieval_context),
    ...toolsView(turn.tools_called, null, `Tools in turn ${at + 1}`),
  ]);
  return [
    ...textsView("Expected outcome", context.expected_outcome),
    ...turns,
    ...textsView("Retrieved", context.retrieval_context ?? answered.retrieval_context),
    ...textsView("Context", context.context),
    ...toolsView(context.tools_called ?? completion.tool_calls, context.expected_tools),
    ...facts.length ? [section("Metadata", factsView(facts))] : [],
  ];
}

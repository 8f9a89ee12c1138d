// One item: its prompts, answers, annotations, failures and spans.

// The turns of a prompt; continuations are shown with their scores.
function turnsOf({ messages, context, text, continuations }) {
  if (Array.isArray(context)) return context;
  return messages ?? [{ role: continuations ? "context" : "user", text: context ?? text }];
}

// A prompt as a chat; what all prompts of the run begin with is folded.
function promptView(asked, common) {
  const turns = turnsOf(asked.prompt);
  const chat = make("div", { className: "chat" });
  const isPlain = turns.length === 1 && turns[0].role === "user";
  for (const turn of turns) {
    chat.append(make("div", { className: `turn ${turn.role}` }, ...isPlain ? [] : [make("b", {}, turn.role)], ...textView(turn.text, common)));
  }
  return chat;
}

function textView(text, common) {
  if (!common || !text.startsWith(common)) return [box(text, "prose")];
  return [folded(`the ${counted(common.length)} characters that all questions begin with`, box(common, "prose")), box(text.slice(common.length).trimStart(), "prose")];
}

// `isOfCase`: a test case shows tools and metadata by itself.
function completionView({ completion, annotations }, answerBox, isOfCase) {
  const parts = [answerBox(completion.text)];
  const words = (completion.reasoning ?? "").split(/\s+/).filter(Boolean).length;
  if (completion.reasoning) parts.unshift(folded(`reasoning, ${counted(words)} words`, box(completion.reasoning)));
  if (completion.blocked) parts.push(make("p", { className: "note" }, "blocked by the service"));
  if (completion.left_out) parts.push(make("p", { className: "note" }, "not understood: ", shown(completion.left_out.join(", "))));
  if (completion.finish_reason) parts.push(make("p", { className: "note" }, "ended: ", shown(completion.finish_reason)));
  if (!isOfCase) parts.push(...toolsView(completion.tool_calls), ...metadataView(completion.metadata));
  for (const [name, value] of Object.entries(annotations ?? {})) if (!isScore(value)) parts.push(section(name, valueView(value)));
  return make("div", {}, ...parts);
}

function metadataView(metadata) {
  const own = Object.entries(filledIn(metadata ?? {})).filter(([name]) => name !== "trace" && name !== "span");
  return own.length ? [folded("metadata", factsView(own))] : [];
}

// Scored continuations as bars: the share that each has of the probability of all of them. Right ones are marked.
function scoresView(completions, expected) {
  const most = Math.max(...completions.map(({ completion }) => completion.logprob));
  const weights = completions.map(({ completion }) => Math.exp(completion.logprob - most));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const rows = completions.map(({ completion }, place) => {
    const share = weights[place] / total;
    const bar = make("span", { className: "time" }, make("span"));
    bar.firstChild.style.width = `${Math.max(1, 100 * share)}%`;
    const isRight = expected && completion.text.trim() === expected.trim();
    const about = `${completion.logprob.toFixed(3)} · ${counted(completion.num_tokens)} ${completion.num_tokens === 1 ? "token" : "tokens"}`;
    const notes = [`${(100 * share).toFixed(1)} %`, about, completion.is_greedy && "greedy", isRight && "expected"].filter(Boolean).join(" · ");
    return make("li", isRight ? { className: "right" } : {}, box(completion.text), bar, make("p", { className: "note" }, shown(notes)));
  });
  return make("ul", { className: "scores" }, ...rows);
}

function usageText(usage) {
  if (!usage) return "";
  const tokens = [usage.input_tokens, usage.output_tokens].filter((count) => count != null).join(" → ");
  return [tokens && `${tokens} tokens`, usage.cost_usd != null && dollarsText(usage.cost_usd)].filter(Boolean).join(" · ");
}

// The spans of a trace as a tree with times; `metrics` has those of the components by the names of their spans.
function traceView(trace, metrics = []) {
  const whole = Math.max(trace.seconds ?? 0, 1e-9);
  const depth = new Map([[null, -1], [undefined, -1]]);
  const tree = make("ul", { className: "spans" });
  for (const span of trace.spans) {
    depth.set(span.id, depth.get(span.parent ?? null) + 1);
    const bar = make("span", { className: "time" }, make("span"));
    bar.firstChild.style.marginLeft = `${(100 * span.start) / whole}%`;
    bar.firstChild.style.width = `${Math.max(1, (100 * (span.seconds ?? 0)) / whole)}%`;
    const kind = span.type ? ` (${span.type})` : "";
    const about = `${span.name}${kind} · ${span.seconds == null ? "not ended" : secondsText(span.seconds)}`;
    const judged = metrics.filter(({ name }) => name.startsWith(`${span.name}.`)).map(({ name, value, verdict }) =>
      make("span", { className: METRIC_LOOKS[verdict] }, " · ", shown(`${name.slice(span.name.length + 1)} ${value == null ? "none" : amount(Number(value))} ${verdict}`)));
    const parts = ["input", "output", "error", "metadata"].filter((name) => isFilled(span[name])).map((name) => section(name, valueView(span[name])));
    const line = parts.length ? folded(about, ...parts) : make("p", {}, shown(about));
    (line.querySelector("summary") ?? line).append(...judged);
    const row = make("li", {}, line, bar);
    row.style.paddingLeft = `${Math.min(depth.get(span.id), 12)}rem`;
    tree.append(row);
  }
  return section(`Components of ${trace.name} · ${secondsText(trace.seconds ?? 0)}`, tree);
}

// A recorded value: a text, or fields by their names.
function valueView(value) {
  const isFields = value !== null && typeof value === "object" && !Array.isArray(value);
  return isFields ? factsView(Object.entries(filledIn(value))) : box(asText(filledIn(value)), "prose");
}

function failureView(failure) {
  const title = `Failed at ${failure.stage} (${failure.source_uid}): ${failure.error_type}`;
  return section(title, box(failure.message ?? ""), folded("traceback", box(failure.traceback ?? "")));
}

// The context of an item or a prompt: its fields by their names. Long ones are folded.
function contextOf(value) {
  if (!isFilled(value)) return [];
  const content = valueView(value);
  return [asText(value).length > MOST_UNSCROLLED ? folded("context of the test", content) : section("Context of the test", content)];
}

const failuresOf = (record) => (record.kind === "exception" ? [record] : record.failed_repeats ?? []);

// Why an item failed, and what was measured of it.
const outcomeView = (record, { expected, thresholds } = {}) => [...failuresOf(record).map(failureView), ...metricsView(record, thresholds, expected)];

const promptsOf = (record) => record.test_item?.prompts ?? [];

// A prompt of an item with its context; the first with that of the item too.
function questionView(record, place, common) {
  const prompt = promptsOf(record)[place];
  const title = promptsOf(record).length > 1 ? `Prompt ${place + 1}` : "Prompt";
  const contexts = [prompt.context, ...place ? [] : [record.test_item.context]];
  return [section(title, promptView(prompt, common)), ...contexts.flatMap((context) => (isCase(context) ? caseView(context) : contextOf(context)))];
}

// The answers to a prompt of an item, one for each repeat. A line of the journal names a prompt by its place; a record
// that was read from another file holds it.
function askedOf(record, place) {
  const own = JSON.stringify(promptsOf(record)[place]?.prompt);
  const isOf = (interaction) => (interaction.prompt ? JSON.stringify(interaction.prompt.prompt) === own : (interaction.prompt_index ?? 0) === place);
  return (record.interactions ?? []).filter(isOf);
}

// Those answers with their judgements and spans; `answerBox(text, call, place)` shows the text of a completion.
function answersView(record, prompt, answerBox = (text) => box(text, "answer prose"), { expected = "", thresholds, isOfCase, isBeside } = {}) {
  const metrics = metricsOf(record, thresholds);
  return askedOf(record, prompt).flatMap((interaction, call) => {
    const { completions } = interaction.response;
    const isScored = completions.length > 0 && completions.every(({ completion }) => completion.logprob != null);
    const to = promptsOf(record).length > 1 && !isOfCase ? ` to prompt ${prompt + 1}` : "";
    const repeat = record.interactions.length > 1 && interaction.repeat ? `, repeat ${interaction.repeat + 1}` : "";
    const title = [`${isScored ? "Continuations" : "Answer"}${to}${repeat}`, usageText(interaction.response.usage), interaction.time && secondsText(interaction.time[1])].filter(Boolean).join(" · ");
    const answers = isScored
      ? [scoresView(completions, expected)]
      : completions.map((each, place) => completionView(each, (text) => answerBox(text, call, place), isOfCase));
    const traces = completions.map(({ completion }) => completion.metadata?.trace).filter((trace) => trace?.spans);
    return [...isBeside && title === "Answer" ? answers : [section(title, ...answers)], ...traces.map((trace) => traceView(trace, metrics))];
  });
}

const failedTraces = (record) => failuresOf(record).flatMap((failure) => (failure.traces ?? []).map((trace) => traceView(trace)));

// A test case: its input, the answer beside the expected one, and its other fields. A component of the app is folded.
function casePromptView(record, place, about) {
  const { context } = promptsOf(record)[place];
  const beside = besideExpected(context.expected_output);
  const completion = askedOf(record, place)[0]?.response.completions[0]?.completion;
  const parts = [
    section("Input", promptView(promptsOf(record)[place], about.common)),
    ...answersView(record, place, beside, { ...about, isOfCase: true, isBeside: Boolean(beside) }),
    ...caseView(context, completion),
  ];
  const component = completion?.metadata?.span;
  return component ? [folded(`Component ${component}: its input and output`, ...parts)] : parts;
}

// A button with a key, which switches what an item shows.
function switchButton(text, key, change) {
  const button = make("button", { type: "button", "data-key": key, "aria-pressed": "false", ariaKeyShortcuts: key }, text, " ", make("kbd", {}, key));
  button.onclick = () => {
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(isOn));
    change(isOn);
  };
  return button;
}

// Show the texts of an item as Markdown, or as they are.
function switchMarkdown(root, isOn) {
  for (const element of root.querySelectorAll(".markdown")) element.remove();
  for (const text of root.querySelectorAll(".prose")) {
    text.hidden = isOn;
    if (isOn) text.after(markdownOf(text.textContent));
  }
}

// All of an item. `about`: what is expected, what all questions begin with, the thresholds of the test, the reason of the verdict.
function itemView(record, about = {}) {
  const asked = promptsOf(record).flatMap(({ context }, place) => (isCase(context)
    ? casePromptView(record, place, about)
    : [...questionView(record, place, about.common), ...answersView(record, place, undefined, about)]));
  const look = record.measurements?.passed < 1 ? "missed" : "";
  const verdict = about.reason ? [make("p", { className: `verdict ${look}` }, shown(about.reason))] : [];
  const laidOut = make("div", {}, ...verdict, ...outcomeView(record, about), ...asked, ...failedTraces(record));
  const raw = make("div", { hidden: true });
  const showRaw = (isOn) => {
    if (isOn && !raw.firstChild) raw.append(box(JSON.stringify(record, null, 2)));
    raw.hidden = !isOn;
    laidOut.hidden = isOn;
  };
  const switches = make("p", { className: "moves" }, switchButton("Markdown", "m", (isOn) => switchMarkdown(laidOut, isOn)), switchButton("JSON", "r", showRaw));
  return [switches, laidOut, raw];
}

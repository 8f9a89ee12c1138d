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
  for (const turn of turns) {
    chat.append(make("div", { className: `turn ${turn.role}` }, make("b", {}, turn.role), ...textView(turn.text, common)));
  }
  return chat;
}

function textView(text, common) {
  if (!common || !text.startsWith(common)) return [box(text)];
  return [folded(`the ${counted(common.length)} characters that all questions begin with`, box(common)), box(text.slice(common.length).trimStart())];
}

function annotationView(name, value) {
  const score = value?.value ?? value?.score;
  const reason = value?.reason;
  if (typeof score !== "number") return section(name, box(asText(value)));
  const rest = reason ? [box(reason)] : [];
  return section(`${name}: ${amount(score)}`, ...rest, folded("all of it", box(asText(value))));
}

function completionView({ completion, annotations }, answerBox) {
  const parts = [answerBox(completion.text)];
  const words = (completion.reasoning ?? "").split(/\s+/).filter(Boolean).length;
  if (completion.reasoning) parts.unshift(folded(`reasoning, ${counted(words)} words`, box(completion.reasoning)));
  if (completion.blocked) parts.push(make("p", { className: "note" }, "blocked by the service"));
  if (completion.left_out) parts.push(make("p", { className: "note" }, "not understood: ", shown(completion.left_out.join(", "))));
  if (completion.finish_reason) parts.push(make("p", { className: "note" }, "ended: ", shown(completion.finish_reason)));
  for (const call of completion.tool_calls ?? []) parts.push(section(`tool ${call.name}`, box(asText(call))));
  const metadata = Object.entries(completion.metadata ?? {}).filter(([name]) => name !== "trace");
  if (metadata.length) parts.push(folded("metadata", box(asText(Object.fromEntries(metadata)))));
  for (const [name, value] of Object.entries(annotations ?? {})) parts.push(annotationView(name, value));
  return make("div", {}, ...parts);
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

function traceView(trace) {
  const whole = Math.max(trace.seconds ?? 0, 1e-9);
  const depth = new Map([[null, -1], [undefined, -1]]);
  const tree = make("ul", { className: "spans" });
  for (const span of trace.spans) {
    depth.set(span.id, depth.get(span.parent ?? null) + 1);
    const bar = make("span", { className: "time" }, make("span"));
    bar.firstChild.style.marginLeft = `${(100 * span.start) / whole}%`;
    bar.firstChild.style.width = `${Math.max(1, (100 * (span.seconds ?? 0)) / whole)}%`;
    const about = `${span.name}${span.type ? ` (${span.type})` : ""} ${span.seconds == null ? "not ended" : secondsText(span.seconds)}`;
    const line = folded(about, ...["input", "output", "error", "metadata"].filter((name) => span[name] != null)
      .map((name) => section(name, box(asText(span[name])))));
    const row = make("li", {}, line, bar);
    row.style.paddingLeft = `${depth.get(span.id)}rem`;
    tree.append(row);
  }
  return section(`Spans of ${trace.name}, ${secondsText(trace.seconds ?? 0)}`, tree);
}

function failureView(failure) {
  const title = `Failed at ${failure.stage} (${failure.source_uid}): ${failure.error_type}`;
  return section(title, box(failure.message ?? ""), folded("traceback", box(failure.traceback ?? "")));
}

// The context of an item or a prompt: the fields of a test case by their names, else as it is.
function contextOf(value) {
  if (isCase(value)) return [...textsView("Expected", value.expected_output), ...caseView(value)];
  return value == null ? [] : [folded("context, which the SUT does not see", box(asText(value)))];
}

const failuresOf = (record) => (record.kind === "exception" ? [record] : record.failed_repeats ?? []);

// The measurements of an item: numbers, or true and false. A score is marked by its own threshold: `NAME.passed` is a part of NAME, and
// `passed` is all of these.
function measuredView(measurements) {
  const ownPassed = (name) => measurements[`${name}.passed`];
  const hasOwn = Object.keys(measurements).some((name) => name.endsWith(".passed"));
  const isPart = (name) => (name === "passed" && hasOwn) || (name.endsWith(".passed") && name.slice(0, -".passed".length) in measurements);
  const names = Object.keys(measurements).filter((name) => !isPart(name));
  return names.map((name) => {
    const passed = ownPassed(name);
    const verdict = passed == null ? "" : passed >= 1 ? ", passed" : ", below its threshold";
    return make("span", passed < 1 ? { className: "missed" } : {}, shown(`${name} = ${amount(Number(measurements[name]))}${verdict}`));
  });
}

// Why an item failed, and what was measured of it.
function outcomeView(record, expected) {
  const measured = measuredView(record.measurements ?? {});
  if (expected && !promptsOf(record).some(({ context }) => isCase(context))) measured.push(make("span", {}, shown(`expected: ${expected}`)));
  const parts = measured.flatMap((part, at) => (at ? [" · ", part] : [part]));
  const line = make("p", { className: "measured" }, ...(parts.length ? parts : ["nothing measured"]));
  return [...failuresOf(record).map(failureView), line];
}

const promptsOf = (record) => record.test_item?.prompts ?? [];

// A prompt of an item with its context; the first with that of the item too.
function questionView(record, place, common) {
  const prompt = promptsOf(record)[place];
  return [section("Prompt", promptView(prompt, common)), ...contextOf(prompt.context), ...(place ? [] : contextOf(record.test_item.context))];
}

// The answers to a prompt of an item, one for each repeat. A line of the journal names a prompt by its place; a record
// that was read from another file holds it.
function askedOf(record, place) {
  const own = JSON.stringify(promptsOf(record)[place]?.prompt);
  const isOf = (interaction) => (interaction.prompt ? JSON.stringify(interaction.prompt.prompt) === own : (interaction.prompt_index ?? 0) === place);
  return (record.interactions ?? []).filter(isOf);
}

// Those answers with their judgements and spans; `answerBox(text, call, place)` shows the text of a completion.
function answersView(record, prompt, answerBox = (text) => box(text, "answer"), expected = "") {
  return askedOf(record, prompt).flatMap((interaction, call) => {
    const { completions } = interaction.response;
    const isScored = completions.length > 0 && completions.every(({ completion }) => completion.logprob != null);
    const to = promptsOf(record).length > 1 ? ` to prompt ${prompt + 1}` : "";
    const repeat = record.interactions.length > 1 && interaction.repeat ? `, repeat ${interaction.repeat + 1}` : "";
    const title = [`${isScored ? "Continuations" : "Answer"}${to}${repeat}`, usageText(interaction.response.usage), interaction.time && secondsText(interaction.time[1])].filter(Boolean).join(" · ");
    const answers = isScored
      ? [scoresView(completions, expected)]
      : completions.map((each, place) => completionView(each, (text) => answerBox(text, call, place)));
    const traces = completions.map(({ completion }) => completion.metadata?.trace).filter((trace) => trace?.spans);
    return [section(title, ...answers), ...traces.map(traceView)];
  });
}

const failedTraces = (record) => failuresOf(record).flatMap((failure) => (failure.traces ?? []).map(traceView));

function itemView(record, expected, common) {
  const asked = promptsOf(record).flatMap((prompt, place) => {
    const { context } = prompt;
    if (!isCase(context)) return [...questionView(record, place, common), ...answersView(record, place, undefined, expected)];
    const answers = answersView(record, place, besideExpected(context.expected_output), expected);
    return [section("Prompt", promptView(prompt, common)), ...answers, ...caseView(context)];
  });
  return [...outcomeView(record, expected), ...asked, ...failedTraces(record)];
}

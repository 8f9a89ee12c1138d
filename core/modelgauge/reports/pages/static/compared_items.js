// The items that two systems have in common, as a model of their table; an item opens with the answers side by side.

const MOST_OF_AN_END = 28; // characters
const OUTCOMES = ["lost", "won", "equal", "failed", UNMEASURED];

// By how much the candidate is better on each pair of items; higher, where nobody knows what is better. null: one has no value.
function gainsOf({ before, after, sign }) {
  return before.map((value, place) => (value == null || after[place] == null ? null : (after[place] - value) * (sign || 1)));
}

// What became of each pair of items: one that a run scored without the measurement did not fail.
function outcomesOf({ unmeasured = [], ...values }) {
  return gainsOf(values).map((gain, pair) => {
    if (gain !== null) return gain > 0 ? "won" : gain < 0 ? "lost" : "equal";
    return unmeasured.some((side) => side[pair]) ? UNMEASURED : "failed";
  });
}

function outcomeFilter(name, title, outcomes) {
  const number = (kind) => outcomes.filter((outcome) => outcome === kind).length;
  const named = OUTCOMES.filter(number).map((kind) => [kind, `${kind} ${counted(number(kind))}`]);
  const differing = ["different", `won or lost ${counted(number("won") + number("lost"))}`];
  return {
    name,
    title,
    options: [["", `all ${counted(outcomes.length)}`], differing, ...named],
    keeps: (value) => value && ((place) => outcomes[place] === value || (value === "different" && /won|lost/.test(outcomes[place]))),
  };
}

// The end of an answer, where it says what it comes to.
const endOf = (text) => (text.length > MOST_OF_AN_END ? `… ${text.slice(2 - MOST_OF_AN_END).replace(/^\S*\s/, "")}` : text);

// The answers of a system, those parts marked in which they differ from those of another record.
function sideView({ label, address, record, other, tag, thresholds }) {
  const answers = promptsOf(record).flatMap((_, prompt) => {
    const others = other ? askedOf(other, prompt) : [];
    return answersView(record, prompt, (text, call, place) =>
      differenceBox(text, others[call]?.response.completions[place]?.completion.text, tag));
  });
  const head = make("h3", {}, make("a", { href: `#${new URLSearchParams(address)}` }, shown(label)));
  return make("section", { className: "side" }, head, ...outcomeView(record, { thresholds }), ...answers, ...failedTraces(record));
}

const comparedData = async (number) => (await embedded(`compare-${number}`))[0];

// `number` is that of the comparison, `data` its pairs of items.
async function comparedItems(number, data) {
  const sides = data.sides.map((side) => ({ ...side, source: sourceOf(side.run) }));
  for (const side of sides) side.rows = await side.source.rows();
  const [first, second] = sides;
  // A page may hold only the beginning of a run.
  const pairs = first.places.map((_, pair) => pair)
    .filter((pair) => first.places[pair] < first.rows.id.length && second.places[pair] < second.rows.id.length);
  const at = (side, place) => side.places[pairs[place]];
  const [everyGain, everyOutcome] = [gainsOf(data), outcomesOf(data)];
  const gains = pairs.map((pair) => everyGain[pair]);
  const outcomes = pairs.map((pair) => everyOutcome[pair]);
  const value = (side, pair) => {
    const found = [data.before, data.after][side][pair];
    return found == null ? (data.unmeasured?.[side][pair] ? UNMEASURED : "failed") : amount(found);
  };
  const change = (place) => {
    const [before, after] = [0, 1].map((side) => value(side, pairs[place]));
    return before === UNMEASURED && after === UNMEASURED ? UNMEASURED : `${before} → ${after}`;
  };
  const by = (sign) => (place) => (gains[place] === null ? Infinity : sign * gains[place]);
  const column = (title, side, name) => ({ title, text: (place) => side.rows[name][at(side, place)] });

  const side = async (of, place) => ({
    label: of.label,
    address: { run: of.run, item: of.rows.id[at(of, place)] },
    record: await recordAt(of.source, of.rows, at(of, place)),
    thresholds: of.rows.thresholds,
  });
  const view = async (place) => {
    const there = sides.filter((of) => at(of, place) >= 0 && at(of, place) < of.rows.id.length);
    const [baseline, ...candidates] = await Promise.all(there.map((of) => side(of, place)));
    const { record } = baseline;
    const shownSides = [{ ...baseline, other: candidates[0].record, tag: "del" },
      ...candidates.map((candidate) => ({ ...candidate, other: record, tag: "ins" }))];
    const expected = first.rows.expected[at(first, place)];
    return [
      make("p", { className: "verdict" }, `${outcomes[place]}: `, shown(data.measurement), ` ${change(place)}`),
      ...promptsOf(record).flatMap((_, prompt) => questionView(record, prompt, first.rows.common)),
      ...(expected ? [make("p", { className: "measured" }, "expected: ", shown(expected))] : []),
      make("div", { className: "sides" }, ...shownSides.map(sideView)),
    ];
  };
  return {
    address: { compare: number },
    ids: pairs.map((_, place) => first.rows.id[at(first, place)]),
    columns: [
      { ...(first.rows.hasTexts ? column("question", first, "question") : column("item", first, "id")), wide: true },
      ...[first, second].filter((side) => side.rows.hasTexts).map((side) => ({ title: side.label, wide: true, spare: true, text: (place) => endOf(side.rows.answer[at(side, place)]) })),
      ...first.rows.expected.some(Boolean) ? [{ ...column("expected", first, "expected"), spare: true }] : [],
      { title: data.measurement, number: true, change: true, text: change },
      { title: "outcome", text: (place) => outcomes[place] },
    ],
    filters: [outcomeFilter("show", "Show", outcomes), ...facetFilters(first.rows.facets, (place) => at(first, place))],
    sorts: [{ value: "lost", title: "largest loss first", key: by(1) }, { value: "won", title: "largest gain first", key: by(-1) }],
    finds: (place, query) => [first, second].some((side) => side.rows.search[at(side, place)].includes(query)),
    read: Promise.all([first.rows.read, second.rows.read]),
    look: (place) => outcomes[place].replaceAll(" ", "-"),
    view,
  };
}

// Filters of a run's items by what became of them against the baselines that the page compares the run with.
async function againstFilters(comparisons, count) {
  return Promise.all(comparisons.map(async ({ number, name, data }) => {
    const { sides: [baseline, own], ...values } = await data();
    const outcomes = new Array(count).fill("not compared");
    outcomesOf(values).forEach((outcome, pair) => { outcomes[own.places[pair]] = outcome; });
    return outcomeFilter(`against-${number}`, `${name} against ${baseline.label}`, outcomes);
  }));
}

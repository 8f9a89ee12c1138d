// The items of a run, as a model of their table. A `source` gives the data: `rows()` the columns of all items, `part(n)`
// the records of a part.

// The filter by what became of items.
function stateFilter(states) {
  const counts = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  const named = Object.keys(counts).filter((state) => state !== "ok").sort();
  return {
    name: "show",
    title: "Show",
    options: [["", `all ${counted(states.length)}`], ...named.map((state) => [state, `${state} ${counted(counts[state])}`])],
    keeps: (value) => value && ((place) => states[place] === value),
  };
}

const LONGEST_CHOICE = 30; // characters

// The filters by labels that few items share; `at` gives the place of an item among those that were labelled.
function facetFilters(facets, at = (place) => place) {
  return Object.entries(facets).map(([name, facet]) => ({
    name: `is-${name}`,
    title: name,
    folded: facet.values.some((value) => value.length > LONGEST_CHOICE), // whole answers are no choice at a glance
    options: [["", "all"], ...facet.values.map((value) => [value, value])],
    keeps(value) {
      const wanted = facet.values.indexOf(value);
      return wanted >= 0 && ((place) => facet.of[at(place)] === wanted);
    },
  }));
}

// The filter by kinds of failures, which are named by their numbers; none where nothing failed.
function failureFilters(failures) {
  return failures.titles.length === 0 ? [] : [{
    name: "failure",
    title: "Failure",
    options: [["", "any"], ...failures.titles.map((title, at) => [String(at + 1), title])],
    keeps(value) {
      const wanted = failures.values.indexOf(value);
      return wanted >= 0 && ((place) => failures.of[place] === wanted);
    },
  }];
}

// The filters by whether items passed a threshold.
function passedFilters(measured) {
  return Object.entries(measured).filter(([name]) => name.endsWith(".passed")).map(([name, values]) => ({
    name,
    title: name.slice(0, -".passed".length),
    options: [["", "all"], ["yes", "passed"], ["no", "below threshold"]],
    keeps: (value) => value && ((place) => values[place] != null && (values[place] >= 1) === (value === "yes")),
  }));
}

// Two ways to sort by numbers; items without one stand last.
function sortsBy(name, values) {
  const key = (sign) => (place) => (values[place] == null ? Infinity : sign * values[place]);
  return [{ value: `${name}<`, title: `${name}, lowest first`, key: key(1) }, { value: `${name}>`, title: `${name}, highest first`, key: key(-1) }];
}

// A measurement of the items. An item that failed lacks those alone that all scored items have: others it may not have had.
// A score is marked by its own threshold, and one without a threshold where it is what makes its item wrong.
function measurementColumn(name, at, rows) {
  const values = rows.measured[name];
  const passed = rows.measured[`${name}.passed`];
  const isOfAll = values.every((value, place) => value != null || rows.state[place] === "failed");
  const stateOf = (place) => values[place] != null ? "" : isOfAll ? "failed" : UNMEASURED;
  const isMissed = (place) => (passed ? passed[place] != null && passed[place] < 1 : at === 0 && rows.state[place] === "wrong");
  return {
    title: name,
    number: true,
    spare: at > 0,
    text: (place) => stateOf(place) || amount(values[place]),
    look: (place) => stateOf(place).replaceAll(" ", "-") || (isMissed(place) ? "missed" : ""),
  };
}

const recordAt = async (source, rows, place) => (await source.part(Math.floor(place / rows.part)))[place % rows.part];

// `comparisons` are those of the page in which the run is a candidate.
async function runItems(run, source, comparisons) {
  const rows = await source.rows();
  const names = Object.keys(rows.measured).filter((name) => !/(^|\.)passed$/.test(name)); // the filter has these
  const textColumn = (title) => ({ title, wide: title === "answer", spare: true, text: (place) => rows[title][place] });
  const chosen = rows.columns.map(([title, isMeasured, isShown]) => ({
    ...(isMeasured ? measurementColumn(title, names.indexOf(title), rows) : textColumn(title)), isOptional: true, isShown,
  }));
  const model = {
    address: { run },
    ids: rows.id,
    columns: [
      rows.hasTexts ? { title: "question", wide: true, text: (place) => rows.question[place] } : { title: "item", wide: true, text: (place) => rows.id[place] },
      ...chosen,
    ],
    filters: [stateFilter(rows.state), ...failureFilters(rows.failures), ...passedFilters(rows.measured),
      ...await againstFilters(comparisons, rows.id.length), ...facetFilters(rows.facets)],
    sorts: [...names.map((name) => [name, rows.measured[name]]), ...Object.entries(rows.used)].flatMap((pair) => sortsBy(...pair)),
    finds: (place, query) => rows.search[place].includes(query),
    read: rows.read,
    look: (place) => rows.state[place].replaceAll(" ", "-"),
    view: async (place) => itemView(await recordAt(source, rows, place),
      { expected: rows.expected[place], common: rows.common, thresholds: rows.thresholds, reason: rows.reasons?.values[rows.reasons.of[place]] }),
  };
  return rows.measured.passed && rows.thresholds ? asAppItems(model, rows) : model;
}

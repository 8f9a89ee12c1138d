"""Contents of a comparison's page: the answer in words, differences on one axis, values by test."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from modelgauge.comparison.difference import MeasurementComparison
from modelgauge.comparison.item_pairs import ItemPairs
from modelgauge.comparison.result import Comparison, LeaderboardTable
from modelgauge.data.estimates import Estimate, uncertainty
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.axis import Axis
from modelgauge.documents.document import (
    Block,
    Cell,
    Conclusion,
    Fact,
    FactList,
    Heading,
    Inline,
    Interval,
    Section,
    Sentences,
    TableBlock,
    TableColumn,
    Text,
    joined,
)
from modelgauge.reports.comparisons.report import answers, distinct_names, facts, items_in, question
from modelgauge.reports.comparisons.tables import (
    difference_tables,
    leaderboard_items,
    ranks,
)
from modelgauge.reports.comparisons.words import listed
from modelgauge.reports.pages.columns import json_numbers, packed
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.figures import between, figure, p_phrase
from modelgauge.wording.phrases import counted

_NARROW = 110  # pixels of a chart in a cell of the matrix
_MOST_TESTS = 3  # that are named of the runs that are not compared
_SIGNS = {"higher": 1, "lower": -1, None: 0}


def compared_runs(comparison: Comparison) -> list[RecordedRun]:
    """Return the runs that were compared, those of the baseline first; none where the comparison was read from JSON."""
    sides = [
        *(pair.before.run for pair in comparison.paired),
        *(pair.after.run for pair in comparison.paired),
    ]
    return [*{id(run): run for run in sides if run is not None}.values()]


def comparison_page(comparison: Comparison, runs: Sequence[RecordedRun]) -> Iterator[Block]:
    """Return what the page of a comparison shows above its items.

    Args:
        comparison: with its items.
        runs: all of the page, in their order.
    """
    known, rows = [*facts(comparison, most_lines=None)], comparison.comparisons
    items = "#compare={}&show={}" if any(compared_items(comparison, runs)) else ""
    yield Heading(question(comparison), beside=f"Baseline: {comparison.baseline.label}")
    if others := runs_beside(comparison, runs):
        more = Text(counted(len(others), "more run"), "#runs")
        yield Sentences([("Also on this page, but not compared: ", more, f" of {_listed_tests(others)}.")])
    first, *more_answers = answers(comparison)
    yield Conclusion(first)
    if len(rows) == 1:
        yield Sentences([_counts(rows[0], comparison.alpha, items)])
    yield from _matrix(comparison, runs)
    for place, table in enumerate(difference_tables(comparison, labelled=False, items=items), 1):
        yield replace(table, label=f"Differences {place}")
    if len(more_answers) > 1:
        yield Section("In words", counted(len(more_answers), "more answer"), [Sentences(more_answers)])
    else:
        yield Sentences(more_answers)
    differs = [
        Fact("" if place else "also differs", text) for place, text in enumerate(_of_kind(known, "differs"))
    ]
    yield FactList([*(fact for fact in known if fact.label not in ("differs", "note")), *differs])
    yield Sentences(_of_kind(known, "note"), look="dim")


def _of_kind(known: Sequence[Fact], label: str) -> list[str]:
    return [fact.text for fact in known if fact.label == label]


def runs_beside(comparison: Comparison, runs: Sequence[RecordedRun]) -> list[RecordedRun]:
    """Return the runs of a page that were not compared."""
    its_own = {id(run) for run in compared_runs(comparison)}
    return [run for run in runs if id(run) not in its_own]


def _listed_tests(runs: Sequence[RecordedRun]) -> str:
    """Return the tests of runs; of many the first tests, and how many more there are."""
    tests = [*dict.fromkeys(run.record.test_uid for run in runs)]
    more = len(tests) - _MOST_TESTS
    return listed(tests if more < 2 else [*tests[:_MOST_TESTS], counted(more, "more test")])


def _counts(row: MeasurementComparison, alpha: float, items: str) -> Inline:
    """Return the numbers of items by outcome, below the answer where one comparison is all."""
    counts = {"won": row.wins, "lost": row.losses, "equal": row.ties}
    counts |= {
        name: count for name, count in (("failed", row.n_failed), ("not measured", row.n_unmeasured)) if count
    }
    p = [] if row.p_adjusted is None else [p_phrase(row.p_adjusted, alpha)]
    parts: list[str | Text] = [
        *p,
        *(Text(f"{count:,} {name}", items.format(0, name)) for name, count in counts.items()),
        f"{row.n_paired:,} of {items_in(row):,} items paired",
    ]
    return joined(" · ", parts)


# --- several tests, several systems -----------------------------------------------------------------


def _matrix(comparison: Comparison, runs: Sequence[RecordedRun]) -> Iterator[Block]:
    """Yield the result of each system: a row for each test and measurement; on one test, a row for each system."""
    cells = _results(comparison, runs)
    tests = [*dict.fromkeys(test for test, _ in cells)]
    if not (comparison.leaderboard or len(tests) > 1):
        return
    best, places, axes = _best(comparison), _ranks(comparison), _axes(cells)

    def cell(names: tuple[str, str], label: str) -> Cell:
        if label not in cells[names]:
            return ""
        estimate, run = cells[names][label]
        beside = _value(estimate, run, best.get(names) == label, places.get((*names, label), ""))
        return Interval(
            estimate.value, estimate.interval, label=_in_words(estimate), beside=beside, axis=axes[names[1]]
        )

    if len(tests) == 1:
        labels = [system.system for system in comparison.leaderboard[0].systems]
        columns = [TableColumn("System", labels, kind="name")]
        columns += [TableColumn(names[1], [cell(names, label) for label in labels]) for names in cells]
    else:
        columns = [TableColumn("Test", [test for test, _ in cells], kind="name")]
        if len(axes) > 1:
            columns.append(TableColumn("Measurement", [name for _, name in cells], kind="name"))
        columns += [
            TableColumn(label, [cell(names, label) for names in cells]) for label in comparison.labels
        ]
    yield Heading("Results of each system", level=2)
    caption = _about_results(comparison.leaderboard, axes)
    yield TableBlock(columns, caption=caption, label="Results of each system", kind="results matrix")


_Results = dict[tuple[str, str], dict[str, tuple[Estimate, int | None]]]
"""By test and measurement, and by system: a result, and the number of its run on the page."""


def _results(comparison: Comparison, runs: Sequence[RecordedRun]) -> _Results:
    """Return the results of the runs; of a comparison without its runs, the values of its leaderboards."""
    numbers, found = {id(run): number for number, run in enumerate(runs)}, _Results()
    for row, pair in zip(comparison.comparisons, comparison.paired, strict=False):
        for label, run in ((comparison.labels[0], pair.before.run), (row.candidate, pair.after.run)):
            result = None if run is None else run.record.result.get(row.measurement)
            if isinstance(result, Estimate):
                of_row = found.setdefault((row.test, row.measurement), {})
                of_row[label] = result, numbers.get(id(run))
    for board in comparison.leaderboard:
        of_row = found.setdefault((board.test, board.measurement), {})
        for system in board.systems:
            n = board.n if system.n is None else system.n
            of_row.setdefault(system.system, (Estimate(system.value, n), None))
    scores = {(test, f"{name}.{PASSED}") for test, name in found}
    is_alone = len({test for test, _ in found}) == 1  # there is a column for each measurement
    return {names: of_row for names, of_row in found.items() if not (is_alone and names in scores)}


def _axes(cells: _Results) -> dict[str, Axis]:
    """Return the axis of each measurement."""
    ends: dict[str, list[float]] = {}
    for (_, measurement), of_row in cells.items():
        for estimate, _ in of_row.values():
            ends.setdefault(measurement, []).extend((estimate.value, *(estimate.interval or ())))
    return {measurement: Axis.over(values).sized(_NARROW) for measurement, values in ends.items()}


def _about_results(boards: Sequence[LeaderboardTable], axes: Mapping[str, Axis]) -> str:
    """Say what the cells of a matrix are."""
    drawn: dict[str, list[str]] = {}
    for name, axis in axes.items():
        drawn.setdefault(f"from {figure(axis.low)} to {figure(axis.high)}", []).append(name)
    ends = ", ".join(f"{listed(names)} {of}" for of, names in drawn.items())
    items = {*map(leaderboard_items, boards)}
    over = items.pop() if len(items) == 1 else "the items that the systems share"
    ranked = f" Below: the ranks that the system may have, over {over}." if boards else ""
    return (
        f"The result of each run with its 95 % interval; the drawing shows {ends}. Bold: the best, if it can "
        f"be told apart from the next.{ranked}"
    )


def _value(estimate: Estimate, run: int | None, is_best: bool, rank: str) -> Inline:
    """Return the value of a cell, which leads to its run."""
    address = "" if run is None else f"#run={run}"
    parts = [Text(figure(estimate.value, uncertainty(estimate)), address, "best" if is_best else "")]
    parts += [Text(" (best)", look="hidden")] if is_best else []
    parts += [Text(f"rank {rank}", look="small")] if rank else []
    return tuple(parts)


def _in_words(estimate: Estimate) -> str:
    interval = (
        f", 95 % interval {between(estimate.interval, uncertainty(estimate))}" if estimate.interval else ""
    )
    return f"{figure(estimate.value, uncertainty(estimate))}{interval}"


def _best(comparison: Comparison) -> dict[tuple[str, str], str]:
    """Return, by test and measurement, the system that is better than all others, if a system is."""
    found = {}
    if len(comparison.candidates) == 1:
        sides = {"better": comparison.candidates[0].label, "worse": comparison.baseline.label}
        for row in comparison.comparisons:
            if row.verdict in sides:
                found[row.test, row.measurement] = sides[row.verdict]
    for board in comparison.leaderboard:
        if board.direction is not None and board.systems[0].ranks == (1, 1):
            found[board.test, board.measurement] = board.systems[0].system
    return found


def _ranks(comparison: Comparison) -> dict[tuple[str, str, str], str]:
    return {
        (board.test, board.measurement, system.system): ranks(system)
        for board in comparison.leaderboard
        for system in board.systems
    }


# --- items ------------------------------------------------------------------------------------------


def compared_items(comparison: Comparison, runs: Sequence[RecordedRun]) -> Iterator[dict[str, Any]]:
    """Return the comparisons whose items are on the page: place, name, and the numbers of the two runs."""
    numbers = {id(run): number for number, run in enumerate(runs)}
    rows = comparison.comparisons
    for place, (row, pair) in enumerate(zip(rows, comparison.paired, strict=False)):
        sides = [numbers.get(id(run)) for run in (pair.before.run, pair.after.run)]
        if None not in sides:
            names = distinct_names(row, rows, "test", "measurement", "candidate")
            yield {"place": place, "name": " · ".join(names) or row.measurement, "runs": sides}


def comparison_blocks(comparison: Comparison, runs: Sequence[RecordedRun]) -> Iterator[tuple[str, str]]:
    """Yield a named block for each comparison of runs on the page: base64 of gzipped JSON for `compared_items.js`.

    Args:
        comparison: with its items.
        runs: all of the page, in their order.
    """
    numbers = {id(run): number for number, run in enumerate(runs)}
    for place, (row, pair) in enumerate(zip(comparison.comparisons, comparison.paired, strict=False)):
        of_test = {
            id(other): other
            for other in (pair, *comparison.paired)
            if other.test == pair.test and {id(other.before.run), id(other.after.run)} <= numbers.keys()
        }
        if id(pair) in of_test:
            data = {
                "measurement": row.measurement,
                "sign": _SIGNS[row.direction],
                "sides": list(_sides([*of_test.values()], comparison.baseline.label, numbers)),
                "before": json_numbers(pair.before.values[row.measurement].tolist()),
                "after": json_numbers(pair.after.values[row.measurement].tolist()),
            }
            if pair.unmeasured(row.measurement).any():
                lacking = [side.unmeasured(row.measurement) for side in (pair.before, pair.after)]
                data["unmeasured"] = [places.tolist() for places in lacking]
            yield f"compare-{place}", packed(data)


def _sides(pairs: Sequence[ItemPairs], baseline: str, numbers: dict[int, int]) -> Iterator[dict[str, Any]]:
    """Return the baseline and all candidates: for each pair of items the place in their runs, or -1."""
    items = pairs[0].before.places.tolist()
    yield {"label": baseline, "run": str(numbers[id(pairs[0].before.run)]), "places": items}
    for pair in pairs:
        own = dict(zip(pair.before.places.tolist(), pair.after.places.tolist(), strict=True))
        run = str(numbers[id(pair.after.run)])
        yield {"label": pair.candidate, "run": run, "places": [own.get(item, -1) for item in items]}

"""The parts of a comparison's page, for templates: the answer in words, differences on one axis, values by test."""

from collections.abc import Iterator, Sequence
from typing import Any

from modelgauge.comparison.difference import MeasurementComparison
from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import Comparison, LeaderboardTable
from modelgauge.comparison.units import Unit
from modelgauge.data.estimates import Estimate, uncertainty
from modelgauge.reports.comparisons.difference_tables import (
    DifferenceLine,
    DifferenceTable,
    difference_tables,
    leaderboard_items,
    leaderboard_rows,
    ranks,
)
from modelgauge.reports.comparisons.report import answers, distinct_names, facts, items_in, question
from modelgauge.reports.comparisons.words import listed
from modelgauge.reports.pages.charts import Axis, axis_ruler, dot_sample, interval_bar
from modelgauge.reports.pages.columns import json_numbers, packed
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.figures import between, figure, p_phrase
from modelgauge.wording.phrases import counted

_ARROW = " → "
_NARROW = 110  # pixels of a chart in a cell of the matrix
_WIDE = 240
_MOST_TESTS = 3  # that are named of the runs that are not compared
_SHORT = 14  # characters of a system's name that fit over a half of a chart
_NO_CELL = {"value": "", "chart": "", "run": None}
_SIGNS = {"higher": 1, "lower": -1, None: 0}
_LOOKS = {True: "told", False: "untold", None: "untested"}


def compared_runs(comparison: Comparison) -> list[RecordedRun]:
    """The runs that were compared, those of the baseline first; none where the comparison was read from JSON."""
    sides = [
        *(pair.before.run for pair in comparison.paired),
        *(pair.after.run for pair in comparison.paired),
    ]
    return [*{id(run): run for run in sides if run is not None}.values()]


def comparison_view(comparison: Comparison, runs: Sequence[RecordedRun]) -> dict[str, Any]:
    """What the template shows of a comparison.

    Args:
        comparison: with its items.
        runs: all of the page, in their order.
    """
    known = list(facts(comparison))
    rows = comparison.comparisons
    its_own = {id(run) for run in compared_runs(comparison)}
    others = [run for run in runs if id(run) not in its_own]
    return {
        "question": question(comparison),
        "baseline": comparison.baseline.label,
        "answers": list(answers(comparison)),
        "single": _single(rows[0], comparison) if len(rows) == 1 else None,
        "tables": [
            _table_view(table, comparison) for table in difference_tables(comparison, _ARROW, labelled=False)
        ],
        "matrix": _matrix(comparison, runs) if len({row.test for row in rows}) > 1 and runs else None,
        "leaderboards": [_leaderboard(board) for board in comparison.leaderboard],
        "facts": [(label, text) for label, text in known if label not in ("differs", "note")],
        "differs": [text for label, text in known if label == "differs"],
        "notes": [text for label, text in known if label == "note"],
        "compared": list(_comparison_views(comparison, runs)),
        "others": len(others),
        "other_tests": _listed_tests(others),
    }


def _listed_tests(runs: Sequence[RecordedRun]) -> str:
    """The tests of runs; of many the first tests, and how many more there are."""
    tests = [*dict.fromkeys(run.record.test_uid for run in runs)]
    more = len(tests) - _MOST_TESTS
    return listed(tests if more < 2 else [*tests[:_MOST_TESTS], counted(more, "more test")])


def _single(row: MeasurementComparison, comparison: Comparison) -> dict[str, Any]:
    """What stands below the answer where one comparison is all."""
    p = "" if row.p_adjusted is None else p_phrase(row.p_adjusted, comparison.alpha)
    counts = {"won": row.wins, "lost": row.losses, "equal": row.ties}
    counts |= {
        name: count for name, count in (("failed", row.n_failed), ("not measured", row.n_unmeasured)) if count
    }
    return {"p": p, "counts": counts, "paired": f"{row.n_paired:,} of {items_in(row):,}"}


def _table_view(table: DifferenceTable, comparison: Comparison) -> dict[str, Any]:
    axis = Axis.over(table.ends, zero=True).sized(_WIDE)
    labels = comparison.labels
    short = len(labels) == 2 and max(map(len, labels)) <= _SHORT
    first, second = labels if short else ("baseline", "candidate")
    sides = [f"{first} better", f"{second} better"]
    if table.direction is None:
        sides = [f"{second} lower", f"{second} higher"]
    names, numbers = table.names(), table.numbers()
    return {
        "about": table.about,
        "sides": sides[::-1] if table.direction == "lower" else sides,
        "legend": [
            (dot_sample(_LOOKS[is_finding]), text)
            for is_finding, text in ((False, "cannot tell"), (None, "not tested by itself"))
            if any(line.is_finding is is_finding for line in table.lines)
        ],
        "name_heads": [head for head, _ in names],
        "heads": [head for head, _ in numbers],
        "ruler": axis_ruler(axis),
        "rows": [
            {
                "names": [column[at].strip() for _, column in names],
                "is_part": bool(line.group),
                "is_mean": line.place is None,
                "place": line.place,
                "chart": _bar(line, table.unit, axis),
                "numbers": [_cell_parts(head, column[at]) for head, column in numbers],
            }
            for at, line in enumerate(table.lines)
        ],
    }


def _cell_parts(head: str, cell: str) -> list[tuple[str, str]]:
    """A cell in parts: each text with the outcome of the items that it counts, empty if it counts none."""
    outcomes = head.split("/") if "/" in head else [""]
    return [*zip(cell.split("/"), outcomes, strict=False)]


def _bar(line: DifferenceLine, unit: Unit, axis: Axis) -> str:
    row = line.row
    if row.difference is None:
        return ""
    known, interval = f"{unit.signed(row.difference, row.stderr)} {unit.name}".strip(), None
    if row.interval is not None:
        low, high = row.interval
        interval = unit.scale * low, unit.scale * high
        known += f", from {unit.between(row.interval, row.stderr)}"
    value, look = unit.scale * row.difference, _LOOKS[line.is_finding]
    return interval_bar(axis, value, interval, mark=0.0, label=known, look=look)


# --- several tests, several systems -----------------------------------------------------------------


def _matrix(comparison: Comparison, runs: Sequence[RecordedRun]) -> dict[str, Any]:
    """A row for each test and measurement, a column for each system: the result of its run."""
    numbers = {id(run): number for number, run in enumerate(runs)}
    labels = comparison.labels
    cells: dict[tuple[str, str], dict[str, tuple[Estimate, int | None]]] = {}
    for row, pair in zip(comparison.comparisons, comparison.paired, strict=False):
        for label, run in ((labels[0], pair.before.run), (row.candidate, pair.after.run)):
            found = None if run is None else run.record.result.get(row.measurement)
            if isinstance(found, Estimate):
                of_row = cells.setdefault((row.test, row.measurement), {})
                of_row[label] = found, numbers.get(id(run))
    best, places = _best(comparison), _ranks(comparison)
    ends: dict[str, list[float]] = {}
    for (_, measurement), of_row in cells.items():
        for estimate, _ in of_row.values():
            ends.setdefault(measurement, []).extend((estimate.value, *(estimate.interval or ())))
    axes = {measurement: Axis.over(values).sized(_NARROW) for measurement, values in ends.items()}
    return {
        "systems": labels,
        "several": len(axes) > 1,
        "axes": [f"{name} from {figure(axis.low)} to {figure(axis.high)}" for name, axis in axes.items()],
        "rows": [
            {
                "names": names,
                "cells": [
                    {"is_best": best.get(names) == label, "ranks": places.get((*names, label), "")}
                    | (_cell(*of_row[label], axes[names[1]]) if label in of_row else _NO_CELL)
                    for label in labels
                ],
            }
            for names, of_row in cells.items()
        ],
    }


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


def _cell(estimate: Estimate, run: int | None, axis: Axis) -> dict[str, Any]:
    interval = (
        f", 95 % interval {between(estimate.interval, uncertainty(estimate))}" if estimate.interval else ""
    )
    value = figure(estimate.value, uncertainty(estimate))
    chart = interval_bar(axis, estimate.value, estimate.interval, label=f"{value}{interval}")
    return {"value": value, "chart": chart, "run": run}


def _leaderboard(board: LeaderboardTable) -> dict[str, Any]:
    names = ("ranks", "system", "value", "letters")
    return {
        "test": board.test,
        "measurement": board.measurement,
        "over": leaderboard_items(board),
        "overlap": any(len(group) > 1 for group in board.groups),
        "rows": [dict(zip(names, row, strict=True)) for row in leaderboard_rows(board)],
    }


# --- items ------------------------------------------------------------------------------------------


def _comparison_views(comparison: Comparison, runs: Sequence[RecordedRun]) -> Iterator[dict[str, Any]]:
    """The comparisons whose items are on the page: the place of each, its name, and the numbers of its two runs."""
    numbers = {id(run): number for number, run in enumerate(runs)}
    rows = comparison.comparisons
    for place, (row, pair) in enumerate(zip(rows, comparison.paired, strict=False)):
        sides = [numbers.get(id(run)) for run in (pair.before.run, pair.after.run)]
        if None not in sides:
            names = distinct_names(row, rows, "test", "measurement", "candidate")
            yield {"place": place, "name": " · ".join(names) or row.measurement, "runs": sides}


def comparison_blocks(comparison: Comparison, runs: Sequence[RecordedRun]) -> Iterator[tuple[str, str]]:
    """For each comparison whose runs are on the page a named block: base64 of gzipped JSON for `compared_items.js`.

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


def _sides(pairs: Sequence[PairedItems], baseline: str, numbers: dict[int, int]) -> Iterator[dict[str, Any]]:
    """The baseline, the candidate and the other candidates: for each pair of items the place in their runs, or -1."""
    items = pairs[0].before.places.tolist()
    yield {"label": baseline, "run": str(numbers[id(pairs[0].before.run)]), "places": items}
    for pair in pairs:
        own = dict(zip(pair.before.places.tolist(), pair.after.places.tolist(), strict=True))
        run = str(numbers[id(pair.after.run)])
        yield {"label": pair.candidate, "run": run, "places": [own.get(item, -1) for item in items]}

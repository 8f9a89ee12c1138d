"""Comparison of runs: `compare`, and `compare_pairs` for items that are already paired."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

from modelgauge.comparison.contrasts import Contrast, build_contrasts
from modelgauge.comparison.difference import MeasurementComparison
from modelgauge.comparison.families import Family
from modelgauge.comparison.item_pairs import ItemPairs
from modelgauge.comparison.leaderboards import Board, build_boards
from modelgauge.comparison.means import MeanContrast, means_over_tests
from modelgauge.comparison.named_runs import GivenRuns
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.options_dicts import CompareOptionsDict
from modelgauge.comparison.pairing.paired_runs import (
    PairedRuns,
    common_tests,
    paired_runs,
    paired_systems,
)
from modelgauge.comparison.pairing.systems import list_systems
from modelgauge.comparison.result import Comparison
from modelgauge.data.base import list_names
from modelgauge.errors import InvalidOptionError, RecordError, UnknownNameError
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from modelgauge.data.results import Direction


def compare(baseline: GivenRuns, *candidates: GivenRuns, **options: Unpack[CompareOptionsDict]) -> Comparison:
    """Compare systems with a baseline on the items that their runs have in common.

    Each is a run (its id or the beginning of it, its folder, a file of `--output-file`, a `TestRecord`), all runs of
    one command by the invocation's id, `latest` for the newest of these, or `latest~1` for the one before it. `latest`
    counts only runs that can be compared with each other, or with the run that is named otherwise. As the baseline,
    `pinned` is the run that `modelgauge baselines` lists for a tag, the data set or the test of each candidate.
    Differences are the candidate's value minus the baseline's.

    Args:
        baseline: what the others are compared with.
        candidates: one or more. With baseline_sut there are none: the other SUTs of the baseline's invocation are the
            candidates.
        options: how; "Options of a comparison" in the reference lists them.

    Raises:
        InvalidOptionError: an option does not exist, cannot be what was given, or there is no candidate.
        RecordError: a run cannot be found or read, or there is nothing that can be compared.
        UnknownNameError: an option names a measurement that no test has.
    """
    chosen = CompareOptions.of(**options)
    if not candidates and chosen.baseline_sut is None:
        raise InvalidOptionError(
            "There is nothing to compare the baseline with.",
            fix="Give two runs or more: modelgauge compare latest~1 latest; or `pinned` and a run, which is compared "
            "with its pinned baseline: modelgauge compare pinned latest; or say with which SUT of one invocation "
            "the others are compared: modelgauge compare latest --baseline-sut UID.",
        )
    return compare_pairs(paired_runs(baseline, candidates, chosen), chosen)


def compare_runs(runs: Sequence[RecordedRun]) -> Comparison | None:
    """Compare the systems of runs with that of the first run, as far as they were measured by a test of its.

    Args:
        runs: of any tests and SUTs, each run once.

    Returns:
        None if no two of them can be compared.

    Raises:
        RecordError: the items of a run cannot be read, or runs differ in what makes numbers comparable.
        InvalidDataError: a value is outside its range.
    """
    baseline, *others = list_systems(runs)
    candidates = [system for system in others if common_tests(baseline, system)]
    options = CompareOptions()
    return compare_pairs(paired_systems([baseline, *candidates], options), options) if candidates else None


def compare_pairs(runs: PairedRuns, options: CompareOptions) -> Comparison:
    """Compare each measurement of each test that the baseline and a candidate have in common.

    If all items of a system failed, it is still compared, by the bounds of its value: all items worst, or all best.

    Raises:
        UnknownNameError: an option names a measurement that no test has.
        InvalidOptionError: the margin does not fit a measurement's range.
        InvalidDataError: a value is outside its range.
        RecordError: the sides have no measurement in common.
    """
    names = _names(runs, options)
    wanted: dict[str, Direction] = dict.fromkeys(options.lower_is_better, "lower")
    wanted |= dict.fromkeys(options.higher_is_better, "higher")
    all_items = [
        replace(_with_failed_sides(items), directions={**items.directions, **wanted}) for items in runs.items
    ]
    pairs = [
        (items, name)
        for items in all_items
        for name in names
        if name in items.before.values and name in items.after.values
    ]
    if not pairs:
        raise RecordError(
            "No measurement is there on both sides: "
            + "; ".join(f"{name}: {list_names(values)}" for name, values in _measurements(runs).items())
            + ".",
            fix="Compare runs of one test; where items failed, modelgauge show RUN --failures says why.",
        )
    contrasts = build_contrasts(pairs, options)
    means, boards = means_over_tests(contrasts), build_boards(contrasts, options)
    parts: list[Contrast | MeanContrast | Board] = [*contrasts, *means, *boards]
    p_values = {question: p for part in parts for question, p in part.p_values().items()}
    family = Family.adjusting(runs.baseline.label, options.alpha, p_values)
    rows = tuple([contrast.row(family) for contrast in contrasts])
    comparison = Comparison(
        baseline=runs.baseline,
        candidates=runs.candidates,
        alpha=options.alpha,
        family=family.size,
        comparisons=rows,
        macro=tuple([mean.row(family) for mean in means]),
        leaderboard=tuple([board.table(family) for board in boards]),
        differs=runs.differs,
        notes=(*runs.notes, *_notes(all_items, runs.baseline.label, names, rows, options)),
    )
    return comparison.with_items([items for items, _ in pairs])


def _names(runs: PairedRuns, options: CompareOptions) -> list[str]:
    """Return the measurements to compare, in the order of the tests.

    Raises:
        UnknownNameError: an option names a measurement that no test has.
    """
    known = dict.fromkeys(name for items in runs.items for values in _sides(items) for name in values)
    for name in (*options.measurements, *options.lower_is_better, *options.higher_is_better):
        if name not in known:
            raise UnknownNameError(
                f"There is no measurement '{name}' to compare.",
                fix=f"{did_you_mean(name, known)}The measurements are: {list_names(known)}.",
            )
    return [name for name in known if not options.measurements or name in options.measurements]


def _sides(items: ItemPairs) -> tuple[Mapping[str, object], Mapping[str, object]]:
    return items.before.values, items.after.values


def _measurements(runs: PairedRuns) -> dict[str, Mapping[str, object]]:
    """Return the measurements of each system in the compared tests, by its label."""
    found: dict[str, Mapping[str, object]] = {}
    for items in runs.items:
        for label, values in zip((runs.baseline.label, items.candidate), _sides(items), strict=True):
            found[label] = {**found.get(label, {}), **values}
    return found


def _with_failed_sides(items: ItemPairs) -> ItemPairs:
    """Return the pairs, with NaN for all values of a side that has none because all its items failed."""
    before, after = items.before, items.after
    if before.values and after.values:
        return items
    none = {name: np.full(len(before.places), np.nan) for name in (*before.values, *after.values)}
    return replace(
        items,
        before=replace(before, values=before.values or none),
        after=replace(after, values=after.values or none),
    )


def _notes(
    all_items: list[ItemPairs],
    baseline: str,
    names: list[str],
    rows: Sequence[MeasurementComparison],
    options: CompareOptions,
) -> Iterator[str]:
    for items in all_items:
        for name in names:
            having = [name in values for values in _sides(items)]
            if any(having) and not all(having):
                label = baseline if having[0] else items.candidate
                yield f"Only {label} has the measurement '{name}' of {items.test}."
    others = [row for row in rows if options.test and row.p_kind not in (options.test, None)]
    for row in others:
        few = " with so few items" if options.test == "bootstrap" else ""
        yield (
            f"The {options.test} test{few} does not fit {row.measurement} of {row.test}, {row.candidate}: "
            f"its p value is by {row.p_kind}."
        )

"""Paired items of named runs: `paired_runs`, which returns `PairedRuns`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.item_pairs import ItemPairs, PairedSide
from modelgauge.comparison.named_runs import GivenRuns
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.comparability import check_comparable, differences, is_of_same_data
from modelgauge.comparison.pairing.latest import name_comparable_runs
from modelgauge.comparison.pairing.matching import KEYS, pairing, without_field
from modelgauge.comparison.pairing.systems import MeasuredSystem, make_labels, measured_systems
from modelgauge.comparison.result import RunDifference, System
from modelgauge.data.base import list_names
from modelgauge.data.records import TestRecord
from modelgauge.data.results import Direction, get_range
from modelgauge.data.thresholds import known_directions
from modelgauge.engine.items.item_frame import ItemFrame
from modelgauge.errors import RecordError
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.stats.intervals import joined_clusters
from modelgauge.wording.phrases import counted

_Read = tuple[RecordedRun, ItemFrame]
"""A run with its items."""


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """A baseline and its candidates, with the items that each candidate has in common with the baseline.

    Args:
        baseline: what the candidates are compared with.
        candidates: in the order in which they were given.
        items: for each candidate and test.
        differs: in what else the runs differ.
        notes: what a reader should know besides.
    """

    baseline: System
    candidates: tuple[System, ...]
    items: tuple[ItemPairs, ...]
    differs: tuple[RunDifference, ...] = ()
    notes: tuple[str, ...] = ()


def paired_runs(
    baseline: GivenRuns, candidates: Sequence[GivenRuns], options: CompareOptions | None = None
) -> PairedRuns:
    """Read the runs of a baseline and its candidates, and pair their items test by test.

    Nothing that a run names is imported.

    Args:
        baseline: what the candidates are compared with.
        candidates: in the order in which they are shown; none where `options.baseline_sut` is one of several SUTs.
        options: how.

    Raises:
        RecordError: a run cannot be found or read, there is nothing that can be compared, or runs differ in what makes
            numbers comparable.
    """
    options = options if options is not None else CompareOptions()
    return paired_systems(measured_systems(baseline, candidates, options), options)


def paired_systems(systems: Sequence[MeasuredSystem], options: CompareOptions) -> PairedRuns:
    """Read the runs of systems, of which the first is the baseline, and pair their items test by test.

    Raises:
        RecordError: see `paired_runs`.
    """
    labels = make_labels(systems)
    pairs = [
        (label, test, before, after)
        for label, system in zip(labels[1:], systems[1:], strict=True)
        for test, before, after in _pairs_of_runs(systems[0], system, options)
    ]
    differing = [
        difference
        for label, test, before, after in pairs
        for difference in differences(test, label, before.record, after.record)
    ]
    check_comparable(differing, options.allow)
    read: dict[int, _Read] = {}  # each run is read once
    for *_, before, after in pairs:
        for run, group in ((before, options.group_by), (after, None)):
            if id(run) not in read:
                read[id(run)] = run, _items(run, options.match, group)
    items = tuple(
        [
            _pairs(test, label, read[id(before)], read[id(after)], options.match)
            for label, test, before, after in pairs
        ]
    )
    targets = [difference for pair in items for difference in _other_targets(pair)]
    check_comparable(targets, options.allow)
    return PairedRuns(
        systems[0].labeled(labels[0]),
        tuple(system.labeled(label) for label, system in zip(labels[1:], systems[1:], strict=True)),
        items,
        differs=(*differing, *targets),
        notes=(*_one_sided(systems, labels), *_notes(read.values())),
    )


def common_tests(
    baseline: MeasuredSystem, candidate: MeasuredSystem
) -> list[tuple[str, RecordedRun, RecordedRun]]:
    """Return the tests that both systems ran, with their runs; matched by name, or else by data set."""
    found = [
        (test, run, candidate.runs[test]) for test, run in baseline.runs.items() if test in candidate.runs
    ]
    if found:
        return found
    for test, run in baseline.runs.items():
        same = [other for other in candidate.runs.values() if is_of_same_data(run.record, other.record)]
        found += [(test, run, other) for other in same[:1]]
    return found


def _pairs_of_runs(
    baseline: MeasuredSystem, candidate: MeasuredSystem, options: CompareOptions
) -> list[tuple[str, RecordedRun, RecordedRun]]:
    """Return the tests that both systems ran, including pairs allowed despite differences, with their runs.

    Raises:
        RecordError: there is none.
    """
    if found := common_tests(baseline, candidate):
        return found
    if "test" in options.allow and len(baseline.runs) == len(candidate.runs) == 1:
        return [(test, run, next(iter(candidate.runs.values()))) for test, run in baseline.runs.items()]
    raise RecordError(
        f"'{baseline.given}' and '{candidate.given}' have no test in common: one was measured by "
        f"{list_names(baseline.runs)}, the other by {list_names(candidate.runs)}.",
        fix="Compare runs of one test; two runs of different tests are compared with --allow test."
        + name_comparable_runs(options),
    )


def _one_sided(systems: Sequence[MeasuredSystem], labels: Sequence[str]) -> Iterator[str]:
    """Say which tests only one of two systems was measured by."""
    for label, system in zip(labels[1:], systems[1:], strict=True):
        both = ((systems[0], labels[0]), (system, label))
        for (own, name), (other, other_name) in (both, both[::-1]):
            lacking = [test for test in own.runs if test not in other.runs]
            if lacking and len(lacking) < len(own.runs):
                yield f"{name} was measured by {', '.join(lacking)}, and {other_name} was not."


def _items(run: RecordedRun, match: str | None, group: str | None) -> ItemFrame:
    """Read the items of a run.

    Args:
        run: to read.
        match: the key by which items are paired.
        group: the field by which its items form groups.

    Raises:
        RecordError: it has no items, its journal is damaged, or no item has the field of the groups.
    """
    items = run.frame(match=None if match in KEYS else match, group=group)
    if not len(items):
        raise RecordError(f"Run {run.record.run_id} has no items.", fix=_to_go_on(run))
    if group is not None and items.groups is not None and not any(items.groups):
        raise without_field(items, group, "form groups by")
    return items


def _notes(read: Collection[_Read]) -> Iterator[str]:
    """Return notes about the runs for the reader."""
    for run, items in read:
        yield from _notes_of_unfinished(run, len(items))
    older = [run.record.run_id for run, _ in read if run.record.directions is None]
    if older:
        yield (
            f"Recorded by an older version, which did not say which values are better: {', '.join(older)}. "
            "Say it: --higher-is-better NAME, --lower-is-better NAME."
        )


def _notes_of_unfinished(run: RecordedRun, number: int) -> Iterator[str]:
    """Say of a run that did not come to its end what its items are worth.

    Args:
        run: the run.
        number: of its items.
    """
    record = run.record
    failure, items, left = record.failure, record.counts.items, record.counts.not_begun
    came_to_its_end = not record.cancelled and (failure is None or failure.stage == "aggregate")
    if came_to_its_end or (left == 0 and items == number):
        return
    of = "" if left is None else f" of {items + left:,}"
    if run.going_on:
        became = "is going on"
    elif not run.ended:
        became = "was killed"
    else:
        became = "was interrupted" if record.cancelled else "stopped early"
    yield (
        f"Run {record.run_id} {became}; compared: its first {counted(number, 'item')}{of}, not a sample. "
        f"{_to_go_on(run)}"
    )


def _to_go_on(run: RecordedRun) -> str:
    if run.going_on:
        return "Compare again when it has ended."
    if (command := run.to_go_on()) is not None:
        return f"Go on with it: {command}"
    return "Correct its test, and run it again." if run.needs_correction else "Run it again."


def _pairs(test: str, label: str, baseline: _Read, candidate: _Read, match: str | None) -> ItemPairs:
    """Pair the items of two runs.

    Args:
        test: the name of the test in the comparison.
        label: of the candidate.
        baseline: the baseline's run, and its items.
        candidate: the candidate's.
        match: the key by which items are paired; None for the first that pairs any.

    Raises:
        RecordError: see `pairing`.
    """
    (before, items), (after, others) = baseline, candidate
    matched_by, first, second = pairing(items, others, match)
    reductions = {before.record.reduction, after.record.reduction}
    reduction = before.record.reduction if len(reductions) == 1 else None

    def named(name: str) -> str:
        return name if reduction is None else f"{name}.{reduction}"

    def side(run: RecordedRun, frame: ItemFrame, places: NDArray[np.int64]) -> PairedSide:
        return PairedSide(
            places,
            {named(name): frame.values(name)[places] for name in frame.names},
            repeats=frame.repeats(places) if reductions == {None} else {},
            failed=frame.failed[places],
            frame=frame,
            run=run,
        )

    groups, directions = items.groups, _directions(before.record, after.record)
    return ItemPairs(
        test=test,
        candidate=label,
        matched_by=matched_by,
        n_only_baseline=len(items) - len(first),
        n_only_candidate=len(others) - len(second),
        before=side(before, items, first),
        after=side(after, others, second),
        clusters=_clusters((items, first), (others, second)),
        questions=None if items.questions is None else items.questions[first],
        origins=None if items.origins is None else items.origins[first],
        groups=None if groups is None else [groups[place] for place in first.tolist()],
        ranges={named(name): bounds for name, bounds in _ranges(items, others).items()},
        directions={named(name): direction for name, direction in directions.items()},
    )


def _other_targets(pairs: ItemPairs) -> Iterator[RunDifference]:
    """Yield the difference between the targets of the paired items, if they differ."""
    sides = [(side.frame, side.places) for side in (pairs.before, pairs.after) if side.frame is not None]
    before, after = (frame.targets[places] for frame, places in sides)
    others = np.flatnonzero(before != after)
    if not len(others):
        return
    first = [(frame, int(places[others[0]])) for frame, places in sides]
    baseline, candidate = (str(frame.record(place).test_item.id) for frame, place in first)
    yield RunDifference(
        test=pairs.test,
        candidate=pairs.candidate,
        kind="targets",
        name=f"contexts of {len(others):,} of {counted(len(before), 'item')} paired by "
        f"{KEYS.get(pairs.matched_by, pairs.matched_by)}",
        baseline=baseline,
        candidate_value=candidate,
        fields=_other_fields(*(frame.target(place) for frame, place in first)),
    )


def _other_fields(baseline: Any, candidate: Any) -> tuple[str, ...]:
    """Return the fields in which two contexts differ; "context" if they have no fields."""
    if not (isinstance(baseline, Mapping) and isinstance(candidate, Mapping)):
        return ("context",)
    names = dict.fromkeys((*baseline, *candidate))
    return tuple([name for name in names if baseline.get(name) != candidate.get(name)]) or ("context",)


def _clusters(*sides: tuple[ItemFrame, NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """Return the clusters of paired items, joined over both runs, numbered in the order of the items."""
    codes = joined_clusters(
        *(None if side.clusters is None else side.clusters[places] for side, places in sides)
    )
    if codes is None:
        return None
    # Hashes differ from process to process, and what is drawn by clusters shall not.
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    numbered: NDArray[np.int64] = np.argsort(np.argsort(first))[inverse]
    return numbered


def _ranges(*sides: ItemFrame) -> dict[str, tuple[float, float]]:
    """Return the ranges of measurements: as recorded, the widest if runs differ; or those of bools."""
    ranges: dict[str, tuple[float, float]] = {}
    for name in dict.fromkeys(name for side in sides for name in side.names):
        found = [
            bounds for side in sides if name in side.names and (bounds := _range(side, name)) is not None
        ]
        if len(found) == sum(name in side.names for side in sides):
            ranges[name] = (min(low for low, _ in found), max(high for _, high in found))
    return ranges


def _range(items: ItemFrame, name: str) -> tuple[float, float] | None:
    recorded = (items.run.ranges or {}).get(name)
    return items.bool_ranges.get(name) if recorded is None else get_range(recorded)


def _directions(*records: TestRecord) -> dict[str, Direction]:
    """Return the direction of each measurement, unless runs disagree; older records only have those with thresholds."""
    declared = [
        known_directions({}, record.thresholds) if record.directions is None else record.directions
        for record in records
    ]
    every = {name: direction for directions in declared for name, direction in directions.items()}
    return {
        name: direction
        for name, direction in every.items()
        if all(other.get(name, direction) == direction for other in declared)
    }

"""Checking a run by its files: each item once and whole, counts and results as the items say. Nothing is imported that
the files name.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from modelgauge.bundles.item_checks import Declarations, close, find_problems
from modelgauge.config.run_options import RunOptions
from modelgauge.data.estimates import Estimate
from modelgauge.data.records import RunIdentity, TestRecord
from modelgauge.data.results import GIVEN, PYTEST, CallsByKind, get_range, normalized_result
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.items.measurer import reducer
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.run_files.folder import JOURNAL, MANIFEST, RECORD, TOTALS, RunFolder
from modelgauge.engine.run_files.lines import JournalLines
from modelgauge.engine.totals import read_totals
from modelgauge.errors import InvalidDataError, ModelGaugeError, RecordError
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.stats.aggregations import mean_of_each
from modelgauge.wording.phrases import counted

_OUTCOMES = ("scored", "partial", "sut_errors", "annotator_errors", "unscored", "blocked", "failed_repeats")
_ESTIMATES = ("value", "n", "stderr", "interval", "bounds")
_SAID_TWICE = ("invocation_id", "run_timestamp", *RunIdentity.model_fields)
_MEASURED = {"ranges"}  # the record has those of all measurements, the manifest those that the test declares


@dataclass(frozen=True, slots=True)
class RunProblem:
    """Something that is not as it should be.

    Args:
        problem: in words, without a full stop.
        line: of the journal.
        item: its id.
    """

    problem: str
    line: int | None = None
    item: str | None = None

    def __str__(self) -> str:
        where = f"{JOURNAL}, line {self.line}: " if self.line else ""
        return f"{where}{'' if self.item is None else f'item {self.item}: '}{self.problem}"


@dataclass(slots=True)
class RunCheck:
    """The findings of the check of a run.

    Args:
        run: its folder.
        items: how many records of items its journal has.
        lines: of the journal, by the places of their items in the test.
        findings: what is wrong.
        redacted: the ids of the items whose texts were taken out, in the test's order: their answers cannot be checked.
        unchecked: what else could not be checked, and why; sentences.
    """

    run: RunFolder
    items: int = 0
    lines: dict[int, int] = field(default_factory=dict)
    findings: list[RunProblem] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def add(self, problem: str, line: int | None = None, item: str | None = None) -> None:
        # The folder of an unpacked bundle is temporary, so files are named without it.
        named = problem.removesuffix(".").replace(f"{self.run.path}{os.sep}", "")
        self.findings.append(RunProblem(named, line, item))


def check_run(run: RunFolder) -> RunCheck:
    """Check a run by its files alone.

    Raises:
        RecordError: it has no manifest that can be read.
    """
    made = RunCheck(run)
    manifest = run.read_manifest()
    try:
        recorded = recorded_run(run)
    except RecordError as error:
        made.add(error.problem)
        return made
    record = recorded.record
    if not recorded.ended:
        became = "is going on" if recorded.going_on else "has not come to its end"
        made.unchecked.append(f"The run {became}: it has no {RECORD}, so there are no totals and no results.")
    options, own_methods = _options_and_methods(manifest)
    annotators = manifest.get("annotators")
    declared = Declarations(
        annotators=frozenset(
            annotators if isinstance(annotators, dict) and annotators else record.annotators
        ),
        chooses=record.sut_uid == GIVEN or "choose_annotators" in own_methods,
        is_session=_is_session(record),
        reduce=reducer(record.reduction or options.reduce, record.repeats),
        thresholds=record.thresholds,
        ranges=record.ranges or {},
    )
    ranges = {name: get_range(ends) for name, ends in (record.ranges or {}).items()}
    index = JournalIndex(run.journal, ranges, options, is_asked=record.prompts is not None)
    tally = _check_items(made, declared, index)
    if recorded.ended:
        for problem in (*_of_manifest(manifest, record), *_of_counts(run, record, tally, made.items)):
            made.add(problem)
        _check_results(made, record, index, options, own_methods)
    return made


def _options_and_methods(manifest: Mapping[str, Any]) -> tuple[RunOptions, tuple[str, ...]]:
    """Return the options of a run, and the methods that its test defines itself. Sessions of pytest have their own
    options.
    """
    try:
        described = WorkDescription.load(manifest)
    except InvalidDataError:
        return RunOptions(), ()
    own = described.own_methods
    return described.run_options(), ("aggregate_measurements",) if own is None else own


def _check_items(made: RunCheck, declared: Declarations, index: JournalIndex) -> Tally:
    """Check the lines of the journal one by one."""
    tally, number, end = Tally(), 0, 0
    ids: dict[str, int] = {}
    redacted: list[tuple[int, str]] = []
    for line in JournalLines(made.run.journal):
        number, end = line.number, line.offset + len(line.line)
        try:
            record = line.record()
        except RecordError as error:
            made.add(error.problem.removeprefix(f"{line.path}, line {number} "), number)
        else:
            made.items += 1
            name = str(record.test_item.id)
            if (first := ids.setdefault(name, number)) != number:
                made.add(f"it stands in line {first} too", number, name)
            elif (first := made.lines.setdefault(record.index, number)) != number:
                made.add(f"its place in the test, {record.index}, is that of line {first} too", number, name)
            for problem in find_problems(record, declared):
                made.add(problem, number, name)
            if record.redacted:
                redacted.append((record.index, name))
            tally.count(record)
            index.add(record, line.offset, record.test_item)
            tally.sut_calls.paid += len(record.interactions)
    made.redacted.extend(name for _, name in sorted(redacted))
    if made.run.journal.exists() and made.run.journal.stat().st_size != end:
        made.add("the line has no end", number + 1)
    return tally


def _of_manifest(manifest: Mapping[str, Any], record: TestRecord) -> Iterator[str]:
    written = record.model_dump(mode="json")
    for name in _SAID_TWICE:
        if name in manifest.keys() - _MEASURED and written[name] and manifest[name] != written[name]:
            yield f"{RECORD} and {MANIFEST} differ in {name}"


def _of_counts(run: RunFolder, record: TestRecord, tally: Tally, items: int) -> Iterator[str]:
    counts, ended = record.counts, not record.ended_early
    for name in _OUTCOMES:
        written, found = getattr(counts, name), tally.outcomes[name]
        if written != found:
            yield f"{RECORD} counts {written:,} {name}, and the journal has {found:,}"
    if counts.items < items or (ended and record.sut_uid != GIVEN and counts.items != items):
        yield f"{RECORD} counts {counted(counts.items, 'item')}, and the journal has {items:,}"
    answers, calls = tally.sut_calls.paid, counts.sut_calls.paid + counts.sut_calls.cached
    if record.sut_uid != GIVEN and run.rescores() is None and calls < answers:
        yield f"{RECORD} counts {counted(calls, 'answer')} of the SUT, and the journal has {answers:,}"
    totals = read_totals(run)
    if totals is None or not totals.ended:
        return
    for name in CallsByKind.model_fields:
        if getattr(totals.used, name) != getattr(counts, name):
            yield f"{RECORD} and {TOTALS} differ in {name}"
    if record.spent is not None and totals.used.spent != record.spent:
        yield f"{RECORD} and {TOTALS} differ in what was spent"


# --- results ---------------------------------------------------------------------------------------------------------


def _check_results(
    made: RunCheck, record: TestRecord, index: JournalIndex, options: RunOptions, own_methods: tuple[str, ...]
) -> None:
    """Compute the mean of each measurement again, and compare it with the result of this name."""
    if record.prompts is not None and record.prompts != len(index.prompts):
        made.add(
            f"{RECORD} counts {counted(record.prompts, 'prompt')}, and the journal has {len(index.prompts):,}"
        )
    known = _number_of_items(record)
    population = None
    if options.finite:
        population = known if record.sample is None else record.sample.total
    try:
        items = index.items(known, population, record.directions)
        means = normalized_result(mean_of_each(items), record.reduction)
    except ModelGaugeError as error:
        made.add(f"the means of the items cannot be computed: {error.problem}")
        return
    own = "aggregate_measurements" in own_methods
    compared = _comparable_parts(made, record)
    others = record.result.keys() - means.keys()
    for name, mean in means.items():
        found = record.result.get(name)
        differing = [part for part in compared if not equal(_part(found, part), _part(mean, part))]
        if found is None and not own and not record.ended_early:
            made.add(f"the result {name} is missing")
        elif differing and (own or not isinstance(found, Estimate)):
            others |= {name} & record.result.keys()
        elif differing:
            part = differing[0]
            written, computed = getattr(found, part), getattr(mean, part)
            made.add(f"the result {name} has the {part} {written}, and the items give {computed}")
    if others:
        named = ", ".join(sorted(others))
        made.unchecked.append(f"Results that the test computes in its own way: {named}.")


def _number_of_items(record: TestRecord) -> int | None:
    """Return the number of items that the whole run has; None if it is unknown."""
    counts = record.counts
    if counts.not_begun is not None:
        return counts.items + counts.not_begun
    return counts.items if _is_session(record) and not record.cancelled else None


def _is_session(record: TestRecord) -> bool:
    return record.test_initialization.get("class_name") == PYTEST


def _comparable_parts(made: RunCheck, record: TestRecord) -> tuple[str, ...]:
    """Return the parts of results that depend only on the available data."""
    if made.redacted:  # which texts were equal, and so shared an answer, may not be known any more
        return _ESTIMATES[:2]
    if record.ranges is None:
        return _ESTIMATES[:3]
    # How many items are missing is not in the record of a run that stopped, or measures the answers of another.
    return _ESTIMATES[: 4 if record.failure is not None or made.run.rescores() is not None else 5]


def _part(estimate: Any, name: str) -> Any:
    """Return a part of a result, with its bounds in rising order, as earlier versions wrote them."""
    part = getattr(estimate, name, None)
    return part and tuple(sorted(part)) if name == "bounds" else part


def equal(one: Any, other: Any) -> bool:
    """Return whether two results are equal, or two parts of one, apart from the noise of floats."""
    if isinstance(one, Estimate) and isinstance(other, Estimate):
        return all(equal(_part(one, part), _part(other, part)) for part in _ESTIMATES)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return close(one, other)
    return bool(one == other)

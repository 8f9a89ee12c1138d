"""Checks of an item's record against the manifest of its run."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from modelgauge.data.annotations import Interaction
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.results import RecordedRange, Threshold
from modelgauge.data.thresholds import PASSED, has_passed
from modelgauge.engine.items.measurer import Reducer, reduced
from modelgauge.errors import ModelGaugeError

_TOLERANCE = 1e-9


def close(one: float, other: float) -> bool:
    """Return whether two numbers are equal, apart from the noise of floats."""
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of a run about its items.

    Args:
        annotators: the names of its annotators.
        chooses: whether each prompt may have some of them only.
        is_session: whether it is of pytest: each repeat of a test makes a case of its own, and some tests are repeated
            less often than others, or run again after a failure.
        reduce: how often each prompt was asked, and how the repeats became one.
        thresholds: of measurements.
        ranges: of measurements.
    """

    annotators: frozenset[str]
    chooses: bool
    is_session: bool
    reduce: Reducer
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    ranges: Mapping[str, RecordedRange] = field(default_factory=dict)


def find_problems(record: ItemRecord, declared: Declarations) -> Iterator[str]:
    """Yield the problems of the record of an item."""
    if declared.is_session:
        repeats = {interaction.repeat for interaction in record.interactions} | _failed_repeats(record)
        declared = replace(declared, reduce=declared.reduce._replace(repeats=max(1, len(repeats))))
    yield from _of_answers(record, declared)
    if record.is_scored:
        yield from _of_repeats(record, declared)
        if not record.measurements:
            yield "it was not measured"
    yield from _of_values(record, declared)


def _of_answers(record: ItemRecord, declared: Declarations) -> Iterator[str]:
    is_scored, repeats = record.is_scored, declared.reduce.repeats
    failed = _failed_repeats(record)
    is_one_case = repeats == 1 or not declared.is_session
    by_repeat: dict[int, list[Interaction]] = {}
    for interaction in record.interactions:
        by_repeat.setdefault(interaction.repeat, []).append(interaction)
    for repeat, answered in by_repeat.items():
        which = f" in repeat {repeat + 1}" if repeats > 1 else ""
        if repeat >= repeats and not declared.is_session:
            yield f"it has answers of repeat {repeat + 1}, and the run has {repeats}"
            continue
        is_whole = is_scored and repeat not in failed
        if is_one_case:
            yield from (f"{problem}{which}" for problem in _of_prompts(record, answered, is_whole=is_whole))
        for interaction in answered if is_whole else ():
            yield from (f"{problem}{which}" for problem in _of_annotations(interaction, declared))
    if is_scored and len(by_repeat.keys() | failed) < repeats:
        yield "it has no answer" if repeats == 1 else "some of its repeats have no answer"


def _failed_repeats(record: ItemRecord) -> set[int]:
    return {failure.repeat for failure in record.failures if failure.repeat is not None}


def _of_prompts(record: ItemRecord, answered: Sequence[Interaction], *, is_whole: bool) -> Iterator[str]:
    prompts = record.test_item.prompts
    for number, prompt in enumerate(prompts, start=1):
        name = "its prompt" if len(prompts) == 1 else f"its prompt {number}"
        times, most = sum(interaction.prompt is prompt for interaction in answered), 1
        if not times:  # in lines of version 1 each answer has a prompt of its own
            times, most = sum(interaction.prompt == prompt for interaction in answered), prompts.count(prompt)
        if times > most:
            yield f"{name} was answered {times} times"
        elif not times and is_whole:
            yield f"{name} has no answer"
    if any(interaction.prompt not in prompts for interaction in answered):
        yield "it has an answer to a prompt that is not its own"
    if not all(interaction.response.completions for interaction in answered):
        yield "it has an answer without a completion"


def _of_annotations(interaction: Interaction, declared: Declarations) -> Iterator[str]:
    for each in interaction.response.completions:
        names = each.annotations.keys()
        for name in sorted(names - declared.annotators):
            yield f"it has the annotation '{name}', which the run does not declare"
        missing = () if declared.chooses else sorted(declared.annotators - names)
        for name in missing:
            yield f"the annotation '{name}' is missing"


def _of_repeats(record: ItemRecord, declared: Declarations) -> Iterator[str]:
    reduce = declared.reduce
    if reduce.repeats == 1:
        return
    times = Counter(failure.repeat for failure in record.failures)
    measured = len(record.repeat_measurements)
    if measured + len(times) != reduce.repeats or times.total() != len(times):
        yield f"{measured} of its repeats were measured and {times.total()} failed, of {reduce.repeats}"
        return
    try:
        values = reduced(record.repeat_measurements, reduce)
    except ModelGaugeError as error:
        yield f"its repeats cannot be reduced: {error.problem}"
        return
    yield from differences(record.measurements, values, f"by {reduce.name} of its repeats")


def _of_values(record: ItemRecord, declared: Declarations) -> Iterator[str]:
    for name, value in record.measurements.items():
        low, high = declared.ranges.get(name, (None, None))
        if (low is not None and value < low - _TOLERANCE) or (high is not None and value > high + _TOLERANCE):
            yield f"{name} is {value:g}, outside its range"
        elif name in record.binary and declared.reduce.repeats == 1 and value not in (0.0, 1.0):
            yield f"{name} is {value:g}, and was given as True or False"
    of_each: Sequence[Mapping[str, float]] = (record.measurements,)
    if record.is_scored and declared.reduce.repeats > 1:
        of_each = record.repeat_measurements
    for measurements in of_each:
        for name, threshold in declared.thresholds.items():
            recorded = measurements.get(f"{name}.{PASSED}")
            if (
                name in measurements
                and recorded is not None
                and has_passed(measurements, name) != threshold.is_reached(measurements[name])
            ):
                against = f"{measurements[name]:g}, its threshold {threshold.value:g}"
                yield f"{name}.{PASSED} is {recorded:g}, where {name} is {against}"


def differences(recorded: Mapping[str, Any], computed: Mapping[str, float], how: str) -> Iterator[str]:
    """Yield the measurements that differ, each described in words.

    Args:
        recorded: by name.
        computed: by name.
        how: they were computed: "by the test".
    """
    for name in {**recorded, **computed}:
        one, other = recorded.get(name), computed.get(name)
        if one is None or other is None:
            yield f"{name} is {_as_text(one)} in the record, and {_as_text(other)} {how}"
        elif not close(one, other):
            yield f"{name} is {one:.6g} in the record, and {other:.6g} {how}"


def _as_text(value: float | None) -> str:
    return "missing" if value is None else f"{value:.6g}"

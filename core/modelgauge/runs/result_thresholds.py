"""Thresholds of results, which say whether whole runs are good enough; those of single items are in a run's record."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

from modelgauge.config.options import is_number
from modelgauge.data.base import Frozen, Text, added_later
from modelgauge.data.estimates import Estimate
from modelgauge.data.records import TestRecord
from modelgauge.data.results import Threshold
from modelgauge.data.thresholds import PASSED
from modelgauge.errors import InvalidOptionError, UnknownNameError
from modelgauge.runs.conditions import check_within
from modelgauge.runs.group_means import group_means
from modelgauge.wording.did_you_mean import closest, known_names

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class ResultThreshold:
    """Threshold of a result: a minimum, or a maximum if lower is better.

    Args:
        test: of tests with this name or pattern, or of the mean over the group of this name; None for all tests.
        result: the name of the result.
        number: what it must reach; a value within 1e-9 of it does.
        is_optional: whether the test need not be among those that are run.
    """

    test: str | None
    result: str
    number: float
    is_optional: bool = False

    @classmethod
    def parse(cls, text: str) -> "ResultThreshold":
        """Read `RESULT=NUMBER` or `TEST:RESULT=NUMBER`.

        Raises:
            InvalidOptionError: the text has another form.
        """
        name, _, number = text.rpartition("=")
        test, _, result = name.rpartition(":")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if result.strip()[-1:] in ("", *"<>=!") or not abs(value) < float("inf"):
            raise InvalidOptionError(
                f"{text!r} is not a threshold.", fix="Write accuracy=0.8, or gsm8k:accuracy=0.8 for one test."
            )
        return cls(test.strip() or None, result.strip(), value)

    def applies_to(self, test: str) -> bool:
        """Return whether it applies to a test: to all tests, or by name or pattern."""
        return self.test is None or fnmatchcase(test, self.test)


class ThresholdTest(NamedTuple):
    """A test as thresholds see it.

    Args:
        uid: of the test.
        groups: those with which it was chosen.
        results: the names of all its results; None if they are known only after the run.
        declared: the names of results that it declares, with their range; None if that is unknown.
    """

    uid: str
    groups: Collection[str]
    results: Collection[str] | None = None
    declared: Mapping[str, tuple[float, float] | None] = MappingProxyType({})


def check_names(thresholds: Iterable[ResultThreshold], tests: Sequence[ThresholdTest]) -> None:
    """Refuse thresholds of what the tests are known not to have.

    Args:
        thresholds: what results must reach.
        tests: those that are run.

    Raises:
        UnknownNameError: a threshold is of a test that is not among them, or of a result that none of them has.
        InvalidOptionError: no value of a result could be on the other side of its threshold.
    """
    for threshold in thresholds:
        named = [test for test in tests if threshold.applies_to(test.uid) or threshold.test in test.groups]
        if not named and threshold.test is not None and not threshold.is_optional:
            known = dict.fromkeys(name for test in tests for name in (test.uid, *test.groups))
            raise UnknownNameError(
                f"There is no test '{threshold.test}' for the threshold of {threshold.result}.",
                fix=known_names(threshold.test, known, "The tests are"),
            )
        results = dict.fromkeys(name for test in named for name in test.results or ())
        if named and threshold.result not in results and all(test.results is not None for test in named):
            raise UnknownNameError(
                f"There is no result '{threshold.result}' for the threshold.",
                fix=known_names(threshold.result, results, "The results are"),
            )
        declared = {name: ends for test in named for name, ends in test.declared.items()}
        if named and all(test.results is None for test in named) and _misspelt(threshold.result, declared):
            raise UnknownNameError(
                f"There is no result '{threshold.result}' for the threshold.",
                fix=known_names(threshold.result, declared, "The declared results are"),
            )
        for test in named:
            ends = test.declared.get(threshold.result)
            check_within(threshold.number, threshold.result, ends, f"{threshold.result}={threshold.number:g}")


def _misspelt(name: str, declared: Collection[str]) -> bool:
    """Return whether a name is not a declared result, but nearly the same as one."""
    if name in declared:
        return False
    if name.endswith(f".{PASSED}") and name.removesuffix(f".{PASSED}") in declared:
        return True  # only measurements with a threshold have a share of passed items
    return any(
        _NUMBER.sub("", name) != _NUMBER.sub("", known) for known in closest(name, declared, cutoff=0.8)
    )


class ThresholdOutcome(Frozen):
    """Outcome of a threshold for a result of a run, or for the mean over a group.

    Args:
        test: the test, or the group.
        sut: what tables call the SUT.
        result: the name of the result.
        value: of the result, over the scored items; None if the run has none.
        threshold: what it was compared with.
        passed: whether it was reached, and would be whatever the other items would have scored.
        worst: the value if every item without a score were worst; None if there is none, or its worst is unknown.
    """

    test: Text
    sut: Text
    result: Text
    value: float | None
    threshold: Threshold
    passed: bool
    worst: float | None = added_later(None)

    @property
    def why(self) -> str:
        """The reason why it was not reached, in words."""
        number = f"{self.threshold.value:g}"
        if self.value is None:
            return f"there is no {self.result}, which must reach {number}"
        missed = f"{'below' if self.threshold.higher_is_better else 'above'} {number}"
        shown = f"{self.result} is {self.value:.4g}"
        if not self.threshold.is_reached(self.value):
            return f"{shown}, {missed}"
        with_others = f"{shown} over the scored items; with the others it may be"
        if self.worst is None:
            return f"{with_others} any value, since its range or their number is unknown"
        return f"{with_others} {self.worst:.4g}, {missed}"


def outcomes(records: Sequence[TestRecord], thresholds: Sequence[ResultThreshold]) -> list[ThresholdOutcome]:
    """Compare the results of runs with thresholds; a run without any result reaches none.

    An estimate reaches a threshold only if it would whatever failed and unfinished items would have scored. A threshold
    for all tests is not for those that have one of their own for the result.

    Raises:
        UnknownNameError: a threshold is of a test that was not run, or of a result that none of them has.
    """
    check_names(thresholds, [ThresholdTest(record.test_uid, record.groups) for record in records])
    return [outcome for threshold in thresholds for outcome in _outcomes(records, threshold, thresholds)]


def _outcomes(
    records: Sequence[TestRecord], threshold: ResultThreshold, every: Sequence[ResultThreshold]
) -> list[ThresholdOutcome]:
    own = [
        other for other in every if threshold.test is None and other.test and other.result == threshold.result
    ]
    named = [record for record in records if threshold.applies_to(record.test_uid)]
    others = [record for record in named if not any(other.applies_to(record.test_uid) for other in own)]
    members = [record for record in records if threshold.test in record.groups]
    measured = [
        ThresholdTest(record.test_uid, record.groups, _numbers(record)) for record in (*others, *members)
    ]
    if any(record.result for record in (*others, *members)):
        check_names([threshold], measured)
    return [*_of_runs(others, threshold), *_of_group(members, threshold)]


def _of_runs(records: Sequence[TestRecord], threshold: ResultThreshold) -> Iterator[ThresholdOutcome]:
    for record in records:
        found = _numbers(record).get(threshold.result)
        if found is not None or threshold.test is not None or not record.result:
            is_lower = (record.directions or {}).get(record.measurement_of(threshold.result)) == "lower"
            is_partial = _is_partial(record, found)
            yield _outcome(
                record.test_uid, record.sut_name, found, threshold, lower=is_lower, is_partial=is_partial
            )


def _of_group(records: Sequence[TestRecord], threshold: ResultThreshold) -> Iterator[ThresholdOutcome]:
    """Return the outcomes of the mean over a group, one for each SUT; runs without a mean have no value."""
    means = {
        mean.sut: mean
        for mean in group_means(records)
        if (mean.group, mean.result) == (threshold.test, threshold.result)
    }
    directions = {
        (record.directions or {}).get(record.measurement_of(threshold.result))
        for record in records
        if threshold.result in record.result
    }
    for sut in dict.fromkeys(record.sut_name for record in records):
        found = means[sut].mean if sut in means else None
        own = [record for record in records if record.sut_name == sut]
        is_partial = any(_is_partial(record, record.result.get(threshold.result)) for record in own)
        is_lower = directions == {"lower"}
        yield _outcome(str(threshold.test), sut, found, threshold, lower=is_lower, is_partial=is_partial)


def _outcome(
    test: str,
    sut: str,
    found: Estimate | float | None,
    asked: ResultThreshold,
    *,
    lower: bool,
    is_partial: bool,
) -> ThresholdOutcome:
    threshold = Threshold(value=asked.number, higher_is_better=not lower)
    value = None if found is None else float(found)
    bounds = found.bounds if isinstance(found, Estimate) and is_partial else None
    worst = None if bounds is None else (max if lower else min)(bounds)
    ends = [value, worst] if is_partial else [value]
    passed = all(end is not None and threshold.is_reached(end) for end in ends)
    return ThresholdOutcome(
        test=test,
        sut=sut,
        result=asked.result,
        value=value,
        threshold=threshold,
        passed=passed,
        worst=worst,
    )


def _is_partial(record: TestRecord, found: object) -> bool:
    """Return whether items or repeats without a score could change a result of a run."""
    if not isinstance(found, Estimate):  # its author decided what failed items count
        return False
    counts = record.counts
    lacks_items = counts.failed > 0 and found.n < counts.items
    return lacks_items or counts.failed_repeats > 0 or record.ended_early


def _numbers(record: TestRecord) -> dict[str, Estimate | float]:
    """Return the results of a run that are numbers or estimates."""
    return {
        name: value
        for name, value in record.result.items()
        if isinstance(value, Estimate) or is_number(value)
    }

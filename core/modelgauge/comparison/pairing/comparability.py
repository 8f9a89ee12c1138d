"""Differences between two runs of a test, and those that make their numbers incomparable unless allowed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from modelgauge.comparison.options import ALLOWED
from modelgauge.comparison.result import RunDifference
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.errors import RecordError
from modelgauge.wording.phrases import beginning

_COMPARED_ELSEWHERE = ("dataset", "metrics", "given", "link")  # arguments of a test
_OF_THRESHOLDS = ("threshold",)  # arguments of a metric
_LONGEST, _DIGEST = 30, 12  # characters of a value, and of a digest
_MOST_LISTED = 8

Facts = Mapping[str, Any]


def differences(
    test: str, candidate: str, baseline: TestRecord, compared: TestRecord
) -> Iterator[RunDifference]:
    """List the differences between two runs, for facts that both records contain.

    Args:
        test: what the comparison calls the test.
        candidate: the label of the candidate.
        baseline: the record of the baseline's run.
        compared: the record of the candidate's run.
    """
    for kind, facts in _FACTS.items():
        before, after = facts(baseline, compared), facts(compared, baseline)
        for name in dict.fromkeys((*before, *after)):
            if before.get(name) != after.get(name):
                yield RunDifference(
                    test=test,
                    candidate=candidate,
                    kind=kind,
                    name=name,
                    baseline=before.get(name),
                    candidate_value=after.get(name),
                )


def test_name(record: TestRecord) -> str:
    """Return the name that comparable runs give their test; for given answers, the data set or what judged them."""
    if record.sut_uid != GIVEN:
        return record.test_uid
    if record.dataset is not None:
        return record.dataset.name
    return "evaluate" if record.test_initialization.get("class_name", "").endswith(":GivenTest") else "pytest"


def is_of_same_data(record: TestRecord, other: TestRecord) -> bool:
    """Return whether two runs used the same version of a data set."""
    return (
        record.dataset is not None
        and other.dataset is not None
        and record.dataset.digest == other.dataset.digest
    )


def _test(record: TestRecord, other: TestRecord) -> Facts:
    if record.sut_uid == GIVEN:
        return {"class": record.test_initialization.get("class_name")}
    is_same_data = record.dataset is not None and _data(record, other) == _data(other, record)
    name = {} if is_same_data else {"test": record.test_uid}  # the uid is that of a file, say
    return {**name, **_construction(record.test_initialization, _COMPARED_ELSEWHERE)}


def _data(record: TestRecord, _: TestRecord) -> Facts:
    dataset = {} if record.dataset is None else {"data set": record.dataset.digest}
    return {**record.dependency_versions, **dataset}


def _judges(record: TestRecord, other: TestRecord) -> Facts:
    """Return the initializations of the annotators of both runs, and of their SUTs, without thresholds."""
    made = {
        name: _construction(annotator, _OF_THRESHOLDS)
        for name, annotator in record.annotators.items()
        if name in other.annotators
    }
    for name, asked in (record.judges or {}).items():
        known = (other.judges or {}).get(name, {})
        made |= {f"{name} / {key}": _construction(sut) for key, sut in asked.items() if key in known}
    return {f"{name}, {part}": value for name, parts in made.items() for part, value in parts.items()}


def _sut(record: TestRecord, other: TestRecord) -> Facts:
    """Return the initialization of the SUT. For two different SUTs, return only the arguments: labels tell them
    apart.
    """
    if record.sut_uid == GIVEN:
        return {}
    is_same = record.sut_uid == other.sut_uid
    return _construction(record.sut_initialization, () if is_same else ("class", "cache_version"))


def _options(record: TestRecord, other: TestRecord) -> Facts:
    is_said = None not in (record.directions, other.directions)  # records of older versions say none
    return {**(record.sut_options if is_said else {}), "repeats": record.repeats}


_FACTS: dict[str, Callable[[TestRecord, TestRecord], Facts]] = {
    "test": _test,
    "data": _data,
    "reduction": lambda record, _: {"reduction": record.reduction},
    "thresholds": lambda record, _: {name: threshold.value for name, threshold in record.thresholds.items()},
    "judge": _judges,
    "sut": _sut,
    "options": _options,
    "sample": lambda record, _: {"sample": record.sample and record.sample.model_dump()},
    "plugins": lambda record, other: {
        name: plugin for name, plugin in record.plugins.items() if name in other.plugins
    },
    "hyperparameters": lambda record, _: record.hyperparameters,
}
"""For each kind of difference what a record says, by name; the record that it is compared with comes second."""


def _construction(initialization: Facts, ignored: Iterable[str] = ()) -> dict[str, Any]:
    """Return the initialization of an object. Arguments without an exact JSON form cannot be compared."""
    parts = {
        "class": initialization.get("class_name"),
        "cache_version": initialization.get("cache_version"),
        **initialization.get("arguments", {}),
        **initialization.get("settings", {}),
    }
    left_out = {*ignored, *initialization.get("opaque", ())}
    return {name: part for name, part in parts.items() if name not in left_out}


def check_comparable(found: Sequence[RunDifference], allowed: Sequence[str]) -> None:
    """Raise an error if runs differ in a way that makes their numbers incomparable, unless that difference is allowed.

    Raises:
        RecordError: they differ; the message lists the differences.
    """
    refused = [
        difference for difference in found if difference.kind in ALLOWED and difference.kind not in allowed
    ]
    if not refused:
        return
    lines = list(
        dict.fromkeys(
            f"{difference.kind}: {difference.test}, {_change(difference)}" for difference in refused
        )
    )
    more = f" (and {len(lines) - _MOST_LISTED:,} more)" if len(lines) > _MOST_LISTED else ""
    kinds = [kind for kind in ALLOWED if any(difference.kind == kind for difference in refused)]
    raise RecordError(
        f"The runs differ in what makes numbers comparable: {'; '.join(lines[:_MOST_LISTED])}{more}.",
        fix=f"Measure both alike, or compare all the same: {' '.join(f'--allow {kind}' for kind in kinds)} "
        f"(in Python allow={kinds!r}).",
    )


def _change(difference: RunDifference) -> str:
    before, after = (
        "none"
        if value is None
        else str(value)[:_DIGEST]
        if difference.kind == "data"
        else beginning(str(value), _LONGEST)
        for value in (difference.baseline, difference.candidate_value)
    )
    fields = f" (another {', '.join(difference.fields)})" if difference.fields else ""
    return f"{difference.name} {before} → {after}{fields}"

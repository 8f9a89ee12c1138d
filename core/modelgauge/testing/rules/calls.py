"""The rule that asks a SUT or an annotator for real; held only where that is allowed: it may cost money."""

from collections.abc import Iterator
from typing import Any

from modelgauge.data.records import TestItemRecord, TestRecord
from modelgauge.data.results import CallCounts
from modelgauge.testing.calling import ask_twice
from modelgauge.testing.report import Status
from modelgauge.testing.rule import NotApplicableError, Note, problem, remark, rule
from modelgauge.testing.rules.requests import cacheable, deterministic, requests_made, responses
from modelgauge.testing.subjects import CallableSubject

_FIRST = (requests_made, cacheable, deterministic, responses)


@rule("calls", "A real answer comes through, is kept, and looks the same when it comes from the cache.")
def calls(subject: CallableSubject) -> Iterator[Note]:
    if not subject.call:
        raise NotApplicableError("it may cost money; --call allows it")
    made = subject.sound
    broken = [
        one.id for one in _FIRST if any(found.status is Status.problem for found in one.findings(subject))
    ]
    if broken:
        raise NotApplicableError(f"not worth money before these are mended: {', '.join(broken)}")
    first, second = ask_twice(subject)
    failed = first.test_item_exceptions or second.test_item_exceptions
    if failed:
        yield problem(
            f"It cannot answer: {failed[0].error_type}: {failed[0].message}",
            fix="Mend what raises; `modelgauge run-sut` and `run-annotator` show each step.",
        )
    elif first.failure is not None:
        yield problem(f"It cannot be asked: {first.failure.message}", fix="Mend what raises.")
    else:
        yield from _compared(subject, made, first, second)


def _compared(subject: CallableSubject, made: Any, first: TestRecord, second: TestRecord) -> Iterator[Note]:
    (fresh,), (kept,) = first.test_item_records, second.test_item_records
    if second.counts.unkept:
        yield remark(" ".join(second.notes))  # where it is the request that holds a secret, see secrets
    elif made.why_uncacheable() is None and _counts(subject, second).paid:
        yield problem("The same question was paid for twice.", fix="See cacheable and deterministic.")
    elif fresh.interactions != kept.interactions and made.why_uncacheable() is None:
        yield problem(
            "The answer looks different when it comes from the cache.",
            fix="Let translate_response depend on request and response alone.",
        )
    yield remark(f"It said {_said(subject, fresh)!r:.80}.")


def _counts(subject: CallableSubject, record: TestRecord) -> CallCounts:
    return record.counts.sut_calls if subject.kind == "sut" else record.counts.annotator_calls


def _said(subject: CallableSubject, record: TestItemRecord) -> object:
    completion = record.interactions[0].response.completions[0]
    return completion.completion.text if subject.kind == "sut" else completion.annotations.get("annotation")


RULES = (calls,)

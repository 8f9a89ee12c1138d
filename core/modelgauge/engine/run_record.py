"""The record of a run, made after its last call."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from modelgauge.config.run_options import RunOptions
from modelgauge.data.records import RunFailure, TestRecord, record_from_json
from modelgauge.data.results import ConcurrencyChange, Counts, Spent
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.limits import AdaptiveLimiter
from modelgauge.interfaces.test import PromptResponseTest

Changes = Mapping[str, tuple[ConcurrencyChange, ...]]


def record_of(
    facts: Mapping[str, Any],
    test: PromptResponseTest,
    options: RunOptions,
    *,
    cancelled: bool,
    counts: Counts,
    result: dict[str, Any],
    seconds: float,
    spent: Spent,
    notes: Iterable[str],
    failure: RunFailure | None,
    concurrency: Changes,
) -> TestRecord:
    """The record of a run, without secrets that an error may have named.

    `facts` are its identity, and what is known of its items.
    """
    record = TestRecord(
        **facts,
        hyperparameters=dict(options.hyperparameters),
        identifier=options.identifier,
        thresholds=dict(test.thresholds),
        cancelled=cancelled,
        counts=counts,
        result=result,
        seconds=round(seconds, 3),
        spent=spent,
        notes=tuple(notes),
        failure=failure,
        concurrency=dict(concurrency),
        repeats=options.repeats,
        reduction=options.reduction,
    )
    written = record.model_dump_json()
    clean = options.redactor.redact_json_text(written)  # what the caller gets holds no secret either
    return record if clean == written else record_from_json(json.loads(clean), "The record")


def changes_of(targets: Iterable[Target], earlier: Changes, before: float) -> Changes:
    """How the limits of calls at once changed, in all sessions of a run.

    Args:
        targets: SUT and annotators of this session.
        earlier: the changes of earlier sessions.
        before: the seconds that these took.
    """
    changes = dict(earlier)
    limiters = {target.owner.uid: target.admission.limiter for target in targets}
    for uid, limiter in limiters.items():
        if isinstance(limiter, AdaptiveLimiter) and limiter.changes:
            later = (one.replaced(seconds=round(before + one.seconds, 3)) for one in limiter.changes)
            changes[uid] = (*changes.get(uid, ()), *later)
    return changes

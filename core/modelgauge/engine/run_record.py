"""What a run says of itself: the manifest before its first call, the record after its last."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from modelgauge.config.options import RunOptions
from modelgauge.data.records import SCHEMA_VERSION, RunFailure, TestRecord, record_from_json
from modelgauge.data.results import ConcurrencyChange, Counts, Spent
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.limits import AdaptiveLimiter
from modelgauge.engine.work import Work
from modelgauge.interfaces.test import PromptResponseTest

Changes = Mapping[str, tuple[ConcurrencyChange, ...]]


def identity_of(ids: Mapping[str, str], work: Work, began: datetime) -> dict[str, Any]:
    """What manifest and record have in common.

    Args:
        ids: of run and invocation.
        work: what is done.
        began: when the run began.
    """
    test, respondent = work.test, work.respondent
    return {
        **ids,
        "run_timestamp": began.isoformat(timespec="seconds"),
        "test_uid": test.uid,
        "test_initialization": _initialization(test),
        "sut_uid": respondent.uid,
        "sut_initialization": _initialization(respondent),
        "dependency_versions": dict(work.dependency_versions),
        "dataset": None if test.dataset is None else test.dataset.model_dump(mode="json"),
    }


def manifest_of(
    identity: Mapping[str, Any], work: Work, *, options: RunOptions, surroundings: Mapping[str, Any]
) -> dict[str, Any]:
    """The manifest of a run that begins.

    Args:
        identity: see `identity_of`.
        work: what is done.
        options: of the run.
        surroundings: what is told of the process.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        **identity,
        **made_of(work),
        "options": options.recorded(),
        **surroundings,
    }


def made_of(work: Work) -> dict[str, Any]:
    """What the annotators of a work and the SUTs that they ask were made of."""
    return {
        "annotators": {name: _initialization(one) for name, one in work.annotators.items()},
        "judges": {
            name: {key: _initialization(judge) for key, judge in judges.items()}
            for name, judges in work.judge_suts.items()
            if judges
        },
    }


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
        **{**facts, "dataset": test.dataset},
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


def _initialization(owner: Any) -> dict[str, Any]:
    made: dict[str, Any] = owner.initialization.model_dump(mode="json")
    return made

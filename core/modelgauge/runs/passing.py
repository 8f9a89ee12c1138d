"""The decision whether a run passed, by the share of items that passed: from its results, else from its items.

Thresholds of results (`--threshold`) are in `result_thresholds.py`.
"""

import math

from modelgauge.data.estimates import Estimate
from modelgauge.data.records import TestRecord
from modelgauge.data.thresholds import PASSED, judged
from modelgauge.wording.figures import figure


def share_that_passed(record: TestRecord, name: str | None = None) -> Estimate | None:
    """Return the share of the scored items that passed a threshold, or all thresholds; None if unknown.

    Args:
        record: of a run.
        name: the measurement with the threshold; None for all.
    """
    key = PASSED if name is None else f"{name}.{PASSED}"
    found = next(
        (value for other, value in record.result.items() if record.measurement_of(other) == key), None
    )
    return found if record.thresholds and isinstance(found, Estimate) else None


def describe_passed(record: TestRecord, name: str | None = None) -> str | None:
    """Say how many of the scored items passed: `3 of 4`. Of items with repeats, a part can have passed.

    Args:
        record: of a run.
        name: the measurement with the threshold; None for all.
    """
    share = share_that_passed(record, name)
    return None if share is None else _share_text(share)


def have_all_passed(record: TestRecord) -> bool:
    """Return whether all items that have thresholds reach them; thresholds may differ between items."""
    named = {record.measurement_of(name): value for name, value in record.result.items()}
    shares = [value for name, value in named.items() if name.endswith(f".{PASSED}")]
    return all(share.value >= 1 for share in shares if isinstance(share, Estimate))


def why_not_passed(record: TestRecord) -> str | None:
    """Say why a run with thresholds did not pass; None if it did, or has none.

    Items that could not be scored are errors, which are counted elsewhere; but where nothing was scored,
    nothing passed.
    """
    if not record.thresholds:
        return None
    if not record.counts.scored:
        return "nothing was scored, so nothing passed"
    share = share_that_passed(record) or _share_of_items(record)
    if share is None:
        return "nothing says whether its items passed all thresholds"
    if share.value < 1:
        return f"{_share_text(share)} items passed all thresholds"
    for name in record.thresholds:  # of failed items it may be known that they are below one of several
        found = share_that_passed(record, name)
        if found is not None and found.n > share.n and found.value < 1:
            return f"{_share_text(found)} items passed the threshold of {name}"
    return None


def _share_of_items(record: TestRecord) -> Estimate | None:
    """Read the share that passed from the items: their author's aggregation may leave it out."""
    passed = [
        {**judged(record.thresholds, item.measurements), **item.measurements}[PASSED]
        for item in record.iter_items()
        if item.is_scored
    ]
    return Estimate(math.fsum(passed) / len(passed), len(passed)) if passed else None


def _share_text(share: Estimate) -> str:
    return f"{figure(round(share.value * share.n, 6))} of {share.n:,}"

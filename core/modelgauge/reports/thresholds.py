"""How many items of a run passed the thresholds of its test, from the record's results, else from its items."""

import math

from modelgauge.data.estimates import Estimate
from modelgauge.data.item_records import TestItemRecord
from modelgauge.data.records import TestRecord
from modelgauge.data.results import PASSED, judged
from modelgauge.reports.layout import Style
from modelgauge.wording.figures import figure, limit


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


def passed_of(record: TestRecord, name: str | None = None) -> str | None:
    """How many of the scored items passed, in words: `3 of 4`. Of items with repeats, a part can have passed.

    Args:
        record: of a run.
        name: the measurement with the threshold; None for all.
    """
    share = share_that_passed(record, name)
    return None if share is None else _share_text(share)


def label_of(record: TestRecord, name: str, style: Style) -> str:
    """The name of a result, with its threshold: `Faithfulness >= 0.5`."""
    threshold, label = record.thresholds.get(record.measurement_of(name)), name_of(record, name)
    if threshold is None:
        return label
    return f"{label} {limit(threshold.value, higher_is_better=threshold.higher_is_better, symbols=style.symbols)}"


def name_of(record: TestRecord, name: str) -> str:
    """Return the name of a result, with its reduction if it is not the mean of repeats: `accuracy, pass@2 of 5`."""
    plain = record.measurement_of(name)
    return name if plain == name else f"{plain}, {record.reduction} of {record.repeats}"


def have_all_passed(record: TestRecord) -> bool:
    """Whether all items that have thresholds reach them; thresholds may differ between items."""
    named = {record.measurement_of(name): value for name, value in record.result.items()}
    shares = [value for name, value in named.items() if name.endswith(f".{PASSED}")]
    return all(share.value >= 1 for share in shares if isinstance(share, Estimate))


def why_not_passed(record: TestRecord) -> str | None:
    """Why a run with thresholds did not pass, in a sentence; None if it did, or has none.

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
    """The share that passed all thresholds, read from the items: their author's aggregation may leave it out."""
    passed = [
        {**judged(record.thresholds, item.measurements), **item.measurements}[PASSED]
        for item in record.iter_items()
        if isinstance(item, TestItemRecord)
    ]
    return Estimate(math.fsum(passed) / len(passed), len(passed)) if passed else None


def _share_text(share: Estimate) -> str:
    return f"{figure(round(share.value * share.n, 6))} of {share.n:,}"

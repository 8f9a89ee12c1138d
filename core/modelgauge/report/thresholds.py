"""How many items of a run passed the thresholds of its test: read from the record's results, else from its items."""

import math

from modelgauge.data.estimates import Estimate
from modelgauge.data.records import ItemRecord, TestItemRecord, TestRecord
from modelgauge.data.results import PASSED
from modelgauge.data.thresholds import judged
from modelgauge.report.figures import figure
from modelgauge.report.page import Style


def share_that_passed(record: TestRecord, name: str | None = None) -> Estimate | None:
    """The share of the scored items that passed one threshold, or all of them; None where that is not known.

    Args:
        record: of a run.
        name: the measurement with the threshold; None for all.
    """
    found = record.result.get(PASSED if name is None else f"{name}.{PASSED}")
    return found if record.thresholds and isinstance(found, Estimate) else None


def passed_of(record: TestRecord, name: str | None = None) -> str | None:
    """The same for people: `3 of 4`. Items that were asked several times may have passed in part.

    Of all thresholds the share is one of all items: those that could not be scored have not passed.

    Args:
        record: of a run.
        name: as above.
    """
    share = share_that_passed(record, name)
    if share is None:
        return None
    items = share.n if name is not None else max(share.n, record.counts.scored + record.counts.failed)
    return _told(share, items)


def label_of(record: TestRecord, name: str, style: Style) -> str:
    """The name of a measurement, with its threshold: `Faithfulness >= 0.5`."""
    threshold = record.thresholds.get(name)
    if threshold is None:
        return name
    at_least, at_most = ("≥", "≤") if style.symbols else (">=", "<=")
    return f"{name} {at_least if threshold.higher_is_better else at_most} {figure(threshold.value)}"


def failing(item: ItemRecord) -> tuple[str, ...]:
    """The measurements of an item that did not reach their thresholds, in one of its repeats at least."""
    held = item.measurements
    return tuple([name for name in held if held.get(f"{name}.{PASSED}", 1.0) < 1])


def have_all_passed(record: TestRecord) -> bool:
    """Whether no item that was measured by thresholds is below one; these may differ from item to item."""
    shares = [value for name, value in record.result.items() if name.endswith(f".{PASSED}")]
    return all(one.value >= 1 for one in shares if isinstance(one, Estimate))


def why_not_passed(record: TestRecord) -> str | None:
    """Why a run with thresholds did not pass, in a sentence; None where it did, or has none.

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
    return None if share.value >= 1 else f"{_told(share, share.n)} items passed all thresholds"


def _share_of_items(record: TestRecord) -> Estimate | None:
    """The share that passed all thresholds, read from the items: their author's aggregation may leave it out."""
    passed = [
        {**judged(record.thresholds, item.measurements), **item.measurements}[PASSED]
        for item in record.iter_items()
        if isinstance(item, TestItemRecord)
    ]
    return Estimate(math.fsum(passed) / len(passed), len(passed)) if passed else None


def _told(share: Estimate, items: int) -> str:
    return f"{figure(round(share.value * share.n, 6))} of {items:,}"

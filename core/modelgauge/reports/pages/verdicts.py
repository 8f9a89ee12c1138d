"""The first screen of a run with thresholds: how many of its items passed, and which metrics failed most."""

from collections.abc import Iterator
from itertools import islice

from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import Block, Charts, Portion, Portions, Sentences, Text, joined
from modelgauge.reports.pages.item_columns import ItemVerdicts, metric_verdicts
from modelgauge.reports.pages.item_data import ItemTable
from modelgauge.reports.pages.run_parts import address
from modelgauge.wording.phrases import counted

_MOST_METRICS = 6


def verdicts_on(table: ItemTable) -> ItemVerdicts | None:
    """Return the verdicts on all items; None where no item has one.

    Args:
        table: the items.
    """
    return ItemVerdicts.of(table.measured[PASSED]) if PASSED in table.measured else None


def verdict_blocks(items: str, table: ItemTable, verdicts: ItemVerdicts) -> Iterator[Block]:
    """Yield a bar of the verdicts, and the metrics that failed most; each number leads to its items.

    Args:
        items: the address of the items, see `address`.
        table: the items.
        verdicts: on them.
    """
    links = ("yes", ""), ("no", "missed"), ("none", "not-measured")
    parts = [(portion, *link) for portion, link in zip(verdict_portions(*verdicts), links, strict=True)]
    shown = [part for part in parts if part[0].count]
    yield Charts([(counted(table.number, "item"), Portions([portion for portion, *_ in shown]))])
    texts = [Text(portion.words, address(items, **{PASSED: value}), look) for portion, value, look in shown]
    yield Sentences([joined(" · ", texts)])
    most = [
        Text(
            f"{name} {found.failed:,} of {found.passed + found.failed:,}",
            address(items, **{f"{name}.{PASSED}": "no"}),
        )
        for name, found in islice(metric_verdicts(table.measured).items(), _MOST_METRICS)
        if found.failed
    ]
    if most:
        yield Sentences([("Failed most often: ", *joined(" · ", most))])


def verdict_portions(passed: float, failed: float, unjudged: int) -> tuple[Portion, Portion, Portion]:
    """Return the verdicts on items as parts of a bar.

    Args:
        passed: how many items passed; of items with repeats, a part can have passed.
        failed: how many failed.
        unjudged: how many have no verdict.
    """
    return (
        Portion(passed, "passed", "passed"),
        Portion(failed, "failed", "failed"),
        Portion(unjudged, "not judged", "unjudged"),
    )

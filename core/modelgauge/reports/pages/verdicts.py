"""The first screen of a run with thresholds: how many of its items passed, and which metrics failed most."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import Block, Charts, Portion, Portions, Sentences, Text, joined
from modelgauge.reports.pages.item_data import ItemTable
from modelgauge.reports.pages.run_parts import address
from modelgauge.wording.phrases import counted

_MOST_METRICS = 6


class ItemVerdicts(NamedTuple):
    """The verdicts on the items of a run.

    Args:
        passed: how many passed all their thresholds.
        failed: how many did not, in one of their repeats at least.
        unjudged: how many have no verdict: something failed before.
    """

    passed: int
    failed: int
    unjudged: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "ItemVerdicts":
        """Count the verdicts.

        Args:
            values: the measurement `passed` or `NAME.passed` of each item, NaN where there is none.
        """
        passed, unjudged = sum(value >= 1 for value in values), sum(map(math.isnan, values))
        return cls(passed, len(values) - passed - unjudged, unjudged)


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
    parts = [
        (Portion(verdicts.passed, "passed", "passed"), "yes", ""),
        (Portion(verdicts.failed, "failed", "failed"), "no", "missed"),
        (Portion(verdicts.unjudged, "not judged", "unjudged"), "none", "not-measured"),
    ]
    shown = [part for part in parts if part[0].count]
    yield Charts([(counted(table.number, "item"), Portions([portion for portion, *_ in shown]))])
    texts = [Text(portion.words, address(items, **{PASSED: value}), look) for portion, value, look in shown]
    yield Sentences([joined(" · ", texts)])
    if most := _failed_most(items, table):
        yield Sentences([("Failed most often: ", *most)])


def _failed_most(items: str, table: ItemTable) -> tuple[str | Text, ...]:
    """Return the metrics that failed at all, the most frequent first, with dots between them."""
    end = f".{PASSED}"
    every = {name: ItemVerdicts.of(values) for name, values in table.measured.items() if name.endswith(end)}
    most = sorted(every.items(), key=lambda pair: -pair[1].failed)[:_MOST_METRICS]
    texts = [
        Text(
            f"{name.removesuffix(end)} {found.failed:,} of {found.passed + found.failed:,}",
            address(items, **{name: "no"}),
        )
        for name, found in most
        if found.failed
    ]
    return tuple(piece for text in texts for piece in (" · ", text))[1:]

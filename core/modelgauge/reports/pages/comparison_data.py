"""The data of compared items as a page has them: which items of two runs are a pair, and their values.

The items themselves stand in the page once, with their runs.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import Comparison
from modelgauge.reports.pages.columns import packed
from modelgauge.runs.recorded_run import RecordedRun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SIGNS = {"higher": 1, "lower": -1, None: 0}


def comparison_blocks(comparison: Comparison, runs: Sequence[RecordedRun]) -> Iterator[tuple[str, str]]:
    """For each comparison whose runs are on the page a named block: base64 of gzipped JSON for `compared_items.js`.

    Args:
        comparison: with its items.
        runs: all of the page, in their order.
    """
    numbers = {id(run): number for number, run in enumerate(runs)}
    for place, (row, pair) in enumerate(zip(comparison.comparisons, comparison.paired, strict=False)):
        of_test = {
            id(other): other
            for other in (pair, *comparison.paired)
            if other.test == pair.test and {id(other.before.run), id(other.after.run)} <= numbers.keys()
        }
        if id(pair) in of_test:
            data = {
                "measurement": row.measurement,
                "sign": _SIGNS[row.direction],
                "sides": list(_sides([*of_test.values()], comparison.baseline.label, numbers)),
                "before": _values(pair.before.values.get(row.measurement), len(pair.before.places)),
                "after": _values(pair.after.values.get(row.measurement), len(pair.before.places)),
            }
            yield f"compare-{place}", packed(data)


def _sides(pairs: Sequence[PairedItems], baseline: str, numbers: dict[int, int]) -> Iterator[dict[str, Any]]:
    """The baseline, the candidate and the other candidates: for each pair of items the place in their runs, or -1."""
    items = pairs[0].before.places.tolist()
    yield {"label": baseline, "run": str(numbers[id(pairs[0].before.run)]), "places": items}
    for pair in pairs:
        own = dict(zip(pair.before.places.tolist(), pair.after.places.tolist(), strict=True))
        run = str(numbers[id(pair.after.run)])
        yield {"label": pair.candidate, "run": run, "places": [own.get(item, -1) for item in items]}


def _values(values: "NDArray[np.float64] | None", number: int) -> list[float | None]:
    """A value for each item; None if it has none."""
    if values is None:
        return [None] * number
    return [None if math.isnan(value) else value for value in values.tolist()]

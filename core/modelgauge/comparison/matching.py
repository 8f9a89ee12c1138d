"""Which items of two runs are the same item: the key by which they are paired, and the pairs."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.comparison.item_columns import ABSENT
from modelgauge.comparison.side import Side
from modelgauge.errors import RecordError

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEYS = ("id", "source", "name", "input")
"""What items are paired by: the first of these that pairs any, and is unique on both sides."""


class Pairing(NamedTuple):
    """Which items of two runs are paired.

    Args:
        matched_by: the key.
        baseline: (n,) the places of the baseline's items, in the order of its test.
        candidate: (n,) the places of the candidate's.
    """

    matched_by: str
    baseline: "NDArray[np.int64]"
    candidate: "NDArray[np.int64]"


def pairing(baseline: Side, candidate: Side, match: str | None = None) -> Pairing:
    """Pair the items of two runs.

    Args:
        baseline: the items of the run that is compared with.
        candidate: those of the run that is compared.
        match: the key, one of `KEYS` or the field of the items' contexts that the sides were read with; None for the
            first of `KEYS` that pairs any and is unique on both sides.

    Raises:
        RecordError: no items are paired; or several items of a run share the key that was asked for.
    """
    for name in KEYS if match is None else (match,):
        keys = [side.keys(name if name in KEYS else "field") for side in (baseline, candidate)]
        if any(_repeated(one) for one in keys):
            continue
        pairs = _joined(*keys)
        if len(pairs[0]):
            return Pairing(name, *pairs)
    raise RecordError("No item is in both runs.", fix="Compare runs of one test on the same data.")


def _joined(
    baseline: "NDArray[np.int64]", candidate: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """The places of equal keys, in the baseline's order."""
    common, first, second = np.intersect1d(baseline, candidate, return_indices=True)
    held = common != ABSENT
    first, second = first[held], second[held]
    order = np.argsort(first)
    return first[order], second[order]


def _repeated(keys: "NDArray[np.int64]") -> bool:
    held = keys[keys != ABSENT]
    return len(np.unique(held)) < len(held)

"""Pairs: one measurement of two systems on the same items, joined by item id, and the checks of such values.

What is computed from pairs lives in `paired`, `discordance`, `distribution_free`, `equivalence` and `missing_items`.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.intervals import joined_clusters
from modelgauge.stats.keys import Key, key_function
from modelgauge.stats.measured import MeasuredItems
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from modelgauge.stats.intervals import Labels


class Pairs(NamedTuple):
    """One measurement of two systems, joined by item id, in the baseline's order.

    Args:
        ids: (n,) the items that both systems were scored on.
        baseline: (n,) float64, the baseline's values.
        candidate: (n,) float64, the candidate's values.
        clusters: (n,) labels of what the items share (`MeasuredItems.shared`, and the cluster key where one was
            given); None if every item is its own cluster.
        only_baseline: ids that only the baseline was scored on; they are not compared.
        only_candidate: ids that only the candidate was scored on; they are not compared.
    """

    ids: tuple[str | None, ...]
    baseline: "NDArray[np.float64]"
    candidate: "NDArray[np.float64]"
    clusters: tuple[Hashable, ...] | None
    only_baseline: tuple[str | None, ...]
    only_candidate: tuple[str | None, ...]


def pairs_of(
    baseline: MeasuredItems, candidate: MeasuredItems, name: str, *, cluster: Key | None = None
) -> Pairs:
    """Join one measurement of two runs of the same test by item id.

    Items that one of them lacks (because they failed there, or have no such measurement) are named, not
    compared.

    Args:
        baseline: the items of the system to compare with.
        candidate: the items of the system that is compared.
        name: of the measurement.
        cluster: a key of the context or a function of the item, taken from the baseline's items.

    Raises:
        UnknownNameError: a run does not have the measurement.
        InvalidDataError: an item id occurs twice in a run.
    """
    before, after = _by_id(baseline, name), _by_id(candidate, name)
    ids = tuple(item_id for item_id in before if item_id in after)
    held = baseline.having(name)
    clusters: tuple[Hashable, ...] | None = None
    if cluster is not None:
        key = key_function(cluster)
        clusters = tuple([key(item) for item in held if item.test_item.id in after])
    if held.shared is not None:
        shared = [label for item, label in zip(held, held.shared, strict=True) if item.test_item.id in after]
        joined = joined_clusters(shared, clusters)
        clusters = None if joined is None else tuple(joined.tolist())
    return Pairs(
        ids,
        np.array([before[item_id] for item_id in ids], dtype=np.float64),
        np.array([after[item_id] for item_id in ids], dtype=np.float64),
        clusters,
        tuple(item_id for item_id in before if item_id not in after),
        tuple(item_id for item_id in after if item_id not in before),
    )


def aligned(
    baseline: "ArrayLike",
    candidate: "ArrayLike",
    clusters: "Labels | None" = None,
    *,
    gaps: bool = False,
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Return two systems' values of the same items as arrays, (n,) float64 each, n >= 1.

    Args:
        baseline: (n,) finite numbers.
        candidate: (n,) finite numbers.
        clusters: (n,) labels, if there are any.
        gaps: whether NaN may stand for a missing value.

    Raises:
        InvalidDataError: the shapes differ, there are no values, or some value or difference is not finite.
    """
    before, after = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    lengths = {before.shape, after.shape, before.shape if clusters is None else (len(clusters),)}
    if len(lengths) != 1 or before.ndim != 1 or not len(before):
        raise InvalidDataError(
            f"Values of shapes {before.shape} and {after.shape} are not pairs"
            + ("." if clusters is None else f" with {counted(len(clusters), 'cluster label')}."),
            fix="Give one value of each system for each item, in the same order; `pairs_of` joins two runs.",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        differences = after - before
    if not (np.isfinite(differences) | (gaps & (np.isnan(before) | np.isnan(after)))).all():
        raise InvalidDataError(
            "There are values, or differences of values, that are not finite.",
            fix="Leave out items without a value, and measure huge values in a larger unit.",
        )
    return before, after


def _by_id(items: MeasuredItems, name: str) -> dict[str | None, float]:
    having = items.having(name)
    values = dict(zip((item.test_item.id for item in having), having.column(name).tolist(), strict=True))
    if len(values) < len(having):
        raise InvalidDataError(
            f"{counted(len(having) - len(values), 'item has', 'items have')} the id of another item.",
            fix="Give each item of a test a unique id.",
        )
    return values

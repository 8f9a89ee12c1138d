"""`PairedItems`: columns of the items that the runs of two systems have in common."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from modelgauge.data.item_records import ItemRecord
from modelgauge.data.results import Direction
from modelgauge.runs.recorded_run import RecordedRun

ReadItems = Callable[[Iterable[int]], Iterator[ItemRecord]]
"""Reads the records of a run's items at these places, in their order."""


ReadRepeats = Callable[[int], Sequence[float]]
"""Gives the values of a measurement in all repeats of the item at a place among the paired; none if it failed."""


def no_items(places: Iterable[int]) -> Iterator[ItemRecord]:
    """Read nothing, since the records of the items are not available."""
    del places
    return iter(())


@dataclass(frozen=True, slots=True, eq=False)
class PairedSide:
    """What one of two runs has of the items that both have.

    Args:
        places: (n,) the place of each item among those of the run, from which its record is read.
        values: each measurement by name, (n,) with NaN where the item failed or lacks it.
        repeats: where prompts were asked several times, and values are means: what gives those of the repeats, for
            each measurement.
        failed: (n,) whether each item failed; it may have values all the same.
        read: reads records of the run.
        run: the run; None if it is not available.
    """

    places: NDArray[np.int64]
    values: Mapping[str, NDArray[np.float64]]
    repeats: Mapping[str, ReadRepeats] = field(default_factory=dict)
    failed: NDArray[np.bool_] | None = None
    read: ReadItems = no_items
    run: RecordedRun | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PairedItems:
    """The items that the runs of two systems have in common, in the order of the baseline's test.

    Args:
        test: the test (or data set).
        candidate: the label of the candidate.
        matched_by: the key by which items were paired.
        n_only_baseline: items that only the baseline's run has.
        n_only_candidate: items that only the candidate's run has.
        before: the baseline's side.
        after: the candidate's side.
        clusters: (n,) codes; items with equal codes are not independent. None if every item is its own cluster.
        groups: (n,) the name of each item's group; None if no groups were asked for.
        ranges: for measurements with a known range their lowest and highest possible value; infinite at an open end.
        directions: which values are better, for measurements with a known direction.
    """

    test: str
    candidate: str
    matched_by: str
    n_only_baseline: int
    n_only_candidate: int
    before: PairedSide
    after: PairedSide
    clusters: NDArray[np.int64] | None = None
    groups: Sequence[str] | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    directions: Mapping[str, Direction] = field(default_factory=dict)

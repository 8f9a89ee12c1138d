"""`MeasuredItems`: all the measurements of a run as one sequence, with columns and groups.

What is computed from it lives in `aggregations`. The engine subclasses it with items that stay on disk. The
interface layer imports this module, so numpy is loaded when the first column is asked for, not before.
"""

import importlib
import math
from abc import abstractmethod
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.base import list_names
from modelgauge.data.items import TestItem
from modelgauge.errors import InvalidDataError, UnknownNameError
from modelgauge.stats.keys import Key, group_of_failed, key_function
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import counted, first_few

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from modelgauge.data.results import Direction

Missing: TypeAlias = float | Literal["skip"] | None
"""Replacement for a measurement that an item lacks: a number; "skip" to leave the item out; None to raise an error."""

Range: TypeAlias = tuple[float, float]


class MeasuredItems(Sequence[MeasuredTestItem]):
    """The scored items of a run, in the order of the test, and its failed items.

    A subclass gives `__len__`, `_item` and `_column_values`, sets `names` and `ranges`, and may give a faster
    `__iter__`, and the attributes below. Slices and groups are views of the whole.

    Attributes:
        shared: a label for each item; items with equal labels share one answer of the SUT, so that they are not
            independent. None if no items share an answer.
        population: the number of items of the whole benchmark, if intervals are about these items only; None if they
            are about all questions like these, which is usual. That of a part is in proportion to the part's items
            (Cochran 1977, "Sampling Techniques", section 2.12).
        failed_shares: for each item the share that failed (0.2 if one of five repeats failed): (len(self),) float64.
            Bounds count this share as worst, or best. None if no item has a failed share.
        failed: the items that could not be scored. `having(name)` includes those that were measured in part.
        names: the names of the measurements, in order of first appearance; a view has those of the whole.
        ranges: the (lowest, highest) possible value of each measurement for which it is known.
        directions: which values of a measurement are better, "higher" or "lower", as far as known. The worst value that
            missing items allow is the highest one where lower is better.
        unplaced: how many failed items may or may not belong to this view. If there are any, the bounds are unknown.
        unfinished: how many items a stopped run did not reach; None if unknown, and then bounds are unknown too. They
            count as missing, like failed items. Which slice or group they belong to is not known.
    """

    shared: "Sequence[Hashable] | NDArray[np.int64] | None" = None
    failed_shares: "NDArray[np.float64] | None" = None
    population: int | None = None
    names: tuple[str, ...]
    ranges: Mapping[str, Range]
    directions: "Mapping[str, Direction]" = MappingProxyType({})
    failed: Sequence[TestItem] = ()
    unplaced: int = 0
    unfinished: int | None = 0

    @staticmethod
    def of(
        items: Iterable[MeasuredTestItem],
        *,
        failed: Iterable[TestItem] = (),
        unfinished: int | None = 0,
        ranges: Mapping[str, Range] | None = None,
        shared: Sequence[Hashable] | None = None,
        population: int | None = None,
        directions: "Mapping[str, Direction] | None" = None,
    ) -> "MeasuredItems":
        """Measured items that are held in memory.

        Args:
            items: the scored items, in order.
            failed: the items that could not be scored.
            unfinished: how many items a stopped run did not reach; None if unknown.
            ranges: measurement name to its (lowest, highest) possible value; `inf` where there is no end.
            shared: as the attribute.
            population: as the attribute.
            directions: as the attribute.

        Raises:
            InvalidDataError: a range is not two numbers in rising order, there is not one label for each item,
                or the population is smaller than the items.
        """
        in_memory = _ItemsInMemory(tuple(items), tuple(failed), unfinished, dict(ranges or {}))
        if shared is not None and len(shared) != len(in_memory):
            raise InvalidDataError(
                f"There are {counted(len(in_memory), 'item')}, but {counted(len(shared), 'label')} in `shared`.",
                fix="Give one for each.",
            )
        if population is not None and population < len(in_memory) + len(in_memory.failed):
            raise InvalidDataError(
                f"A population of {population} cannot have {counted(len(in_memory) + len(in_memory.failed), 'item')}.",
                fix="Give the number of all items of the benchmark.",
            )
        in_memory.shared, in_memory.population = shared, population
        in_memory.directions = dict(directions or {})
        return in_memory

    # --- what a subclass gives ------------------------------------------------------------------------------

    @abstractmethod
    def _item(self, index: int) -> MeasuredTestItem:
        """Return the item at an index, 0 <= index < len(self)."""

    @abstractmethod
    def _column_values(self, name: str) -> "NDArray[np.float64]":
        """Return a measurement of every item, (len(self),) float64, NaN for items without it.

        The array is handed on to authors: a new array each time, or read-only.
        """

    # --- what all have --------------------------------------------------------------------------------------

    @property
    def missing(self) -> int | None:
        """The number of items without measurements, failed and unfinished; None if unknown."""
        return None if self.unplaced or self.unfinished is None else len(self.failed) + self.unfinished

    @overload
    def __getitem__(self, index: int) -> MeasuredTestItem: ...
    @overload
    def __getitem__(self, index: slice) -> "MeasuredItems": ...
    def __getitem__(self, index: int | slice) -> "MeasuredTestItem | MeasuredItems":
        """Return an item, or a view of some. Failed items have no position, so a slice contains none."""
        if isinstance(index, slice):
            places = range(len(self))[index]
            return _View(self, places, (), self.unplaced + len(self.failed), self._unfinished_of_part())
        return self._item(range(len(self))[index])

    def __repr__(self) -> str:
        return f"<{len(self)} measured items, {len(self.failed)} failed, with {list_names(self._by_name())}>"

    def column(self, name: str, *, missing: Missing = None) -> "NDArray[np.float64]":
        """Return one measurement of all items as a float64 array, in the order of the items.

        Args:
            name: of the measurement.
            missing: what to do with items without it: a number (NaN too) replaces it; "skip" leaves them out, so that
                the array is shorter than the sequence; by default it is an error.

        Raises:
            UnknownNameError: no item has a measurement of this name, and no range is declared for it.
            InvalidDataError: some items do not have it, and `missing` does not say what to do.
        """
        self._check_name(name)
        fill = _fill(missing)
        numpy = _numpy()
        values = self._column_values(name)
        absent = numpy.isnan(values)
        if not absent.any():
            return values
        if missing is None:
            raise self._incomplete(name, numpy.flatnonzero(absent).tolist())
        filled: NDArray[np.float64]
        filled = values[~absent] if fill is None else numpy.where(absent, fill, values)
        return filled

    def having(self, name: str) -> "MeasuredItems":
        """Return a view of the items that have this measurement, and of all failed items, which might have it.

        A failed item that was measured in part is one of these items, if it has this measurement.

        Raises:
            UnknownNameError: see `column`.
        """
        self._check_name(name)
        absent = _numpy().isnan(self._column_values(name))
        if not absent.any():  # the usual case: the places of a million items are memory
            return self
        places = array("q", _numpy().flatnonzero(~absent).astype("int64").tobytes())
        return _View(self, places, self.failed, self.unplaced, self.unfinished)

    def group_by(self, key: Key) -> "dict[Hashable, MeasuredItems]":
        """Return views of the items that share a key, in order of the key's first appearance.

        A failed item belongs to the group that the key gives for it, without measurements. If the key is a function
        that reads measurements, or that raises for a failed item, the item's group is unknown: it is `unplaced` in
        every group, and no group has bounds. A stopped run has no bounds of groups, since the groups of its unfinished
        items are unknown. A group of failed items alone is left out: there is nothing to aggregate.

        Args:
            key: a key of the items' context (an attribute, where the context is a model), or a function of a
                `MeasuredTestItem` that returns anything hashable.

        Raises:
            InvalidDataError: an item's context does not have the key, or a key is not hashable.
        """
        of_item = key_function(key)
        places: dict[Hashable, array[int]] = {}
        for place, item in enumerate(self):
            places.setdefault(of_item(item), array("q")).append(place)
        failed: dict[Hashable, list[TestItem]] = {group: [] for group in places}
        unplaced = self.unplaced
        for test_item in self.failed:
            try:
                group = group_of_failed(of_item, test_item)
            except Exception:  # noqa: BLE001 - an author's function need not bear an unmeasured item
                unplaced += 1
            else:
                failed.setdefault(group, []).append(test_item)
        unfinished = self._unfinished_of_part()
        return {
            group: _View(self, indices, tuple(failed[group]), unplaced, unfinished)
            for group, indices in places.items()
        }

    def _unfinished_of_part(self) -> int | None:
        """Nobody knows how many unfinished items belong to a part of this, unless there are none."""
        return 0 if self.unfinished == 0 else None

    def _by_name(self) -> dict[str, None]:
        return dict.fromkeys([*self.names, *self.ranges])

    def _check_name(self, name: str) -> None:
        if not len(self) or name in self.names or name in self.ranges:
            return
        known = self._by_name()
        raise UnknownNameError(
            f"No item has a measurement '{name}'.",
            fix=f"{did_you_mean(name, known)}The measurements are: {list_names(known)}.",
        )

    def _incomplete(self, name: str, places: Sequence[int]) -> InvalidDataError:
        shown = first_few([f"'{self._item(place).test_item.id}'" for place in places], 5)
        have = counted(len(places), f"item of {len(self):,} has", f"items of {len(self):,} have")
        return InvalidDataError(
            f"{have} no measurement '{name}': {shown}.",
            fix='Return it for every item from measure_quality, or say missing="skip" or missing=<a number>.',
        )


class _ItemsInMemory(MeasuredItems):
    """Items in a tuple."""

    def __init__(
        self,
        items: tuple[MeasuredTestItem, ...],
        failed: tuple[TestItem, ...],
        unfinished: int | None,
        ranges: Mapping[str, Range],
    ) -> None:
        for name, (low, high) in ranges.items():
            if not low <= high or math.inf in (low, -high):
                raise InvalidDataError(
                    f"The range of measurement '{name}' is ({low}, {high}).",
                    fix="Give its lowest and its highest possible value: (0, 1), or (0, math.inf).",
                )
        self._items, self.failed, self.unfinished, self.ranges = items, failed, unfinished, ranges
        self.names = tuple(dict.fromkeys(name for item in items for name in item.measurements))

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[MeasuredTestItem]:
        return iter(self._items)

    def _item(self, index: int) -> MeasuredTestItem:
        return self._items[index]

    def _column_values(self, name: str) -> "NDArray[np.float64]":
        values: NDArray[np.float64] = _numpy().fromiter(
            (item.measurements.get(name, math.nan) for item in self._items), dtype=float, count=len(self)
        )
        return values


class _View(MeasuredItems):
    """Some items of a whole, by their places in it; a view of a view points into the whole as well."""

    _whole: MeasuredItems
    _places: Sequence[int]

    def __init__(
        self,
        whole: MeasuredItems,
        places: Sequence[int],
        failed: Sequence[TestItem],
        unplaced: int,
        unfinished: int | None,
    ) -> None:
        if isinstance(whole, _View):
            places = array("q", [whole._places[place] for place in places])  # noqa: SLF001 - one class
            whole = whole._whole  # noqa: SLF001 - likewise
        self._whole, self._places = whole, places
        self.names, self.ranges, self.directions = whole.names, whole.ranges, whole.directions
        self.failed, self.unplaced, self.unfinished = failed, unplaced, unfinished
        if whole.shared is not None:
            self.shared = [whole.shared[place] for place in places]
        if whole.population is not None:  # rounded up: a part is measured in full only where the whole is
            self.population = -(-whole.population * len(places) // len(whole))
        self.failed_shares = None if whole.failed_shares is None else whole.failed_shares[list(places)]

    def __len__(self) -> int:
        return len(self._places)

    def _item(self, index: int) -> MeasuredTestItem:
        return self._whole[self._places[index]]

    def _column_values(self, name: str) -> "NDArray[np.float64]":
        column = self._whole._column_values(name)  # noqa: SLF001 - one class family
        values: NDArray[np.float64] = column[_numpy().asarray(self._places, dtype=int)]
        return values


def _fill(missing: Missing) -> float | None:
    """Return the number that replaces a missing measurement; None if there is none."""
    if isinstance(missing, str) and missing != "skip":
        raise InvalidDataError(
            f"`missing` cannot be {missing!r}.", fix='Use missing="skip" or missing=<a number>.'
        )
    return None if missing is None or missing == "skip" else float(missing)


def _numpy() -> Any:
    """Numpy, on use: the interface layer imports this module, and listing plugins must not pay for numpy."""
    return importlib.import_module("numpy")

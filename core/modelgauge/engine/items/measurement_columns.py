"""`MeasurementColumns`: the measurements of many items as columns of numbers, with their ranges."""

import math
from array import array
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from modelgauge.stats.measured import Range

if TYPE_CHECKING:
    from numpy.typing import NDArray


class MeasurementColumns:
    """The measurements of items, one row for each item in the order in which they are added.

    Args:
        declared: the ranges that the test declares, by measurement.
    """

    def __init__(self, declared: Mapping[str, Range]) -> None:
        self._declared = declared
        self._rows = 0
        self._columns: dict[str, array[float]] = {}
        self._first_index: dict[str, int] = {}
        self._all_bool: dict[str, bool] = {}

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def add(self, index: int, measurements: Mapping[str, float], binary: Collection[str]) -> None:
        """Add the row of an item.

        Args:
            index: the item's place in the test.
            measurements: by name.
            binary: those that were given as bool.
        """
        rows = self._rows
        for name, value in measurements.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = array("d", [math.nan]) * rows
                self._first_index[name] = index
                self._all_bool[name] = True
            elif len(column) < rows:
                column.extend([math.nan] * (rows - len(column)))
            column.append(value)
            self._first_index[name] = min(self._first_index[name], index)
            if name not in binary:
                self._all_bool[name] = False
        self._rows = rows + 1

    @property
    def names(self) -> tuple[str, ...]:
        """The measurements, in the order in which the items of the test have them first."""
        return tuple(sorted(self._first_index, key=lambda name: self._first_index[name]))

    def values(self, name: str) -> "NDArray[np.float64]":
        """Return a measurement for all rows, shape (n,); NaN for items without it."""
        values: NDArray[np.float64] = np.frombuffer(self._columns.get(name, array("d")), dtype=np.float64)
        if len(values) < self._rows:  # the last items do not have it
            values = np.concatenate([values, np.full(self._rows - len(values), math.nan)])
        return values

    def ranges(self) -> dict[str, Range]:
        """Declared ranges, and (0, 1) where all values were bools."""
        implied = {name: (0.0, 1.0) for name, is_bool in self._all_bool.items() if is_bool}
        return {
            **implied,
            **{name: (float(low), float(high)) for name, (low, high) in self._declared.items()},
        }

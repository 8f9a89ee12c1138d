"""Columns of items that grow row by row without holding the rows: compressed lists of JSON, and labels."""

import base64
import math
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

_LEVEL = 4  # of gzip: higher ones take three times as long for a fiftieth less
_MOST_VALUES = 30


class Packed:
    """A JSON list that is compressed as it grows: gzip as base64; the same elements give the same bytes."""

    def __init__(self) -> None:
        # With gzip's header, without a time.
        self._compressor = zlib.compressobj(_LEVEL, wbits=zlib.MAX_WBITS | 16)
        self._done: list[bytes] = []
        self._before = b"["

    def add(self, elements: bytes) -> None:
        """Append elements: JSON, with commas between them."""
        self._done.append(self._compressor.compress(self._before + elements))
        self._before = b","

    def text(self) -> str:
        """Return the complete list, to which nothing can be added any more."""
        end = b"[]" if self._before == b"[" else b"]"
        self._done += [self._compressor.compress(end), self._compressor.flush()]
        return base64.b64encode(b"".join(self._done)).decode("ascii")


def packed(value: Any) -> str:
    """Return a single JSON value in the form that `Packed` writes."""
    only = Packed()
    only.add(to_json(value))
    return only.text()


def json_numbers(values: Iterable[float]) -> list[float | None]:
    """Return the values of a column as JSON; null for missing values."""
    return [value if math.isfinite(value) else None for value in values]


@dataclass(slots=True)
class Labels:
    """A label of each item, where few labels occur.

    Args:
        most: how many may occur: of more, none is kept. Not compared.
        values: the labels, in the order in which they came.
        of: for each item the place of its label, -1 without a label.
    """

    most: int = field(default=_MOST_VALUES, compare=False)
    values: dict[str, int] = field(default_factory=dict)
    of: "array[int]" = field(default_factory=lambda: array("l"))

    def add(self, place: int, value: str) -> None:
        """Label the item at a place; those before it that were not labelled have none."""
        at = self.values.get(value)
        if at is None:
            if len(self.values) > self.most:
                return
            at = self.values[value] = len(self.values)
        if len(self.of) < place:
            self.of.extend([-1] * (place - len(self.of)))
        self.of.append(at)

    def data(self, number: int) -> dict[str, Any]:
        """Return the labels of all items as JSON."""
        return {"values": list(self.values), "of": [*self.of, *[-1] * (number - len(self.of))]}

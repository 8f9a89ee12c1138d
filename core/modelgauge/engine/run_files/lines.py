"""Reading the lines of a journal, and of other files that grow by whole lines.

A journal is only appended to, so lines never move. The index in a line, not its place in the file, is the position of
the item in the test. A line replaces earlier ones by listing their indexes in `replaces`; a later record of the same
item lists its own index. `JournalLines` gives the lines that count. `ItemFrame` (`engine/items/item_frame.py`) puts
them in the order of the test.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar

from pydantic_core import from_json

from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.data.records import TestRecord
from modelgauge.errors import RecordError
from modelgauge.files.regular import opened

T = TypeVar("T")

_BEGINNING = re.compile(rb'\{"kind":"(?P<kind>item|exception)","index":(?P<index>\d{1,18}),')
"""The beginning of lines that this library wrote."""
_REPLACES = b'"replaces"'
_FAILED_REPEATS = b'"failed_repeats":['
_UNUSUAL = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""Raised where code that expects the JSON of a record reads something else."""


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, except a torn last line, which a kill can leave.

    Raises:
        RecordError: the file is not a file of the run's own, or cannot be read.
    """
    if not os.path.lexists(path):
        return
    try:
        with opened(path) as file:
            yield from (line for line in file if line.endswith(b"\n"))
    except OSError as error:
        raise unreadable(path, error) from None


@dataclass(slots=True)
class Summary:
    """The facts of an item that are read without parsing its whole line.

    Args:
        index: its place in the test, from 0.
        is_scored: whether it was scored.
        has_failures: whether it failed, or a repeat of it did.
    """

    index: int
    is_scored: bool
    has_failures: bool


class ItemLine(Protocol):
    """The record of an item, as it is in a file.

    Attributes:
        offset: its place in the file, by which `ItemLines.at` finds it.
        text: its JSON.
    """

    @property
    def offset(self) -> int: ...

    @property
    def text(self) -> bytes: ...

    def record(self) -> ItemRecord: ...

    def summary(self) -> Summary: ...

    def read_json(self, read: Callable[[Any], T]) -> tuple[bytes, T]: ...


class ItemLines(Protocol):
    """The records of a run's items, in the order of their file."""

    def __iter__(self) -> Iterator[ItemLine]: ...

    def at(self, offsets: Iterable[int]) -> Iterator[ItemLine]: ...


@dataclass(slots=True)
class JournalLine:
    """A line of a journal.

    Args:
        path: of the journal.
        offset: where the line begins.
        line: the line, with its newline.
        known_number: its number in the journal, from 1; None if it was not counted.
    """

    path: Path
    offset: int
    line: bytes
    known_number: int | None = None

    @property
    def text(self) -> bytes:
        """The line without its newline."""
        return self.line.rstrip(b"\n")

    @property
    def number(self) -> int:
        """The number of the line in the journal, from 1. If it is not known, the journal is read up to the line."""
        if self.known_number is not None:
            return self.known_number
        with opened(self.path) as file:
            return 1 + file.read(self.offset).count(b"\n")

    @property
    def index(self) -> int:
        """The place of the item in the test; -1 for a damaged line."""
        index = _field(self.line, "index")
        return index if _is_index(index) else -1

    @property
    def replaces(self) -> list[int]:
        """The indexes whose earlier lines this line replaces."""
        replaced = _field(self.line, "replaces") if _has(self.line, _REPLACES) else None
        return [index for index in replaced if _is_index(index)] if isinstance(replaced, list) else []

    def record(self) -> ItemRecord:
        """Return the record in the line.

        Raises:
            RecordError: the line is damaged; the message names file and line.
        """
        try:
            return item_from_json(self.line, str(self.path))
        except RecordError:
            return item_from_json(self.line, f"{self.path}, line {self.number}")

    def summary(self) -> Summary:
        """Return the facts that need no parsing. Lines that this library did not write are parsed.

        Raises:
            RecordError: see `record`.
        """
        if (ours := _BEGINNING.match(self.line)) and not _has(self.line, _FAILED_REPEATS):
            is_scored = ours["kind"] == b"item"
            return Summary(int(ours["index"]), is_scored, not is_scored)
        return _summary(self.record())

    def read_json(self, read: Callable[[Any], T]) -> tuple[bytes, T]:
        """Read the JSON of the line without validating it.

        Args:
            read: is given the JSON. If it raises, it is given that of the validated record.

        Returns:
            The text of the JSON that was read, and what `read` returned.

        Raises:
            RecordError: see `record`.
        """
        try:
            return self.line.rstrip(b"\n"), read(from_json(self.line, allow_inf_nan=False))
        except _UNUSUAL:
            text = self.record().model_dump_json().encode()
            return text, read(from_json(text))


class JournalLines:
    """The lines of a journal that no later line replaces, in the order of the file.

    Args:
        path: of the journal; it may be missing.

    Raises:
        RecordError: raised by iteration, if the journal is not a file of the run's own, or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[JournalLine]:
        """Yield the lines that are in the journal when the iteration begins."""
        replaced_before: dict[int, int] = {}  # by index: lines that begin before this offset are replaced
        end = 0
        for text in whole_lines(self.path):
            if _has(text, _REPLACES):
                replaced_before.update(dict.fromkeys(JournalLine(self.path, end, text).replaces, end))
            end += len(text)
        offset = 0
        for number, text in enumerate(whole_lines(self.path), start=1):
            if offset >= end:  # appended since the first pass
                return
            line = JournalLine(self.path, offset, text, number)
            if not replaced_before or offset >= replaced_before.get(line.index, 0):
                yield line
            offset += len(text)

    def at(self, offsets: Iterable[int]) -> Iterator[JournalLine]:
        """Yield the lines that begin at these offsets, in their order."""
        at = 0
        with opened(self.path) as file:
            for offset in offsets:
                if offset != at:  # nearly always the next line
                    file.seek(offset)
                line = file.readline()
                at = offset + len(line)
                yield JournalLine(self.path, offset, line)

    def after(self, offset: int) -> Iterator[JournalLine]:
        """Yield the whole lines behind an offset. The reader takes into account which lines they replace."""
        try:
            file = opened(self.path)
        except OSError:
            return
        with file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield JournalLine(self.path, offset, line)
                offset += len(line)


class RecordLine(NamedTuple):
    """An item of a record that was read from a file of `--output-file`.

    Args:
        offset: its place among the items of the file.
        item: its record.
    """

    offset: int
    item: ItemRecord

    @property
    def text(self) -> bytes:
        """The JSON of the record."""
        return self.item.model_dump_json(exclude_none=True).encode()

    def record(self) -> ItemRecord:
        """Return the record."""
        return self.item

    def summary(self) -> Summary:
        """Return the facts of the record."""
        return _summary(self.item)

    def read_json(self, read: Callable[[Any], T]) -> tuple[bytes, T]:
        """Read the JSON of the record; see `JournalLine.read_json`."""
        return self.text, read(self.item.model_dump(mode="json"))


class RecordLines:
    """The items of a record that was read from a file of `--output-file`.

    Args:
        record: gives its items.
    """

    def __init__(self, record: TestRecord) -> None:
        self._record = record

    def __iter__(self) -> Iterator[RecordLine]:
        """Yield the items in the order of the file."""
        return (RecordLine(*each) for each in enumerate(self._record.iter_items()))

    def at(self, offsets: Iterable[int]) -> Iterator[RecordLine]:
        """Yield different items at these places, in their order. Those that come too soon are held."""
        wanted = [*offsets]
        among, held = set(wanted), dict[int, RecordLine]()
        lines = (line for line in self if line.offset in among)
        for offset in wanted:
            while offset not in held:
                line = next(lines)
                held[line.offset] = line
            yield held.pop(offset)


def _summary(record: ItemRecord) -> Summary:
    return Summary(record.index, record.kind == "item", bool(record.failures))


def _has(line: bytes, part: bytes) -> bool:
    """Return whether a line has a part; `in` takes three times as long for lines of a thousand bytes."""
    return line.rfind(part) >= 0


def _is_index(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**63


def _field(line: bytes, name: str) -> Any:
    """Return a field of a line; None for a damaged line, which is reported when it is read as a record."""
    try:
        return from_json(line)[name]
    except (ValueError, LookupError, TypeError):
        return None


def unreadable(path: Path, error: OSError) -> RecordError:
    """Return the error for a file of a run that cannot be read."""
    return RecordError(
        f"{path} cannot be read: {error.strerror}.", fix="Give a run's id or folder, with files of its own."
    )

"""The items of a run in the order of the test, read from its journal or from a file that holds the whole record.

A journal holds items in the order in which they finished, and may be larger than memory: only its offsets are held.
"""

import re
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path

from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.data.records import TestRecord
from modelgauge.engine.run_files.lines import counted_lines
from modelgauge.errors import RecordError
from modelgauge.files.regular import opened

_BEGINNING = re.compile(rb'\{"kind":"(?P<kind>item|exception)","index":(?P<index>\d{1,18}),')
"""How lines begin that this library wrote."""

_BITS = 63  # for the offset of a line in its file, and whether its item was scored


class JournalItems:
    """The items of a journal in the order of the test; of an item that stands twice, the last record.

    Args:
        journal: the `items.jsonl` of a run; it may be missing.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        found: list[int] = []  # index, offset and kind of each line as one number: of a million, 50 MB
        for number, offset, line in counted_lines(journal):
            index, scored = _beginning(line, f"{journal}, line {number}")
            found.append(index << _BITS | offset << 1 | scored)
        found.sort()
        last = (place for place, after in pairwise(chain(found, [-1])) if place >> _BITS != after >> _BITS)
        self._places = array("q", (place & (1 << _BITS) - 1 for place in last))

    def in_order(self, *kinds: str) -> Iterator[ItemRecord]:
        """The records of these kinds, or all."""
        wanted = [
            place for place in self._places if not kinds or ("item" if place & 1 else "exception") in kinds
        ]
        for offset, line in self._read(wanted):
            try:
                item = item_from_json(line, str(self._journal))
            except RecordError:
                item = item_from_json(line, f"{self._journal}, line {self._number_at(offset)}")
            yield item

    def lines(self) -> Iterator[bytes]:
        """The lines of all items, as they stand in the journal."""
        return (line.rstrip(b"\n") for _, line in self._read(self._places))

    def _read(self, places: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """The lines at some places, each with its offset."""
        if not places:
            return
        at = 0
        with opened(self._journal) as file:
            for offset in (place >> 1 for place in places):
                if offset != at:  # nearly always the next line
                    file.seek(offset)
                line = file.readline()
                at = offset + len(line)
                yield offset, line

    def _number_at(self, offset: int) -> int:
        """The number of the line that begins at an offset."""
        with opened(self._journal) as file:
            return 1 + file.read(offset).count(b"\n")


def _beginning(line: bytes, where: str) -> tuple[int, bool]:
    """The index of an item, and whether it was scored; the rest of our own lines is read when it is asked for."""
    if ours := _BEGINNING.match(line):
        return int(ours["index"]), ours["kind"] == b"item"
    item = item_from_json(line, where)
    return item.index, item.kind == "item"


class FileItems:
    """The items of a record that was read from a file of `--output-file`, in the order of the test.

    Args:
        record: gives its items in this order.
    """

    def __init__(self, record: TestRecord) -> None:
        self._record = record

    def in_order(self, *kinds: str) -> Iterator[ItemRecord]:
        """The records of these kinds, or all."""
        return (item for item in self._record.iter_items() if not kinds or item.kind in kinds)

    def lines(self) -> Iterator[bytes]:
        """The records of all items as JSON."""
        return (item.model_dump_json(exclude_none=True).encode("utf-8") for item in self.in_order())


@contextmanager
def naming_damage(items: JournalItems | FileItems) -> Iterator[None]:
    """Let the error of a line that was read in the block name the file and the number of the line.

    Args:
        items: whose lines are read.
    """
    try:
        yield
    except RecordError:
        deque(items.in_order(), maxlen=0)
        raise

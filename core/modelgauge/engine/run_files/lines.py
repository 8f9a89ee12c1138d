"""Reading the lines of a journal, and of other files that grow by whole lines.

A journal is only appended to, so lines never move. The index in a line, not its place in the file, is the position of
the item in the test. A line replaces earlier ones by listing their indexes in `replaces`; a later record of the same
item lists its own index. Readers get the lines that count from `counted_lines`.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeGuard

from pydantic_core import from_json

from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.errors import RecordError
from modelgauge.files.regular import opened


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a journal, except a torn last line, which a kill can leave.

    Raises:
        RecordError: the journal is not a file of the run's own, or cannot be read.
    """
    if not os.path.lexists(path):
        return
    try:
        with opened(path) as file:
            yield from (line for line in file if line.endswith(b"\n"))
    except OSError as error:
        raise unreadable(path, error) from None


def counted_lines(journal: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the lines of a journal that no later line replaces, in the order of the file.

    Yields:
        The number of the line from 1, its offset, and the line.

    Raises:
        RecordError: the journal is not a file of the run's own, or cannot be read.
    """
    replaced_before: dict[int, int] = {}  # by index: lines that begin before this offset are replaced
    end = 0
    for line in whole_lines(journal):
        replaced_before.update(dict.fromkeys(replaced_by(line), end))
        end += len(line)
    offset = 0
    for number, line in enumerate(whole_lines(journal), start=1):
        if offset >= end:  # appended since the first pass
            return
        if not replaced_before or offset >= replaced_before.get(index_in(line), 0):
            yield number, offset, line
        offset += len(line)


def replaced_by(line: bytes) -> list[int]:
    """Return the indexes whose earlier lines a line replaces."""
    replaced = _field(line, "replaces") if b'"replaces"' in line else None
    return [index for index in replaced if _is_index(index)] if isinstance(replaced, list) else []


def index_in(line: bytes) -> int:
    """Return the index of the item in a line; -1 for a damaged line."""
    index = _field(line, "index")
    return index if _is_index(index) else -1


def _is_index(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**63


def _field(line: bytes, name: str) -> Any:
    """Return a field of a line; None for a damaged line, which is reported when it is read as a record."""
    try:
        return from_json(line)[name]
    except (ValueError, LookupError, TypeError):
        return None


def records_at(journal: Path, offsets: Iterable[int]) -> Iterator[ItemRecord]:
    """Read the records of a journal whose lines begin at these offsets."""
    with opened(journal) as file:
        for offset in offsets:
            file.seek(offset)
            yield item_from_json(file.readline(), str(journal))


def unreadable(path: Path, error: OSError) -> RecordError:
    """Return the error for a file of a run that cannot be read."""
    return RecordError(
        f"{path} cannot be read: {error.strerror}.", fix="Give a run's id or folder, with files of its own."
    )

"""The items of a run in the order of the test, read from its journal or from a file that holds the whole record.

A journal holds items in the order in which they finished, and may be larger than memory: only its offsets are held.
"""

from array import array
from collections.abc import Iterator
from pathlib import Path

from modelgauge.data.records import ItemRecord, TestRecord, item_from_json
from modelgauge.engine.run_files.folder import whole_lines
from modelgauge.files.regular import opened


class JournalItems:
    """The items of a journal in the order of the test; of an item that stands twice, the last record.

    Args:
        journal: the `items.jsonl` of a run; it may be missing.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        places: dict[int, int] = {}  # the offset of an item's line; of a failed item its complement, below 0
        offset = 0
        for number, line in enumerate(whole_lines(journal), start=1):
            item = item_from_json(line, f"{journal}, line {number}")
            places[item.index] = offset if item.kind == "item" else ~offset
            offset += len(line)
        self._places = array("q", (places[index] for index in sorted(places)))

    def in_order(self, *kinds: str) -> Iterator[ItemRecord]:
        """The records of these kinds, or all."""
        wanted = [one for one in self._places if not kinds or ("item" if one >= 0 else "exception") in kinds]
        if not wanted:
            return
        with opened(self._journal) as file:
            for place in wanted:
                file.seek(max(place, ~place))
                yield item_from_json(file.readline(), str(self._journal))


class HeldItems:
    """The items of a record that holds them in memory, in the order of the test.

    Args:
        record: read from a file that `--output-file` wrote.
    """

    def __init__(self, record: TestRecord) -> None:
        self._items = sorted(record.iter_items(), key=lambda item: item.index)

    def in_order(self, *kinds: str) -> Iterator[ItemRecord]:
        """The records of these kinds, or all."""
        return (item for item in self._items if not kinds or item.kind in kinds)

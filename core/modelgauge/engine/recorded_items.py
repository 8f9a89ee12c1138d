"""The items of a journal, by their ids, to find which items of a test have a record."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from modelgauge.data.item_records import ItemRecord
from modelgauge.data.items import TestItem, hex_digest
from modelgauge.engine.items.source import NumberedItem
from modelgauge.engine.run_files.lines import JournalLine, JournalLines
from modelgauge.errors import RecordError


class RecordedItems:
    """The items of a journal, by the digests of their ids. Only their places are in memory.

    Args:
        path: of the journal.
        retry_failed: whether failed items are asked again. They then count as items without a record.
    """

    def __init__(self, path: Path, *, retry_failed: bool = False) -> None:
        self.path = path
        self._retry_failed = retry_failed
        self._places: dict[int, int] = {}
        self._failed: dict[int, int] = {}  # places of items to ask again

    def __len__(self) -> int:
        return len(self._places)

    def read(self, each: Callable[[ItemRecord], object] = lambda _: None) -> None:
        """Read the journal once, and pass on each record.

        Raises:
            RecordError: a line is damaged, or two are of one item; the message names file and line.
        """
        for line in JournalLines(self.path):
            record = line.record()
            key = _key(record.digests.id if record.digests else hex_digest(str(record.test_item.id)))
            if key in self._places or key in self._failed:
                raise RecordError(
                    f"{self.path}, line {line.number}: item '{record.test_item.id}' is in the journal twice.",
                    fix="Remove one of the two lines.",
                )
            if self._retry_failed and not record.is_scored:
                self._failed[key] = line.offset
            else:
                self._places[key] = line.offset
                each(record)

    def matched(self, items: Iterable[NumberedItem]) -> Iterator[tuple[NumberedItem, int | None]]:
        """Yield the items that a test makes now, each with the place of its line; None for items without a line.

        Raises:
            RecordError: at the end, if the test no longer makes some item of the journal.
        """
        left = {**self._places, **self._failed}
        for item in items:
            key = _key(hex_digest(str(item.item.id)))
            left.pop(key, None)
            yield item, self._places.get(key)
        if left:
            record = self.record(left.popitem()[1])
            raise RecordError(
                f"Item '{record.test_item.id}' of {self.path} is not among the items of the test any more.",
                fix="Use the test and the data of that run, or start a new run: identical calls come from the cache.",
            )

    def failed_place(self, item: TestItem) -> int | None:
        """Return the place of the line of a failed item that is asked again; None for other items."""
        return self._failed.get(_key(hex_digest(str(item.id)))) if self._failed else None

    def line(self, place: int) -> JournalLine:
        """Return the line at a place."""
        return next(JournalLines(self.path).at([place]))

    def record(self, place: int) -> ItemRecord:
        """Return the record in the line at a place."""
        return self.line(place).record()


def _key(digest: str) -> int:
    return int(digest[:16], 16)

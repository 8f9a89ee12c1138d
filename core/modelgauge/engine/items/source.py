"""The items of one pair: pulled from the author's iterable in a thread, in chunks, with their ids.

No list of all items is made: workers take items one by one, and the next chunk is pulled when the last is used up.
"""

import asyncio
import hashlib
import heapq
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from modelgauge.config.run_options import RunOptions
from modelgauge.data.base import list_names
from modelgauge.data.items import TestItem, get_context
from modelgauge.engine.bookkeeping.failures import as_exception
from modelgauge.engine.items.item_ids import Ids
from modelgauge.engine.loop.threads import OneThread, in_thread
from modelgauge.engine.loop.together import WaitingLine
from modelgauge.errors import DefinitionError, InvalidOptionError
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import a_thing

log = logging.getLogger(__name__)
T = TypeVar("T")

PART_OF = "part_of"
"""The field of a manifest for the size of the whole run, of which an item range is a part."""

_CHUNK = 1024
_FIRST_CHUNK = 32  # so that the first calls are sent soon
_LOW = 128
_CHUNK_SECONDS = 0.02

_LONG = 10.0  # seconds
_CHOOSES = "-m (in Python max_test_items) chooses among all items of"
_ALL_ARE_READ = (
    "%s '%s', so it reads them all first: %s so far. "
    "If they never end, stop this, and let make_test_items end."
)


@dataclass(slots=True)
class NumberedItem:
    """An item with its id, and its place in the test (from 0)."""

    index: int
    item: TestItem


def numbered(items: Any, ids: Ids, test_uid: str) -> Iterator[NumberedItem]:
    """Validate an author's items and assign their ids.

    Raises:
        DefinitionError: it is no iterable, or something in it is no `TestItem`.
    """
    if not isinstance(items, Iterable) and not hasattr(items, "__getitem__"):
        raise DefinitionError(
            f"make_test_items of '{test_uid}' returned {a_thing(items)}.",
            fix="Return a list of TestItem objects, or yield them: TestItem([prompt, …], context=…).",
        )
    for index, item in zip(count(), items, strict=False):
        if not isinstance(item, TestItem):
            raise DefinitionError(
                f"make_test_items of '{test_uid}' gave {a_thing(item)} at place {index}.",
                fix="Give TestItem objects: TestItem([prompt, …], context=…).",
            )
        yield NumberedItem(index, ids.identified(item))


def without_items(test_uid: str) -> DefinitionError:
    """Return the error for a test that makes no items, which gives no information about the SUT."""
    fix = "Look at what it reads and filters, and let it give at least one TestItem."
    return DefinitionError(f"make_test_items of '{test_uid}' gave no items.", fix=fix)


class Choice(NamedTuple):
    """The items of a test that a run measures.

    Args:
        items: in order.
        number: how many they are; None if that is not known before they are read.
        total: how many the test makes; None if that is not known before they are read.
        range: the range that they are of, if the run has one.
    """

    items: Iterator[NumberedItem]
    number: int | None
    total: int | None
    range: "ItemRange | None" = None


class ItemRange:
    """The items of a range of places.

    Args:
        items: all items.
        places: the first place, and the one after the last.
        whole: the number of all items; None if it is not known.
        total: the number of items of the test, of which `max_test_items` may have chosen some; None if not known.

    Attributes:
        whole, total: as above. They become known if the range reaches the last item.
    """

    def __init__(
        self, items: Iterator[NumberedItem], places: tuple[int, int], whole: int | None, total: int | None
    ) -> None:
        self.whole, self.total = whole, total
        self._items, self._places = items, places

    def __iter__(self) -> Iterator[NumberedItem]:
        number, (first, end) = 0, self._places
        for item in self._items:
            number += 1
            if number > end:  # looked at only to see whether there is one
                return
            if number > first:
                yield item
        self.whole = number
        self.total = self.total if self.total is not None else number

    def for_manifest(self) -> dict[str, Any]:
        """Return what a manifest says of the whole run, once that is known."""
        return {} if self.whole is None else {PART_OF: {"items": self.whole, "total": self.total}}


def chosen(
    test: PromptResponseTest, dependencies: Mapping[str, Path], options: RunOptions, ids: Ids | None = None
) -> Choice:
    """Return the items of a test that a run measures.

    Args:
        test: makes them.
        dependencies: where its data is.
        options: of the run.
        ids: gives them their ids, where it is looked at later.

    Raises:
        InvalidOptionError: none of the first items has the field by which items form clusters.
    """
    ids = ids if ids is not None else Ids(test.uid)
    made = test.make_test_items(dependencies)
    items = numbered(made, ids, test.uid)
    if options.cluster is not None:
        items = _with_field(items, options.cluster, test.uid)
    number = total = len(made) if isinstance(made, Sized) else None
    if options.max_test_items is not None:
        few = sample(warning_when_slow(items, _CHOOSES, test.uid), options.max_test_items, options.seed)
        items, number, total = iter(few), len(few), len(ids)
    if options.item_range is None:
        return Choice(items, number, total)
    of_range = ItemRange(items, options.item_range, number, total)
    in_range = None if number is None else len(range(number)[slice(*options.item_range)])
    return Choice(iter(of_range), in_range, total, of_range)


def check_cluster(test: PromptResponseTest, dependencies: Mapping[str, Path], options: RunOptions) -> None:
    """Make the first items of a test, to see whether they have the field of the clusters.

    Raises:
        InvalidOptionError: they do not. The run itself reports whatever else make_test_items raises.
    """
    if options.cluster is None:
        return
    try:
        next(chosen(test, dependencies, options).items, None)
    except InvalidOptionError:
        raise
    except Exception:
        log.debug("The items of '%s' cannot be made.", test.uid, exc_info=True)


def _with_field(items: Iterator[NumberedItem], field: str, test_uid: str) -> Iterator[NumberedItem]:
    """Yield the items if one of the first has the field, so that a wrong name fails before any call."""
    first = list(islice(items, _FIRST_CHUNK))
    if first and all(get_field(item.item, field) is None for item in first):
        known = list_fields(first[0].item)
        raise InvalidOptionError(
            f"No item of '{test_uid}' has a field '{field}' by which it could belong to a cluster.",
            fix=f"{did_you_mean(field, known)}The fields of a context are: {list_names(known)}."
            if known
            else "Give items a context with such a field: TestItem(…, context={…}).",
        )
    yield from first
    yield from items


def list_fields(item: TestItem) -> dict[str, Any]:
    """Return the fields of an item's context, with the columns and metadata of a golden, except those that are None."""
    found = {
        name: value for part in reversed(_list_mappings(_get_context(item))) for name, value in part.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def get_field(item: TestItem, name: str) -> Any:
    """Return a field of an item, see `list_fields`; None if it has no such field."""
    return get_context_field(_get_context(item), name)


def get_context_field(context: Any, name: str) -> Any:
    """Return a field of a context in JSON, see `list_fields`; None if it has no such field."""
    return next((part[name] for part in _list_mappings(context) if name in part), None)


def _get_context(item: TestItem) -> Any:
    """Return the context of an item, or of its only prompt, as JSON."""
    context = get_context(item)
    return context.model_dump(mode="json") if isinstance(context, BaseModel) else context


def _list_mappings(context: Any) -> list[Mapping[str, Any]]:
    """Return the mappings to search for a field, in order of precedence."""
    if not isinstance(context, Mapping):
        return []
    inner = [context[part] for part in _FURTHER_FIELDS if part in context]
    return [context, *(part for part in inner if isinstance(part, Mapping))]


_FURTHER_FIELDS = ("custom_column_key_values", "metadata", "additional_metadata")


def warning_when_slow(items: Iterable[T], why: str, test_uid: str) -> Iterator[T]:
    """Yield the items, with a warning about progress if that takes long.

    Args:
        items: of a test.
        why: they are all read, up to the name of the test.
        test_uid: the test.
    """
    due = monotonic() + (wait := _LONG)
    for number, item in enumerate(items, start=1):
        if monotonic() > due:
            log.warning(_ALL_ARE_READ, why, test_uid, f"{number:,}")
            due = monotonic() + (wait := 2 * wait)
        yield item


def sample(items: Iterable[NumberedItem], most: int, seed: int) -> list[NumberedItem]:
    """Select the `most` items with the smallest hashes of (seed, id), in the order of the test.

    So a smaller sample is part of a larger one, and adding items to a test changes few of the others.
    """
    chosen = heapq.nsmallest(most, items, key=lambda item: _rank(item, seed))
    return sorted(chosen, key=lambda item: item.index)


def _rank(numbered_item: NumberedItem, seed: int) -> bytes:
    text = f"{seed}\n{numbered_item.item.id}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class ItemSource:
    """Queue of items for workers, in order.

    Args:
        items: pulled in a thread, since an author may read files or download there.
        total: how many they are, where that is known before they are read.
        thread: in which the items were made; they are pulled and closed there too.

    Attributes:
        total: how many they are; None until that is known.
    """

    def __init__(
        self, items: Iterator[NumberedItem], total: int | None = None, thread: OneThread | None = None
    ) -> None:
        self.total, self._thread = total, thread
        self._items = items
        self._pulled = 0
        self._ready: deque[NumberedItem] = deque()
        self._waiting = WaitingLine()
        self._pull: asyncio.Task[None] | None = None
        self._exhausted = False
        self._error: Exception | None = None

    def take(self) -> NumberedItem | None:
        """Return the next item if one is ready and more are coming; otherwise the caller must await `next`."""
        more_come = self._pull is not None or self._exhausted or len(self._ready) > _LOW
        return self._ready.popleft() if more_come and self._ready else None

    async def next(self) -> NumberedItem | None:
        """Return the next item; None at the end.

        Raises:
            Exception: what the author's iterable raised, when the items before it are handed out; raised once.
        """
        while not self._ready:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if self._exhausted:
                return None
            self._start_pull()
            await self._waiting.wait(self._waiting.next)
        item = self._ready.popleft()
        if len(self._ready) < _LOW and not self._exhausted:
            self._start_pull()  # so that workers rarely wait
        return item

    def stop(self) -> None:
        """Hand out no more items, and wake the workers that wait for an item."""
        self._exhausted = True
        self._error = None
        self._ready.clear()
        self._waiting.all()

    def close(self) -> None:
        """Close an author's generator in its own thread, without waiting for that."""
        if self._pull is not None:
            self._pull.cancel()
        if self._thread is not None:
            self._thread.submit(self._drop_items)

    def _drop_items(self) -> None:
        """Close the items and let them go: in Python 3.12 a closed generator still holds the author's."""
        items, self._items = self._items, iter(())
        close = getattr(items, "close", None)
        try:
            if close is not None:
                close()
        except BaseException:  # the author's; it is logged, and changes nothing
            log.exception("The items of a test could not be closed.")

    def _start_pull(self) -> None:
        if self._pull is None:
            self._pull = asyncio.get_running_loop().create_task(self._pull_chunk())

    async def _pull_chunk(self) -> None:
        most = min(_CHUNK, _FIRST_CHUNK + self._pulled)
        chunk, more, error = await in_thread(lambda: _chunk(self._items, most), "items", self._thread)
        if not self._exhausted:
            self._ready.extend(chunk)
            self._pulled += len(chunk)
            self._exhausted, self._error = not more, error
            if self._exhausted and error is None:
                self.total = self._pulled
        self._pull = None
        if self._exhausted:
            self._waiting.all()
        for _ in chunk:  # a worker for each item
            self._waiting.next()


def _chunk(items: Iterator[NumberedItem], most: int) -> tuple[list[NumberedItem], bool, Exception | None]:
    """Up to `most` items, whether there may be more, and what ended them; few where each takes long."""
    chunk: list[NumberedItem] = []
    start = monotonic()
    try:
        for item in items:
            chunk.append(item)
            if len(chunk) >= most or monotonic() - start > _CHUNK_SECONDS:
                return chunk, True, None
    except BaseException as error:  # noqa: BLE001  the author's; the items before it are kept
        return chunk, False, as_exception(error)
    return chunk, False, None

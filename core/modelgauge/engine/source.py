"""The items of one pair: pulled from the author's iterable in a thread, in chunks, with their ids.

No list of all items is made: workers take items one by one, and the next chunk is pulled when the last is used up.
"""

import asyncio
import hashlib
import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import monotonic

from modelgauge.articles import a_thing
from modelgauge.data.items import TestItem, derived_id
from modelgauge.engine.digests import DigestSet, digest_of
from modelgauge.engine.failures import as_exception
from modelgauge.engine.threads import in_thread
from modelgauge.errors import DefinitionError
from modelgauge.interfaces.test import PromptResponseTest

_CHUNK = 256
_FIRST_CHUNK = 32  # so that the first calls are sent soon
_LOW = 128
_CHUNK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class NumberedItem:
    """An item with its id, and its place in the test (from 0)."""

    index: int
    item: TestItem


class Ids:
    """Gives each item its id, and finds ids that are given twice.

    Attributes:
        repeated: how many derived ids occurred again and got a suffix.
    """

    def __init__(self, test_uid: str) -> None:
        self._test_uid = test_uid
        self._taken = DigestSet()
        self._times: dict[int, int] = {}  # of the derived ids that occurred more than once
        self.repeated = 0

    def identified(self, item: TestItem) -> TestItem:
        """The item with its id.

        Raises:
            DefinitionError: the author gave one id to two items.
        """
        if item.id is None:
            return item.replaced(id=self._derived(derived_id(item)))
        if not self._taken.add(item.id):
            raise DefinitionError(
                f"Test '{self._test_uid}' has two items with the id '{item.id}'.",
                fix="Give each TestItem an id of its own, or none: then it is derived from its prompts.",
            )
        return item

    def forget(self) -> None:
        """There are no more items: give the memory back."""
        self._taken = DigestSet()

    def _derived(self, name: str) -> str:
        if self._taken.add(name):
            return name
        self.repeated += 1
        digest = digest_of(name)
        times = self._times.get(digest, 1) + 1
        while not self._taken.add(f"{name}~{times}"):  # a source id may look like that
            times += 1
        self._times[digest] = times
        return f"{name}~{times}"


def numbered(items: Iterable[object], ids: Ids, test_uid: str) -> Iterator[NumberedItem]:
    """The author's items, checked and with their ids.

    Raises:
        DefinitionError: something in the iterable is no `TestItem`.
    """
    for index, item in zip(count(), items, strict=False):
        if not isinstance(item, TestItem):
            raise DefinitionError(
                f"make_test_items of '{test_uid}' gave {a_thing(item)} at place {index}.",
                fix="Give TestItem objects: TestItem([prompt, …], context=…).",
            )
        yield NumberedItem(index, ids.identified(item))


def chosen(
    test: PromptResponseTest, dependencies: Mapping[str, Path], ids: Ids, most: int | None, seed: int
) -> tuple[Iterator[NumberedItem], int | None]:
    """The items of a test that a run measures, and how many they are; None where that is not known before.

    Args:
        test: makes them.
        dependencies: where its data is.
        ids: gives them their ids.
        most: how many to choose; None for all.
        seed: what the choice depends on.
    """
    made = test.make_test_items(dependencies)
    items = numbered(made, ids, test.uid)
    if most is None:
        return items, len(made) if isinstance(made, Sized) else None
    few = sample(items, most, seed)
    return iter(few), len(few)


def sample(items: Iterable[NumberedItem], most: int, seed: int) -> list[NumberedItem]:
    """The `most` items with the smallest hashes of (seed, id), in the order of the test.

    So a smaller sample is part of a larger one, and adding items to a test moves few others.
    """
    chosen = heapq.nsmallest(most, items, key=lambda one: _rank(one, seed))
    return sorted(chosen, key=lambda one: one.index)


def _rank(numbered_item: NumberedItem, seed: int) -> bytes:
    text = f"{seed}\n{numbered_item.item.id}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class ItemSource:
    """Hands out items to workers, in order.

    Args:
        items: pulled in a thread, since an author may read files or download there.
        total: how many they are, where that is known before they are read.

    Attributes:
        total: how many they are; None until that is known.
    """

    def __init__(self, items: Iterator[NumberedItem], total: int | None = None) -> None:
        self.total = total
        self._items = items
        self._pulled = 0
        self._ready: deque[NumberedItem] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pull: asyncio.Task[None] | None = None
        self._exhausted = False
        self._error: Exception | None = None

    def take(self) -> NumberedItem | None:
        """The next item, where one is ready and more are on their way; else `next` is to be awaited."""
        more_come = self._pull is not None or self._exhausted or len(self._ready) > _LOW
        return self._ready.popleft() if more_come and self._ready else None

    async def next(self) -> NumberedItem | None:
        """The next item; None when there are no more.

        Raises:
            Exception: what the author's iterable raised, when the items before it are handed out; told once.
        """
        while not self._ready:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if self._exhausted:
                return None
            await self._more()
        item = self._ready.popleft()
        if len(self._ready) < _LOW and not self._exhausted:
            self._start_pull()  # so that workers rarely wait
        return item

    def stop(self) -> None:
        """Hand out no more."""
        self._exhausted = True
        self._error = None
        self._ready.clear()
        self._wake(len(self._waiting))

    async def _more(self) -> None:
        """Wait for a chunk, or its share of one."""
        self._start_pull()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake(1)  # its item is another's
            raise

    def _wake(self, count: int) -> None:
        while count > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                count -= 1

    def _start_pull(self) -> None:
        if self._pull is None:
            self._pull = asyncio.get_running_loop().create_task(self._pull_chunk())

    async def _pull_chunk(self) -> None:
        most = min(_CHUNK, _FIRST_CHUNK + self._pulled)
        chunk, more, error = await in_thread(lambda: _chunk(self._items, most), "items")
        if not self._exhausted:
            self._ready.extend(chunk)
            self._pulled += len(chunk)
            self._exhausted, self._error = not more, error
            if self._exhausted and error is None:
                self.total = self._pulled
        self._pull = None
        # One worker for each item; all of them where there will be no more.
        self._wake(len(self._waiting) if self._exhausted else len(chunk))


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

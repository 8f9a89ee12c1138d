"""The queue of answers that people rate: those of one or several runs, mixed, and in a random order for each rater."""

import hashlib
import heapq
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from urllib.parse import urlencode

from modelgauge.data.item_records import ItemRecord
from modelgauge.data.responses import SUTCompletion
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError
from modelgauge.runs.ratings import Rating, RatingsFile, Undo, digest_answer, first_answer
from modelgauge_workbench.index.index import Index
from modelgauge_workbench.index.queries import run_of
from modelgauge_workbench.index.rows import item_line
from modelgauge_workbench.index.scan import folder_of
from modelgauge_workbench.workbench import Workbench

DRAWN = 100
"""Answers of a queue, unless its address says another number."""
_ANSWERED = "SELECT id, place, start FROM items WHERE run = ? AND (state != 'failed' OR answer != '')"


@dataclass(frozen=True, slots=True)
class RatedRun:
    """A run whose answers are in a queue.

    Args:
        key: its address among runs.
        folder: of the run.
        test: its uid.
        sut: its uid or label, which raters do not see.
        state: what became of it.
    """

    key: str
    folder: RunFolder
    test: str
    sut: str
    state: str

    @property
    def sut_uid(self) -> str:
        """The uid of its SUT, by which labels are matched with judgements."""
        return str(self.folder.read_manifest().get("sut_uid"))

    @property
    def file(self) -> RatingsFile:
        """Its ratings."""
        return RatingsFile.of(self.folder)

    @property
    def rated(self) -> int:
        """How many of its answers somebody rated."""
        return len({rating.item_id for rating in self.file.in_force() if rating.score is not None})


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is rated.

    Args:
        key: its name in addresses, which tells nothing of the run.
        run: whose answer it is.
        item_id: what was answered.
        place: of the item in the test, from 0.
        start: of its line in the journal.
    """

    key: str
    run: RatedRun
    item_id: str
    place: int
    start: int

    def record(self) -> ItemRecord:
        """The item as it was recorded.

        Raises:
            RecordError: the journal is not what it was when it was indexed.
        """
        return item_line(self.run.folder.journal, self.start, self.place).record()


class Queue:
    """The answers of some runs that are to be rated.

    All raters get the same answers, drawn at random, each in an order of their own that stays the same. A longer queue
    holds the shorter one.

    Args:
        workbench: has the runs.
        keys: of the runs.
        drawn: how many answers, of all runs together.

    Raises:
        RecordError: there is no such run, or none was named.
    """

    def __init__(self, workbench: Workbench, keys: Sequence[str], drawn: int = DRAWN) -> None:
        self.keys, self.drawn = sorted(dict.fromkeys(keys)), drawn
        if not self.keys:
            raise RecordError("No run is named.", fix="Choose runs on the page Ratings.")
        with workbench.index.reading() as db:
            found = {key: _row(db, key) for key in self.keys}
        runs = {key: rated_run(workbench, row) for key, row in found.items()}
        self.runs = list(runs.values())
        stamps = tuple((key, row["stamp"], row["journal_read"]) for key, row in found.items())
        self.of_all, places = _drawn(workbench.index, stamps, drawn)
        self.answers = [Answer(key, runs[run], item, place, start) for key, run, item, place, start in places]
        self._by_key = {answer.key: answer for answer in self.answers}

    @property
    def id(self) -> str:
        """Its name, by which guidelines are kept: of the runs in it."""
        return _digest(*self.keys)

    def address(self, page: str, **more: object) -> str:
        """The address of a page about the queue.

        Args:
            page: below `/ratings`.
            more: what the address says beside the queue.
        """
        queue = [*(("run", key) for key in self.keys), *([("n", self.drawn)] if self.drawn != DRAWN else [])]
        return f"/ratings/{page}?{urlencode([*queue, *more.items()])}"

    def order_of(self, rater: str) -> list[Answer]:
        """The answers in the order in which a rater sees them."""
        return sorted(self.answers, key=lambda answer: _digest(rater, answer.key))

    def answer(self, key: str) -> Answer:
        """An answer by its name in addresses.

        Raises:
            RecordError: the queue does not have it.
        """
        if key not in self._by_key:
            raise RecordError(
                "This answer is not in the queue.", fix="Go on with the queue from its first page."
            )
        return self._by_key[key]

    @cached_property
    def ratings(self) -> dict[str, list[Rating]]:
        """The ratings of each answer by its key, where it has any."""
        keys = {(answer.run.key, answer.item_id): answer.key for answer in self.answers}
        found: dict[str, list[Rating]] = {}
        for run in self.runs:
            for rating in run.file.in_force():
                if key := keys.get((run.key, rating.item_id)):
                    found.setdefault(key, []).append(rating)
        return found

    def rated_by(self, rater: str) -> dict[str, Rating]:
        """The ratings that one person gave, by the key of the answer, in the order in which they were given."""
        own = [
            (key, rating)
            for key, several in self.ratings.items()
            for rating in several
            if rating.rater == rater
        ]
        return dict(sorted(own, key=lambda pair: pair[1].time))

    @property
    def progress(self) -> dict[str, int]:
        """How many of the answers each rater has seen, skipped ones included."""
        counts = Counter(rating.rater for several in self.ratings.values() for rating in several)
        return dict(sorted(counts.items()))

    def undo(self, rater: str) -> str | None:
        """Take back the last rating of a person; return the key of its answer, or None if there is none."""
        rated = self.rated_by(rater)
        if not rated:
            return None
        key, last = rated.popitem()
        self.answer(key).run.file.add(Undo(undoes=last.id))
        return key


def shown_answer(record: ItemRecord) -> tuple[tuple[SUTCompletion, ...], str]:
    """The completions that a rater sees, and what tells them from others."""
    completions = first_answer(record)
    return completions, ",".join(digest_answer(completions))


_Place = tuple[str, str, str, int, int]
"""The fields of an `Answer`, with the key of its run."""


@lru_cache(maxsize=16)
def _drawn(index: Index, runs: tuple[tuple[str, str, int], ...], drawn: int) -> tuple[int, list[_Place]]:
    """How many answers runs have, and those of the queue: drawn again where the index has read more of a run.

    Args:
        index: of the runs.
        runs: the key of each, and what says in which state the index read it.
        drawn: how many.
    """
    with index.reading() as db:
        numbers = [(key, _row(db, key)["number"]) for key, *_ in runs]
        every = (
            (_digest(key, row[0]), key, *row)
            for key, number in numbers
            for row in db.execute(_ANSWERED, (number,))
        )
        counted = count()
        best = heapq.nsmallest(drawn, (row for row, _ in zip(every, counted, strict=False)))
    return next(counted), best


def _row(db: sqlite3.Connection, key: str) -> sqlite3.Row:
    row = run_of(db, key)
    if row is None:
        raise RecordError(f"There is no run '{key}'.", fix="Choose runs on the page Ratings.")
    return row


def rated_run(workbench: Workbench, row: sqlite3.Row) -> RatedRun:
    """A run of the index as one whose answers can be rated."""
    return RatedRun(row["key"], folder_of(workbench.index, row), row["test"], row["sut"], row["state"])


def _digest(*parts: str) -> str:
    """A digest of several texts."""
    text = "\0".join(parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

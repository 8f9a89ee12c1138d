"""The cache on disk: a key in, JSON text out. It never evicts, never expires and never runs what it reads."""

import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import diskcache

from modelgauge.cache.damage import file_at, is_damage, is_no_text
from modelgauge.cache.keys import DamagedEntryError, Entry, pack, unpack
from modelgauge.cache.leases import Leases
from modelgauge.cache.rows import Row, connected, rows_of, salvaged, sound_entry
from modelgauge.cache.text_disk import TextDisk, check_settings
from modelgauge.errors import CacheError

log = logging.getLogger(__name__)

_GROUP = 500  # entries taken over at once
_DISK_ERRORS = (OSError, sqlite3.Error, diskcache.Timeout)


class Cache(Protocol):
    """What the engine needs of a store."""

    def get(self, digest: str) -> str | None:
        """The JSON text of a response; None where there is none."""

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Store entries; all of them are committed when this returns."""


class DiskCache:
    """The cache in a folder, readable by its owner only; several processes may share it.

    Args:
        directory: created where it does not exist.

    Raises:
        CacheError: the folder cannot be used, or holds a database that modelgauge did not write.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory = directory.absolute()
        if os.path.expandvars(directory) != str(directory):  # diskcache would open the folder that this means
            raise CacheError(
                f"The cache cannot be in {directory}: it has a variable in its name.",
                fix="Choose another --data-dir.",
            )
        self.damaged = 0
        self._store: Any = None
        # Of files that were set aside: threads may have connections to them still.
        self._former: list[Any] = []
        self._file: tuple[int, int] | None = None
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if os.name == "posix":
                directory.chmod(0o700)
            self.leases = Leases(directory / "leases.db")
            try:
                self._open()
                self.close()  # the connection of this thread; each thread opens its own
            except BaseException:
                self.leases.close()
                raise
        except _DISK_ERRORS as error:
            raise CacheError(
                f"The cache in {directory} cannot be opened: {error}.",
                fix="Free the disk, correct its permissions, move the folder away, choose another --data-dir (under "
                "pytest MODELGAUGE_DATA_DIR), or use --no-caching (in Python caching=False).",
            ) from error

    @property
    def database(self) -> Path:
        """The file that holds the entries."""
        return self.directory / "cache.db"

    # --- what the engine uses -------------------------------------------------------------------------------

    def get(self, digest: str) -> str | None:
        """The JSON text of a response; None where there is none, or a damaged one, which is quarantined.

        Raises:
            CacheError: the database cannot be read.
        """
        store = self._store
        try:
            try:
                return self._read(digest)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._begin_anew(error, store)
                return self._read(digest)
        except _DISK_ERRORS as error:
            raise self._unreadable(error) from error

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Store entries in one transaction, and give their leases back.

        Raises:
            CacheError: the disk is full or the database cannot be written; nothing of the group is stored.
        """
        store = self._store
        try:
            try:
                self._put_many(entries)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._begin_anew(error, store)
                self._put_many(entries)
            self.leases.give_back([entry.key.digest for entry in entries])
        except _DISK_ERRORS as error:
            raise CacheError(
                f"The cache in {self.directory} cannot be written: {_cause(error)}.",
                fix="Free the disk, then run `modelgauge resume` or the same command again: "
                "what was committed is kept.",
            ) from error

    def close(self) -> None:
        """Close the connections of this thread. Closing the last one checkpoints, so it takes its turn."""
        try:
            with self.leases.exclusive():
                self._close_stores()
        except _DISK_ERRORS as error:
            # What was committed is; a checkpoint that failed is made up for by the next one.
            log.warning("The cache in %s could not be closed in turn: %s", self.directory, error)
            self._close_stores()
        self.leases.close_thread()

    def leave(self) -> None:
        """Tell other processes that this one is done; call it once, after all threads have closed."""
        self.leases.close()

    # --- what people use ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        with self._reading():
            return len(self._store)

    def volume(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.directory.glob("cache.db*"))

    def clear(self) -> int:
        """Remove all entries; returns how many there were."""
        with self._reading(), self.leases.exclusive():
            count = len(self._store)
            self._store.clear(retry=True)
        return count

    def entries(self) -> Iterator[Entry]:
        """All sound entries."""
        for row in self.rows():
            try:
                yield sound_entry(row)
            except DamagedEntryError:
                continue

    def rows(self) -> Iterator[Row]:
        """All rows as they are, sound or not.

        Raises:
            CacheError: the file is damaged; `verify` mends it.
        """
        with self._reading():
            yield from rows_of(self.database)

    def quarantine_row(self, row: Row, why: str) -> None:
        """Take a damaged row out of the database, and keep it for a person to look at."""
        with self._reading(), self.leases.exclusive():
            self._take_out(row, why)

    def set_aside(self, why: str) -> None:
        """Move the database into the quarantine, and begin a new one with the entries that are sound."""
        with self._reading():
            self._begin_anew(sqlite3.DatabaseError(why), self._store)

    # --- the rest -------------------------------------------------------------------------------------------

    def _open(self) -> Any:
        aside: Path | None = None
        with self.leases.exclusive():
            try:
                check_settings(self.database)
                self._begin()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                aside = self._set_aside(error)
                self._begin()
        if aside is not None:
            self._take_over(aside)

    def _begin(self) -> None:
        """Use the file that has the name now, a new one where there is none."""
        store = _Store(
            str(self.directory),
            disk=TextDisk,
            eviction_policy="none",
            cull_limit=0,
            size_limit=2**62,
            statistics=0,
            tag_index=0,
            sqlite_mmap_size=0,  # with several writers a mapped file can be stale
        )
        self._file = file_at(self.database)
        if self._store is not None:
            self._former.append(self._store)
        self._store = store

    def _close_stores(self) -> None:
        """A connection is closed by its own thread, or by nobody."""
        for store in (*self._former, self._store):
            store.close()

    def _read(self, digest: str) -> str | None:
        try:
            stored = self._store.get(digest)
            return None if stored is None else unpack(digest, stored).response
        except DamagedEntryError as error:
            why = str(error)
        except sqlite3.DatabaseError as error:
            if not is_no_text(error):
                raise
            why = "no UTF-8"
        with self.leases.exclusive():
            for row in rows_of(self.database, digest):
                self._take_out(row, why)
        return None

    def _put_many(self, entries: Sequence[Entry]) -> None:
        with self.leases.exclusive():
            if self._file != file_at(self.database):  # another process has set it aside
                self._store.close()
                self._begin()
            with self._store.transact(retry=True):
                for entry in entries:
                    self._store.set(entry.key.digest, pack(entry))

    def _take_out(self, row: Row, why: str) -> None:
        """Take out a row, unless another process has written it anew by now; inside `exclusive`."""
        with closing(connected(self.database)) as connection, connection:
            found = connection.execute(f"{Row.select()} WHERE rowid = ?", (row.rowid,)).fetchone()
            if found is not None and Row._make(found) == row:
                self._report(str(row.key), why, row.value)
                connection.execute("DELETE FROM Cache WHERE rowid = ?", (row.rowid,))

    def _begin_anew(self, error: sqlite3.DatabaseError, damaged: Any) -> None:
        """Set a damaged database aside, and begin a new one with its sound entries; once only."""
        aside: Path | None = None
        with self.leases.exclusive():
            if self._store is not damaged:
                return
            self._store.close()
            if self._file == file_at(self.database):
                aside = self._set_aside(error)
            self._begin()
        if aside is not None:
            self._take_over(aside)

    def _set_aside(self, error: sqlite3.DatabaseError) -> Path:
        aside = self.directory / "quarantine" / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
        aside.mkdir(parents=True)
        for path in list(self.directory.glob("cache.db*")):
            path.rename(aside / path.name)
        self.damaged += 1
        log.warning("The cache was damaged (%s); it was moved to %s, and a new one begun.", error, aside)
        return aside

    def _take_over(self, aside: Path) -> None:
        kept = 0
        entries = salvaged(aside / "cache.db")
        while group := list(islice(entries, _GROUP)):
            self._put_many(group)
            kept += len(group)
        log.warning("%d sound answers of the damaged cache were taken over.", kept)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except _DISK_ERRORS as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> CacheError:
        return CacheError(
            f"The cache in {self.directory} cannot be read: {_cause(error)}.",
            fix="Run `modelgauge cache verify`.",
        )

    def _report(self, key: str, why: str, value: Any) -> None:
        self.damaged += 1
        folder = self.directory / "quarantine"
        folder.mkdir(exist_ok=True)
        with (folder / "rows.jsonl").open("a", encoding="utf-8") as file:
            told = {"time": datetime.now(UTC).isoformat(), "key": key, "why": why, "value": repr(value)}
            file.write(json.dumps(told) + "\n")
        log.warning("A damaged cache entry (%s) was moved to %s; its call is made again.", why, folder)


class _Store(diskcache.Cache):  # type: ignore[misc]  # diskcache ships no types
    """A diskcache that lets go of a file which it could not open, so that this can be moved away."""

    def __init__(self, directory: str, **settings: Any) -> None:
        try:
            super().__init__(directory, **settings)
        except BaseException:
            self.close()
            raise


def _cause(error: BaseException) -> BaseException:
    """What went wrong first: after a full disk, ending the transaction fails too."""
    context = error.__context__
    return _cause(context) if isinstance(context, sqlite3.Error) and not is_damage(context) else error

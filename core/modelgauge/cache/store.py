"""The cache on disk: a key in, JSON text out. It never evicts, never expires and never runs what it reads."""

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import diskcache

from modelgauge.cache.base import CacheCheck, in_groups
from modelgauge.cache.database import (
    LARGEST,
    Store,
    StoredRow,
    check_database,
    check_files,
    checked_rows,
    connect,
    file_at,
    is_damage,
    row_at,
    rows_of,
    salvage,
    sound_entries,
    sound_entry,
    structure_of,
    why_unreadable,
)
from modelgauge.cache.folder import CacheFolder
from modelgauge.cache.keys import DamagedEntryError, Entry, pack, was_redacted
from modelgauge.cache.leases import Leases
from modelgauge.errors import CacheError
from modelgauge.files.causes import advice_for
from modelgauge.files.regular import opened

log = logging.getLogger(__name__)
T = TypeVar("T")

_DISK_ERRORS = (OSError, sqlite3.Error, diskcache.Timeout)


class DiskCache(CacheFolder):
    """The cache in a folder; several processes may share it, and accounts if their group may write in the folder.

    Args:
        directory: created where it does not exist, readable by its owner only.

    Raises:
        CacheError: the folder cannot be used, or holds a database that modelgauge did not write.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        directory = self.directory
        if os.path.expandvars(directory) != str(directory):  # diskcache would open the folder that this means
            raise CacheError(
                f"The cache cannot be in {directory}: it has a variable in its name.",
                fix="Choose another --data-dir.",
            )
        self._store: Any = None
        # Of files that were quarantined: threads may have connections to them still.
        self._former: list[Any] = []
        self._file: tuple[int, int] | None = None
        try:
            # Keep the mode of an existing folder: several accounts may share it.
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            check_files(directory)
            self.leases = Leases(directory)
            try:
                self._open()
                _share(directory)
                self.close()  # the connection of this thread; each thread opens its own
            except BaseException:
                self.leases.close()
                raise
        except _DISK_ERRORS as error:
            raise CacheError(
                f"The cache in {directory} cannot be opened: {error}.",
                fix=f"{advice_for(error)} (under pytest MODELGAUGE_DATA_DIR). A run can do without: --no-caching (in "
                "Python caching=False).",
            ) from error

    # --- what the engine uses -------------------------------------------------------------------------------

    def entries_at(self, digests: Collection[str]) -> dict[str, Entry]:
        """The entries of these keys that are there; damaged responses are quarantined, and count as missing.

        Raises:
            CacheError: the database cannot be read.
        """
        found: dict[str, Entry] = {}
        with self._reading():
            for group in in_groups(digests):
                found |= self._past_damage(partial(self._read, group))
        return found

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Store entries in one transaction, and give their leases back.

        Raises:
            CacheError: the disk is full or the database cannot be written; nothing of the group is stored.
        """
        try:
            self._past_damage(lambda: self._put_many(entries))
            self.leases.give_back([entry.key.digest for entry in entries])
        except _DISK_ERRORS as error:
            raise CacheError(
                f"The cache in {self.directory} cannot be written: {_cause(error)}.",
                fix=f"{advice_for(_cause(error))}, then run `modelgauge resume` or the same command again: what was "
                "committed is kept.",
            ) from error

    def take(self, digests: Collection[str]) -> dict[str, str]:
        """Lease keys; returns those that are not ours to pay, each with the id of the process that asks it."""
        return self.leases.take(digests)

    def give_back(self, digests: Collection[str]) -> None:
        """End leases: the answers are committed, or the calls failed."""
        self.leases.give_back(digests)

    def close(self) -> None:
        """Close the connections of this thread. Closing the last connection checkpoints, so it takes its turn."""
        try:
            with self.leases.exclusive():
                self._close_stores()
        except _DISK_ERRORS as error:
            # What was committed is; a checkpoint that failed is made up for by the next one.
            log.warning("The cache in %s could not be closed in turn: %s", self.directory, error)
            self._close_stores()

    def leave(self) -> None:
        """Tell other processes that this one is done; call it once, after all threads have closed."""
        self.leases.close()

    # --- what people use ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        with self._reading():
            return len(self._store)

    @property
    def shared(self) -> bool:
        """Whether another live process has the cache open."""
        return self.leases.shared

    def verify(self) -> CacheCheck:
        """Read every entry, check it against its key and checksum, and quarantine what is damaged.

        Where the file's structure is damaged, the whole file is quarantined, and its sound entries go into a new file.
        """
        structure = structure_of(self.database)
        with self._reading():
            if structure != "ok":
                self._replace(sqlite3.DatabaseError(structure), self._store)
            sound, bad = checked_rows(rows_of(self.database))
            with self.leases.exclusive():
                for row, why in bad:
                    self._quarantine_row(row, why)
        return CacheCheck(sound=sound, damaged=len(bad), structure=structure)

    def forget(self, digests: Collection[str]) -> int:
        """Remove the entries of these keys, and return their number."""
        with self._reading(), self.leases.exclusive():
            self._reconnect_if_replaced()
            with self._store.transact():
                return sum(map(self._store.delete, digests))

    def clear(self) -> int:
        """Remove all entries; returns how many there were."""
        with self._reading(), self.leases.exclusive():
            count = len(self._store)
            self._store.clear()
        return count

    def entries(self) -> Iterator[Entry]:
        """All sound entries that are read.

        Raises:
            CacheError: the file is damaged; `verify` repairs it.
        """
        with self._reading():
            yield from sound_entries(rows_of(self.database))

    # --- the database -----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        try:
            with self.leases.exclusive():
                self._file = file_at(self.database)
                check_database(self.database)
                self._connect()
        except sqlite3.DatabaseError as error:
            if not (is_damage(error) or why_unreadable(error)):
                raise
            self._replace(error, None)

    def _connect(self) -> None:
        """Use the file that has the name now, or a new file; inside `exclusive`."""
        store = Store(self.directory)
        self._file = file_at(self.database)
        if self._store is not None:
            self._former.append(self._store)
        self._store = store

    @property
    def _is_replaced(self) -> bool:
        """Whether another process has quarantined the file and begun a new file."""
        return self._file != file_at(self.database)

    def _reconnect_if_replaced(self) -> None:
        """Use the file that has the name now; inside `exclusive`."""
        if self._is_replaced:
            self._store.close()
            self._connect()

    def _past_damage(self, work: Callable[[], T]) -> T:
        """Read or write; if the database turns out to be damaged, do it once more in a new database."""
        store = self._store
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._replace(error, store)
            return work()

    def _replace(self, error: sqlite3.DatabaseError, damaged: Any) -> None:
        """Quarantine a damaged database, and put its sound entries into a new database; once only.

        Args:
            error: that shows the damage.
            damaged: the store that met it; nothing happens where another thread has replaced it since.
        """
        aside: Path | None = None
        with self.leases.exclusive():
            if self._store is not damaged:
                return
            if damaged is not None:
                damaged.close()
            if not self._is_replaced:
                aside = self._quarantine_database(error)
            self._connect()
        if aside is None:
            return
        kept = 0
        for group in in_groups(salvage(aside / "cache.db")):
            self._put_many(group)
            kept += len(group)
        log.warning("%d sound answers of the damaged cache were taken over.", kept)

    def _quarantine_database(self, error: sqlite3.DatabaseError) -> Path:
        aside = Path(self.quarantine) / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
        aside.mkdir(parents=True)
        for path in list(self.directory.glob("cache.db*")):
            path.rename(aside / path.name)
        self.damaged += 1
        log.warning("The cache was damaged (%s); it was moved to %s, and a new one begun.", error, aside)
        return aside

    # --- rows -------------------------------------------------------------------------------------------------------

    def _close_stores(self) -> None:
        """Close the connections of this thread; those of others are theirs to close."""
        for store in (*self._former, self._store):
            store.close()

    def _read(self, digests: Sequence[str]) -> dict[str, Entry]:
        damaged: dict[str, str] = {}
        rows = self._rows_at(digests, damaged)
        if len(rows) < len(digests) and self._is_replaced:  # what was paid since is in the new one
            with self.leases.exclusive():
                self._reconnect_if_replaced()
            damaged.clear()
            rows = self._rows_at(digests, damaged)
        found: dict[str, Entry] = {}
        for row in rows:
            try:
                if not (isinstance(row.value, str) and was_redacted(row.value)):
                    found[row.key] = sound_entry(row)
            except DamagedEntryError as error:
                damaged[row.key] = str(error)
        if damaged:
            with self.leases.exclusive():
                for digest, why in damaged.items():
                    for row in rows_of(self.database, digest):
                        self._quarantine_row(row, why)
        return found

    def _rows_at(self, digests: Sequence[str], damaged: dict[str, str]) -> list[StoredRow]:
        """The rows of some keys; those that cannot be read are added to `damaged`, with the reason."""
        try:
            rows: list[StoredRow] = self._store.rows_at(digests)
        except sqlite3.DatabaseError as error:
            why = why_unreadable(error)
            if not why:
                raise
            if len(digests) > 1:  # SQLite does not say which
                return [row for digest in digests for row in self._rows_at([digest], damaged)]
            damaged[digests[0]] = why
            return []
        return rows

    def _put_many(self, entries: Sequence[Entry]) -> None:
        with self.leases.exclusive():
            self._reconnect_if_replaced()
            with self._store.transact():
                for entry in entries:
                    packed = pack(entry)
                    if 4 * len(packed) > LARGEST and len(packed.encode("utf-8")) > LARGEST:
                        log.warning(
                            "A response of more than %d MB is not kept in the cache.", LARGEST // 2**20
                        )
                    else:
                        self._store.set(entry.key.digest, packed)

    def _quarantine_row(self, row: StoredRow, why: str) -> None:
        """Move a row out, unless another process has written it again by now; inside `exclusive`."""
        with closing(connect(self.database)) as connection, connection:
            # Of a huge row every page would be overwritten with zeros, and others moved to its place.
            connection.execute("PRAGMA secure_delete = OFF")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # until diskcache connects again
            if row_at(connection, row.rowid) == row:
                self._report(str(row.key), why, row.value)
                connection.execute("DELETE FROM Cache WHERE rowid = ?", (row.rowid,))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except _DISK_ERRORS as error:
            raise CacheError(
                f"The cache in {self.directory} cannot be read: {_cause(error)}.",
                fix="Run `modelgauge cache verify`.",
            ) from error

    def _report(self, key: str, why: str, value: Any) -> None:
        self.damaged += 1
        folder = Path(self.quarantine)
        folder.mkdir(exist_ok=True)
        with opened(folder / "rows.jsonl", "ab") as file:
            entry = {"time": datetime.now(UTC).isoformat(), "key": key, "why": why, "value": repr(value)}
            file.write(json.dumps(entry).encode("ascii") + b"\n")
        log.warning("A damaged cache entry (%s) was moved to %s; its call is made again.", why, folder)


def _share(directory: Path) -> None:
    """Give our files the group permissions of their folder, whatever the umask of the account that creates them."""
    group = directory.stat().st_mode & 0o020
    if not group or os.name != "posix":
        return
    for file in directory.iterdir():
        with suppress(OSError):  # of another account, or gone
            mode = file.stat().st_mode
            if file.is_file() and not file.is_symlink() and not mode & group:
                file.chmod((mode | 0o060) & 0o777)


def _cause(error: BaseException) -> BaseException:
    """The first error of a chain: after a full disk, ending the transaction fails too."""
    context = error.__context__
    passed_on = isinstance(context, diskcache.Timeout) or (
        isinstance(context, sqlite3.Error) and not is_damage(context)
    )
    return _cause(context) if context is not None and passed_on else error

"""The database of a cache's folder, which recovers from damage: it is replaced, and what is sound in it is kept."""

import json
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import diskcache

from modelgauge.cache.backend import in_groups
from modelgauge.cache.database import (
    Store,
    StoredRow,
    check_database,
    check_structure,
    connect,
    file_at,
    is_damage,
    is_unreadable,
    raw_value,
    rows_at,
    rows_of_others,
    salvage,
)
from modelgauge.cache.leases import Leases
from modelgauge.files.regular import opened

log = logging.getLogger(__name__)
T = TypeVar("T")


class RecoveringDatabase:
    """A database whose threads have connections of their own, and which other processes may replace.

    Args:
        file: made where it does not exist.
        quarantine: the folder to which damaged rows and files are moved.
        leases: whose lock is held while anything is written.

    Attributes:
        damaged: how many times the file was damaged, or held rows of others.
    """

    def __init__(self, file: Path, quarantine: Path, leases: Leases) -> None:
        self.file, self._quarantine, self._exclusive = file, quarantine, leases.exclusive
        self.damaged = 0
        self._store: Any = None
        # Of files that were quarantined: threads may have connections to them still.
        self._former: list[Any] = []
        self._identity: tuple[int, int] | None = None

    def open(self) -> None:
        """Open the file, or a new file in place of a damaged one."""
        try:
            with self._exclusive():
                self._identity = file_at(self.file)
                check_database(self.file)
                self._connect()
        except sqlite3.DatabaseError as error:
            if not (is_damage(error) or is_unreadable(error)):
                raise
            self.replace(error, None)

    def close_thread(self) -> None:
        """Close the connections of this thread. Closing the last connection checkpoints, so it takes its turn."""
        try:
            with self._exclusive():
                self._close_stores()
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            # What was committed is; a checkpoint that failed is made up for by the next one.
            log.warning("The cache in %s could not be closed in turn: %s", self.file.parent, error)
            self._close_stores()

    # --- values ---------------------------------------------------------------------------------------------

    def read(self, digests: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that are there; a value that is too large is empty."""
        return self._past_damage(partial(self._read, digests))

    def write(self, values: Mapping[str, bytes]) -> None:
        """Store values in one transaction."""
        self._past_damage(partial(self._write, values))

    def remove(self, digests: Sequence[str]) -> int:
        """Remove the values of these keys in one transaction, and return how many there were."""
        with self._exclusive():
            self._reconnect_if_replaced()
            with self._store.transact():
                return sum(map(self._store.delete, digests))

    def clear(self) -> int:
        """Remove all values, and return how many there were."""
        with self._exclusive():
            count = len(self._store)
            self._store.clear()
        return count

    def set_aside(self, digest: str, value: bytes, why: str) -> bool:
        """Move a row to the quarantine; return False if another process has written it again by now."""
        return self._past_damage(partial(self._set_aside, digest, value, why))

    def check(self) -> tuple[str, int]:
        """Replace the file if its structure is damaged, and set rows aside that modelgauge did not write.

        Returns:
            What is wrong with the structure, "ok" if nothing is, and the number of those rows.
        """
        with closing(connect(self.file)) as connection:
            structure = check_structure(connection)
        if structure != "ok":
            self.replace(sqlite3.DatabaseError(structure), self._store)
        with self._exclusive(), closing(connect(self.file)) as connection, connection:
            rows = list(rows_of_others(connection))
            self._set_rows_aside(connection, rows, "not a row that modelgauge writes")
        if rows:
            self.damaged += len(rows)
            log.warning(
                "Rows of the cache with keys of others (%d) were moved to %s.", len(rows), self._quarantine
            )
        return structure, len(rows)

    def _read(self, digests: Sequence[str]) -> dict[str, bytes]:
        values = self._values_at(digests)
        if len(values) < len(digests) and self._is_replaced:  # what was paid since is in the new one
            with self._exclusive():
                self._reconnect_if_replaced()
            values = self._values_at(digests)
        return values

    def _values_at(self, digests: Sequence[str]) -> dict[str, bytes]:
        try:
            return {row.key: row.value for row in self._store.rows_at(digests)}
        except sqlite3.DataError:  # a value is larger than any that is written; SQLite does not say which
            if len(digests) == 1:
                return {digests[0]: b""}
            return {key: value for digest in digests for key, value in self._values_at([digest]).items()}

    def _write(self, values: Mapping[str, bytes]) -> None:
        with self._exclusive():
            self._reconnect_if_replaced()
            with self._store.transact():
                for digest, value in values.items():
                    self._store.set(digest, value.decode("utf-8"))

    def _set_aside(self, digest: str, value: bytes, why: str) -> bool:
        with self._exclusive(), closing(connect(self.file)) as connection, connection:
            rows = [row for row in rows_at(connection, digest) if row.value == value]
            self._set_rows_aside(connection, rows, why)
        return bool(rows)

    def _set_rows_aside(self, connection: sqlite3.Connection, rows: Sequence[StoredRow], why: str) -> None:
        """Write rows to the file in the quarantine, and remove them; while the lock is held."""
        if not rows:
            return
        # Of a huge row every page would be overwritten with zeros, and others moved to its place.
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # until diskcache connects again
        self._quarantine.mkdir(exist_ok=True)
        for row in rows:
            found, value = datetime.now(UTC).isoformat(), repr(raw_value(connection, row.rowid))
            entry = {"time": found, "key": str(row.key), "why": why, "value": value}
            with opened(self._quarantine / "rows.jsonl", "ab") as file:
                file.write(json.dumps(entry).encode("ascii") + b"\n")
            connection.execute("DELETE FROM Cache WHERE rowid = ?", (row.rowid,))

    # --- the file -------------------------------------------------------------------------------------------

    def replace(self, error: sqlite3.DatabaseError, damaged: Any) -> None:
        """Quarantine a damaged file, and put its sound entries into a new file; once only.

        Args:
            error: that shows the damage.
            damaged: the store that met it; nothing happens where another thread has replaced it since.
        """
        aside: Path | None = None
        with self._exclusive():
            if self._store is not damaged:
                return
            if damaged is not None:
                damaged.close()
            if not self._is_replaced:
                aside = self._set_file_aside(error)
            self._connect()
        if aside is None:
            return
        kept = 0
        for group in in_groups(salvage(aside / self.file.name)):
            self._write(dict(group))
            kept += len(group)
        log.warning("%d sound answers of the damaged cache were taken over.", kept)

    def _set_file_aside(self, error: sqlite3.DatabaseError) -> Path:
        aside = self._quarantine / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
        aside.mkdir(parents=True)
        for path in list(self.file.parent.glob(f"{self.file.name}*")):
            path.rename(aside / path.name)
        self.damaged += 1
        log.warning("The cache was damaged (%s); it was moved to %s, and a new one begun.", error, aside)
        return aside

    def _past_damage(self, work: Callable[[], T]) -> T:
        """Read or write; if the database turns out to be damaged, do it once more in a new database."""
        store = self._store
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.replace(error, store)
            return work()

    def _connect(self) -> None:
        """Use the file that has the name now, or a new file; while the lock is held."""
        store = Store(self.file.parent)
        self._identity = file_at(self.file)
        if self._store is not None:
            self._former.append(self._store)
        self._store = store

    def _close_stores(self) -> None:
        """Close the connections of this thread; those of others are theirs to close."""
        for store in (*self._former, self._store):
            store.close()

    @property
    def _is_replaced(self) -> bool:
        """True if another process has quarantined the file and begun a new one."""
        return self._identity != file_at(self.file)

    def _reconnect_if_replaced(self) -> None:
        """Use the file that has the name now; while the lock is held."""
        if self._is_replaced:
            self._store.close()
            self._connect()

"""The cache in a folder, read without writing anything: what can be done where nothing can be written."""

import errno
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import diskcache

from modelgauge.cache.backend import CacheBackend, CacheStats, Work
from modelgauge.cache.database import (
    check_database,
    check_files,
    check_structure,
    connect,
    read_page,
    rows_at,
    rows_of_others,
)
from modelgauge.errors import CacheError
from modelgauge.files.lock import lock


class ReadOnlyFolder(CacheBackend):
    """A folder in which nothing is made, locked for writing or changed.

    Args:
        directory: of the cache.

    Attributes:
        file: the database that holds the entries.
    """

    errors = (OSError, sqlite3.Error, diskcache.Timeout)
    is_thread_safe = True
    is_read_only = True
    folder: Path

    def __init__(self, directory: Path) -> None:
        super().__init__(str(directory.absolute()))
        self.folder = directory.absolute()
        self.file = self.folder / "cache.db"
        self.place, self.quarantine = str(self.folder), str(self.folder / "quarantine")

    def connect(self) -> None:
        """Do nothing: each call opens the file."""

    def close(self) -> None:
        """Do nothing: no file is open between calls."""

    def explain(self, error: Exception, work: Work) -> CacheError:
        """Return the error that users see."""
        return CacheError(
            f"The cache in {self.folder} cannot be {'read' if work == 'read' else 'written'}: {error}.",
            fix="Run it as a user who can write in that folder.",
        )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open the database without writing anything."""
        check_files(self.folder)
        # In a folder that is read-only SQLite cannot make the files of a WAL database, but for one that is at rest.
        at_rest = "" if self.file.with_name("cache.db-wal").exists() else "&immutable=1"
        check_database(self.file, at_rest)
        with closing(connect(self.file, f"mode=ro{at_rest}")) as connection:
            yield connection

    # --- reading --------------------------------------------------------------------------------------------

    def get_many(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the values of the keys that are there."""
        with self._reading() as connection:
            return {digest: row.value for digest in digests for row in rows_at(connection, digest)}

    def page(self, after: str) -> tuple[Mapping[str, bytes], str | None]:
        """Return some values in the order of their rows."""
        with self._reading() as connection:
            return read_page(connection, after)

    def check(self) -> tuple[str, int]:
        """Check the file's structure, and count rows that modelgauge did not write."""
        with self._reading() as connection:
            return check_structure(connection), sum(1 for _ in rows_of_others(connection))

    def stats(self) -> CacheStats:
        """Return the number of rows, the size of the files, and whether another process has the cache open."""
        with self._reading() as connection:
            (entries,) = connection.execute("SELECT count(*) FROM Cache").fetchone()
        size = sum(path.stat().st_size for path in self.folder.glob("cache.db*"))
        return CacheStats(entries, size, self._count_quarantined(), self._is_shared())

    def _count_quarantined(self) -> int:
        """Return the number of damaged rows that are kept, and of databases that were set aside as a whole."""
        folder = Path(self.quarantine)
        databases = sum(path.is_dir() for path in folder.iterdir()) if folder.is_dir() else 0
        rows = folder / "rows.jsonl"
        if not rows.is_file():
            return databases
        with rows.open("rb") as file:
            return databases + sum(1 for _ in file)

    def _is_shared(self) -> bool:
        with suppress(OSError):  # no process has opened it yet, say
            turn = lock(self.folder / "write.lock")
            if turn is None:
                return True
            with turn:  # else a lock that is only looked at could be in the way of a process that begins
                return any(_is_locked(file) for file in self.folder.glob("*.leases"))
        return False

    def set_aside(self, digest: str, value: bytes, why: str) -> bool:
        """Leave a damaged value where it is."""
        del digest, value, why
        return False

    # --- what it refuses ------------------------------------------------------------------------------------

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Refuse to store values."""
        self._refuse(values)

    def remove(self, digests: Sequence[str]) -> int:
        """Refuse to remove values."""
        self._refuse(digests)

    def lease(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Refuse to lease keys."""
        self._refuse(digests)

    def release(self, digests: Sequence[str]) -> None:
        """Refuse to end leases."""
        self._refuse(digests)

    def _refuse(self, _: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "nothing can be written in that folder", str(self.folder))


def _is_locked(file: Path) -> bool:
    held = lock(file)
    if held is not None:
        held.close()
    return held is None

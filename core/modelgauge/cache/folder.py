"""A cache's folder, read without writing anything: what can be done with one that is read-only."""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from modelgauge.cache.base import CacheCheck
from modelgauge.cache.database import (
    check_database,
    check_files,
    checked_rows,
    connect,
    rows_at,
    rows_of,
    sound_entries,
    structure_of,
)
from modelgauge.cache.keys import Entry
from modelgauge.errors import CacheError
from modelgauge.files.lock import lock


class CacheFolder:
    """The folder of a cache, in which nothing is made, locked for writing or changed.

    Args:
        directory: of the cache.

    Attributes:
        database: the file that holds the entries.
        place: the folder, for messages.
        quarantine: the folder of damaged entries, for messages.
        damaged: how many damaged entries were found since it was opened.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.database = self.directory / "cache.db"
        self.place, self.quarantine = str(self.directory), str(self.directory / "quarantine")
        self.damaged = 0

    def __len__(self) -> int:
        with self._without_writing() as query, closing(connect(self.database, query)) as connection:
            (number,) = connection.execute("SELECT count(*) FROM Cache").fetchone()
            return int(number)

    def verify(self) -> CacheCheck:
        """Read every entry and check it against its key and checksum; what is damaged stays where it is."""
        with self._without_writing() as query:
            structure = structure_of(self.database, query)
            sound, damaged = checked_rows(rows_of(self.database, query=query))
        return CacheCheck(sound=sound, damaged=len(damaged), structure=structure, read_only=True)

    def get(self, digest: str) -> str | None:
        """Return the JSON text of a response; None if it is not stored; see `entries_at`."""
        return self.get_many([digest]).get(digest)

    def get_many(self, digests: Collection[str]) -> dict[str, str]:
        """Return the JSON texts of stored responses; see `entries_at`."""
        return {digest: entry.response for digest, entry in self.entries_at(digests).items()}

    def entries_at(self, digests: Collection[str]) -> dict[str, Entry]:
        """The sound entries of these keys that are there.

        Raises:
            CacheError: the database cannot be read.
        """
        with self._without_writing() as query, closing(connect(self.database, query)) as connection:
            rows = [row for digest in digests for row in rows_at(connection, digest)]
            return {entry.key.digest: entry for entry in sound_entries(rows)}

    def entries(self) -> Iterator[Entry]:
        """All sound entries."""
        with self._without_writing() as query:
            yield from sound_entries(rows_of(self.database, query=query))

    @contextmanager
    def _without_writing(self) -> Iterator[str]:
        """How SQLite opens the database without writing: the query of its URI.

        Raises:
            CacheError: it cannot be read, or modelgauge did not write it.
        """
        try:
            check_files(self.directory)
            # In a folder that is read-only SQLite cannot make the files of a WAL database, but for one that is at rest.
            at_rest = "" if self.database.with_name("cache.db-wal").exists() else "&immutable=1"
            check_database(self.database, at_rest)
            yield f"mode=ro{at_rest}"
        except (OSError, sqlite3.Error) as error:
            raise CacheError(
                f"The cache in {self.directory} cannot be read: {error}.",
                fix="Run it as a user who can write in that folder.",
            ) from error

    @property
    def shared(self) -> bool:
        """Whether another live process has the cache open."""
        with suppress(OSError):  # no process has opened it yet, say
            turn = lock(self.directory / "write.lock")
            if turn is None:
                return True
            with turn:  # else a lock that is only looked at could be in the way of a process that begins
                return any(_is_locked(file) for file in self.directory.glob("*.leases"))
        return False

    def volume(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.directory.glob("cache.db*"))

    def quarantined(self) -> int:
        """How many damaged entries are kept: rows, and databases that were set aside as a whole."""
        folder = Path(self.quarantine)
        databases = sum(path.is_dir() for path in folder.iterdir()) if folder.is_dir() else 0
        rows = folder / "rows.jsonl"
        if not rows.is_file():
            return databases
        with rows.open("rb") as file:
            return databases + sum(1 for _ in file)


def _is_locked(file: Path) -> bool:
    held = lock(file)
    if held is not None:
        held.close()
    return held is None

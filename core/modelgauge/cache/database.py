"""The database of the cache: our diskcache, the check of a file before it is opened, its raw rows, and which errors
mean damage. Nothing in the file is trusted.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import diskcache
from diskcache.core import DEFAULT_SETTINGS, METADATA, MODE_RAW

from modelgauge.cache.keys import DamagedEntryError, Entry, unpack, was_redacted
from modelgauge.errors import CacheError
from modelgauge.files.regular import check_regular

LARGEST = 2**26  # bytes of a value: what is larger was not written here, and is not read either
_OF_THE_ROW = 2**16  # what stands in a row beside its value
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_OWN_TEXTS = frozenset({"wal", "none"})  # the only texts among the settings that the cache writes


class StoredRow(NamedTuple):
    """A row of the database, as it is found."""

    rowid: int
    key: Any = None
    raw: Any = None
    mode: Any = None
    filename: Any = None
    value: Any = None


_SELECT = f"SELECT {', '.join(StoredRow._fields)}"


class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache ships no types
    """A diskcache Disk that keeps texts in the database and nothing else: no pickles, no files beside it.

    The stock `Disk` and `JSONDisk` load pickles and open file names that they find in the database.
    """

    def put(self, key: str) -> tuple[str, bool]:
        return key, True

    def get(self, key: Any, raw: Any) -> Any:  # noqa: ARG002  diskcache's signature
        return key  # as it stands there: whoever lists keys leaves out what is not a text

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, str]:  # noqa: ARG002  diskcache's signature
        return 0, MODE_RAW, None, value

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> Any:  # noqa: ARG002  likewise
        self.check(mode, filename)
        return value

    @staticmethod
    def check(mode: Any, filename: Any) -> None:
        """Refuse a row that holds no text."""
        if mode != MODE_RAW or filename is not None:
            raise DamagedEntryError("a value that is not stored as text")

    def remove(self, filepath: Any) -> None:
        """Do nothing: no file name in the database is ours."""


class Store(diskcache.Cache):  # type: ignore[misc]  # diskcache ships no types
    """A diskcache with our Disk and settings, whose connections trust nothing in the file.

    It closes a file that it could not open as a cache, so that the file can be moved away.
    """

    def __init__(self, directory: Path) -> None:
        try:
            super().__init__(
                str(directory),
                disk=TextDisk,
                eviction_policy="none",
                cull_limit=0,
                size_limit=2**62,
                statistics=0,
                tag_index=0,
                sqlite_mmap_size=0,  # with several writers a mapped file can be stale
            )
        except BaseException:
            self.close()
            raise

    def rows_at(self, keys: Sequence[str]) -> list[StoredRow]:
        """The rows of some keys; a statement for each costs three times as much."""
        # The plus sign keeps SQLite from searching the index of expire_time, in which all rows are alike.
        of_keys = f"raw = 1 AND +expire_time IS NULL AND key IN ({','.join('?' * len(keys))})"
        return [
            StoredRow(*fields)
            for fields in self._sql(f"{_SELECT} FROM Cache WHERE {of_keys}", keys).fetchall()
        ]

    @property
    def _con(self) -> sqlite3.Connection:
        """The connection of this thread; diskcache makes it when it is first asked for."""
        known = getattr(self._local, "con", None)
        connection: sqlite3.Connection = super()._con
        return connection if connection is known else distrusting(connection)


class _InMemory(Store):
    """A new store in memory, which shows what diskcache creates in a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        super().__init__(Path())

    @property
    def _con(self) -> sqlite3.Connection:
        return self._connection

    def close(self) -> None:
        """Keep the connection: diskcache closes it after making its tables, and the store in memory would be lost."""


@cache
def _made_by_diskcache() -> frozenset[Any]:
    """The schema of a cache that the installed diskcache makes."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _InMemory(connection)
        return frozenset(connection.execute(_SCHEMA))


def distrusting(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Forbid a connection to run code of the file's schema, and to read values larger than any that we write."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST + _OF_THE_ROW)
    return connection


def check_files(folder: Path) -> None:
    """Refuse a folder with links, pipes or devices in it.

    Raises:
        OSError: the file is there.
    """
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_dir():
            check_regular(path)


def check_database(database: Path, at_rest: str = "") -> None:
    """Accept only a file whose schema and settings diskcache itself makes.

    A foreign view or trigger can run for ever, and each row of the table of settings becomes an attribute of
    diskcache or a PRAGMA.

    Raises:
        CacheError: there is something else.
    """
    if not database.exists():
        return
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro{at_rest}", uri=True)) as connection:
        made = set(distrusting(connection).execute(_SCHEMA))
        foreign = [f"{kind} {name!r}" for kind, name, *_ in made - _made_by_diskcache()]
        if not foreign and any(name == "Settings" for _, name, *_ in made):
            foreign = [
                f"setting {key!r} = {value!r}"
                for key, value in connection.execute("SELECT key, value FROM Settings LIMIT 1000")
                if not _is_a_setting(key, value)
            ]
    if foreign:
        raise CacheError(
            f"{database} has the {min(foreign)}, which modelgauge did not write.",
            fix="Move this folder away; modelgauge makes a new cache.",
        )


def _is_a_setting(key: Any, value: Any) -> bool:
    written = {**DEFAULT_SETTINGS, **METADATA}
    of_kind = key in written and type(value) is type(written[key])
    return of_kind and (not isinstance(value, str) or value in _OWN_TEXTS)


# --- rows as they are found -----------------------------------------------------------------------------------------


def connect(database: Path, query: str = "") -> sqlite3.Connection:
    """Open a connection that can read any row: bytes that are no UTF-8 become a text that no checksum fits.

    Args:
        database: the file.
        query: of the URI by which SQLite opens it: `mode=ro` for a folder that is read-only.
    """
    uri = f"{database.absolute().as_uri()}?{query}"
    connection = distrusting(sqlite3.connect(uri, uri=True))
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    return connection


def rows_of(database: Path, digest: str | None = None, query: str = "") -> Iterator[StoredRow]:
    """The rows of a key, or all; `query` as for `connect`.

    Raises:
        sqlite3.Error: the file is damaged, or cannot be read.
    """
    with closing(connect(database, query)) as connection:
        if digest is None:
            yield from _all_rows(connection)
        else:
            yield from rows_at(connection, digest)


def rows_at(connection: sqlite3.Connection, digest: str) -> Iterator[StoredRow]:
    """The rows of a key."""
    for (rowid,) in connection.execute("SELECT rowid FROM Cache WHERE key = ?", (digest,)).fetchall():
        yield row_at(connection, rowid) or StoredRow(rowid)


def _all_rows(connection: sqlite3.Connection) -> Iterator[StoredRow]:
    """All rows in their order, without those that are too large to be read."""
    last = -(2**63)
    beyond = "FROM Cache NOT INDEXED WHERE rowid > ?"
    while True:
        try:
            for row in map(
                StoredRow._make, connection.execute(f"{_SELECT} {beyond} ORDER BY rowid", (last,))
            ):
                last = row.rowid
                yield row
        except sqlite3.DataError:  # it comes when the row before is read, which is read again
            (last,) = connection.execute(f"SELECT min(rowid) {beyond}", (last,)).fetchone()
            yield row_at(connection, last) or StoredRow(last)
        else:
            return


def row_at(connection: sqlite3.Connection, rowid: int) -> StoredRow | None:
    """The row of a number; without its parts where it is larger than any that we write; None if there is none."""
    try:
        found = connection.execute(f"{_SELECT} FROM Cache WHERE rowid = ?", (rowid,)).fetchone()
    except sqlite3.DataError:
        return StoredRow(rowid)
    return None if found is None else StoredRow._make(found)


def sound_entry(row: StoredRow) -> Entry:
    """The entry that a row holds.

    Raises:
        DamagedEntryError: it holds none.
    """
    if not isinstance(row.key, str) or not row.raw:
        raise DamagedEntryError("a key that is not a text")
    TextDisk.check(row.mode, row.filename)
    return unpack(row.key, row.value)


def checked_rows(rows: Iterable[StoredRow]) -> tuple[int, list[tuple[StoredRow, str]]]:
    """How many rows are sound, and the damaged rows, each with the reason."""
    sound: int = 0
    damaged: list[tuple[StoredRow, str]] = []
    for row in rows:
        try:
            sound_entry(row)
            sound += 1
        except DamagedEntryError as error:
            damaged.append((row, str(error)))
    return sound, damaged


def sound_entries(rows: Iterable[StoredRow]) -> Iterator[Entry]:
    """The entries of rows that are sound, and hold no text from which a secret was taken."""
    for row in rows:
        with suppress(DamagedEntryError):
            entry = sound_entry(row)
            if not was_redacted(entry.key.parts + entry.response):
                yield entry


def salvage(database: Path) -> Iterator[Entry]:
    """Yield the sound entries of a damaged database: from its beginning up to the damage, then from its end."""
    last = -(2**63)
    for backwards in (False, True):
        try:
            with closing(connect(database)) as connection:
                for row in _all_rows(connection) if not backwards else _rows_behind(connection, last):
                    last = last if backwards else row.rowid
                    try:
                        yield sound_entry(row)
                    except DamagedEntryError:
                        continue
        except sqlite3.Error:  # up to here
            continue
        return


def _rows_behind(connection: sqlite3.Connection, last: int) -> Iterator[StoredRow]:
    """The rows behind one, the last first."""
    select = f"{_SELECT} FROM Cache NOT INDEXED WHERE rowid > ? ORDER BY rowid DESC"
    return map(StoredRow._make, connection.execute(select, (last,)))


def structure_of(database: Path, query: str = "") -> str:
    """What SQLite's check of a file finds; "ok" where it is sound. `query` is as for `connect`."""
    with closing(connect(database, query)) as connection:
        try:
            return "; ".join(str(line) for (line,) in connection.execute("PRAGMA integrity_check(10)"))
        except sqlite3.DatabaseError as error:
            return str(error)


# --- errors --------------------------------------------------------------------------------------------

_RESULTS = (
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
    "SQLITE_CONSTRAINT_UNIQUE",
    "SQLITE_CONSTRAINT_PRIMARYKEY",
    "SQLITE_READONLY_DBMOVED",
)
_OTHER_TABLES = ("no such table", "no such column", "has no column named", "malformed")
_NO_UTF8 = "Could not decode to UTF-8"  # how Python's sqlite3 reports a text that is none


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is damaged: our own statements fit our tables and break no constraint."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith(_RESULTS) or type(error) is sqlite3.DatabaseError or _says(error, *_OTHER_TABLES)


def why_unreadable(error: sqlite3.Error) -> str:
    """Why a row cannot be read: a text that is no UTF-8, or a value too large; empty for other errors."""
    if isinstance(error, sqlite3.DataError):
        return "a value larger than any that is written"
    return "no UTF-8" if _says(error, _NO_UTF8) else ""


def _says(error: sqlite3.Error, *words: str) -> bool:
    return any(word in str(error) for word in words)


def file_at(path: Path) -> tuple[int, int] | None:
    """The identity of the file that has a name now; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino

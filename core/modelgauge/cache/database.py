"""The database of the cache: our diskcache, the check of a file before it is opened, its raw rows, and which errors
mean damage. Nothing in the file is trusted.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import diskcache
from diskcache.core import DEFAULT_SETTINGS, METADATA, MODE_RAW

from modelgauge.cache.backend import LARGEST
from modelgauge.cache.keys import DamagedEntryError, unpack
from modelgauge.errors import CacheError
from modelgauge.files.regular import check_regular

_OF_THE_ROW = 2**16  # what stands in a row beside its value
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_OWN_TEXTS = frozenset({"wal", "none"})  # the only texts among the settings that the cache writes


_PAGE, _PAGE_BYTES = 500, 2**24  # of rows that are read at once


class StoredRow(NamedTuple):
    """A row of the database.

    Args:
        rowid: where it is.
        key: a text, in the rows that modelgauge writes.
        value: the bytes of its text; empty if it is too large, or not a text in the database, which modelgauge writes.
    """

    rowid: int
    key: Any
    value: bytes = b""


_IS_OURS = "(raw IS 1 AND typeof(key) = 'text')"
_TEXT = f"mode IS {MODE_RAW} AND filename IS NULL AND typeof(value) = 'text'"
# As bytes, whatever stands there: a text may be no UTF-8.
_SELECT = f"SELECT rowid, key, CASE WHEN {_TEXT} THEN CAST(value AS BLOB) ELSE x'' END"


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

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> Any:
        raise NotImplementedError("rows are read by `Store.rows_at`")

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
        """Return the rows of some keys. A statement for each would take three times as long."""
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
    """Return the schema of a cache created by the installed diskcache."""
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
    """Open a connection that can read any row: bytes that are no UTF-8 become a text that is no key.

    Args:
        database: the file.
        query: of the URI by which SQLite opens it: `mode=ro` for a folder that is read-only.
    """
    uri = f"{database.absolute().as_uri()}?{query}"
    connection = distrusting(sqlite3.connect(uri, uri=True))
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    return connection


def rows_at(connection: sqlite3.Connection, digest: str) -> Iterator[StoredRow]:
    """Yield the row of a key, if there is one."""
    found = connection.execute("SELECT rowid FROM Cache WHERE key = ? AND raw = 1", (digest,)).fetchall()
    for (rowid,) in found:
        yield _row_at(connection, rowid) or StoredRow(rowid, digest)


def read_page(connection: sqlite3.Connection, after: str) -> tuple[dict[str, bytes], str | None]:
    """Return the values of some rows in their order, and where the next page begins; see `CacheBackend.page`."""
    values: dict[str, bytes] = {}
    size = 0
    for row in _rows_beyond(connection, int(after or -(2**63))):
        values[row.key] = row.value
        size += len(row.value)
        if len(values) >= _PAGE or size >= _PAGE_BYTES:
            return values, str(row.rowid)
    return values, None


def _rows_beyond(connection: sqlite3.Connection, last: int) -> Iterator[StoredRow]:
    """Yield rows in their order, without the values that are too large to be read."""
    beyond = f"FROM Cache NOT INDEXED WHERE {_IS_OURS} AND rowid > ?"
    while True:
        try:
            for row in map(
                StoredRow._make, connection.execute(f"{_SELECT} {beyond} ORDER BY rowid", (last,))
            ):
                last = row.rowid
                yield row
        except sqlite3.DataError:  # it comes when the row before is read, which is read again
            (last,) = connection.execute(f"SELECT min(rowid) {beyond}", (last,)).fetchone()
            if (row_at := _row_at(connection, last)) is not None:
                yield row_at
        else:
            return


def _row_at(connection: sqlite3.Connection, rowid: int) -> StoredRow | None:
    """Return the row of a number, without a value that is too large to be read; None if it cannot be read at all."""
    for select in (_SELECT, "SELECT rowid, key, x''"):
        with suppress(sqlite3.DataError):
            found = connection.execute(f"{select} FROM Cache WHERE rowid = ?", (rowid,)).fetchone()
            return None if found is None else StoredRow._make(found)
    return None


def rows_of_others(connection: sqlite3.Connection) -> Iterator[StoredRow]:
    """Yield the rows, without their values, whose keys are not of the kind that modelgauge writes."""
    others = f"FROM Cache WHERE NOT {_IS_OURS}"
    for (rowid,) in connection.execute(f"SELECT rowid {others}").fetchall():
        yield StoredRow(rowid, _read_cell(connection, "SELECT key FROM Cache WHERE rowid = ?", rowid))


def raw_value(connection: sqlite3.Connection, rowid: int) -> Any:
    """Return the value of a row, of whatever type; None if it is too large to be read."""
    return _read_cell(connection, "SELECT value FROM Cache WHERE rowid = ?", rowid)


def _read_cell(connection: sqlite3.Connection, select: str, rowid: int) -> Any:
    with suppress(sqlite3.DataError):
        return connection.execute(select, (rowid,)).fetchone()[0]
    return None


def salvage(database: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the keys and values of a damaged database that are sound, up to the damage, then from the end."""
    last = -(2**63)
    for backwards in (False, True):
        try:
            with closing(connect(database)) as connection:
                for row in (
                    _rows_beyond(connection, last) if not backwards else _rows_behind(connection, last)
                ):
                    last = last if backwards else row.rowid
                    if _is_sound(row):
                        yield row.key, row.value
        except sqlite3.Error:  # up to here
            continue
        return


def _is_sound(row: StoredRow) -> bool:
    try:
        unpack(row.key, row.value.decode("utf-8"))
    except (DamagedEntryError, UnicodeDecodeError):
        return False
    return True


def _rows_behind(connection: sqlite3.Connection, last: int) -> Iterator[StoredRow]:
    """Yield the rows behind one, the last first."""
    select = f"{_SELECT} FROM Cache NOT INDEXED WHERE {_IS_OURS} AND rowid > ? ORDER BY rowid DESC"
    return map(StoredRow._make, connection.execute(select, (last,)))


def check_structure(connection: sqlite3.Connection) -> str:
    """Return what SQLite's check of a file finds; "ok" if it is sound."""
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
    """Return whether an error means a damaged file: our own statements fit our tables and break no constraint."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith(_RESULTS) or type(error) is sqlite3.DatabaseError or _says(error, *_OTHER_TABLES)


def is_unreadable(error: sqlite3.Error) -> bool:
    """Return whether an error means that a text is no UTF-8, or a value too large."""
    return isinstance(error, sqlite3.DataError) or _says(error, _NO_UTF8)


def _says(error: sqlite3.Error, *words: str) -> bool:
    return any(word in str(error) for word in words)


def file_at(path: Path) -> tuple[int, int] | None:
    """Return the identity of the file that has a name now; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino

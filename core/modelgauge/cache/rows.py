"""The cache's database as it is found: its rows, read past diskcache, and whether an error says that it is damaged."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from modelgauge.cache.keys import DamagedEntryError, Entry, unpack
from modelgauge.cache.text_disk import TextDisk, distrusting


class Row(NamedTuple):
    """A row of the database, as it is found."""

    rowid: int
    key: Any = None
    raw: Any = None
    mode: Any = None
    filename: Any = None
    value: Any = None


_SELECT = f"SELECT {', '.join(Row._fields)}"


def connected(database: Path) -> sqlite3.Connection:
    """A connection that can read any row: what is no UTF-8 becomes a text that no checksum fits."""
    connection = distrusting(sqlite3.connect(database))
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    return connection


def rows_of(database: Path, digest: str | None = None) -> Iterator[Row]:
    """The rows of a key, or all.

    Raises:
        sqlite3.Error: the file is damaged, or cannot be read.
    """
    with closing(connected(database)) as connection:
        if digest is None:
            yield from _all_rows(connection)
        else:
            for (rowid,) in connection.execute("SELECT rowid FROM Cache WHERE key = ?", (digest,)).fetchall():
                yield row_at(connection, rowid) or Row(rowid)


def _all_rows(connection: sqlite3.Connection) -> Iterator[Row]:
    """All rows in their order, past those that cannot be read because of their size."""
    last = -(2**63)
    beyond = "FROM Cache NOT INDEXED WHERE rowid > ?"
    while True:
        try:
            for row in map(Row._make, connection.execute(f"{_SELECT} {beyond} ORDER BY rowid", (last,))):
                last = row.rowid
                yield row
        except sqlite3.DataError:  # told when the row before it is read, so that one is read anew
            (last,) = connection.execute(f"SELECT min(rowid) {beyond}", (last,)).fetchone()
            yield row_at(connection, last) or Row(last)
        else:
            return


def row_at(connection: sqlite3.Connection, rowid: int) -> Row | None:
    """The row of a number, without its parts where it is larger than any that is written; None where there is none."""
    try:
        found = connection.execute(f"{_SELECT} FROM Cache WHERE rowid = ?", (rowid,)).fetchone()
    except sqlite3.DataError:
        return Row(rowid)
    return None if found is None else Row._make(found)


def sound_entry(row: Row) -> Entry:
    """The entry that a row holds.

    Raises:
        DamagedEntryError: it holds none.
    """
    if not isinstance(row.key, str) or not row.raw:
        raise DamagedEntryError("a key that is no text")
    if row.mode != TextDisk.mode or row.filename is not None:
        raise DamagedEntryError("a value that is not stored as text")
    return unpack(row.key, row.value)


def salvaged(database: Path) -> Iterator[Entry]:
    """The sound entries of a damaged database: from its beginning up to the damage, then from its end."""
    last = -(2**63)
    for backwards in (False, True):
        try:
            with closing(connected(database)) as connection:
                for row in _all_rows(connection) if not backwards else _rows_behind(connection, last):
                    last = last if backwards else row.rowid
                    try:
                        yield sound_entry(row)
                    except DamagedEntryError:
                        continue
        except sqlite3.Error:  # up to here
            continue
        return


def _rows_behind(connection: sqlite3.Connection, last: int) -> Iterator[Row]:
    """The rows behind one, the last first."""
    select = f"{_SELECT} FROM Cache NOT INDEXED WHERE rowid > ? ORDER BY rowid DESC"
    return map(Row._make, connection.execute(select, (last,)))


# --- errors --------------------------------------------------------------------------------------------

_RESULTS = (
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
    "SQLITE_CONSTRAINT_UNIQUE",
    "SQLITE_CONSTRAINT_PRIMARYKEY",
    "SQLITE_READONLY_DBMOVED",
)
_OTHER_TABLES = ("no such table", "no such column", "has no column named", "malformed")
_NO_UTF8 = "Could not decode to UTF-8"  # how Python's sqlite3 says that a text is none


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is not as it was written: our statements fit our tables, and break no constraint."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith(_RESULTS) or type(error) is sqlite3.DatabaseError or _says(error, *_OTHER_TABLES)


def why_unreadable(error: sqlite3.Error) -> str:
    """What keeps a row from being read: a text that is no UTF-8, or a value too large; nothing for other errors."""
    if isinstance(error, sqlite3.DataError):
        return "a value larger than any that is written"
    return "no UTF-8" if _says(error, _NO_UTF8) else ""


def _says(error: sqlite3.Error, *words: str) -> bool:
    return any(one in str(error) for one in words)


def file_at(path: Path) -> tuple[int, int] | None:
    """Which file has a name now; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino

"""Telling a damaged file from a full disk or a locked database, and a file from its successor.

Nothing is mended here.
"""

import sqlite3
from pathlib import Path

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

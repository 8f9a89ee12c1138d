"""A diskcache of our own, and the check of a database before it is opened: nothing is trusted."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import diskcache
from diskcache.core import DEFAULT_SETTINGS, METADATA, MODE_RAW

from modelgauge.cache.keys import DamagedEntryError
from modelgauge.errors import CacheError
from modelgauge.files.regular import check_regular

LARGEST = 2**26  # bytes of a value: what is larger was not written here, and is not read either
_OF_THE_ROW = 2**16  # what stands in a row beside its value
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_OWN_TEXTS = frozenset({"wal", "none"})  # the only texts among the settings that the cache writes


class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache ships no types
    """A diskcache Disk that keeps texts in the database and nothing else: no pickles, no files beside it.

    The stock `Disk` and `JSONDisk` load pickles and open file names that they find in the database.
    """

    mode = MODE_RAW

    def put(self, key: str) -> tuple[str, bool]:
        return key, True

    def get(self, key: Any, raw: Any) -> Any:  # noqa: ARG002  diskcache's signature
        return key  # as it stands there: whoever lists keys leaves out what is no text

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, str]:  # noqa: ARG002  diskcache's signature
        return 0, MODE_RAW, None, value

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> Any:  # noqa: ARG002  likewise
        if mode != MODE_RAW or filename is not None:
            raise DamagedEntryError("a value that is not stored as text")
        return value

    def remove(self, filepath: Any) -> None:
        """Leave files alone: no name in the database is ours."""


class Store(diskcache.Cache):  # type: ignore[misc]  # diskcache ships no types
    """A diskcache with our Disk and settings, whose connections trust nothing in the file.

    It lets go of a file which it could not open, so that this can be moved away.
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

    def rows_at(self, keys: Sequence[str]) -> list[tuple[str, Any, Any, Any]]:
        """Key, mode, filename and value of the rows of some keys; a statement for each costs three times as much."""
        of_keys = f"raw = 1 AND expire_time IS NULL AND key IN ({','.join('?' * len(keys))})"
        select = f"SELECT key, mode, filename, value FROM Cache WHERE {of_keys}"  # noqa: S608  question marks only
        rows: list[tuple[str, Any, Any, Any]] = self._sql(select, keys).fetchall()
        return rows

    @property
    def _con(self) -> sqlite3.Connection:
        """The connection of this thread; diskcache makes it when it is first asked for."""
        known = getattr(self._local, "con", None)
        connection: sqlite3.Connection = super()._con
        return connection if connection is known else distrusting(connection)


class _InMemory(Store):
    """A new store in memory, to see what diskcache makes in a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        super().__init__(Path())

    @property
    def _con(self) -> sqlite3.Connection:
        return self._connection

    def close(self) -> None:
        """Keep the connection, with which all would be gone: diskcache closes it when it has made its tables."""


@cache
def _made_by_diskcache() -> frozenset[Any]:
    """The schema of a cache that the installed diskcache makes."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _InMemory(connection)
        return frozenset(connection.execute(_SCHEMA))


def distrusting(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Let a connection run no code of the file's schema, and read no value larger than any that is written."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST + _OF_THE_ROW)
    return connection


def check_files(folder: Path) -> None:
    """Refuse a folder with links, pipes or devices in it.

    Raises:
        OSError: there is one.
    """
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_dir():
            check_regular(path)


def check_database(database: Path) -> None:
    """Accept only what diskcache itself makes, before anything in the file is used.

    A view or a trigger of somebody else's can go on for ever; and each row of the table of settings becomes an
    attribute of diskcache or a PRAGMA, whatever it says.

    Raises:
        CacheError: there is something else.
    """
    if not database.exists():
        return
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
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

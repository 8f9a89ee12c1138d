"""`Index`: the file of the index and its connections: one that writes, and several that read."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Lock
from typing import TYPE_CHECKING

from modelgauge.files.lock import lock
from modelgauge_workbench.index.schema import TABLES, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME = "workbench.sqlite"
_CACHE_KIB = 8192  # of each connection


class Index:
    """The index of several data folders, in the first of them.

    Where that cannot be written, or another workbench writes it, the index is a temporary file.

    Args:
        data_dirs: folders of data.
    """

    def __init__(self, data_dirs: Sequence[Path]) -> None:
        self.data_dirs = data_dirs
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._writing = Lock()
        self._path = data_dirs[0] / NAME
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = lock(self._path.with_name(f"{NAME}.lock"), "a+b")
        except OSError:
            self._lock = None
        if self._lock is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="modelgauge-workbench-")
            self._path = Path(self._temporary.name) / NAME
        self._writer = self._opened(str([str(one) for one in data_dirs]))

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is kept, or nothing."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            with self._writer:
                yield self._writer

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the index."""
        try:
            connection = self._idle.get_nowait()
        except Empty:
            connection = self._connected()
            connection.execute("PRAGMA query_only = on")
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.rollback()
            self._idle.put(connection)

    def close(self) -> None:
        """Close all connections that no request uses."""
        while not self._idle.empty():
            self._idle.get_nowait().close()
        with self._writing:
            self._writer.close()
        if self._temporary is not None:
            self._temporary.cleanup()
        if self._lock is not None:
            self._lock.close()

    def _opened(self, folders: str) -> sqlite3.Connection:
        """A connection to the index that is there; to a new one where that is broken or of other folders."""
        try:
            connection = self._connected()
            if _fits(connection, folders):
                return connection
            connection.close()
        except sqlite3.DatabaseError:
            pass  # it is broken: nothing is lost but time
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)
        connection = self._connected()
        connection.executescript(
            f"BEGIN; {TABLES} CREATE TABLE about (folders TEXT); PRAGMA user_version = {VERSION}; COMMIT;"
        )
        with connection:
            connection.execute("INSERT INTO about VALUES (?)", (folders,))
        return connection

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=60)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute(
            "PRAGMA synchronous = normal"
        )  # a power cut costs the latest transactions, which are scanned again
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        return connection


def _fits(connection: sqlite3.Connection, folders: str) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(
        version == VERSION and connection.execute("SELECT folders FROM about").fetchone()[0] == folders
    )

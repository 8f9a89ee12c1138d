"""`Index`: the file of the index and its connections: one that writes, and several that read."""

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Event, Lock

from modelgauge.files.lock import lock
from modelgauge_workbench.index.schema import TABLES, VERSION

NAME = "workbench.sqlite"
_WRITES_KIB, _READS_KIB = 32768, 2048  # caches of a connection


class Index:
    """The index of several data folders, in the first of them.

    Where that cannot be written, or another workbench writes it, the index is a temporary file.

    Args:
        data_dirs: folders of data.

    Attributes:
        broken: set by who finds that the file is damaged; the watcher makes it again.
        made: how often the file was made.
    """

    def __init__(self, data_dirs: Sequence[Path]) -> None:
        self.data_dirs = data_dirs
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        self.broken, self.made = Event(), 0
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
        self._folders = str([str(folder) for folder in data_dirs])
        self._writer = self._opened()

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
            connection = _prepared(self._unprepared(), _READS_KIB)
            connection.execute("PRAGMA query_only = on")
        made = self.made
        try:
            connection.execute("BEGIN")
            yield connection
            connection.rollback()
        except BaseException:
            connection.close()
            raise
        if made == self.made:
            self._idle.put(connection)
        else:
            connection.close()

    def make_again(self) -> None:
        """Throw away the file, which is damaged, for an empty one."""
        with self._writing:
            self._writer.close()
            self.made += 1
            self._close_idle()
            self._writer = self._new()
            self.broken.clear()

    def close(self) -> None:
        """Close all connections that no request uses."""
        self._close_idle()
        with self._writing:
            self._writer.close()
        if self._temporary is not None:
            self._temporary.cleanup()
        if self._lock is not None:
            self._lock.close()

    def _close_idle(self) -> None:
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _opened(self) -> sqlite3.Connection:
        """A connection to the index that is there; to a new one where that is broken or of other folders."""
        connection = self._unprepared()
        try:
            if _fits(_prepared(connection, _WRITES_KIB), self._folders):
                return connection
        except sqlite3.DatabaseError:  # it is broken: nothing is lost but time
            pass
        connection.close()
        return self._new()

    def _new(self) -> sqlite3.Connection:
        """A connection to a new index."""
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)
        connection = _prepared(self._unprepared(), _WRITES_KIB)
        connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        connection.execute("INSERT INTO about VALUES (?)", (self._folders,))
        return connection

    def _unprepared(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=60)


def _prepared(connection: sqlite3.Connection, cache: int) -> sqlite3.Connection:
    """A connection with the settings of all."""
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = wal")
    # A power cut costs the latest transactions, which are made again.
    connection.execute("PRAGMA synchronous = normal")
    connection.execute(f"PRAGMA cache_size = -{cache}")
    return connection


def _fits(connection: sqlite3.Connection, folders: str) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(
        version == VERSION and connection.execute("SELECT folders FROM about").fetchone()[0] == folders
    )

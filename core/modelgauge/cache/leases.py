"""Who is asking what, among the processes that share a cache: so that each key is paid once.

A file of its own beside the cache. A process registers when it opens the cache, and beats while it lives;
while others do, a key is leased before it is paid, and given back when its answer is committed. Alone,
nothing is leased. What stands in the file matters only while processes live: a damaged file is removed, and
they register anew.

The file is also the lock under which the cache is written: SQLite 3.7.0 to 3.51.2 can corrupt a WAL database
when one connection commits at the very moment at which another checkpoints (the "WAL-reset bug",
https://sqlite.org/wal.html). Every commit, checkpoint and close of the cache happens inside `exclusive`, so
that no two of them ever meet. This file itself is in rollback-journal mode, which does not have the defect.
"""

import contextlib
import logging
import os
import socket
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import time
from typing import TypeVar

from modelgauge.cache.damage import file_at, is_damage

log = logging.getLogger(__name__)

T = TypeVar("T")

BEAT_SECONDS = 0.5
DEAD_AFTER_SECONDS = 10.0
_BUSY_SECONDS = 60.0
_BEGINNINGS = 5

# A process has the number that is next when it registers; `seen` is the highest that it has seen of others.
_TABLES = (
    """CREATE TABLE IF NOT EXISTS processes
    (id TEXT PRIMARY KEY, host TEXT, pid INTEGER, number INTEGER, seen INTEGER, beat REAL)""",
    "CREATE TABLE IF NOT EXISTS leases (digest TEXT PRIMARY KEY, process TEXT)",
)


class Leases:
    """The leases of one process.

    Args:
        path: of the file; made where it does not exist.
        clock: seconds since the epoch, the same for all processes of the machine.
        beating: False where a test beats by hand.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time, beating: bool = True) -> None:
        self.path = path
        self._clock = clock
        self._id = uuid.uuid4().hex
        self._host = socket.gethostname()
        self._connections = threading.local()
        self._in_flight: set[str] = set()
        self._guard = threading.Lock()
        self._shared = False
        self._closing = threading.Event()
        self._number = 0
        self._beater: threading.Thread | None = None
        self.beat()
        self._get_acquainted()
        if beating:
            self._beater = threading.Thread(target=self._beat_on, name="modelgauge-leases", daemon=True)
            self._beater.start()

    @property
    def shared(self) -> bool:
        """Whether another live process has the cache open."""
        return self._shared

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[sqlite3.Connection]:
        """Hold the lock that all processes write the cache under."""
        database = self._begun()
        try:
            yield database
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # a full disk has ended it already
                database.execute("ROLLBACK")
            raise

    def take(self, digests: Sequence[str]) -> set[str]:
        """Lease keys; returns those that are ours to pay.

        A key whose holder is dead is taken over. Alone in the cache every key is ours, and only remembered,
        so that it can be leased when another process comes.
        """
        with self._guard:
            self._in_flight.update(digests)
        if not self._shared:
            return set(digests)
        ours = self._transact(lambda database: self._leased(database, digests))
        with self._guard:
            self._in_flight.difference_update(set(digests) - ours)
        return ours

    def give_back(self, digests: Sequence[str]) -> None:
        """End leases: the answers are committed, or the calls failed."""
        with self._guard:
            self._in_flight.difference_update(digests)
        if self._shared:
            self._transact(lambda database: self._delete(database, digests))

    def beat(self) -> None:
        """Say that this process lives, and look whether others do."""
        self._transact(self._beat)

    def close(self) -> None:
        """Leave: what is leased is free for others."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._beater is not None:
            self._beater.join()  # so that it does not register anew
        with contextlib.suppress(sqlite3.Error, OSError):  # the others will find that this process is gone
            self._transact(self._leave)
        self.close_thread()

    def close_thread(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._connections, "connection", None)
        if connection is not None:
            connection.close()
            del self._connections.connection

    # --- inside a transaction -------------------------------------------------------------------------------

    def _beat(self, database: sqlite3.Connection) -> None:
        self._bury_the_dead(database)
        now = self._clock()
        highest = database.execute("SELECT coalesce(max(number), 0) FROM processes").fetchone()[0]
        seen = "UPDATE processes SET beat = ?, seen = ? WHERE id = ?"
        known = database.execute(seen, (now, highest, self._id)).rowcount > 0
        if not known:  # new, or silent for so long (a machine that slept) that it was taken for dead
            self._number = highest + 1
            row = (self._id, self._host, os.getpid(), self._number, self._number, now)
            database.execute("INSERT INTO processes VALUES (?, ?, ?, ?, ?, ?)", row)
        others = database.execute("SELECT count(*) FROM processes WHERE id != ?", (self._id,)).fetchone()[0]
        with self._guard:
            if others and not (known and self._shared):
                # What is under way must be leased before the others ask.
                rows = [(digest, self._id) for digest in self._in_flight]
                database.executemany("INSERT OR IGNORE INTO leases VALUES (?, ?)", rows)
            elif self._shared and not others:  # nobody waits for them
                database.execute("DELETE FROM leases")
            self._shared = bool(others)

    def _leased(self, database: sqlite3.Connection, digests: Sequence[str]) -> set[str]:
        self._bury_the_dead(database)
        wanted = [(digest, self._id) for digest in digests]
        database.executemany("INSERT OR IGNORE INTO leases VALUES (?, ?)", wanted)
        ours = "SELECT 1 FROM leases WHERE digest = ? AND process = ?"
        return {pair[0] for pair in wanted if database.execute(ours, pair).fetchone() is not None}

    def _delete(self, database: sqlite3.Connection, digests: Sequence[str]) -> None:
        rows = [(digest, self._id) for digest in digests]
        database.executemany("DELETE FROM leases WHERE digest = ? AND process = ?", rows)

    def _leave(self, database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM leases WHERE process = ?", (self._id,))
        database.execute("DELETE FROM processes WHERE id = ?", (self._id,))

    def _bury_the_dead(self, database: sqlite3.Connection) -> None:
        """Forget processes that crashed, with their leases."""
        rows = database.execute("SELECT id, host, pid, beat FROM processes").fetchall()
        for process, host, pid, beat in rows:
            silent = not isinstance(beat, float) or self._clock() - beat > DEAD_AFTER_SECONDS
            if process != self._id and (silent or (host == self._host and not _alive(pid))):
                database.execute("DELETE FROM leases WHERE process = ?", (process,))
                database.execute("DELETE FROM processes WHERE id = ?", (process,))

    def _unaware(self, database: sqlite3.Connection) -> bool:
        self._bury_the_dead(database)
        behind = "SELECT count(*) FROM processes WHERE id != ? AND seen < ?"
        return bool(database.execute(behind, (self._id, self._number)).fetchone()[0])

    # --- the file -------------------------------------------------------------------------------------------

    def _get_acquainted(self) -> None:
        """Wait until every other live process knows of this one: until then they lease nothing."""
        waited = 0.0
        pause = BEAT_SECONDS / 5
        while self._shared and waited < DEAD_AFTER_SECONDS and self._transact(self._unaware):
            self._closing.wait(pause)
            waited += pause

    def _beat_on(self) -> None:
        failing = False
        while not self._closing.wait(BEAT_SECONDS):
            try:
                self.beat()
                failing = False
            except (sqlite3.Error, OSError) as error:
                if not failing:
                    log.warning("The leases in %s cannot be renewed: %s", self.path, error)
                failing = True
        self.close_thread()

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something in the file; where that proves damaged, in a new one."""
        try:
            with self.exclusive() as database:
                return work(database)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._remove(error)
        with self.exclusive() as database:
            return work(database)

    def _begun(self) -> sqlite3.Connection:
        """A connection to the file that has the name now, in a transaction."""
        for _ in range(_BEGINNINGS):
            try:
                database = self._connection()
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    self.close_thread()  # it may stand in a transaction
                    raise
                self._remove(error)
                continue
            if self._connections.file == file_at(self.path):
                return database
            self.close_thread()  # another process has removed it
        raise sqlite3.OperationalError(f"{self.path} is removed again and again")

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._connections, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._connections.connection = connection
            self._connections.file = file_at(self.path)
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            connection.execute("PRAGMA journal_mode = PERSIST")
            connection.execute("PRAGMA synchronous = OFF")  # it need not outlive the machine, only a process
            # At once: one that reads first would not be let wait to write.
            connection.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                connection.execute(table)
            connection.execute("COMMIT")
        return connection

    def _remove(self, error: sqlite3.DatabaseError) -> None:
        """Remove a damaged file; the next connection makes a new one, where all register when they beat."""
        damaged = getattr(self._connections, "file", None)
        self.close_thread()
        if damaged != file_at(self.path):
            return  # another thread or process was first
        journal = self.path.with_name(f"{self.path.name}-journal")
        # In this order: a journal must not be played back into the new file.
        for path in (journal, self.path):
            path.unlink(missing_ok=True)
        log.warning("The leases in %s were damaged (%s), and are begun anew.", self.path, error)


def _alive(pid: object) -> bool:
    if not isinstance(pid, int) or not 0 < pid < 2**31:
        return False
    if os.name != "posix":
        return True  # signals would end it there; its beat tells soon enough
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

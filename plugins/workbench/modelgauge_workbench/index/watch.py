"""`Watcher`: a thread that keeps the index up to date with the data folders.

It looks at each folder for new runs, at the runs that are going on, and at some of the others in turn. What pages
change they bring into the index themselves.
"""

import logging
import sqlite3
import time
from itertools import takewhile
from threading import Event, Thread

from modelgauge.engine.run_files.folder import RUNS
from modelgauge_workbench.index.index import Index
from modelgauge_workbench.index.scan import names_in, scan_run, scan_runs

_LOG = logging.getLogger(__name__)
_PAUSE = 1.0  # seconds between two looks
_SETTLED = 3  # seconds after which the time of a folder says whether it changed
_BEGUN = 600  # seconds after which a folder is not a new run
_LATEST, _IN_TURN = 20, 100  # ended runs that are looked at each time: the latest, and others in turn


class Watcher:
    """Keeps an index up to date.

    Args:
        index: of the data folders.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="modelgauge-workbench-watcher", daemon=True)
        self._seen: dict[int, int] = {}
        self._turn = -(2**62)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End, after what is being read."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Bring the index up to date once."""
        for folder in range(len(self._index.data_dirs)):
            self._look_for_new(folder)
        for run in self._to_look_at():
            if self._stop.is_set():
                return
            scan_run(
                self._index,
                run["folder"],
                run["name"],
                stamp=None if run["state"] == "running" else run["stamp"],
            )

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                if self._index.broken.is_set():
                    self._index.make_again()
                    self._seen.clear()
                self.look()
            except (sqlite3.Error, OSError) as error:
                _LOG.warning("The index of runs could not be updated: %s: %s", type(error).__name__, error)
                if type(error) is sqlite3.DatabaseError:  # a full disk, say, is a subclass of it
                    self._index.broken.set()
            self._stop.wait(_PAUSE)

    def _look_for_new(self, folder: int) -> None:
        """Read the runs that the index has not, where the folder has changed since the last look."""
        try:
            changed = (self._index.data_dirs[folder] / RUNS).stat().st_mtime_ns
        except OSError:  # there is none yet
            changed = -1
        if self._seen.get(folder) == changed:
            return
        names = set(names_in(self._index, folder))
        with self._index.reading() as db:
            known = {name for (name,) in db.execute("SELECT name FROM runs WHERE folder = ?", (folder,))}
        new = [*sorted(names - known, reverse=True), *(known - names)]  # the latest first
        scan_runs(self._index, folder, takewhile(lambda _: not self._stop.is_set(), new))
        with self._index.reading() as db:
            (count,) = db.execute("SELECT COUNT(*) FROM runs WHERE folder = ?", (folder,)).fetchone()
        if time.time() - changed / 1e9 > (_SETTLED if count >= len(names) else _BEGUN):
            self._seen[folder] = changed

    def _to_look_at(self) -> list[sqlite3.Row]:
        columns = "SELECT number, folder, name, state, stamp FROM runs"
        with self._index.reading() as db:
            going_on = db.execute(f"{columns} WHERE state = 'running'").fetchall()
            latest = db.execute(f"{columns} ORDER BY number DESC LIMIT {_LATEST}").fetchall()
            others = db.execute(
                f"{columns} WHERE number > ? ORDER BY number LIMIT {_IN_TURN}", (self._turn,)
            ).fetchall()
        self._turn = others[-1]["number"] if others else -(2**62)
        return list({row["number"]: row for row in (*going_on, *latest, *others)}.values())

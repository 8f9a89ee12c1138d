"""Leases: which process asks which key, so that processes that share a cache on one machine pay each key once.

Two kinds of files have locks of the operating system, which end with the process that holds them, however it ends.
Whoever holds the lock of `write.lock` may write the cache and the leases. A process that has the cache open holds the
lock of a file of its own, `PID-RANDOM.leases`, which lists the keys that it is asking: they are leased while the lock
is held, and what a dead process left is nobody's. No time is read: a process that is stopped keeps its leases.

Why the cache has a write lock of ours: SQLite 3.7.0 to 3.51.2 can corrupt a WAL database when one connection commits
at the very moment at which another checkpoints (the "WAL-reset bug", https://sqlite.org/wal.html). Every commit,
checkpoint and close of the cache happens inside `exclusive`, so that no two of them ever meet.
"""

import os
import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from modelgauge.files.lock import lock

_BUSY_SECONDS = 60.0
_PAUSE = 0.001


class Leases:
    """The leases of one process.

    Args:
        folder: of the cache.

    Raises:
        OSError: its files cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mine: set[str] = set()
        self._turn = threading.Lock()  # between the threads of this process
        with self.exclusive():  # nobody sees the file before it is locked
            self._file = folder / f"{os.getpid()}-{secrets.token_hex(8)}.leases"
            self._lock = lock(self._file, "a+b")

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock that all processes write the cache under.

        Raises:
            OSError: the folder is gone, or another process does not let go of the lock.
        """
        with self._turn:
            patience = monotonic() + _BUSY_SECONDS
            while (write_lock := lock(self._folder / "write.lock", "a+b")) is None:
                if monotonic() > patience:
                    raise TimeoutError(f"another process has been writing it for {_BUSY_SECONDS:g} s")
                sleep(_PAUSE)
            with write_lock:
                yield

    @property
    def shared(self) -> bool:
        """True if another live process has the cache open."""
        with self.exclusive():
            return bool(self._others())

    def take(self, digests: Collection[str]) -> dict[str, str]:
        """Lease keys; returns those that are not ours to pay, each with the id of the process that asks it."""
        with self.exclusive():
            others = {key: pid for pid, theirs in self._others() for key in theirs.intersection(digests)}
            self._mine.update(set(digests) - others.keys())
            self._write()
        return others

    def give_back(self, digests: Collection[str]) -> None:
        """End leases: the answers are committed, or the calls failed."""
        with self.exclusive():
            self._mine.difference_update(digests)
            self._write()

    def close(self) -> None:
        """End all leases of this process. In a forked child they are the parent's, and stay."""
        if self._lock is not None and not self._lock.closed:
            with suppress(OSError), self.exclusive():
                self._lock.close()
                self._file.unlink()
            self._lock.close()

    # --- inside `exclusive` -----------------------------------------------------------------------------------

    def _write(self) -> None:
        self._file.write_text("\n".join(self._mine), encoding="ascii")

    def _others(self) -> list[tuple[str, set[str]]]:
        """Return the id and the leased keys of each other live process, and remove the files of dead processes."""
        living = []
        for file in self._folder.glob("*.leases"):
            if file == self._file:
                continue
            with suppress(OSError):  # a link, say: no process of ours made it
                its_lock = lock(file)
                if its_lock is None:
                    living.append(
                        (file.name.partition("-")[0], set(file.read_text("ascii", "replace").split("\n")))
                    )
                else:
                    its_lock.close()
                    file.unlink()
        return living

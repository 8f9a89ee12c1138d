"""The cache in a folder, which several processes may share: a database, and files that lease keys."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import diskcache

from modelgauge.cache.backend import Work
from modelgauge.cache.database import check_files, connect, is_damage
from modelgauge.cache.leases import Leases
from modelgauge.cache.read_only import ReadOnlyFolder
from modelgauge.cache.recovery import RecoveringDatabase
from modelgauge.errors import CacheError
from modelgauge.files.causes import advice_for


class FolderBackend(ReadOnlyFolder):
    """A folder that several processes may share, and several accounts if their group may write in it.

    Args:
        directory: created where it does not exist, readable by its owner only.
    """

    is_read_only = False
    leases: Leases
    database: RecoveringDatabase

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._opened = ExitStack()

    def connect(self) -> None:
        """Make the folder where it is missing, and open its database."""
        # Diskcache would open the folder that a variable means.
        if os.path.expandvars(self.folder) != str(self.folder):
            raise CacheError(
                f"The cache cannot be in {self.folder}: it has a variable in its name.",
                fix="Choose another --data-dir.",
            )
        # Keep the mode of an existing folder: several accounts may share it.
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_files(self.folder)
        self.leases = Leases(self.folder)
        self._opened.callback(self.leases.close)
        self.database = RecoveringDatabase(self.file, Path(self.quarantine), self.leases)
        self.database.open()
        _share(self.folder)
        self.database.close_thread()  # each thread opens a connection of its own

    def close(self) -> None:
        """Tell other processes that this one is done."""
        self._opened.close()

    def close_thread(self) -> None:
        """Close the connections of this thread."""
        self.database.close_thread()

    @property
    def damaged(self) -> int:
        """The number of times that the file was damaged, or held rows of others, since it was opened."""
        return self.database.damaged

    def explain(self, error: Exception, work: Work) -> CacheError:
        """Return the error that users see: what is wrong with the disk."""
        cause = error if work in ("open", "lease") else _cause(error)
        advice, where = advice_for(cause), f"The cache in {self.folder}"
        if work == "open":
            return CacheError(
                f"{where} cannot be opened: {cause}.",
                fix=f"{advice} (under pytest MODELGAUGE_DATA_DIR). A run can do without: --no-caching (in Python "
                "caching=False).",
            )
        if work == "read":
            return CacheError(f"{where} cannot be read: {cause}.", fix="Run `modelgauge cache verify`.")
        if work == "lease":
            return CacheError(
                f"The leases of the cache failed: {cause}.", fix=f"{advice}, then run `modelgauge resume`."
            )
        return CacheError(
            f"{where} cannot be written: {cause}.",
            fix=f"{advice}, then run `modelgauge resume` or the same command again: what was committed is kept.",
        )

    # --- values ---------------------------------------------------------------------------------------------

    def get_many(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the values of the keys that are there."""
        return self.database.read(digests)

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Store values in one transaction."""
        self.database.write(values)

    def remove(self, digests: Sequence[str]) -> int:
        """Remove the values of these keys in one transaction."""
        return self.database.remove(digests)

    def clear(self) -> int:
        """Remove all values, and return how many there were."""
        return self.database.clear()

    def set_aside(self, digest: str, value: bytes, why: str) -> bool:
        """Move a row to the quarantine, unless another process has written it again by now."""
        return self.database.set_aside(digest, value, why)

    def check(self) -> tuple[str, int]:
        """Check the file's structure, and set aside the file, or rows that modelgauge did not write."""
        return self.database.check()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with closing(connect(self.file)) as connection:
            yield connection

    # --- leases ---------------------------------------------------------------------------------------------

    def lease(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Lease keys; return those of other processes, each with the id of its process."""
        return self.leases.take(digests)

    def release(self, digests: Sequence[str]) -> None:
        """Give the leases of keys back."""
        self.leases.give_back(digests)

    def _is_shared(self) -> bool:
        return self.leases.shared


def _share(directory: Path) -> None:
    """Give our files the group permissions of their folder, whatever the umask of the account that creates them."""
    group = directory.stat().st_mode & 0o020
    if not group or os.name != "posix":
        return
    for file in directory.iterdir():
        with suppress(OSError):  # of another account, or gone
            mode = file.stat().st_mode
            if file.is_file() and not file.is_symlink() and not mode & group:
                file.chmod((mode | 0o060) & 0o777)


def _cause(error: BaseException) -> BaseException:
    """Return the first error of a chain: after a full disk, ending the transaction fails too."""
    context = error.__context__
    passed_on = isinstance(context, diskcache.Timeout) or (
        isinstance(context, sqlite3.Error) and not is_damage(context)
    )
    return _cause(context) if context is not None and passed_on else error

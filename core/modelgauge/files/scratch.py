"""Scratch folders beside a file that is being made. The next process removes what a killed one left."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from modelgauge.files.lock import lock


@contextmanager
def scratch_folder(beside: Path, name: str) -> Iterator[Path]:
    """Make a folder `.NAME.…`, readable by its owner only, and remove it when the block ends.

    A file with a lock, `.NAME.….lock`, says that the folder is in use: the lock ends with the process.

    Args:
        beside: the folder in which it is made.
        name: of the file or folder that is being made; folders of the same name whose process has ended are removed.

    Raises:
        OSError: the disk refuses.
    """
    _remove_abandoned(beside, name)
    made = beside / f".{name}.{secrets.token_hex(6)}"
    mark = made.with_name(f"{made.name}.lock")
    held = lock(mark, "a+b")
    try:
        made.mkdir(mode=0o700)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        if held is not None:
            held.close()
        with suppress(OSError):
            mark.unlink()


def _remove_abandoned(beside: Path, name: str) -> None:
    prefix = f".{name}."
    for mark in [
        path for path in beside.iterdir() if path.name.startswith(prefix) and path.suffix == ".lock"
    ]:
        with suppress(OSError):  # owned by somebody else
            held = lock(mark)
            if held is None:
                continue
            shutil.rmtree(mark.with_suffix(""), ignore_errors=True)
            held.close()
            mark.unlink()

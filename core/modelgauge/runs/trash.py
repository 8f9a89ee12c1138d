"""The trash of a data folder: deleted runs and data sets, until somebody removes them for good."""

import re
from itertools import count
from pathlib import Path

from modelgauge.engine.run_files.folder import MANIFEST, RUNS, RunFolder
from modelgauge.engine.run_files.ids import why_no_run_id
from modelgauge.errors import RecordError

TRASH = "trash"


_ADDED = re.compile(r"~\d+\Z")  # to a name that was not the first of its kind in the trash


def free_place(trash: Path, name: str) -> Path:
    """Return a path in the trash that nothing has: the name, or `NAME~2` and so on.

    Args:
        trash: the folder.
        name: of what is deleted.
    """
    names = (name if place == 1 else f"{name}~{place}" for place in count(1))
    return next(path for name in names if not (path := trash / name).exists())


def name_before(path: Path) -> str:
    """Return the name that something in the trash had before it was deleted."""
    return _ADDED.sub("", path.name)


def move_to_trash(run: RunFolder, data_dir: Path) -> Path:
    """Move the folder of a run to the trash, and return where it is now.

    Args:
        run: to be moved.
        data_dir: its trash is used.

    Raises:
        RecordError: a process works on the run, or it cannot be moved.
    """
    if run.is_going_on():
        raise RecordError(
            f"The run {run.run_id} is still in progress.", fix="Stop it by Ctrl-C first, or wait for its end."
        )
    target = free_place(data_dir / TRASH, run.path.name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return run.path.rename(target)
    except OSError as error:
        raise RecordError(
            f"The run {run.path} cannot be moved to {target}: {error.strerror}.",
            fix="Move or remove the folder by hand.",
        ) from error


def restore_from_trash(name: str, data_dir: Path) -> RunFolder:
    """Move the folder of a run back from the trash, and return it.

    Args:
        name: of the folder in the trash.
        data_dir: whose trash it is.

    Raises:
        RecordError: it is not there, a run of its name is among the others, or it cannot be moved.
    """
    path = data_dir / TRASH / name
    target = data_dir / RUNS / name_before(path)
    if why_no_run_id(target.name) is not None or Path(name).name != name or not (path / MANIFEST).is_file():
        raise RecordError(f"There is no {name!r} in the trash.", fix=f"Look into {data_dir / TRASH}.")
    if target.exists():
        raise RecordError(f"There is a run {target.name} already.", fix=f"Move {path} by hand.")
    try:
        path.rename(target)
    except OSError as error:
        fix = "Move the folder by hand."
        raise RecordError(f"{path} cannot be moved to {target}: {error.strerror}.", fix=fix) from error
    return RunFolder(target)

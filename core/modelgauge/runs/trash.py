"""The trash of a data folder: runs that were deleted, until somebody removes them for good."""

from itertools import count
from pathlib import Path

from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError

TRASH = "trash"


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
            f"The run {run.run_id} is going on.", fix="Stop it by Ctrl-C first, or wait for its end."
        )
    names = (run.path.name if place == 1 else f"{run.path.name}~{place}" for place in count(1))
    target = next(path for name in names if not (path := data_dir / TRASH / name).exists())
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return run.path.rename(target)
    except OSError as error:
        raise RecordError(
            f"The run {run.path} cannot be moved to {target}: {error.strerror}.",
            fix="Move or remove the folder by hand.",
        ) from error

"""Standard logging, sent to stderr while a command runs, and configured nowhere else."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEVELS = ("debug", "info", "warning", "error")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _ToStderr(logging.Handler):
    """Writes as the commands write: without secrets, control characters as escapes."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self._note = note
        self.setFormatter(logging.Formatter(_FORMAT, "%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            tqdm = sys.modules.get("tqdm")
            # A progress bar makes room.
            with nullcontext() if tqdm is None else tqdm.tqdm.external_write_mode(sys.stderr):
                self._note(text)
        except Exception:  # noqa: BLE001  logging's own way: a message that cannot be written ends nothing
            self.handleError(record)


@contextmanager
def logging_to_stderr(note: Callable[[str], None]) -> Iterator[None]:
    """Send what is logged to stderr, warnings and worse unless `--log-level` says otherwise.

    Args:
        note: writes a line to stderr.
    """
    root = logging.getLogger()
    handler, level = _ToStderr(note), root.level
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)

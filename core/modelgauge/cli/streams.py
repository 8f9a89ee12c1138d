"""Output streams while a command runs: logs go to stderr, and with `--json` only the object goes to stdout."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _ToStderr(logging.Handler):
    """Log handler that writes records like the messages of commands: secrets redacted, control characters escaped."""

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


@contextmanager
def reserved_stdout() -> Iterator[TextIO]:
    """Put stdout aside, and give it as a stream of its own.

    Until the block ends, all that goes to stdout goes to stderr: what is printed, and what child processes and
    libraries in C write to the file descriptor.
    """
    stdout, stderr = sys.stdout, sys.stderr
    try:
        number, other = stdout.fileno(), stderr.fileno()
    except (AttributeError, OSError, ValueError):  # streams that Python alone knows
        with redirect_stdout(stderr):
            yield stdout
        return
    stdout.flush()
    kept = open(os.dup(number), "w", encoding=stdout.encoding, errors=stdout.errors)  # noqa: SIM115, PTH123  closed below; no path
    back = os.dup(number)
    os.dup2(other, number)
    try:
        with redirect_stdout(stderr):
            yield kept
    finally:
        os.dup2(back, number)
        os.close(back)
        with suppress(OSError):  # a reader who left did not take all, which was an error when it was written
            kept.close()

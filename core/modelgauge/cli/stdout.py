"""`--json`: stdout kept for one object, whatever else writes there in the meantime."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO


@contextmanager
def stdout_kept() -> Iterator[TextIO]:
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
        with suppress(OSError):  # what a reader who left did not take; it was told when it was written
            kept.close()

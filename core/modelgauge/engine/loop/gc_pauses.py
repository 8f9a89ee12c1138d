"""Python's search for reference cycles, rarer while a run is under way.

Whenever 700 more objects have been made than freed (2,000 from Python 3.13 on), Python looks through the young ones,
and time and again through all that the process has: 60 ms in which no call is sent. What thousands of items keep for a
while is no garbage.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG = 10_000
_lock = threading.Lock()
_runs = 0
_before = 0


@contextmanager
def rarer_collections() -> Iterator[None]:
    """Have young objects looked through less often, until the last of the runs in this process has ended.

    Where the process has them looked through less often already, or never, nothing is changed. A threshold that
    somebody sets during the runs stays.
    """
    _run_begins()
    try:
        yield
    finally:
        _run_ends()


def _run_begins() -> None:
    global _runs, _before  # noqa: PLW0603  Python has one threshold for all runs in the process
    with _lock:
        _runs += 1
        if _runs == 1:
            _before = gc.get_threshold()[0]
            if 0 < _before < _YOUNG:
                _set_young(_YOUNG)


def _run_ends() -> None:
    global _runs  # noqa: PLW0603  likewise
    with _lock:
        _runs -= 1
        if not _runs and 0 < _before < _YOUNG == gc.get_threshold()[0]:
            _set_young(_before)


def _set_young(threshold: int) -> None:
    gc.set_threshold(threshold, *gc.get_threshold()[1:])

"""New threads know in which span they were started, while a trace is being recorded.

Tasks of an event loop inherit context variables by themselves. Threads do so from Python 3.14 on
(`thread_inherit_context`), and there only where it is switched on; before, `threading.Thread` and
`ThreadPoolExecutor` start with none, and what an app does in them would be lost. So both are extended for as
long as at least one trace is open, and put back afterwards. No event loop is touched.
"""

import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast


class Inheritance:
    """Lets threads inherit the context of the code that starts them.

    Args:
        wanted: whether the context of the calling code is worth handing on.
    """

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self._lock = threading.Lock()
        self._users = 0
        self._undo: list[Callable[[], None]] = []

    def enter(self) -> None:
        """Switch it on, for one more user."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._undo = [self._extend_start(), self._extend_submit()]

    def leave(self) -> None:
        """Let one user leave; it is off again when the last has."""
        with self._lock:
            self._users -= 1
            if not self._users:
                for undo in self._undo:
                    undo()

    def _extend_submit(self) -> Callable[[], None]:
        original, wanted = ThreadPoolExecutor.submit, self._wanted

        @functools.wraps(cast("Any", original))
        def submit(
            self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
        ) -> "Future[Any]":
            if wanted():
                fn = functools.partial(contextvars.copy_context().run, fn)
            future: Future[Any] = cast("Any", original)(self, fn, *args, **kwargs)
            return future

        return _replace(ThreadPoolExecutor, "submit", submit)

    def _extend_start(self) -> Callable[[], None]:
        original, wanted = threading.Thread.start, self._wanted

        @functools.wraps(original)
        def start(self: threading.Thread) -> None:
            if wanted():  # an attribute of this thread alone, which it finds before the method
                run = functools.partial(contextvars.copy_context().run, self.run)
                self.run = run  # type: ignore[method-assign]  # see above
            original(self)

        return _replace(threading.Thread, "start", start)


def _replace(cls: type, name: str, replacement: Callable[..., Any]) -> Callable[[], None]:
    """Replace a method, and return what puts it back, unless somebody else has replaced it since."""
    original = getattr(cls, name)
    setattr(cls, name, replacement)

    def undo() -> None:
        if getattr(cls, name) is replacement:
            setattr(cls, name, original)

    return undo

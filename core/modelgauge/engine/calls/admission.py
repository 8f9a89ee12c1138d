"""Interface of admission: `LocalAdmission` in the process of the run, `RemoteAdmission` in its workers."""

from collections.abc import Callable, Iterator
from typing import Protocol

from modelgauge.data.responses import Usage
from modelgauge.engine.calls.limits import Limiter, Outcome
from modelgauge.engine.calls.waiting import Pauses, Server
from modelgauge.errors import RunStoppedError
from modelgauge.interfaces.sut import ErrorClass, Retry


class Admission(Protocol):
    """Admission of the attempts of one target. Each `enter` is followed by one `leave`, in the same task.

    Attributes:
        limiter: its places.
        server: what is known of who answers.
        pauses: of its calls.
        dead: why it is not called any more; None while it is.
    """

    limiter: Limiter
    server: Server
    pauses: Pauses
    dead: RunStoppedError | None

    async def enter(self, check: Callable[[], None] | None = None) -> None:
        """Wait until an attempt may be sent. Whether the run is stopped is checked after the wait.

        Args:
            check: of this attempt, after the wait.

        Raises:
            RunStoppedError: no attempt may be sent any more.
            Exception: what `check` raised.
        """

    def enter_at_once(self, check: Callable[[], None] | None = None) -> bool:
        """Let an attempt in that has nothing to wait for; return whether it is in. Else `enter` waits.

        Arguments and errors are those of `enter`.
        """
        ...

    def leave(self, outcome: Outcome | None, seconds: float) -> None:
        """Give back what an attempt holds.

        Args:
            outcome: how it ended; None if the limiter knows that already, since the place was kept for a while.
            seconds: it took.
        """

    def succeeded(self, begun: float) -> None:
        """Note an attempt that was answered, and when it began: the object can be used."""

    def failed(self, verdict: ErrorClass, error: Exception) -> None:
        """Note an attempt that failed; some failures end the use of the object.

        Args:
            verdict: the class of the error.
            error: what was raised.
        """

    def stop_at_limit(self, verdict: Retry, error: Exception) -> None:
        """End the use of an object whose rate limit lasts longer than a call may.

        Args:
            verdict: the class of the error.
            error: what was raised.
        """

    def settle(self, usage: Usage | None) -> None:
        """Count what a paid call cost; None if its response does not say, or cannot be read."""

    def notes(self) -> Iterator[str]:
        """Return notes for the record about limits that could not be enforced, and about overload of the server."""
        ...

"""Pauses before retries: of a single call, and of all calls while a server is unreachable."""

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any

from modelgauge.wording.phrases import time_in

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 5.0
_CONNECTED = 6.0  # seconds; a call that takes longer has found its server, whatever becomes of it

_DOWN = "'%s' cannot be reached: %s Its calls wait for it until %s, one of them tries now and then; Ctrl-C ends that."
_LIMITED = "'%s' is rate limited: its calls wait, each up to --call-timeout (%g s); --requests-per-minute avoids that."
_BACK = "'%s' can be reached again, after %.0f s."

log = logging.getLogger(__name__)


class Pauses:
    """The pauses of calls before they are sent again.

    Args:
        sleep: waits some seconds.
    """

    def __init__(self, sleep: Callable[[float], Coroutine[Any, Any, None]]) -> None:
        self._sleep = sleep
        self._pauses: set[asyncio.Future[None]] = set()
        self._is_given_up = False

    async def pause(self, seconds: float) -> None:
        """Wait before a call is sent again, unless no further call is sent."""
        if self._is_given_up or not seconds:
            return
        pause = asyncio.ensure_future(self._sleep(seconds))
        self._pauses.add(pause)
        try:
            await asyncio.wait([pause])
        finally:
            pause.cancel()
            self._pauses.discard(pause)

    def give_up(self) -> None:
        """Wake all calls that wait here: no further call is sent."""
        self._is_given_up = True
        for pause in self._pauses:
            pause.cancel()


class Server:
    """The state of the server of a target. While it cannot be reached, all calls wait until one gets through.

    Args:
        uid: of what is called.
        patience: seconds without success after which the server is given up.
        first_patience: such seconds for a server that has never answered.
        pauses: between two tries.
        clock: seconds.

    Attributes:
        answers: to calls, so far.
        limited: how often its rate limit has refused calls, those under way at once counted as one; an answer takes
            one away.
        limited_since: when that began, in seconds; infinite after an answer.
        seconds: that calls have waited for the server, in all its outages.
    """

    def __init__(
        self,
        uid: str,
        patience: float,
        first_patience: float,
        pauses: Pauses,
        clock: Callable[[], float],
    ) -> None:
        self._uid, self._patience, self._pauses, self._clock = uid, patience, pauses, clock
        self._first_patience = min(first_patience, patience)
        self.answers = self.limited = 0
        self.limited_since = math.inf
        self.seconds = 0.0
        self._has_warned = False
        self._since: float | None = None
        self._tries = 0  # in vain
        self._turn = asyncio.Lock()
        self._trying: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def patience(self) -> float:
        """Return the seconds without success after which the server is given up."""
        return self._patience if self.answers else self._first_patience

    @property
    def trouble(self) -> str:
        """Return why its calls wait, as a sentence; empty if they do not."""
        if self.is_down():
            return f"'{self._uid}' cannot be reached: its calls wait for it."
        return f"'{self._uid}' is rate limited: its calls wait." if self.limited else ""

    def is_down(self) -> bool:
        """Return whether the server is unreachable."""
        return self._since is not None

    async def turn(self) -> None:
        """Wait while the server cannot be reached, until this call may try; its turn lasts until `leave`."""
        if not self.is_down():
            return
        await self._turn.acquire()
        self._trying = asyncio.current_task()
        await self._pauses.pause(self._pause())
        if not self.is_down():  # it was reached or given up meanwhile
            self.leave()
        elif self._is_trying():
            self._timer = asyncio.get_running_loop().call_later(_CONNECTED, self._wake_all)

    def _pause(self) -> float:
        if self._since is None:
            return 0.0
        left = self._since + self.patience - self._clock()
        grown: float = _FIRST_PAUSE * 2**self._tries
        return max(0.0, min(left, _LONGEST_PAUSE, grown))

    def leave(self) -> None:
        """Let the next call try to reach the server."""
        if self._is_trying():
            self._pass_on()

    def _pass_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._trying is not None:
            self._trying = None
            self._turn.release()

    def _is_trying(self) -> bool:
        return self._trying is not None and self._trying is asyncio.current_task()

    def answered(self, begun: float) -> None:
        """Count an answered call.

        Args:
            begun: when it was sent. Answers to calls that were sent before an outage do not end it.
        """
        if self._since is None or begun > self._since:
            self.answers += 1
            self.limited, self.limited_since = max(0, self.limited - 1), math.inf
            self._wake_all()

    def found(self) -> None:
        """Record a failed call that had reached the server."""
        if self._is_trying():
            self._wake_all()

    def limits(self, before: int, now: float) -> int:
        """Count a call that a rate limit refused, and return the count.

        Args:
            before: how often, when the call was sent.
            now: when it was refused, in seconds.
        """
        self.limited = max(self.limited, before + 1)
        self.limited_since = min(self.limited_since, now)
        return self.limited

    def tell_limited(self) -> None:
        """Warn, once, that calls wait long for a rate limit."""
        if not self._has_warned:
            self._has_warned = True
            log.warning(_LIMITED, self._uid, self._patience)

    def found_nobody(self, why: str) -> bool:
        """Record a call that could not reach the server.

        Args:
            why: the message of its error.

        Returns:
            Whether the server is to be given up.
        """
        now = self._clock()
        if self._since is None:
            self._since, self._tries = now, 0
        elif self._is_trying():
            self._tries += 1
            if self._tries == 1:
                until = time_in(self._since + self.patience - now)
                log.warning(_DOWN, self._uid, f"{why.rstrip('.')}.", until)
        return now >= self._since + self.patience

    def give_up(self) -> None:
        """Wake all calls that wait for the server: no further call is sent."""
        self._since = None
        self._pass_on()

    def _wake_all(self) -> None:
        """Wake all calls that wait for the server: one of them has found it."""
        if self._since is None:
            return
        seconds = self._clock() - self._since
        self.give_up()
        if self._tries:
            self.seconds += seconds
            log.warning(_BACK, self._uid, seconds)

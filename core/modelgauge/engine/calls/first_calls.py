"""The first calls of a SUT, which tell whether it can be used at all: a bad key is not sent twenty times at once."""

import asyncio

_PATIENCE = 0.5  # longer than a server takes to refuse a key; slow answers are not waited for


class FirstCalls:
    """Holds back all calls but the first few until one of these has told, or has taken a while.

    Args:
        calls: that are sent at once.
        patience: seconds that the others wait at most.
    """

    def __init__(self, calls: int, patience: float = _PATIENCE) -> None:
        self._left, self._patience = calls, patience
        self._told = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def over(self) -> bool:
        """Whether no call is held back any more."""
        return self._told.is_set()

    async def turn(self) -> None:
        """Wait until a call may be sent, or is known to be in vain."""
        if self._left > 0:
            self._left -= 1
            return
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._patience, self.tell)
        await self._told.wait()

    def tell(self) -> None:
        """It is known whether the object can be used."""
        self._told.set()
        if self._timer is not None:
            self._timer.cancel()

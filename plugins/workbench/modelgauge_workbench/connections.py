"""Connections of visitors, closed if the rest of a request does not arrive in time."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS = 10.0  # seconds for the first line and the headers of a request
_BODY = 15.0  # seconds for its body, and
_RATE = 16_384  # for each so many bytes one more
_HALF_SENT = (h11.IDLE, h11.SEND_BODY)


class TimedConnection(H11Protocol):
    """A connection that is closed if a client sends a request too slowly."""

    _receiving: Any = None  # the part of a request being received: the state of h11
    _since = 0.0
    _bytes = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Wait for the first request."""
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        """Receive data of the client."""
        super().data_received(data)
        self._bytes += len(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Set the deadline for the missing part of a request, if any."""
        state = self.conn.their_state
        if state is not self._receiving:
            self._receiving, self._since, self._bytes = state, self.loop.time(), 0
        if self._timer is None and state in _HALF_SENT:
            self._timer = self.loop.call_at(self._deadline(), self._expire)

    def _deadline(self) -> float:
        if self._receiving is h11.IDLE:
            return self._since + HEADERS
        return self._since + _BODY + self._bytes / _RATE

    def _expire(self) -> None:
        self._timer = None
        if self.flow.read_paused:  # the server itself is not reading
            self._since = self.loop.time()
        is_waiting = self.conn.their_state is self._receiving and self._receiving in _HALF_SENT
        if is_waiting and self.loop.time() >= self._deadline():
            self.transport.close()
        else:
            self._look()

"""Batches by tokens: rows of like length together, few enough for the memory. Nothing here needs torch."""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from modelgauge.errors import CallError

log = logging.getLogger(__name__)


class Size(NamedTuple):
    """The rows of a batch's part, and the tokens of the longest."""

    rows: int
    length: int


class Sized(Protocol):
    """A part of a batch."""

    @property
    def size(self) -> Size:
        """The memory that it takes."""


S = TypeVar("S", bound=Sized)
R = TypeVar("R")


class Batches:
    """Cuts what is asked into batches, and into smaller ones once the memory was too small.

    Args:
        most: tokens in a batch, padding included.
        is_out_of_memory: tells an error that a smaller batch may avoid.
    """

    def __init__(self, most: int, is_out_of_memory: Callable[[BaseException], bool]) -> None:
        self.most = most
        self._is_out_of_memory = is_out_of_memory
        self._has_said_so = False

    def run(self, parts: Sequence[S], work: Callable[[list[S]], Sequence[R]]) -> list[R]:
        """Do work in batches, longest rows first. Return the results in the order of the parts.

        Raises:
            CallError: the memory is too small for a batch of one part.
        """
        order = sorted(range(len(parts)), key=lambda at: (-parts[at].size.length, at))
        results: dict[int, R] = {}
        while order:
            taken = self._first([parts[at].size for at in order])
            batch = [parts[at] for at in order[:taken]]
            failure = None
            try:
                results.update(zip(order[:taken], work(batch), strict=True))
            except Exception as error:
                if not self._is_out_of_memory(error):
                    raise
                failure = error.with_traceback(None)  # its frames hold the tensors that were too many
            if failure is None:
                order = order[taken:]
            else:
                self._halve([part.size for part in batch], failure)
        return [results[at] for at in range(len(parts))]

    def _first(self, sizes: Sequence[Size]) -> int:
        """Return the number of parts for the next batch, at least one."""
        rows = 0
        for count, size in enumerate(sizes):
            rows += size.rows
            if count and rows * sizes[0].length > self.most:
                return count
        return len(sizes)

    def _halve(self, sizes: Sequence[Size], error: Exception) -> None:
        if len(sizes) == 1:
            raise CallError(
                f"The memory is too small for one prompt of {sizes[0].length:,} tokens.",
                fix="Free memory, choose a smaller dtype, or ask for fewer tokens.",
            ) from error
        self.most = sum(size.rows for size in sizes) * sizes[0].length // 2
        if not self._has_said_so:
            log.warning("Out of memory: batches have at most %s tokens from now on.", f"{self.most:,}")
            self._has_said_so = True

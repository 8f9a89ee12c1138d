"""Digests of ids, a million of them in a few bytes each: a set of Python objects would cost a hundred."""

from array import array

_FIRST = 1024


class DigestSet:
    """A set of 64-bit digests, by open addressing in one array: 12 to 24 bytes an entry."""

    def __init__(self) -> None:
        self._slots = _empty(_FIRST)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, name: str) -> bool:
        """Add the digest of a name; whether it was not there."""
        if 3 * self._count >= 2 * len(self._slots):
            self._grow()
        digest = digest_of(name)
        slots, mask = self._slots, len(self._slots) - 1
        place = digest & mask
        while slots[place]:
            if slots[place] == digest:
                return False
            place = (place + 1) & mask
        slots[place] = digest
        self._count += 1
        return True

    def _grow(self) -> None:
        old, slots = self._slots, _empty(2 * len(self._slots))
        mask = len(slots) - 1
        for digest in old:
            if digest:
                place = digest & mask
                while slots[place]:
                    place = (place + 1) & mask
                slots[place] = digest
        self._slots = slots


def digest_of(name: str) -> int:
    """64 bits of a name, never 0, good for this process: a million have two of the same once in 37 million times."""
    return hash(name) % 2**64 or 1


def _empty(size: int) -> "array[int]":
    return array("Q", bytes(8 * size))

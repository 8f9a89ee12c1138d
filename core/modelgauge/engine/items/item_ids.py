"""The ids of a test's items, of which a million take a few bytes each: a set of Python objects would take a hundred."""

from array import array

from modelgauge.data.items import TestItem, derived_id
from modelgauge.errors import DefinitionError


class DigestSet:
    """A set of 64-bit digests, by open addressing in one array: 12 to 24 bytes an entry."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, name: str) -> bool:
        """Add the digest of a name; return whether it is new.

        Returns:
            Whether it was not there.
        """
        if 3 * self._count >= 2 * len(self._slots):
            self._grow()
        digest = hash_name(name)
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
        old, slots = self._slots, array("Q", bytes(16 * len(self._slots)))
        mask = len(slots) - 1
        for digest in old:
            if digest:
                place = digest & mask
                while slots[place]:
                    place = (place + 1) & mask
                slots[place] = digest
        self._slots = slots


def hash_name(name: str) -> int:
    """64 bits of a name, never 0, for this process only. Two of a million names collide in one of 37 million runs."""
    return hash(name) % 2**64 or 1


class Ids:
    """Assigner of item ids that detects duplicates.

    Attributes:
        repeated: how many derived ids occurred again and got a suffix.
    """

    def __init__(self, test_uid: str) -> None:
        self._test_uid = test_uid
        self._taken = DigestSet()
        self._times: dict[int, int] = {}  # of the derived ids that occurred more than once
        self.repeated = 0

    def identified(self, item: TestItem) -> TestItem:
        """Return an item with its id: the author's, or one derived from its prompts.

        Raises:
            DefinitionError: the author gave one id to two items.
        """
        if item.id is None:
            return item.replaced(id=self._derived_name(derived_id(item)))
        if not self._taken.add(item.id):
            raise DefinitionError(
                f"Test '{self._test_uid}' has two items with the id '{item.id}'.",
                fix="Give each TestItem an id of its own, or none: then it is derived from its prompts.",
            )
        return item

    def __len__(self) -> int:
        return len(self._taken)

    def forget(self) -> None:
        """Free the memory, once all items are made."""
        self._taken = DigestSet()

    def _derived_name(self, name: str) -> str:
        if self._taken.add(name):
            return name
        self.repeated += 1
        digest = hash_name(name)
        times = self._times.get(digest, 1) + 1
        while not self._taken.add(f"{name}~{times}"):  # a source id may look like that
            times += 1
        self._times[digest] = times
        return f"{name}~{times}"

"""What several workers say in the same words is shown once."""

from collections import Counter

_REMEMBERED = 10_000  # lines


class ShownOnce:
    """Which lines were shown: what each of several speakers says once is shown once."""

    def __init__(self) -> None:
        self._counts: dict[object, Counter[str]] = {}
        self._shown: Counter[str] = Counter()

    def is_new(self, speaker: object, text: str) -> bool:
        """Whether a sender has repeated a text more often than it was shown."""
        counts = self._counts.setdefault(speaker, Counter())
        counts[text] += 1
        is_new = counts[text] > self._shown[text]
        self._shown[text] += is_new
        if len(self._shown) > _REMEMBERED:
            self._counts.clear()
            self._shown.clear()
        return is_new

"""What several workers say in the same words is shown once."""

from collections import Counter

_REMEMBERED = 10_000  # lines


class ShownOnce:
    """Which lines were shown: what each of several speakers says once is shown once."""

    def __init__(self) -> None:
        self._said: dict[object, Counter[str]] = {}
        self._shown: Counter[str] = Counter()

    def is_new(self, speaker: object, text: str) -> bool:
        """Whether a speaker has said something more often than it was shown."""
        said = self._said.setdefault(speaker, Counter())
        said[text] += 1
        is_new = said[text] > self._shown[text]
        self._shown[text] += is_new
        if len(self._shown) > _REMEMBERED:
            self._said.clear()
            self._shown.clear()
        return is_new

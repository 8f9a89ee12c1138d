"""Where two texts differ: word by word, line by line in long texts, as wholes in longer texts."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal, NamedTuple

from modelgauge.wording.phrases import in_common

_MOST = 400_000  # pairs of words that are compared: a second for the worst of texts, which repeat themselves
_WORDS, _LINES = re.compile(r"\w+|\s+|[^\w\s]"), re.compile(r".*\n|.+")
Kind = Literal["equal", "removed", "added"]
_Part = tuple[Kind, Sequence[str]]


class Piece(NamedTuple):
    """A part of two texts.

    Args:
        kind: "equal" in both; "removed" stands in the first only, "added" in the second only.
        text: the part.
    """

    kind: Kind
    text: str


def text_difference(first: str, second: str) -> list[Piece]:
    """The parts of two texts, in order: those that are not added make the first, those not removed the second.

    Args:
        first: a text of any length.
        second: the text that it is compared with.
    """
    for parts in (_WORDS, _LINES):
        ones, others = parts.findall(first), parts.findall(second)
        start = in_common(ones, others)
        end = in_common(ones[start:][::-1], others[start:][::-1])
        before, after = ones[start : len(ones) - end], others[start : len(others) - end]
        if comparable := len(before) * len(after) <= _MOST:
            break
    changed = _compared_parts(before, after) if comparable else _replaced(before, after)
    return _joined_pieces([("equal", ones[:start]), *changed, ("equal", ones[len(ones) - end :])])


def _compared_parts(before: Sequence[str], after: Sequence[str]) -> Iterable[_Part]:
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        same: list[_Part] = [("equal", before[i:j])]
        yield from same if tag == "equal" else _replaced(before[i:j], after[k:m])


def _replaced(before: Sequence[str], after: Sequence[str]) -> list[_Part]:
    return [("removed", before), ("added", after)]


def _joined_pieces(parts: Iterable[_Part]) -> list[Piece]:
    """Pieces of text: empty pieces are left out, and neighbours of a kind are joined."""
    pieces = [(kind, "".join(words)) for kind, words in parts if words]
    return [
        Piece(kind, "".join(text for _, text in same))
        for kind, same in groupby(pieces, key=lambda piece: piece[0])
    ]

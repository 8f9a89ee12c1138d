"""Text in aligned columns of characters, and folded into lines: the layout of terminals and pipes."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from unicodedata import category, east_asian_width

GAP = "  "
"""The white space between columns."""
_BELOW = "    "  # before what stands below a row
_WORD = re.compile(r"\S+(?: (?:±|\+/-) \S+)*")  # a number keeps its error
_PIECE = re.compile(r"[^\W_]+(?:[.,]\d+)*[^\w\s]*_*|.")  # of a word that is too long
_LONG_WORD = 28


class TextColumn:
    """A column of texts, as wide as it is at least.

    Args:
        name: its head.
        texts: its cells; the white space that a text begins with is its indent.
        fold: the least width to which it is folded; None if it is not.
        right: whether it is aligned on the right.
        is_optional: whether it is left out where there is no room.

    Attributes:
        natural: its width if it is not folded.
        width: its width.
    """

    def __init__(
        self,
        name: str,
        texts: Iterable[str],
        fold: int | None = None,
        *,
        right: bool = False,
        is_optional: bool = False,
    ) -> None:
        self.name, self.folds, self.is_optional, self._right = name, fold is not None, is_optional, right
        self.texts = [*texts]
        self.natural = self.width = max(fold or 0, *map(cells, (name, *self.texts)))
        if fold is not None:
            pieces = (piece for text in self.texts for piece in _PIECE.findall(text))
            word = min(max(map(cells, pieces), default=0), _LONG_WORD)
            self.width = min(self.natural, max(fold, cells(name), word))

    def lines(self, at: int) -> list[str]:
        """Return a text in lines of the column's width."""
        return folded(self.texts[at], self.width) if self.folds else [self.texts[at]]

    def padded(self, part: str) -> str:
        """Pad a line of a text, or the head, to the width of the column."""
        space = " " * (self.width - cells(part))
        return f"{space}{part}" if self._right else f"{part}{space}"


def aligned(
    columns: Sequence[TextColumn], *, has_head: bool = True, width: int | None = None, rule: str = ""
) -> list[str]:
    """Return the lines of aligned columns, of which none is ever cut; no lines for no rows.

    Columns of text are folded where there is no room. A column without room even then goes below its row, with its
    name; columns on the right go first.

    Args:
        columns: of equal length.
        has_head: whether the names of the columns are the first line.
        width: characters in a line; None for any number.
        rule: the character of the line below the head.
    """
    if not columns or not columns[0].texts:
        return []
    gap = GAP + " " * bool(rule)
    room = sys.maxsize if width is None else width
    kept = _side_by_side(columns, room, gap)
    below = [column for column in columns if column not in kept and not column.is_optional]
    lines = [gap.join(column.padded(column.name) for column in kept)] if has_head else []
    if rule:
        lines.append(rule * (sum(column.width for column in kept) + len(gap) * (len(kept) - 1)))
    for at in range(len(columns[0].texts)):
        split = zip_longest(*(column.lines(at) for column in kept), fillvalue="")
        lines += [gap.join(map(TextColumn.padded, kept, parts)) for parts in split]
        lines += [f"{_BELOW}{line}" for line in _stacked(below, at, room - len(_BELOW))]
    return [line.rstrip() for line in lines]


def _side_by_side(every: Sequence[TextColumn], room: int, gap: str) -> list[TextColumn]:
    """Return the columns that have room, as wide as they need; where room is short, those that need most give most."""
    kept = [every[0]]
    spare = room - every[0].width
    for column in every[1:]:
        if column.width + len(gap) <= spare:
            kept.append(column)
            spare -= column.width + len(gap)
    wanting = sorted(kept, key=lambda column: column.natural - column.width)
    for place, column in enumerate(wanting):
        more = max(0, min(column.natural - column.width, spare // (len(wanting) - place)))
        column.width += more
        spare -= more
    return kept


def _stacked(below: Iterable[TextColumn], at: int, room: int) -> Iterator[str]:
    """Return the cells of a row that have no room in it, with the names of their columns."""
    line = ""
    for column in below:
        cell = column.texts[at].strip()
        for part in folded(f"{column.name}: {cell}" if column.name else cell, room) if cell else ():
            if line and cells(f"{line}{GAP}{part}") > room:
                yield line
                line = ""
            line = f"{line}{GAP}{part}" if line else part
    if line:
        yield line


def folded(text: str, width: int) -> list[str]:
    """Fold a text into lines of at most `width` characters, indented as it is. Words stay whole where they can."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    room = max(1, width - len(indent))
    lines = [""]
    for word in _WORD.findall(text):
        pieces = [word] if cells(word) <= room else _PIECE.findall(word)
        parts = [part for piece in pieces for part in ([piece] if cells(piece) <= room else piece)]
        glue = " " if lines[-1] else ""
        for part in parts:
            if lines[-1] and cells(f"{lines[-1]}{glue}{part}") > room:
                lines.append(part.strip())
            else:
                lines[-1] += glue + part
            glue = ""
    return [indent + line for line in lines]


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes: two for a Chinese character, none for a combining accent."""
    if text.isascii():
        return len(text)
    return sum(
        0 if category(character) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(character) in "WF")
        for character in text
    )

"""Text for terminals and pipes: aligned columns, pages, and escapes for control characters.

Numbers are in `figures.py`, the tables of runs in `run_report.py`.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType
from typing import TextIO
from unicodedata import category, east_asian_width

from modelgauge.wording.visible import visible

NARROWEST, WIDEST = 40, 120
"""The widths that pages are made for, however wide the terminal is."""

_CODES = {"bold": 1, "dim": 2, "red": 31}

_GAP, _BELOW = "  ", "    "  # between columns, and before what stands below a row
_NOTHING: Mapping[str, int] = MappingProxyType({})
_WORD = re.compile(r"\S+(?: (?:±|\+/-) \S+)*")  # a number keeps its error
_PIECE = re.compile(r"[^\W_]+(?:[.,]\d+)*[^\w\s]*_*|.")  # of a word that is too long
_LONG_WORD = 28


def one_line(text: str, most: int) -> str:
    """The text on one line of at most `most` characters, with its white space folded."""
    line = " ".join(text[: 4 * most + 200].split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def ends_of(text: str, most: int) -> str:
    """The text on one line of at most `most` characters: without its middle, since a message ends with the fix."""
    reach = 4 * most + 200
    whole = text if len(text) <= 2 * reach else f"{text[:reach]} {text[-reach:]}"
    line = " ".join(whole.split())
    if len(line) <= most:
        return line
    end = (most - 5) * 2 // 3
    return f"{line[: most - 5 - end].rstrip()} ... {line[-end:].lstrip()}"


def columns(
    rows: Sequence[Sequence[str]],
    head: Sequence[str] = (),
    indent: str = "",
    *,
    width: int | None = None,
    folds: Mapping[str, int] = _NOTHING,
    right: Collection[str] = (),
    drawn: Collection[str] = (),
    optional: Collection[str] = (),
    rule: str = "",
) -> str:
    """Rows as aligned columns, of which none is ever cut; nothing for no rows.

    Columns of text are folded where there is no room. A column without room even then goes below its row, with its
    name; columns on the right go first.

    Args:
        rows: of equal length; the white space that a cell begins with is its indent.
        head: the names of the columns.
        indent: what stands before each line.
        width: characters in a line; None for any number.
        folds: the columns of text, and how wide each is at least.
        right: the columns that are aligned on the right.
        drawn: the columns whose white space is part of a drawing.
        optional: the columns that are left out where there is no room.
        rule: the character of the line below the head.
    """
    if not rows:
        return ""
    names = head or [""] * len(rows[0])
    every = [
        _Column(name, held if name in drawn else map(_tidy, held), folds.get(name), name in right)
        for name, *held in zip(names, *rows, strict=True)
    ]
    gap = _GAP + " " * bool(rule)
    room = sys.maxsize if width is None else width - len(indent)
    kept = _side_by_side(every, room, gap)
    below = [column for column in every if column not in kept and column.name not in optional]
    lines = [gap.join(column.padded(column.name) for column in kept)] if head else []
    if rule:
        lines.append(rule * (sum(column.width for column in kept) + len(gap) * (len(kept) - 1)))
    for at in range(len(rows)):
        split = zip_longest(*(column.lines(at) for column in kept), fillvalue="")
        lines += [gap.join(map(_Column.padded, kept, parts)) for parts in split]
        lines += [f"{_BELOW}{line}" for line in _stacked(below, at, room - len(_BELOW))]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


class _Column:
    """A column of a table, as wide as it is at least.

    Args:
        name: its head.
        held: its cells.
        fold: how wide it is at least where it is folded; None if it is not.
        right: whether it is aligned on the right.
    """

    def __init__(self, name: str, held: Iterable[str], fold: int | None, right: bool) -> None:
        self.name, self.folds, self._right = name, fold is not None, right
        self.cells = list(held)
        self.natural = self.width = max(fold or 0, *map(cells, (name, *self.cells)))
        if fold is not None:
            pieces = (piece for cell in self.cells for piece in _PIECE.findall(cell))
            word = min(max(map(cells, pieces), default=0), _LONG_WORD)
            self.width = min(self.natural, max(fold, cells(name), word))

    def lines(self, at: int) -> list[str]:
        """A cell in the column's width."""
        return folded(self.cells[at], self.width) if self.folds else [self.cells[at]]

    def padded(self, part: str) -> str:
        """A line of a cell, or the head, with the white space that fills the column."""
        space = " " * (self.width - cells(part))
        return f"{space}{part}" if self._right else f"{part}{space}"


def _tidy(cell: str) -> str:
    """A cell on one line, with its indent."""
    return visible(" " * (len(cell) - len(cell.lstrip(" "))) + " ".join(cell.split()))


def _side_by_side(every: Sequence[_Column], room: int, gap: str) -> list[_Column]:
    """The columns that have room, as wide as they need; where room is short, those that need most give most."""
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


def _stacked(below: Iterable[_Column], at: int, room: int) -> Iterator[str]:
    """The cells of a row that have no room in it, with the names of their columns."""
    line = ""
    for column in below:
        cell = column.cells[at].strip()
        for part in folded(f"{column.name}: {cell}" if column.name else cell, room) if cell else ():
            if line and cells(f"{line}{_GAP}{part}") > room:
                yield line
                line = ""
            line = f"{line}{_GAP}{part}" if line else part
    if line:
        yield line


def folded(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters, indented as it is; words stay whole where they can."""
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


def indented(text: str, indent: str = "  ") -> str:
    """The text with each line indented."""
    return "\n".join(f"{indent}{line}".rstrip() for line in text.split("\n"))


# --- pages of tables ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Style:
    """What the terminal can do.

    Args:
        width: characters in a line.
        color: whether it shows colours and bold.
        symbols: whether its encoding has more than ASCII.
        most_rows: rows of one group of results, and groups of errors; None for all.
    """

    width: int = 80
    color: bool = False
    symbols: bool = True
    most_rows: int | None = None

    @classmethod
    def of(cls, stream: TextIO, *, most_rows: int | None = None) -> "Style":
        """What a stream can show: colours on a terminal unless NO_COLOR is set, 80 columns elsewhere."""
        terminal = stream.isatty()
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        known = terminal or os.environ.get("COLUMNS")
        wide = shutil.get_terminal_size((80, 24)).columns if known else 80
        return cls(
            max(NARROWEST, min(wide, WIDEST)), terminal and not plain, holds_unicode(stream), most_rows
        )

    @property
    def plus_minus(self) -> str:
        return "±" if self.symbols else "+/-"

    @property
    def arrow(self) -> str:
        return " → " if self.symbols else " -> "


def holds_unicode(stream: object) -> bool:
    """Whether a stream's encoding has more than ASCII."""
    return "utf" in (getattr(stream, "encoding", None) or "").lower()


class Page:
    """Collects what is shown, line by line.

    Args:
        style: of the terminal.
        redact: takes secrets out of a text; each text goes through it before lines are broken.
    """

    def __init__(self, style: Style, redact: Callable[[str], str]) -> None:
        self.style = style
        self.redact = redact
        self._lines: list[str] = []

    def add(self, text: str, look: str = "") -> None:
        """Add a text, in as many lines as it takes; its control characters are shown and not obeyed.

        Args:
            text: of one or more lines.
            look: bold, dim or red.
        """
        for line in visible(self.redact(text)).split("\n"):
            self._lines += [self._painted(part, look) for part in folded(line, self.style.width)]

    def add_table(
        self,
        rows: Sequence[Sequence[str]],
        head: Sequence[str],
        *,
        folds: Mapping[str, int],
        right: Collection[str] = (),
        drawn: Collection[str] = (),
        optional: Collection[str] = (),
    ) -> None:
        """Add a table, and an empty line behind it; see `columns`."""
        shown = [[self.redact(cell) for cell in row] for row in rows]
        text = columns(
            shown,
            [visible(self.redact(name)) for name in head],
            width=self.style.width,
            folds=folds,
            right=right,
            drawn=drawn,
            optional=optional,
            rule="─" if self.style.symbols else "-",
        )
        first, _, rest = text.partition("\n")
        self._lines += [self._painted(first, "bold"), *rest.split("\n"), ""]

    def add_facts(
        self, facts: Sequence[tuple[str, ...]], lines: Sequence[tuple[str, str]] = (), *, indent: int = 0
    ) -> None:
        """Add texts with labels before them, then what is to be copied, in a column behind the widest label.

        Args:
            facts: label and text of each, and its look if it has one; see `add_fact`.
            lines: label and content of each; see `add_line`.
            indent: the least width of the labels.
        """
        wide = max([indent, *(len(label) for label, *_ in (*facts, *lines))])
        for label, text, *look in facts:
            self.add_fact(label, text, *look, indent=wide)
        for label, content in lines:
            self.add_line(label, content, indent=wide)

    def add_fact(self, label: str, text: str, look: str = "", *, indent: int) -> None:
        """Add a text with a label before its first line.

        Args:
            label: stands before it.
            text: on as many lines as it takes.
            look: bold, dim or red.
            indent: width of the labels.
        """
        lines = folded(visible(" ".join(self.redact(text).split())), self.style.width - indent - 2)
        for place, line in enumerate(lines):
            self._lines.append(f"{self._label('' if place else label, indent)}{self._painted(line, look)}")

    def add_line(self, label: str, content: str, *, indent: int) -> None:
        """Add what is to be copied: a path or a command, which is never broken into lines.

        Args:
            label: stands before it.
            content: on one line, however long.
            indent: width of the labels.
        """
        self._lines.append(f"{self._label(label, indent)}{visible(self.redact(content))}")

    def add_gap(self) -> None:
        """Add an empty line."""
        self._lines.append("")

    def rendered(self) -> str:
        """All lines, without white space at their ends."""
        return "\n".join(line.rstrip() for line in self._lines).rstrip("\n")

    def _label(self, label: str, indent: int) -> str:
        return self._painted(f"{label:<{indent}}  ", "dim" if label else "")

    def _painted(self, text: str, look: str) -> str:
        return f"\x1b[{_CODES[look]}m{text}\x1b[0m" if look and self.style.color else text

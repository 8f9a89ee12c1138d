"""A page of tables for a terminal or a pipe, and what the terminal can show.

What stands in the tables is the business of the modules that import this one.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modelgauge.reports.plain import columns, folded, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TextIO

NARROWEST, WIDEST = 40, 120
"""The widths that pages are made for, however wide the terminal is."""

_CODES = {"bold": 1, "dim": 2, "red": 31}


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
    def of(cls, stream: TextIO, *, most_rows: int | None = None) -> Style:
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
        self._redact = redact
        self._lines: list[str] = []

    def add(self, text: str, look: str = "") -> None:
        """Add a text, in as many lines as it takes; its control characters are shown and not obeyed.

        Args:
            text: of one or more lines.
            look: bold, dim or red.
        """
        for line in visible(self._redact(text)).split("\n"):
            self._lines += [self._painted(one, look) for one in folded(line, self.style.width)]

    def add_table(
        self,
        rows: Sequence[Sequence[str]],
        head: Sequence[str],
        *,
        folds: Mapping[str, int],
        right: Collection[str] = (),
    ) -> None:
        """Add a table, and an empty line behind it; see `columns`."""
        shown = [[self._redact(cell) for cell in row] for row in rows]
        text = columns(
            shown,
            [visible(self._redact(name)) for name in head],
            width=self.style.width,
            folds=folds,
            right=right,
            rule="─" if self.style.symbols else "-",
        )
        first, _, rest = text.partition("\n")
        self._lines += [self._painted(first, "bold"), *rest.split("\n"), ""]

    def add_fact(self, label: str, text: str, look: str = "", *, indent: int) -> None:
        """Add a text with a label before its first line.

        Args:
            label: stands before it.
            text: on as many lines as it takes.
            look: bold, dim or red.
            indent: width of the labels.
        """
        lines = folded(visible(" ".join(self._redact(text).split())), self.style.width - indent - 2)
        for place, line in enumerate(lines):
            self._lines.append(f"{self._label('' if place else label, indent)}{self._painted(line, look)}")

    def add_line(self, label: str, content: str, *, indent: int) -> None:
        """Add what is to be copied: a path or a command, which is never broken into lines.

        Args:
            label: stands before it.
            content: on one line, however long.
            indent: width of the labels.
        """
        self._lines.append(f"{self._label(label, indent)}{visible(self._redact(content))}")

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

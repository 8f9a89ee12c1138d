"""A page of tables for a terminal or a pipe, and what the terminal can show.

What stands in the tables is the business of the modules that import this one: only when there is something to
show, since rich takes long to import.
"""

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from modelgauge.report.plain import visible

_ASCII_HEAD = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


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

    @property
    def plus_minus(self) -> str:
        return "±" if self.symbols else "+/-"


class Page:
    """Collects what is shown, and prints it to a text.

    Args:
        style: of the terminal.
        redact: takes secrets out of a text; each cell goes through it before lines are broken.
    """

    def __init__(self, style: Style, redact: Callable[[str], str]) -> None:
        self.style = style
        self._redact = redact
        self._out = StringIO()
        self._console = Console(
            file=self._out,
            width=max(style.width, 40),
            force_terminal=style.color,
            color_system="standard" if style.color else None,
            no_color=not style.color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def text(self, content: str, style: str = "") -> Text:
        """A text without secrets, whose control characters are shown and not obeyed."""
        return Text(visible(self._redact(content)), style=style, overflow="fold")

    def table(self, *, head: bool = True) -> Table:
        """An empty table without borders."""
        box = SIMPLE_HEAD if self.style.symbols else _ASCII_HEAD
        return Table(
            box=box if head else None, show_header=head, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0)
        )

    def add(self, part: RenderableType, *, gap: bool = True) -> None:
        """Print a part, and an empty line behind it."""
        self._console.print(part)
        if gap:
            self._console.print()

    def add_line(self, label: str, content: str, *, indent: int) -> None:
        """Print what is to be copied: a path or a command, which is never broken into lines.

        Args:
            label: stands before it.
            content: on one line, however long.
            indent: width of the labels.
        """
        line = Text.assemble((f"{label:<{indent}}  ", "dim"), self.text(content))
        self._console.print(line, soft_wrap=True)

    def add_gap(self) -> None:
        """Print an empty line."""
        self._console.print()

    def rendered(self) -> str:
        """All parts, without white space at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._out.getvalue().rstrip("\n").split("\n"))

"""Contents for people, before layout: headings, sentences, facts, tables and charts.

A document is an iterable of blocks. A builder yields them; `terminal.py`, `html.py`, `markdown.py` and `notebook.py`
lay them out. Texts are plain: each renderer takes secrets out of them and escapes them, once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from modelgauge.documents.axis import Axis

Look = Literal["", "strong", "dim", "alarm"]
"""The emphasis of a text."""

Finding = Literal["told", "untold", "untested"]
"""A difference that was found, one that may be chance, and one that was not tested."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is more than its words on a page.

    Args:
        text: the words.
        address: of what is behind it; empty if nothing is.
        look: "small", "hidden" (for screen readers only), or classes of its cell.
    """

    text: str
    address: str = ""
    look: str = ""


@dataclass(frozen=True, slots=True)
class RowChoice:
    """A box by which a reader of a page chooses a row for the form around its table; nothing elsewhere.

    Args:
        name: of the form's field.
        value: that is sent if the row is chosen.
        label: for screen readers.
    """

    name: str
    value: str
    label: str
    text: ClassVar[str] = ""


Inline = str | Text | tuple[str | Text | RowChoice, ...]
"""A text, or several that follow each other."""


def plain_text(text: Inline) -> str:
    """Return the words of a text."""
    parts = text if isinstance(text, tuple) else (text,)
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def joined(glue: str, parts: Sequence[str | Text]) -> tuple[str | Text, ...]:
    """Return texts that follow each other, with a text between each two."""
    return tuple(piece for part in parts for piece in (glue, part))[1:]


# --- texts --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows.

    Args:
        text: the title.
        beside: a smaller text beside it on a page, such as a date.
        level: 1 for the whole document, 2 for a part of it.
    """

    text: str
    beside: str = ""
    level: Literal[1, 2] = 1


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Conclusion of a result, in one sentence.

    Args:
        text: the sentence.
        kind: what that is worth; empty if there is nothing to judge it by.
    """

    text: str
    kind: Literal["", "met", "missed", "stopped"] = ""


@dataclass(frozen=True, slots=True)
class Sentences:
    """Texts that follow each other, each on lines of its own.

    Args:
        texts: in their order.
        look: their emphasis.
        title: what they have in common.
    """

    texts: Sequence[Inline]
    look: Look = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A text with a label.

    Args:
        label: its label; empty for that of the fact before it.
        text: the text.
        look: its emphasis.
        is_whole: whether it is never broken into lines, because it is to be copied: a path or a command.
        most_lines: the most lines in a terminal, without the middle of a longer text; None for any number.
    """

    label: Inline
    text: str
    look: Look = ""
    is_whole: bool = False
    most_lines: int | None = None


@dataclass(frozen=True, slots=True)
class FactList:
    """Facts below each other.

    Args:
        facts: in their order.
        indent: the least number of characters that labels take in a terminal.
    """

    facts: Sequence[Fact]
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Troubles:
    """Problems, for those who look for them first.

    Args:
        title: what the facts have in common.
        facts: in their order.
    """

    title: str
    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class Quotes:
    """Texts of others, and commands, exactly as they are.

    Args:
        texts: each with its label.
        remarks: sentences about them.
    """

    texts: Sequence[tuple[str, str]]
    remarks: Sequence[str] = ()


# --- tables -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interval:
    """A cell that is drawn: a value with its interval.

    Args:
        value: the estimate; None if there is none.
        ends: of its confidence interval; None if it has none.
        finding: what a difference is; None for a value that is no difference.
        mark: a value to compare with, such as a threshold, or 0 for differences.
        label: what it says in words; by default the value and the ends of the interval.
        beside: what stands beside it in the cell.
        axis: its own on a page; None for that of its column.
    """

    value: float | None
    ends: tuple[float, float] | None = None
    finding: Finding | None = None
    mark: float | None = None
    label: str = ""
    beside: Inline = ""
    axis: Axis | None = None


Cell = Inline | Interval
"""A cell of a table. The white space that a text begins with makes it a part of the rows above."""


def get_words(cell: Cell) -> str:
    """Return the words of a cell: of a drawn one, what stands beside the drawing."""
    return plain_text(cell.beside if isinstance(cell, Interval) else cell)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table.

    Args:
        head: its name; in a terminal, the axis takes its place above drawn cells.
        cells: one for each row.
        fold: the least width, in characters, to which a terminal may fold its texts; None if it never does.
        right: whether a terminal aligns it on the right.
        is_optional: whether it is left out where there is no room, instead of standing below its row.
        kind: of its cells, for pages. The first column of names names the rows; "quote" is for the beginnings of texts
            of others, which may be written from right to left.
        axis: on which a page draws its cells, and which it shows below them; None if no cell is drawn.
        sides: what values left and right of 0 mean, for an axis on a page.
        about: what the name means, in a sentence.
    """

    head: str
    cells: Sequence[Cell]
    fold: int | None = None
    right: bool = False
    is_optional: bool = False
    kind: Literal["", "name", "number", "quote"] = ""
    axis: Axis | None = None
    sides: tuple[str, str] | None = None
    about: str = ""

    @property
    def is_empty(self) -> bool:
        """True if no cell has a text."""
        return not any(self.cells)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table in a document.

    Args:
        columns: of equal length.
        caption: the text above it.
        legend: what the marks of its intervals mean, as far as that is not obvious.
        apart: the places of rows that are not like those above, such as their means.
        note: the text below it.
        label: its name for screen readers.
        kind: its classes on pages.
    """

    columns: Sequence[TableColumn]
    caption: str = ""
    legend: Sequence[tuple[Finding, str]] = ()
    apart: Collection[int] = ()
    note: str = ""
    label: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class RoomyTable:
    """A table that is shown only where each of its rows fits on one line.

    Args:
        table: the table.
        then: the blocks behind the table.
        otherwise: the blocks without the table.
    """

    table: TableBlock
    then: Sequence["Block"] = ()
    otherwise: Sequence["Block"] = ()


# --- charts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Histogram:
    """The distribution of finite numbers.

    Args:
        values: at least one.
    """

    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class OverTime:
    """Values over time.

    Args:
        points: seconds since the beginning and value of each; at least one.
        what: the name of the values, with their unit.
    """

    points: Sequence[tuple[float, float]]
    what: str


@dataclass(frozen=True, slots=True)
class StepChart:
    """A value that changes by steps.

    Args:
        changes: seconds and the value from then on; at least one.
        end: seconds.
        what: the name of the value.
    """

    changes: Sequence[tuple[float, float]]
    end: float
    what: str


Bin = tuple[float, float, tuple[float, float] | None, int]
"""A part of forecasts: their mean, the share that came true with its interval, how many they are."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """Reliability of forecasts: how often they came true.

    Args:
        bins: of forecasts.
        what: the event that was forecast.
    """

    bins: Sequence[Bin]
    what: str


@dataclass(frozen=True, slots=True)
class Portion:
    """A part of a whole.

    Args:
        count: the number of its members; of members with repeats, a part can count.
        label: what these are.
        look: the class that gives it its colour.
    """

    count: float
    label: str
    look: str

    @property
    def words(self) -> str:
        """The number and the label: `3 passed`."""
        return f"{self.count:,} {self.label}"


@dataclass(frozen=True, slots=True)
class Portions:
    """A whole as a bar of its parts.

    Args:
        parts: from left to right; at least one has members.
    """

    parts: Sequence[Portion]


Chart = Histogram | OverTime | StepChart | Reliability | Portions


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts beside each other, each with its caption; for pages only."""

    charts: Sequence[tuple[str, Chart]]


# --- parts --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document that a page shows on request.

    Args:
        title: what it is about.
        summary: what it says, in words.
        blocks: what is shown.
    """

    title: str
    summary: str
    blocks: Sequence["Block"]


_Texts = Heading | Conclusion | Sentences | FactList | Troubles | Quotes
Block = _Texts | TableBlock | RoomyTable | Charts | Section

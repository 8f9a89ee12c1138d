"""Documents as text for terminals and pipes: in their width, with their symbols and colours."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from modelgauge.documents.columns import TextColumn, aligned, cells, folded
from modelgauge.documents.document import (
    Block,
    Cell,
    Charts,
    Conclusion,
    Fact,
    FactList,
    Finding,
    Heading,
    Inline,
    Interval,
    Look,
    Quotes,
    RoomyTable,
    Section,
    Sentences,
    TableBlock,
    TableColumn,
    Troubles,
    get_words,
    plain_text,
)
from modelgauge.documents.text_axis import TextAxis
from modelgauge.wording.phrases import keep_ends
from modelgauge.wording.visible import visible

NARROWEST, WIDEST = 40, 120
"""The widths that documents are made for, however wide the terminal is."""

_CODES: dict[Look, int] = {"strong": 1, "dim": 2, "alarm": 31}
_PLAIN = str.maketrans({"±": "+/-", "→": "->", "≥": ">=", "≤": "<="})
_MARKS: dict[Finding | None, str] = {"told": "●#", "untold": "○o", "untested": "◇x", None: "●#"}
_GAP = 3  # between the columns of a table with a rule
_WIDE_NAME = 20
_MANY = 12  # rows, from which on each must do with one line
_KEPT = 3  # columns beside a drawing that are shown however little room there is
_LEAST_DRAWING, _GOOD_DRAWING, _MOST_DRAWING = 13, 21, 41


@dataclass(frozen=True, slots=True)
class Style:
    """Capabilities of the terminal.

    Args:
        width: characters in a line.
        color: whether it shows colours and bold.
        symbols: whether its encoding has more than ASCII.
        unbroken: whether each row of a table takes one line, however long: for pipes and logs, where people search for
            names.
    """

    width: int = 80
    color: bool = False
    symbols: bool = True
    unbroken: bool = False

    @property
    def row_width(self) -> int:
        """Characters in a row of a table."""
        return sys.maxsize if self.unbroken else self.width

    @classmethod
    def of(cls, stream: TextIO) -> "Style":
        """Return the style of a stream: colours on a terminal unless NO_COLOR is set, unbroken rows elsewhere.

        COLUMNS says that the output is for a terminal, wherever it goes first.
        """
        terminal = stream.isatty()
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        known = terminal or bool(os.environ.get("COLUMNS"))
        wide = shutil.get_terminal_size((80, 24)).columns if known else 80
        color = terminal and not plain
        return cls(max(NARROWEST, min(wide, WIDEST)), color, holds_unicode(stream), unbroken=not known)


ANY_WIDTH = Style(width=sys.maxsize)
"""The style of lists that are never folded."""


def holds_unicode(stream: object) -> bool:
    """Return whether a stream's encoding has more than ASCII."""
    return "utf" in (getattr(stream, "encoding", None) or "").lower()


def as_text(document: Iterable[Block], style: Style, redact: Callable[[str], str] = str) -> str:
    """Return a document as lines without white space at their ends; with ANSI codes only where the style has colour.

    Args:
        document: its blocks.
        style: of the terminal.
        redact: takes secrets out of a text; each text goes through it before lines are broken.
    """
    terminal = _Terminal(style, redact)
    for block in document:
        terminal.add(block)
    return terminal.text()


def as_list(columns: Sequence[TableColumn], style: Style, redact: Callable[[str], str] = str) -> str:
    """Return columns as the list of a command: without a rule, below their names if they have any.

    Args:
        columns: of texts.
        style: of the terminal.
        redact: see `as_text`.
    """
    texts = [*map(_Terminal(style, redact).column, columns)]
    return "\n".join(aligned(texts, has_head=any(column.head for column in columns), width=style.row_width))


class _Terminal:
    """Collects the lines of a document."""

    def __init__(self, style: Style, redact: Callable[[str], str]) -> None:
        self.style = style
        self._redact = redact
        self._lines: list[str] = []
        self._after_heading = False

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines).rstrip("\n")

    def add(self, block: Block) -> None:
        """Add a block; all but a heading have an empty line behind them."""
        match block:
            case Heading():
                self._lines += [""] * self._after_heading
                self._add_text(block.text, "strong")
            case Sentences():
                for text in (*[f"{block.title}:"] * bool(block.title), *block.texts):
                    self._add_text(text, block.look)
            case Conclusion():
                self._add_text(block.text)
            case FactList():
                self._add_facts(block)
            case Troubles():
                self._add_facts(FactList(block.facts))
            case Section():
                for part in (Heading(f"{block.title} {block.summary}".strip()), *block.blocks):
                    self.add(part)
            case TableBlock():
                self._add_table(block)
            case RoomyTable():
                self._add_roomy(block)
            case Quotes():
                self._add_quotes(block)
        self._after_heading = isinstance(block, Heading)
        if not isinstance(block, Heading | RoomyTable | Section | Charts):
            self._lines.append("")

    # --- texts ----------------------------------------------------------------------------------

    def _add_text(self, text: Inline, look: Look = "") -> None:
        for line in visible(self._written(plain_text(text))).split("\n"):
            self._lines += [self._painted(part, look) for part in folded(line, self.style.width)]

    def _add_facts(self, block: FactList) -> None:
        labels = [self._on_one_line(plain_text(fact.label)) for fact in block.facts]
        indent = max([block.indent, *map(cells, labels)])
        for fact, name in zip(block.facts, labels, strict=True):
            lines = [visible(self._redact(fact.text))] if fact.is_whole else self._folded(fact, indent)
            for place, line in enumerate(lines):
                label = "" if place else name
                label = self._painted(f"{label:<{indent}}  ", "dim" if label else "")
                self._lines.append(f"{label}{self._painted(line, fact.look)}")

    def _folded(self, fact: Fact, indent: int) -> list[str]:
        room = self.style.width - indent - 2
        text = fact.text if fact.most_lines is None else keep_ends(fact.text, fact.most_lines * room)
        return folded(self._on_one_line(text), room)

    def _add_quotes(self, block: Quotes) -> None:
        """Add texts behind a bar: no line of them can be taken for one of ours, or for a command."""
        bar = "│" if self.style.symbols else "|"
        for label, text in block.texts:
            self._add_text(f"  {label}", "dim")
            for line in visible(self._redact(text)).split("\n"):
                self._lines += [f"  {bar} {part}" for part in folded(line, self.style.width - 4)]
        for remark in block.remarks:
            self._add_text(f"  {remark}")

    def _written(self, text: str) -> str:
        """Return a text without secrets, in characters that the terminal has for ours."""
        text = self._redact(text)
        return text if self.style.symbols else text.translate(_PLAIN)

    def _on_one_line(self, text: str) -> str:
        text = self._written(text)
        return visible(" " * (len(text) - len(text.lstrip(" "))) + " ".join(text.split()))

    def _painted(self, text: str, look: Look) -> str:
        return f"\x1b[{_CODES[look]}m{text}\x1b[0m" if look and self.style.color else text

    # --- tables ---------------------------------------------------------------------------------

    def column(self, column: TableColumn) -> TextColumn:
        """Return the texts of a column; of drawings none."""
        texts = [self._on_one_line(get_words(cell)) for cell in column.cells]
        head = visible(self._written(column.head))
        return TextColumn(head, texts, column.fold, right=column.right, is_optional=column.is_optional)

    def _add_table(self, table: TableBlock) -> None:
        drawn = next((place for place, column in enumerate(table.columns) if column.axis), None)
        columns, left_out = [*map(self.column, table.columns)], []
        if drawn is not None:
            columns[drawn] = self._drawings(table.columns[drawn].cells, columns, drawn)
            left_out = self._drop_what_has_no_room(columns, drawn + 1 + _KEPT)
        if caption := ". ".join(filter(None, [table.caption, self._legend(table)])):
            self._add_text(caption, "dim")
        rule = "─" if self.style.symbols else "-"
        head, *lines = aligned(columns, width=self.style.row_width, rule=rule) or [""]
        self._lines += [self._painted(head, "strong"), *lines]
        also = f"Also there, in a wider terminal or with --json: {', '.join(left_out)}." if left_out else ""
        for note in filter(None, [also, table.note]):
            self._lines.append("")
            self._add_text(note, "dim")

    def _add_roomy(self, block: RoomyTable) -> None:
        fits = self._fit([*map(self.column, block.table.columns)])
        for part in (block.table, *block.then) if fits else block.otherwise:
            self.add(part)

    def _fit(self, columns: Sequence[TextColumn]) -> bool:
        """Return whether columns have room side by side, with names folded a little."""
        wide = [min(column.natural, _WIDE_NAME) if column.folds else column.natural for column in columns]
        return sum(wide) + _GAP * (len(wide) - 1) <= self.style.row_width

    def _drawings(self, drawn: Sequence[Cell], columns: Sequence[TextColumn], place: int) -> TextColumn:
        """Draw intervals: of a good width beside as many columns as that leaves room for, else in what is left."""
        names, beside = columns[:place], columns[place + 1 :]
        room = self.style.row_width
        for number in range(len(beside), min(_KEPT, len(beside)) - 1, -1):
            room = self.style.row_width - sum(column.natural + _GAP for column in (*names, *beside[:number]))
            if room >= _GOOD_DRAWING:
                break
        intervals = [cell for cell in drawn if isinstance(cell, Interval)]
        values = [end for cell in intervals for end in cell.ends or (cell.value or 0.0,)]
        width = min(max(room, _LEAST_DRAWING), _MOST_DRAWING)
        axis = TextAxis(values, width, symbols=self.style.symbols)
        texts = [axis.drawn(cell.value, cell.ends, self._mark(cell.finding)) for cell in intervals]
        return TextColumn(axis.head(), texts)

    def _mark(self, finding: Finding | None) -> str:
        return _MARKS[finding][0 if self.style.symbols else 1]

    def _legend(self, table: TableBlock) -> str:
        return ", ".join(f"{self._mark(finding)} {words}" for finding, words in table.legend)

    def _drop_what_has_no_room(self, columns: list[TextColumn], least: int) -> list[str]:
        """Take out the last columns of a long table until each row has one line, and return their names."""
        dropped: list[str] = []
        while len(columns[0].texts) > _MANY and len(columns) > least and not self._fit(columns):
            dropped.insert(0, columns.pop().name)
        return dropped

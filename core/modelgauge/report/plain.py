"""Plain text for terminals and pipes: columns, and characters that a terminal would obey instead of showing.

Numbers are in `figures.py`, the tables of runs in `terminal.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP = "  "
# Control characters but for tab and newline, and those that turn the direction of writing: a model's answer
# must not be able to move the cursor, change colours or hide text.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""The text with control characters written as escapes (`\x1b`), which a terminal does not obey."""
    return _UNSHOWABLE.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    if character == "\r":
        return "\\r"
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def one_line(text: str, most: int) -> str:
    """The text on one line of at most `most` characters, with its white space folded."""
    folded = " ".join(text[: 4 * most + 200].split())
    return folded if len(folded) <= most else f"{folded[: most - 3]}..."


def ends_of(text: str, most: int) -> str:
    """The text on one line of at most `most` characters: without its middle, since a message ends with the fix."""
    reach = 4 * most + 200
    whole = text if len(text) <= 2 * reach else f"{text[:reach]} {text[-reach:]}"
    folded = " ".join(whole.split())
    if len(folded) <= most:
        return folded
    end = (most - 5) * 2 // 3
    return f"{folded[: most - 5 - end].rstrip()} ... {folded[-end:].lstrip()}"


def columns(rows: Sequence[Sequence[str]], head: Sequence[str] = (), indent: str = "") -> str:
    """Rows as aligned columns, the last one as wide as it likes; nothing for no rows.

    Args:
        rows: equally long ones.
        head: the names of the columns.
        indent: what stands before each line.
    """
    if not rows:
        return ""
    shown = [[visible(" ".join(cell.split())) for cell in row] for row in ([head, *rows] if head else rows)]
    widths = [max(len(row[place]) for row in shown) for place in range(len(shown[0]))]
    lines = (_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in shown)
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def indented(text: str, indent: str = "  ") -> str:
    """The text with each line indented."""
    return "\n".join(f"{indent}{line}".rstrip() for line in text.split("\n"))


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 item`, `1,200 items`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"

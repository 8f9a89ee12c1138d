"""Reads docstrings, and writes what they say as Markdown; used by the other modules of this folder."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

_SECTION = re.compile(r"^(Args|Attributes|Class attributes|Example|Raises|Returns):$", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \w+)*): (.*)$")
_AFTER = re.compile(r"\n\n(?=\S)")


def sections_of(value: Any) -> dict[str, str]:
    """The parts of a docstring by heading; what stands before the first is under the empty text.

    What follows the indented lines of a section is not the section's: it is added to what stands before.
    """
    head, *rest = _SECTION.split(inspect.getdoc(value) or "")
    found = {"": head.strip()}
    for title, text in zip(rest[::2], rest[1::2], strict=True):
        section, *after = _AFTER.split(text.strip("\n"))
        found[title] = textwrap.dedent(section).strip()
        found[""] = "\n\n".join([found[""], *(one.strip() for one in after)])
    return found


def entries_of(section: str) -> dict[str, str]:
    """The entries of a section like `Args`, by name, each on one line."""
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        entry = _ENTRY.match(line)
        if entry:
            name = entry[1]
            found[name] = entry[2]
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found


def first_line(value: Any) -> str:
    """The first sentence or paragraph line of a docstring, on one line."""
    paragraph = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())


def prose(text: str) -> str:
    """The paragraphs of a docstring; indented ones are code, and lists keep their lines."""
    made = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("    "):
            made.append(f"```text\n{textwrap.dedent(paragraph).rstrip()}\n```")
        elif paragraph.strip():
            made.append(" ".join(paragraph.split()))
    return "\n\n".join(made).replace("\n```\n\n```text\n", "\n\n")


def cell(text: str) -> str:
    """A text within a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, ("---",) * len(head), *(tuple(cell(each) for each in row) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)

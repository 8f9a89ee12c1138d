"""Documents in GitHub's Markdown, in which no text is more than text."""

import re
from collections.abc import Callable, Iterable, Iterator

from modelgauge.documents.document import (
    Block,
    Conclusion,
    FactList,
    Heading,
    Quotes,
    RoomyTable,
    Section,
    Sentences,
    TableBlock,
    Troubles,
    get_words,
    plain_text,
)
from modelgauge.wording.visible import visible

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&@$]|:(?=[\w/])|(?<=www)\.|^[-+=](?=[-+=\s]|$)|^\d+[.)](?=\s|$)")
"""Characters that GitHub's Markdown may interpret: anywhere, in addresses, and at the beginning of a line."""
_MOST = 10_000  # characters of a text


def as_markdown(document: Iterable[Block], redact: Callable[[str], str] = str) -> str:
    """Return a document for a page of GitHub.

    Args:
        document: its blocks.
        redact: takes secrets out of a text.
    """
    return "\n\n".join("\n".join(_lines(block, redact)) for block in document) + "\n"


def _lines(block: Block, redact: Callable[[str], str]) -> Iterator[str]:
    def plain(text: str) -> str:
        return _SPECIAL.sub(_escaped, " ".join(visible(redact(text))[:_MOST].split()))

    match block:
        case Heading():
            yield f"### {plain(block.text)}"
        case Sentences():
            yield from [f"{block.title}:", ""] if block.title else []
            yield from (f"- {plain(plain_text(text))}" for text in block.texts)
        case FactList():
            for fact in block.facts:
                label = f"**{plain(plain_text(fact.label))}** " if fact.label else ""
                yield f"- {label}{plain(fact.text)}"
        case Conclusion():
            yield f"**{plain(block.text)}**"
        case Troubles():
            yield from _lines(FactList(block.facts), redact)
        case Section():
            yield as_markdown(
                [Heading(f"{block.title} {block.summary}".strip()), *block.blocks], redact
            ).rstrip()
        case TableBlock():
            yield f"| {' | '.join(plain(column.head) for column in block.columns)} |"
            yield f"|{' --- |' * len(block.columns)}"
            for cells in zip(*(column.cells for column in block.columns), strict=True):
                yield f"| {' | '.join(plain(get_words(cell)) for cell in cells)} |"
            yield from ["", plain(block.note)] if block.note else []
        case RoomyTable():
            yield as_markdown([block.table, *block.then], redact).rstrip()
        case Quotes():
            yield from (f"- **{plain(label)}** {plain(text)}" for label, text in block.texts)
            yield from (f"- {plain(remark)}" for remark in block.remarks)


def _escaped(found: re.Match[str]) -> str:
    """Escape a special character; of the number of a list only the sign behind it."""
    before, special = found[0][:-1], found[0][-1]
    return f"&#{ord(special)};" if special in "<>&@" else rf"{before}\{special}"

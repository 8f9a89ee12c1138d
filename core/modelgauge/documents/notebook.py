"""Documents in notebooks: plain HTML without colours, which fits light and dark pages; charts are left out."""

from collections.abc import Iterable, Iterator
from html import escape

from modelgauge.documents.document import (
    Block,
    Charts,
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
from modelgauge.wording.phrases import beginning
from modelgauge.wording.visible import visible

_LONGEST = 300  # characters of a text


def as_notebook(document: Iterable[Block]) -> str:
    """Return a document as what `_repr_html_` returns."""
    # These classes keep notebooks from setting what stands between two dollars as mathematics.
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(_pieces(document))}</div>'


def _pieces(document: Iterable[Block]) -> Iterator[str]:
    for block in document:
        match block:
            case Heading() | Conclusion():
                yield f"<p><strong>{_shown(block.text)}</strong></p>"
            case Sentences():
                yield _labelled(f"{block.title}:", "") if block.title else ""
                yield from (f"<p>{_shown(plain_text(text))}</p>" for text in block.texts)
            case FactList() | Troubles():
                yield from (_labelled(plain_text(fact.label), fact.text) for fact in block.facts)
            case Quotes():
                yield from (_labelled(label, text) for label, text in block.texts)
                yield from _pieces([Sentences(block.remarks)])
            case TableBlock():
                yield from _table(block)
            case RoomyTable():
                yield from _pieces([block.table, *block.then])
            case Section():
                yield from _pieces([Heading(f"{block.title} {block.summary}".strip()), *block.blocks])
            case Charts():
                pass


def _table(block: TableBlock) -> Iterator[str]:
    """Yield the pieces of a table; of a table without rows only its texts."""
    yield f"<p>{_shown(block.caption)}</p>" if block.caption else ""
    rows = zip(*(map(get_words, column.cells) for column in block.columns), strict=True)
    if body := "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows):
        heads = "".join(
            f'<th style="text-align: left">{_shown(column.head)}</th>' for column in block.columns
        )
        yield f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    yield f"<p>{_shown(block.note)}</p>" if block.note else ""


def _cell(text: str) -> str:
    part = "· " if text.startswith(" ") else ""  # in HTML spaces indent nothing
    return f'<td style="text-align: left">{part}{_shown(text)}</td>'


def _labelled(label: str, text: str) -> str:
    return f"<p>{f'<strong>{_shown(label)}</strong> ' if label else ''}{_shown(text)}</p>"


def _shown(text: str) -> str:
    return escape(visible(beginning(" ".join(text.split()), _LONGEST)))

"""HTML for notebooks: small tables without colours, which fit light and dark pages; all texts are escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from modelgauge.wording.phrases import beginning
from modelgauge.wording.visible import visible

_LONGEST = 300  # characters of a cell


def html_table(
    title: str,
    head: Sequence[str | None],
    rows: Iterable[Sequence[str | None]],
    notes: Iterable[str] = (),
    *,
    left_out: int = 0,
) -> str:
    """A table below its title.

    Args:
        title: in bold.
        head: the names of the columns.
        rows: of texts, each as long as the head; None for an empty cell.
        notes: paragraphs below.
        left_out: how many further rows there are.
    """
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    names = "".join(f'<th style="text-align: left">{_text(name or "")}</th>' for name in head)
    table = f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    more = [f"{left_out:,} more"] if left_out > 0 else []
    texts = "".join(f"<p>{_text(note)}</p>" for note in (*more, *notes))
    # These classes keep notebooks from setting what stands between two dollars as mathematics.
    return f'<div class="tex2jax_ignore mathjax_ignore"><p><strong>{_text(title)}</strong></p>{table}{texts}</div>'


def _cell(text: str | None) -> str:
    return f'<td style="text-align: left">{_text(text or "")}</td>'


def _text(text: str) -> str:
    return escape(visible(beginning(" ".join(text.split()), _LONGEST)))

"""Flipped items for a terminal: what was asked, what both systems answered, and where the answers differ."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, zip_longest

from modelgauge.comparison.result import Comparison, FlippedItem
from modelgauge.data.figures import exact
from modelgauge.reports.comparisons.text_difference import Kind, Piece, text_difference
from modelgauge.reports.comparisons.words import short_json
from modelgauge.reports.layout import Page, Style, folded, one_line
from modelgauge.wording.phrases import ends
from modelgauge.wording.visible import visible

_MOST = 1200  # characters of a prompt or an answer
_MOST_EQUAL = 160  # characters of a part that both answers have
_MOST_OF_A_NAME = 200
_ALIKE = 0.5  # share of the longer answer that both have, from which on differences are marked
_BRACKETS: dict[Kind, tuple[str, str]] = {"removed": ("[-", "-]"), "added": ("{+", "+}"), "equal": ("", "")}


def render_flips(
    flips: Iterable[FlippedItem], comparison: Comparison, style: Style, redact: Callable[[str], str] = str
) -> str:
    """The text of some flipped items; those of one measurement and candidate stand below a heading.

    Args:
        flips: to show.
        comparison: that they are of.
        style: of the terminal.
        redact: takes secrets out of a text.
    """
    page = Page(style, redact)
    for (test, measurement, candidate), group in groupby(
        flips, key=lambda item: (item.test, item.measurement, item.candidate)
    ):
        page.add(one_line(f"Items of {test} with another {measurement}", _MOST_OF_A_NAME), "bold")
        for flip in group:
            page.add_gap()
            _add(flip, comparison.baseline.label, candidate, page)
        page.add_gap()
    return page.rendered()


def _add(flip: FlippedItem, baseline: str, candidate: str, page: Page) -> None:
    change = page.style.arrow.join(map(exact, (flip.baseline_value, flip.candidate_value)))
    other = "" if flip.candidate_item_id == flip.item_id else f" ({flip.candidate_item_id} there)"
    head = f"{'won' if flip.won else 'lost'} {flip.item_id}{other}: {flip.measurement} {change}"
    page.add(one_line(head, _MOST_OF_A_NAME), "bold")
    for prompt in flip.prompts:
        _add_text("prompt", prompt, page)
    for first, second in zip_longest(flip.baseline_answers, flip.candidate_answers):
        _add_answers({baseline: first, candidate: second}, page)
    for label, annotations in (
        (baseline, flip.baseline_annotations),
        (candidate, flip.candidate_annotations),
    ):
        for name, value in (
            (name, value) for annotation in annotations for name, value in annotation.items()
        ):
            page.add(f"  {one_line(f'{name} of {label}: {short_json(value)}', _MOST_OF_A_NAME)}")


def _add_answers(answers: dict[str, str | None], page: Page) -> None:
    """Add two answers: as one text where they are much alike, with what differs in brackets."""
    (baseline, first), (candidate, second) = answers.items()
    if first is not None and second is not None:
        pieces = text_difference(first, second)
        equal = sum(len(piece.text) for piece in pieces if piece.kind == "equal")
        if equal == max(len(first), len(second)):
            _add_text(f"{baseline} and {candidate}", first, page)
            return
        if equal >= _ALIKE * max(len(first), len(second)):
            marked = f"[-{baseline}-] {{+{candidate}+}}"
            _add_text(marked, "".join(_marked_text(pieces)), page)
            return
    for label, answer in answers.items():
        _add_text(label, "(no answer)" if answer is None else answer or "(empty)", page)


def _marked_text(pieces: Iterable[Piece]) -> Iterator[str]:
    for kind, text in pieces:
        opening, closing = _BRACKETS[kind]
        yield f"{opening}{ends(text, _MOST_EQUAL if kind == 'equal' else _MOST)}{closing}"


def _add_text(label: str, text: str, page: Page) -> None:
    """Add a text in its own lines, behind a bar: no line of it can be taken for one of ours, or for a command."""
    page.add(f"  {one_line(label, _MOST_OF_A_NAME)}", "dim")
    bar = "│" if page.style.symbols else "|"
    for line in visible(page.redact(ends(text, _MOST))).split("\n"):
        for part in folded(line, page.style.width - 4):
            page.add(f"  {bar} {part}")

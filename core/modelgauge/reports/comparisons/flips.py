"""Flipped items: what was asked, what both systems answered, and where the answers differ."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import Literal, NamedTuple

from modelgauge.comparison.item_pairs import FlippedItem
from modelgauge.documents.document import Block, Heading, Quotes
from modelgauge.reports.comparisons.words import short_json
from modelgauge.wording.figures import exact
from modelgauge.wording.phrases import ends, in_common, one_line

_MOST = 1200  # characters of a prompt or an answer
_MOST_EQUAL = 160  # characters of a part that both answers have
_MOST_OF_A_NAME = 200
_ALIKE = 0.5  # share of the longer answer that both have, from which on differences are marked
_MOST_PAIRS = (
    400_000  # pairs of words that are compared: a second for the worst of texts, which repeat themselves
)
_WORDS, _LINES = re.compile(r"\w+|\s+|[^\w\s]"), re.compile(r".*\n|.+")
Kind = Literal["equal", "removed", "added"]
_Part = tuple[Kind, Sequence[str]]
_BRACKETS: dict[Kind, tuple[str, str]] = {"removed": ("[-", "-]"), "added": ("{+", "+}"), "equal": ("", "")}


# --- where two texts differ: word by word, line by line in long texts, as wholes in longer texts ----------


class Piece(NamedTuple):
    """A part of two texts.

    Args:
        kind: "equal" in both; "removed" stands in the first only, "added" in the second only.
        text: the part.
    """

    kind: Kind
    text: str


def text_difference(first: str, second: str) -> list[Piece]:
    """Return the parts of two texts, in order: those that are not added make the first, those not removed the second.

    Args:
        first: a text of any length.
        second: the text that it is compared with.
    """
    for parts in (_WORDS, _LINES):
        ones, others = parts.findall(first), parts.findall(second)
        start = in_common(ones, others)
        end = in_common(ones[start:][::-1], others[start:][::-1])
        before, after = ones[start : len(ones) - end], others[start : len(others) - end]
        if comparable := len(before) * len(after) <= _MOST_PAIRS:
            break
    changed = _compared_parts(before, after) if comparable else _replaced(before, after)
    return _joined_pieces([("equal", ones[:start]), *changed, ("equal", ones[len(ones) - end :])])


def _compared_parts(before: Sequence[str], after: Sequence[str]) -> Iterable[_Part]:
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        same: list[_Part] = [("equal", before[i:j])]
        yield from same if tag == "equal" else _replaced(before[i:j], after[k:m])


def _replaced(before: Sequence[str], after: Sequence[str]) -> list[_Part]:
    return [("removed", before), ("added", after)]


def _joined_pieces(parts: Iterable[_Part]) -> list[Piece]:
    """Join neighbours of a kind, and leave out empty pieces."""
    pieces = [(kind, "".join(words)) for kind, words in parts if words]
    return [
        Piece(kind, "".join(text for _, text in same))
        for kind, same in groupby(pieces, key=lambda piece: piece[0])
    ]


# --- items ---------------------------------------------------------------------------------------------


def flips_document(flips: Iterable[FlippedItem], baseline: str) -> Iterator[Block]:
    """Return some flipped items; those of one measurement and candidate stand below a heading.

    Args:
        flips: to show.
        baseline: the label of the baseline.
    """
    for (test, measurement, candidate), group in groupby(
        flips, key=lambda item: (item.test, item.measurement, item.candidate)
    ):
        yield Heading(one_line(f"Items of {test} with another {measurement}", _MOST_OF_A_NAME))
        for flip in group:
            yield Heading(_title(flip))
            yield _quotes(flip, baseline, candidate)


def _title(flip: FlippedItem) -> str:
    change = " → ".join(map(exact, (flip.baseline_value, flip.candidate_value)))
    other = "" if flip.candidate_item_id == flip.item_id else f" ({flip.candidate_item_id} there)"
    title = f"{'won' if flip.won else 'lost'} {flip.item_id}{other}: {flip.measurement} {change}"
    return one_line(title, _MOST_OF_A_NAME)


def _quotes(flip: FlippedItem, baseline: str, candidate: str) -> Quotes:
    """Quote what was asked and answered, and how it was judged."""
    texts = [("prompt", prompt) for prompt in flip.prompts]
    for first, second in zip_longest(flip.baseline_answers, flip.candidate_answers):
        texts += _answers({baseline: first, candidate: second})
    annotated = {baseline: flip.baseline_annotations, candidate: flip.candidate_annotations}
    return Quotes(
        [(one_line(label, _MOST_OF_A_NAME), ends(text, _MOST)) for label, text in texts],
        remarks=[
            one_line(f"{name} of {label}: {short_json(value)}", _MOST_OF_A_NAME)
            for label, annotations in annotated.items()
            for annotation in annotations
            for name, value in annotation.items()
        ],
    )


def _answers(answers: dict[str, str | None]) -> list[tuple[str, str]]:
    """Label two answers: as one text where they are much alike, with what differs in brackets."""
    (baseline, first), (candidate, second) = answers.items()
    if first is not None and second is not None:
        pieces = text_difference(first, second)
        equal = sum(len(piece.text) for piece in pieces if piece.kind == "equal")
        if equal == max(len(first), len(second)):
            return [(f"{baseline} and {candidate}", first)]
        if equal >= _ALIKE * max(len(first), len(second)):
            return [(f"[-{baseline}-] {{+{candidate}+}}", "".join(_marked_text(pieces)))]
    return [
        (label, "(no answer)" if answer is None else answer or "(empty)") for label, answer in answers.items()
    ]


def _marked_text(pieces: Iterable[Piece]) -> Iterator[str]:
    for kind, text in pieces:
        opening, closing = _BRACKETS[kind]
        yield f"{opening}{ends(text, _MOST_EQUAL if kind == 'equal' else _MOST)}{closing}"

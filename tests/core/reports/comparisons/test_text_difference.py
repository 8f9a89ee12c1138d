"""The difference of two texts gives both of them back, whatever they hold, and takes little time for long ones."""

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.reports.comparisons.flips import text_difference


def without(kind, pieces):
    return "".join(piece.text for piece in pieces if piece.kind != kind)


WORDY = st.text(alphabet="ab \n.é\u202e\x1b", max_size=60)


@given(WORDY | st.text(), WORDY | st.text())
def test_both_texts_are_in_it(first, second):
    pieces = text_difference(first, second)
    assert without("added", pieces) == first
    assert without("removed", pieces) == second
    assert all(piece.text for piece in pieces)
    kinds = [piece.kind for piece in pieces]
    assert all(one != other for one, other in pairwise(kinds))


@given(WORDY)
def test_equal_texts_have_one_piece(text):
    assert text_difference(text, text) == ([("equal", text)] if text else [])


def test_words_are_compared_whole():
    assert text_difference("It takes 2 bolts.", "It takes 13 bolts.") == [
        ("equal", "It takes "),
        ("removed", "2"),
        ("added", "13"),
        ("equal", " bolts."),
    ]


LONG = "the quick brown fox jumps over the lazy dog. " * 23_000  # 1 MB


def test_of_long_texts_equal_ends_are_found():
    first, second = f"{LONG}yes {LONG}", f"{LONG}no {LONG}"
    pieces = text_difference(first, second)
    assert pieces == [("equal", LONG), ("removed", "yes"), ("added", "no"), ("equal", f" {LONG}")]


def test_long_texts_are_compared_by_lines():
    lines = [f"{n} {random.Random(n).random()} words\n" for n in range(500)]
    changed = list(lines)
    changed[3], changed[490] = "new\n", "newer\n"
    pieces = text_difference("".join(lines), "".join(changed))
    assert [piece for piece in pieces if piece.kind != "equal"] == [
        ("removed", lines[3]),
        ("added", "new\n"),
        ("removed", lines[490]),
        ("added", "newer\n"),
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ab " * 350_000, "ba c " * 220_000),  # repeats itself, the worst for difflib
        ("a b " * 158, "b a c " * 105),
        ("x" * 1_000_000, "y" * 1_000_000),
        ("a\n" * 500_000, "b\n" * 500_000),
        ("." * 1_000_000, ". " * 500_000),
    ],
)
def test_no_text_takes_long(first, second):
    started = time.process_time()
    pieces = text_difference(first, second)
    assert time.process_time() - started < 10
    assert without("added", pieces) == first
    assert without("removed", pieces) == second

"""Flipped items in the terminal: what was asked and answered, and where the answers differ."""

import re
import time

import pytest

from modelgauge.comparison.item_pairs import FlippedItem
from modelgauge.documents.terminal import Style, as_text
from modelgauge.reports.comparisons.flips import flips_document

FLIP = FlippedItem(
    test="gsm8k",
    measurement="accuracy",
    candidate="B",
    item_id="robe",
    candidate_item_id="robe",
    baseline_value=1,
    candidate_value=0,
    won=False,
    prompts=["How many bolts?"],
    baseline_answers=["It takes 3 bolts of fiber."],
    candidate_answers=["It takes 2 bolts of fiber."],
)


def lines_of(*flips, redact=str, **style):
    return as_text(flips_document(flips, "A"), Style(**style), redact).split("\n")


def test_alike_answers_are_one_text_with_what_differs_in_brackets():
    assert lines_of(FLIP) == [
        "Items of gsm8k with another accuracy",
        "",
        "lost robe: accuracy 1 → 0",
        "  prompt",
        "  │ How many bolts?",
        "  [-A-] {+B+}",
        "  │ It takes [-3-]{+2+} bolts of fiber.",
    ]


def test_other_answers_stand_one_below_the_other():
    other = FLIP.replaced(
        candidate_answers=("No idea.\n\nSorry.",), won=True, baseline_value=0, candidate_value=1
    )
    shown = lines_of(other, symbols=False)
    assert shown[2] == "won robe: accuracy 0 -> 1"
    assert shown[5:] == ["  A", "  | It takes 3 bolts of fiber.", "  B", "  | No idea.", "  |", "  | Sorry."]


def test_equal_answers_stand_once():
    same = FLIP.replaced(candidate_answers=FLIP.baseline_answers)
    assert lines_of(same)[5:] == ["  A and B", "  │ It takes 3 bolts of fiber."]


def test_a_missing_answer_is_named():
    missing = FLIP.replaced(candidate_answers=())
    assert lines_of(missing)[5:] == ["  A", "  │ It takes 3 bolts of fiber.", "  B", "  │ (no answer)"]
    empty = FLIP.replaced(candidate_answers=("",))
    assert lines_of(empty)[7:] == ["  B", "  │ (empty)"]


def test_annotations_and_another_id_are_shown():
    judged = FLIP.replaced(
        candidate_item_id="robe~2",
        baseline_annotations=({"judge": {"score": 1, "why": "right"}},),
        candidate_annotations=({"judge": "x" * 500},),
    )
    shown = lines_of(judged)
    assert shown[2] == "lost robe (robe~2 there): accuracy 1 → 0"
    assert shown[-2] == '  judge of A: {"score": 1, "why": "right"}'
    assert shown[-1].startswith("  judge of B: xxx")
    assert len(shown[-1]) <= 80


def test_items_stand_below_the_name_of_their_comparison():
    shown = lines_of(FLIP, FLIP, FLIP.replaced(measurement="f1"))
    assert [line for line in shown if line.startswith("Items")] == [
        "Items of gsm8k with another accuracy",
        "Items of gsm8k with another f1",
    ]


LONG = "word " * 200_000  # 1 MB


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (LONG + "yes", LONG + "no"),
        (LONG, LONG.upper()),
        ("".join(f"{n} " for n in range(150_000)), "".join(f"{n + 1} " for n in range(150_000))),
        ("ab " * 300_000, "ba c " * 200_000),
    ],
)
def test_long_answers_are_shortened_around_what_differs(first, second):
    long = FLIP.replaced(prompts=(LONG,), baseline_answers=(first,), candidate_answers=(second,))
    started = time.process_time()
    shown = lines_of(long)
    assert time.process_time() - started < 10
    assert sum(map(len, shown)) < 6000
    assert max(map(len, shown)) <= 80
    if second.endswith("no"):
        assert shown[-1].endswith("[-yes-]{+no+}")


def test_hostile_texts_are_shown_and_not_obeyed():
    hostile = "\x1b[2J\u202e\x07 evil\r\n::error::x"
    shown = "\n".join(
        lines_of(
            FLIP.replaced(
                prompts=(hostile,),
                item_id=hostile,
                candidate_answers=(hostile,),
                baseline_annotations=({hostile: hostile},),
                test=hostile,
            )
        )
    )
    assert not set(shown) & set("\x1b\u202e\x07\r")
    assert shown.count("evil") == 6
    assert not re.search(r"(?m)^\s*::", shown)


def test_secrets_are_taken_out():
    secret = FLIP.replaced(prompts=("my sk-123",), candidate_answers=("the sk-123",))
    shown = "\n".join(lines_of(secret, redact=lambda text: text.replace("sk-123", "[REDACTED]")))
    assert "sk-123" not in shown
    assert shown.count("[REDACTED]") == 2

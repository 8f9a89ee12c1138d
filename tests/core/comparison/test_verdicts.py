"""Verdicts: the word, and the sentence that a reader who is no statistician gets right."""

import numpy as np
import pytest
from tests.core.comparison import comparisons
from tests.core.comparison.pairs import compared

from modelgauge.comparison.families import Family
from modelgauge.comparison.verdicts import groups_text


def judged(**other):
    return comparisons.judged(**{"n_failed": 0, **other})


def equivalence(**other):
    known = {"margin": 0.05, "interval": (-0.01, 0.03), "p_equivalent": 0.5, "p_not_worse": 0.5}
    return {**known, "equivalent": False, "not_worse": False, **other}


UNSURE = "Cannot tell whether B is better or worse than A"
NOTHING = {"difference": 0.01, "interval": (-0.018, 0.038), "p_value": 0.5, "p_adjusted": 0.5}


@pytest.mark.parametrize(
    ("given", "verdict", "sentence"),
    [
        ({}, "better", "B is better than A by 4.3 points (1.5 to 7.1)."),
        ({"direction": "lower"}, "worse", "B is worse than A by 4.3 points (1.5 to 7.1)."),
        ({"direction": None}, "higher", "B is higher than A by 4.3 points (1.5 to 7.1)."),
        (
            {"difference": -0.043, "interval": (-0.071, -0.015), "direction": None},
            "lower",
            "B is lower than A by 4.3 points (1.5 to 7.1).",
        ),
        (
            {"difference": -0.043, "interval": (-0.071, -0.015), "direction": "lower"},
            "better",
            "B is better than A by 4.3 points (1.5 to 7.1).",
        ),
        (
            {"family": 6, "p_adjusted": 0.018},
            "better",
            "B is better than A by 4.3 points (1.5 to 7.1). The interval is not adjusted for the 6 comparisons.",
        ),
        (
            {"value_range": None, "difference": 12.3, "interval": (1.2, 23.4)},
            "better",
            "B is better than A by 12 (1 to 23).",
        ),
        (
            {"equivalence": equivalence(equivalent=True, not_worse=True)},
            "better",
            "B is better than A by 4.3 points (1.5 to 7.1). That is less than the margin of 5 points.",
        ),
        (
            NOTHING,
            "cannot_tell",
            (
                f"{UNSURE} (difference 1.0 points, -1.8 to 3.8): a difference of 4.0 "
                "points would have been found 4 times in 5."
            ),
        ),
        (
            {**NOTHING, "family": 20, "direction": None},
            "cannot_tell",
            (
                "Cannot tell whether B differs from A (difference 1.0 points, -1.8 to 3.8): a difference of 5.5 points "
                "would have been found 4 times in 5."
            ),
        ),
        (
            {**NOTHING, "interval": (0.002, 0.018), "p_value": 0.0625, "p_adjusted": 0.0625},
            "cannot_tell",
            (
                f"{UNSURE} (difference 1.00 points, 0.20 to 1.80): a difference of 4.01 "
                "points would have been found 4 times in 5. The interval excludes 0, but the test is not significant: "
                "p is 0.062."
            ),
        ),
        (
            {**NOTHING, "stderr": 0.5, "interval": (-0.9, 0.92)},
            "cannot_tell",
            (
                f"{UNSURE} (difference 1 point, -90 to 92): with so few "
                "items hardly any difference would be found."
            ),
        ),
        (
            {**NOTHING, "equivalence": equivalence(equivalent=True, not_worse=True)},
            "equivalent",
            "There is no difference larger than 5 points between B and A (-1.0 to 3.0).",
        ),
        (
            {**NOTHING, "equivalence": equivalence(margin=0.01, not_worse=True)},
            "not_worse",
            "B is not worse than A by 1 point or more (-1.0 to 3.0); whether it is better cannot be told.",
        ),
        (
            {**NOTHING, "equivalence": equivalence(margin=0.01)},
            "cannot_tell",
            (
                f"{UNSURE} (difference 1.0 points, -1.8 to 3.8): a difference of 4.0 "
                "points would have been found 4 times in 5. That it is less than 1 point is not shown."
            ),
        ),
    ],
)
def test_a_verdict_in_words(given, verdict, sentence):
    found = judged(**given)
    assert (found.verdict, found.verdict_text) == (verdict, sentence)


def test_a_finding_is_below_alpha():
    assert judged(p_adjusted=0.05).verdict == "cannot_tell"
    assert judged(p_adjusted=0.0499).verdict == "better"
    assert judged(p_adjusted=0.0499, alpha=0.01).verdict == "cannot_tell"
    assert judged(p_adjusted=None, p_value=None).verdict == "cannot_tell"


def test_failed_items_are_said_to_be_left_out():
    found = judged(n_failed=6)
    assert found.verdict_text.endswith(
        " 6 of 1,319 items failed and are left out; with them the difference is at least 3.8, at most 4.8 points."
    )
    assert judged(n_failed=1, bounds=None).verdict_text.endswith(" 1 of 1,314 items failed and is left out.")


UNTESTED = (
    "It is not tested whether the difference is the same in all groups: a cluster has items in several, or fewer than "
    "two have a standard error."
)


def test_groups_differ_only_where_the_interaction_is_found():
    family = Family("A", 0.05, 2)
    assert groups_text(0.02, family) == "The difference is not the same in all groups (p is 0.02, adjusted)."
    assert groups_text(0.06, family) == "Cannot tell whether the difference is the same in all groups."
    assert groups_text(None, family) == UNTESTED
    assert compared([1, 0, 1], [1, 1, 0]).groups_text is None


def test_the_digits_are_those_that_the_error_bar_allows():
    generator = np.random.default_rng(0)
    for n, shown in ((40, " points"), (4_000, "."), (400_000, ".")):
        before = (generator.random(n) < 0.5).astype(float)
        text = compared(before, np.where(generator.random(n) < 0.6, 1.0, before)).verdict_text
        amount = text.split(" by ")[1].split(" points")[0]
        assert len(amount.partition(".")[2]) == {40: 0, 4_000: 1, 400_000: 2}[n], (amount, shown)


def test_few_items_are_not_said_to_find_differences():
    for before, after in (([0, 1, 0, 0, 1], [1, 0, 1, 0, 1]), ([1.5, 2, 3, 2, 4], [1, 5, 4, 3.5, 2])):
        assert compared(before, after).verdict_text.endswith(
            "with so few items hardly any difference would be found."
        )
        assert compared(before * 2, after * 2).verdict_text.endswith("would have been found 4 times in 5.")
    many = {"n_paired": 6, **NOTHING}
    assert "4 times in 5" in judged(**many).verdict_text
    assert "hardly any" in judged(**many, family=2).verdict_text


def test_no_difference_is_shown_where_it_was_tested():
    generator = np.random.default_rng(1)
    before = np.tile([0.0, 1.0], 1000)
    after = np.concatenate([1 - before[:30], before[30:]])
    assert compared(before, after).verdict == "cannot_tell"
    assert compared(before, after, options={"margin": 0.02}).verdict == "equivalent"
    lower = compared(before, before - 0.015 * (generator.random(2000) < 0.9), options={"margin": 0.02})
    assert (lower.verdict, lower.equivalence.not_worse) == ("worse", True)
    assert lower.verdict_text.endswith("That is less than the margin of 0.02.")

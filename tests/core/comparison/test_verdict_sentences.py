"""Verdicts that a statistician would sign: the facts of a comparison, and the sentence that they allow."""

from typing import get_args

import numpy as np
import pytest
from tests.core.comparison.comparisons import judged
from tests.core.comparison.pairs import compared

from modelgauge.comparison.difference import Verdict

FOUND = {"n_failed": 0, "bounds": (0.043, 0.043)}
UNSURE = {**FOUND, "difference": 0.01, "interval": (-0.018, 0.038), "p_value": 0.5, "p_adjusted": 0.5}
LOSS = {**FOUND, "difference": -0.4, "interval": (-0.53, -0.22), "bounds": (-0.4, -0.4)}
LOWER = {"direction": "lower"}
TESTED = {"margin": 0.05, "interval": (-0.01, 0.03), "p_equivalent": 0.01, "p_not_worse": 0.01}
WHETHER = "Cannot tell whether B is better or worse than A"
BETTER = "B is better than A by 4.3 points (1.5 to 7.1)."
SIX = "6 of 1,319 items failed and are left out; with them"

TABLE = [
    # what is known, family and alpha, verdict, sentence
    ("a gain", FOUND, {}, "better", BETTER),
    ("a loss", LOSS, {}, "worse", "B is worse than A by 40 points (22 to 53)."),
    ("a loss where lower is better", {**FOUND, **LOWER}, {}, "worse", BETTER.replace("better", "worse")),
    ("no direction", {**FOUND, "direction": None}, {}, "higher", BETTER.replace("better", "higher")),
    (
        "no direction, below",
        {**LOSS, "direction": None},
        {},
        "lower",
        "B is lower than A by 40 points (22 to 53).",
    ),
    (
        "an interval that includes 0, and a permutation test that does not",
        {
            **FOUND,
            "value_range": None,
            "difference": 0.12,
            "interval": (-0.04, 0.27),
            "p_kind": "permutation",
        },
        {},
        "better",
        (
            "B is better than A by 0.12 (-0.04 to 0.27). The interval includes 0, but the finding rests on p, "
            "which is 0.003 by the permutation test."
        ),
    ),
    (
        "an interval of 95 % beside a level of 0.4",
        {**FOUND, "interval": (-0.01, 0.096), "p_value": 0.2, "p_adjusted": 0.2},
        {"alpha": 0.4},
        "better",
        (
            "B is better than A by 4.3 points (-1.0 to 9.6). The interval includes 0, but the finding "
            "rests on p, "
            "which is 0.2 by McNemar's test. A finding is a p below 0.4; the interval has a confidence of 95 %."
        ),
    ),
    (
        "a level of 0.01",
        UNSURE,
        {"alpha": 0.01},
        "cannot_tell",
        (
            f"{WHETHER} (difference 1.0 points, -1.8 to 3.8): a difference of 4.9 points would have been found "
            "4 times in "
            "5. A finding is a p below 0.01; the interval has a confidence of 95 %."
        ),
    ),
    (
        "several comparisons",
        FOUND,
        {"family": 6},
        "better",
        f"{BETTER} The interval is not adjusted for the 6 comparisons.",
    ),
    (
        "failed items that change little",
        {**FOUND, "n_failed": 6, "bounds": (0.038, 0.048)},
        {},
        "better",
        f"{BETTER} {SIX} the difference is at least 3.8, at most 4.8 points.",
    ),
    (
        "a loss with failed items, in one sign",
        {**LOSS, "n_failed": 6, "bounds": (-0.41, -0.38)},
        {},
        "worse",
        f"B is worse than A by 40 points (22 to 53). {SIX} the difference is at least 38, at most 41 points.",
    ),
    (
        "a gain where lower is better, with failed items, in one sign",
        {**LOSS, **LOWER, "n_failed": 6, "bounds": (-0.41, -0.38)},
        {},
        "better",
        f"B is better than A by 40 points (22 to 53). {SIX} the difference is at least 38, at most 41 points.",
    ),
    (
        "failed items that could turn a loss round",
        {**LOSS, "n_failed": 6, "bounds": (-0.6, 0.05)},
        {},
        "worse",
        f"B is worse than A by 40 points (22 to 53). {SIX} it is between better by 5 points and worse by 60 points.",
    ),
    (
        "failed items that could make a significant loss",
        {**UNSURE, "n_failed": 6, "bounds": (-0.2, 0.2), "p_if_worst": 0.001},
        {},
        "cannot_tell",
        (
            f"{WHETHER} (difference 1.0 points, -1.8 to 3.8): a difference of 4.0 points would have been found "
            "4 times in "
            f"5. {SIX} the difference is at least -20.0, at most 20.0 points. At worst, B is significantly worse."
        ),
    ),
    (
        "failed items of an unknown range",
        {**FOUND, "value_range": None, "n_failed": 1, "bounds": None},
        {},
        "better",
        "B is better than A by 0.043 (0.015 to 0.071). 1 of 1,314 items failed and is left out.",
    ),
    (
        "items of one run alone",
        {**UNSURE, "n_paired": 10, "n_only_baseline": 12, "n_only_candidate": 8},
        {},
        "cannot_tell",
        (
            f"{WHETHER} (difference 1.0 points, -1.8 to 3.8): a difference of 4.0 points would have been found "
            "4 times in "
            "5. Only 10 of 30 items are in both runs; this says nothing about the others."
        ),
    ),
    (
        "equivalence",
        {**UNSURE, "equivalence": {**TESTED, "equivalent": True, "not_worse": True}},
        {},
        "equivalent",
        "There is no difference larger than 5 points between B and A (-1.0 to 3.0).",
    ),
    (
        "non-inferiority",
        {**UNSURE, "equivalence": {**TESTED, "not_worse": True}},
        {},
        "not_worse",
        "B is not worse than A by 5 points or more (-1.0 to 3.0); whether it is better cannot be told.",
    ),
    (
        "a margin that is not shown, with failed items",
        {**UNSURE, "n_failed": 6, "bounds": (-0.2, 0.2), "equivalence": {**TESTED, "p_not_worse": 0.9}},
        {},
        "cannot_tell",
        (
            f"{WHETHER} (difference 1.0 points, -1.8 to 3.8): a difference of 4.0 points would have been found "
            "4 times in "
            f"5. That it is less than 5 points is not shown. {SIX} the difference is at least -20.0, at most "
            "20.0 points."
        ),
    ),
    (
        "a single p value that is not enough for all",
        {**UNSURE, "p_value": 0.03, "p_adjusted": 0.06},
        {"family": 2},
        "cannot_tell",
        (
            f"{WHETHER} (difference 1.0 points, -1.8 to 3.8): a difference of 4.4 points would have been found "
            "4 times in "
            "5. By itself p is 0.03, but 0.06 for 2 comparisons."
        ),
    ),
]


@pytest.mark.parametrize(
    ("known", "asked", "verdict", "sentence"),
    [case[1:] for case in TABLE],
    ids=[case[0].replace(" ", "-") for case in TABLE],
)
def test_verdict_says_what_its_data_allow(known, asked, verdict, sentence):
    found = judged(**asked, **known)
    assert (found.verdict, found.verdict_text) == (verdict, sentence)


def test_every_verdict_is_in_the_table():
    assert {case[3] for case in TABLE} == {*get_args(Verdict)}


def test_equal_values_beside_failed_items_say_what_these_could_change():
    """Of 100 items 40 failed, and the systems are alike on the others."""
    values = np.arange(100) % 2.0
    candidate = np.where(np.arange(100) < 40, np.nan, values)
    text = compared(values, candidate).verdict_text
    assert (
        "they have equal values on 60 items; with the 40 that failed the difference could be anything from"
        in text
    )
    assert "40 of 100 items failed and are left out; with them the difference is at least -20" in text
    low = float(text.partition("anything from ")[2].partition(" to")[0])
    assert low < -20
    unknown = compared(values * 3, candidate * 3).verdict_text
    assert "-6" not in unknown


def test_bootstrap_is_not_used_for_few_items():
    few = compared([1.0, 2.5], [1.5, 4.0], options={"test": "bootstrap"})
    assert (few.p_kind, few.verdict) != ("bootstrap", "better")
    rng = np.random.default_rng(0)
    before = rng.normal(size=20)
    assert compared(before, before + rng.normal(size=20), options={"test": "bootstrap"}).p_kind == "bootstrap"

"""Paired items made by hand, for tests of what is computed from them."""

import json
from pathlib import Path

import numpy as np

from modelgauge.comparison.compare import compare_pairs
from modelgauge.comparison.item_pairs import ItemPairs, PairedSide
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_runs import PairedRuns
from modelgauge.comparison.result import System

GSM8K = Path(__file__).parents[4] / "shared" / "data" / "gsm8k"
SMALL, LARGE = "6b_finetuning", "175b_verification"


def items_of(baseline, candidate, *, name="accuracy", label="B", test="t", before=None, after=None, **about):
    """The items of one test, with one measurement; NaN where an item failed. `before` and `after` override a side."""
    places = np.arange(len(baseline))
    sides = [
        PairedSide(
            **{"places": places, "values": {name: np.array(values, dtype=np.float64)}, **(of_side or {})}
        )
        for values, of_side in ((baseline, before), (candidate, after))
    ]
    return ItemPairs(
        **{
            "test": test,
            "candidate": label,
            "matched_by": "id",
            "n_only_baseline": 0,
            "n_only_candidate": 0,
            "before": sides[0],
            "after": sides[1],
            "directions": {name: "higher"},
            **about,
        }
    )


def runs_of(*items, baseline="A"):
    """The runs of a baseline and of the candidates of these items."""
    systems = {label: {} for label in (baseline, *(item.candidate for item in items))}
    for item in items:
        systems[item.candidate][item.test] = systems[baseline][item.test] = "20260131-120000-a1b2c3"
    made = [System(label=label, sut_uid=label, runs=runs, given=label) for label, runs in systems.items()]
    return PairedRuns(made[0], tuple(made[1:]), items)


def compared(baseline, candidate, *, options=None, **about):
    """The one row of a comparison of two systems."""
    (row,) = compare_pairs(
        runs_of(items_of(baseline, candidate, **about)), CompareOptions(**options or {})
    ).comparisons
    return row


def gsm8k_of(model):
    """Whether a model solved each of the 1,319 problems: (n,) of 0 and 1."""
    lines = (GSM8K / f"solutions-{model}.jsonl").read_text(encoding="utf-8").splitlines()
    return np.array([json.loads(line)["is_correct"] for line in lines], dtype=np.float64)

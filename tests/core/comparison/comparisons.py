"""Comparisons made by hand, for tests of what is shown of them."""

from modelgauge.comparison.difference import MeasurementComparison
from modelgauge.comparison.families import Family
from modelgauge.comparison.result import Comparison, System
from modelgauge.comparison.verdicts import verdict, verdict_text

A = System(label="A", sut_uid="a", runs={"gsm8k": "20260131-120000-a1b2c3"}, given="latest~1")
B = System(label="B", sut_uid="b", runs={"gsm8k": "20260131-120001-a1b2c3"}, given="latest")
ROW = {
    "test": "gsm8k",
    "measurement": "accuracy",
    "candidate": "B",
    "matched_by": "id",
    "n_paired": 1313,
    "n_only_baseline": 0,
    "n_only_candidate": 0,
    "n_failed": 6,
    "n_failed_baseline": 3,
    "n_failed_candidate": 4,
    "baseline_value": 0.565,
    "candidate_value": 0.608,
    "difference": 0.043,
    "stderr": 0.0143,
    "stderr_unpaired": 0.0192,
    "correlation": 0.43,
    "interval": (0.015, 0.071),
    "interval_kind": "tango",
    "p_value": 0.003,
    "p_kind": "mcnemar_exact",
    "p_adjusted": 0.003,
    "wins": 209,
    "losses": 152,
    "ties": 952,
    "bounds": (0.038, 0.048),
    "mde": 0.04,
    "direction": "higher",
    "value_range": (0, 1),
    "verdict": "better",
    "verdict_text": "B is better than A by 4.3 points (1.5 to 7.1).",
}


def row(**other):
    """One row: B is better than A on gsm8k, but for what is given."""
    return MeasurementComparison(**{**ROW, **other})


def judged(*, family=1, alpha=0.05, **other):
    """A row with the verdict that its numbers and its family allow."""
    known, of = row(**other), Family("A", alpha, family)
    return known.replaced(
        verdict=verdict(known, of, known.equivalence),
        verdict_text=verdict_text(known.candidate, known, of, margin=known.equivalence),
    )


def worse(**other):
    """A row in which B is worse."""
    flipped = {
        "difference": -0.043,
        "interval": (-0.071, -0.015),
        "candidate_value": 0.522,
        "verdict": "worse",
    }
    text = "B is worse than A by 4.3 points (1.5 to 7.1)."
    return row(**{**flipped, "wins": 152, "losses": 209, "verdict_text": text, **other})


def cannot_tell(**other):
    """A row in which nothing can be told."""
    same = {"difference": 0.01, "interval": (-0.02, 0.04), "p_value": 0.5, "p_adjusted": 0.9}
    text = (
        "Cannot tell whether B is better or worse than A: a difference of 4.0 points would have been found."
    )
    return row(**{**same, "verdict": "cannot_tell", "verdict_text": text, **other})


def unpaired(**other):
    """A row without any paired item."""
    known = (
        "test",
        "measurement",
        "candidate",
        "matched_by",
        "n_only_baseline",
        "n_only_candidate",
        "n_failed",
        "n_failed_baseline",
        "n_failed_candidate",
    )
    missing = dict.fromkeys(("baseline_value", "candidate_value", "difference"))
    counts = {"n_paired": 0, "wins": 0, "losses": 0, "ties": 0}
    verdict = {
        "verdict": "cannot_tell",
        "verdict_text": "Cannot tell whether B is better or worse than A: no item has a value of both.",
    }
    return MeasurementComparison(**{name: ROW[name] for name in known} | missing | counts | verdict | other)


def comparison(*rows, **other):
    """A comparison of these rows."""
    labels = dict.fromkeys(row.candidate for row in rows)
    candidates = [B.replaced(label=label) for label in labels]
    made = {"baseline": A, "candidates": candidates, "alpha": 0.05, "family": len(rows), "comparisons": rows}
    return Comparison(**{**made, **other})

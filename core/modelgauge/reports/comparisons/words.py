"""The words of a comparison, for terminal, Markdown and XML alike; its figures are in `comparison/units.py`."""

from collections.abc import Sequence
from typing import Any, get_args

from modelgauge.comparison.difference import Verdict
from modelgauge.reports.item_texts import setting_text
from modelgauge.wording.phrases import one_line

VERDICTS: dict[Verdict, str] = {verdict: verdict.replace("_", " ") for verdict in get_args(Verdict)}
"""Verdicts in words; findings first."""

METHODS = {
    "mcnemar_exact": "McNemar's exact test",
    "mcnemar_clusters": "McNemar's test of the effective number of items",
    "t": "Student's t",
    "bounded_t": "Student's t with imaginary items",
    "bounded": "Student's t with imaginary items",
    "cr2_bounded_t": "t with imaginary items and errors that allow for clusters (CR2)",
    "cr2-bounded": "t with imaginary items and errors that allow for clusters (CR2)",
    "cr2_t": "t with errors that allow for clusters (CR2)",
    "cr2-t": "t with errors that allow for clusters (CR2)",
    "permutation": "permutation test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "bootstrap": "bootstrap",
    "tango": "Tango's score interval",
    "tango-clusters": "Tango's score interval of the effective number of items",
    "bca": "bootstrap (BCa)",
}
"""The methods of p values and intervals, in words."""

_MOST_OF_A_VALUE = 60  # characters


def listed(names: Sequence[str], word: str = "and") -> str:
    """Join words: `A`, `A and B`, `A, B and C`."""
    return f" {word} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def short_json(value: Any) -> str:
    """Return a JSON value on one short line; texts unchanged."""
    return "none" if value is None else one_line(setting_text(value), _MOST_OF_A_VALUE)

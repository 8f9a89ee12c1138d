"""The words and figures of a comparison, for terminal, Markdown and XML alike."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from modelgauge.comparison.result import Interval, Verdict
from modelgauge.data.figures import figure
from modelgauge.reports.item_texts import as_text
from modelgauge.reports.layout import one_line

VERDICTS: dict[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "higher": "higher",
    "lower": "lower",
    "equivalent": "equivalent",
    "not_worse": "not worse",
    "cannot_tell": "cannot tell",
}
"""Verdicts in words; findings first."""

METHODS = {
    "mcnemar_exact": "McNemar's exact test",
    "t": "Student's t",
    "cr2_t": "t with errors that allow for clusters (CR2)",
    "cr2-t": "t with errors that allow for clusters (CR2)",
    "permutation": "permutation test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "bootstrap": "bootstrap",
    "tango": "Tango's score interval",
    "bca": "bootstrap (BCa)",
}
"""The methods of p values and intervals, in words."""

_MOST_OF_A_VALUE = 60  # characters


class Unit(NamedTuple):
    """What differences are shown in.

    Args:
        scale: what they are multiplied by.
        name: in the plural; empty for the measurement's own unit.
    """

    scale: int
    name: str

    def signed(self, value: float | None, error: float | None = None) -> str:
        """A difference with its sign, and the digits that its error leaves meaningful."""
        if value is None:
            return ""
        shown = figure(self.scale * value, self.scale * error if error else None)
        return f"+{shown}" if value > 0 and shown.strip("0.,") else shown

    def counted(self, shown: str) -> str:
        """A figure with the name of the unit."""
        return f"{shown} {self.name[:-1] if shown == '1' else self.name}".strip()

    def between(self, ends: Interval | None, error: float | None = None) -> str:
        """The ends of an interval of differences."""
        if ends is None:
            return ""
        return " to ".join(self.signed(end, error or ends[1] - ends[0]) for end in ends)


def unit_of(value_range: Interval | None) -> Unit:
    """The unit of a measurement's differences: of a share that goes from 0 to 1, points."""
    return Unit(100, "points") if value_range == (0, 1) else Unit(1, "")


def listed(names: Sequence[str], word: str = "and") -> str:
    """`A`, `A and B`, `A, B and C`."""
    return f" {word} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def short_json(value: Any) -> str:
    """Return a JSON value on one short line; texts unchanged."""
    return "none" if value is None else one_line(as_text(value), _MOST_OF_A_VALUE)

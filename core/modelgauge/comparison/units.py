"""The unit in which differences are written: points, where values go from 0 to 1."""

from typing import NamedTuple

from modelgauge.comparison.difference import Interval
from modelgauge.wording.figures import figure


class Unit(NamedTuple):
    """Unit in which differences are shown.

    Args:
        scale: what they are multiplied by.
        name: in the plural; empty for the measurement's own unit.
    """

    scale: int
    name: str

    def signed(self, value: float | None, error: float | None = None) -> str:
        """Format a difference with its sign, and with the digits that its error leaves meaningful."""
        if value is None:
            return ""
        shown = figure(self.scale * value, self.scale * error if error else None)
        return f"+{shown}" if value > 0 and shown.strip("0.,") else shown

    def counted(self, shown: str) -> str:
        """Format a figure with the name of the unit."""
        return f"{shown} {self.name[:-1] if shown in ('1', '-1') else self.name}".strip()

    def between(self, ends: Interval | None, error: float | None = None) -> str:
        """Format the ends of an interval of differences."""
        if ends is None:
            return ""
        return " to ".join(self.signed(end, error or abs(ends[1] - ends[0])) for end in ends)


def choose_unit(value_range: Interval | None) -> Unit:
    """Return the unit for a measurement's differences: points for shares from 0 to 1."""
    return Unit(100, "points") if value_range == (0, 1) else Unit(1, "")

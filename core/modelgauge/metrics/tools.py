"""`ToolCorrectnessMetric`: did the app call the tools that it should have called?"""

import math
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Any, Unpack

from modelgauge.data.estimates import Score
from modelgauge.data.responses import ToolCall
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.metrics.base import Metric
from modelgauge.metrics.definition import MetricSettings, check_flags, members_of


class ToolCallParams(StrEnum):
    """What, beside the name, must be right for a tool call to be right."""

    INPUT_PARAMETERS = "input_parameters"
    OUTPUT = "output"


class ToolCorrectnessMetric(Metric):
    """The share of the expected tool calls that were made: 0 to 1.

    Each call counts once: two expected calls of one tool need two calls of it. Calls are matched so that the
    score is highest. With `INPUT_PARAMETERS` a call counts as much as the share of its parameters that are
    right (of those expected and those given); with `OUTPUT` a call with another output does not count. Where
    no tool is expected, the score is 1 if none was called, else 0.

    Args:
        uid: see `Metric`, as for the settings.
        evaluation_params: `ToolCallParams` or their names; by default none of them.
        should_consider_ordering: calls count in the order in which they are expected: the best common
            subsequence.
        should_exact_match: 1 where the calls are the expected ones, in the same order and no others; else 0.

    Raises:
        InvalidOptionError: one of `evaluation_params` is unknown.

    The idea and the names of the options are DeepEval's (deepeval.com/docs/metrics-tool-correctness).
    """

    required_params = ("actual_output", "tools_called", "expected_tools")
    score_range = (0.0, 1.0)
    asks_nobody = True

    def __init__(
        self,
        uid: str | None = None,
        *,
        evaluation_params: Sequence[ToolCallParams | str] | None = None,
        should_consider_ordering: bool = False,
        should_exact_match: bool = False,
        **settings: Unpack[MetricSettings],
    ) -> None:
        super().__init__(uid, **settings)
        check_flags(
            self, should_consider_ordering=should_consider_ordering, should_exact_match=should_exact_match
        )
        given = () if evaluation_params is None else evaluation_params
        self.evaluation_params = members_of(ToolCallParams, given, self.name)
        self.should_consider_ordering = should_consider_ordering
        self.should_exact_match = should_exact_match

    async def score(self, test_case: LLMTestCase) -> Score:
        """Return the share of the expected calls that were made."""
        expected, called = test_case.expected_tools or [], test_case.tools_called or []
        rightness = [[self._rightness(one, other) for other in called] for one in expected]
        whole = math.lcm(*(one.denominator for row in rightness for one in row))
        weights = [[int(one * whole) for one in row] for row in rightness]
        if not expected:
            value = float(not called)
        elif self.should_exact_match:
            same = len(expected) == len(called)
            value = float(same and all(weights[place][place] == whole for place in range(len(expected))))
        else:
            best = in_order if self.should_consider_ordering else in_any_order
            value = best(weights) / (whole * len(expected))
        names = [", ".join(one.name for one in calls) or "none" for calls in (expected, called)]
        return Score(
            value,
            f"Expected: {names[0]}. Called: {names[1]}.",
            {"matches": [[float(one) for one in row] for row in rightness]},
        )

    def _rightness(self, expected: ToolCall, called: ToolCall) -> Fraction:
        """How far one call is another: 0 to 1."""
        if expected.name != called.name:
            return Fraction(0)
        if ToolCallParams.OUTPUT in self.evaluation_params and not alike(expected.output, called.output):
            return Fraction(0)
        if ToolCallParams.INPUT_PARAMETERS not in self.evaluation_params:
            return Fraction(1)
        wanted, given = expected.input_parameters or {}, called.input_parameters or {}
        names = wanted.keys() | given.keys()
        right = sum(name in wanted and name in given and alike(wanted[name], given[name]) for name in names)
        return Fraction(right, len(names)) if names else Fraction(1)


def alike(first: Any, second: Any) -> bool:
    """Whether two JSON values are one: 1 is 1.0, and neither is true, which Python takes for 1."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(alike(first[name], second[name]) for name in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(alike, first, second))
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def in_order(weights: Sequence[Sequence[int]]) -> int:
    """The heaviest common subsequence of rows and columns; weights 0 or more."""
    above = [0] * (len(weights[0]) + 1)
    for row in weights:
        line = [0]
        for place, weight in enumerate(row):
            line.append(max(above[place + 1], line[place], above[place] + weight))
        above = line
    return above[-1]


def in_any_order(weights: Sequence[Sequence[int]]) -> int:
    """The heaviest matching of rows with columns; weights 0 or more.

    The Hungarian algorithm in its O(n³) form: Kuhn 1955, "The Hungarian method for the assignment problem".
    """
    if not weights[0]:
        return 0
    if len(weights) > len(weights[0]):
        weights = [list(column) for column in zip(*weights, strict=True)]
    most = max(map(max, weights))
    row_of = _assignment([[most - weight for weight in row] for row in weights])
    return sum(weights[row][column] for column, row in row_of.items())


def _assignment(costs: Sequence[Sequence[float]]) -> dict[int, int]:
    """The row of each column that has one, cheapest in all; no more rows than columns."""
    columns = len(costs[0])
    row_of: dict[int, int] = {}
    of_row: list[float] = [0] * len(costs)  # the potentials, which stay whole where the costs are
    of_column: list[float] = [0] * columns
    for start in range(len(costs)):
        slack, before = [math.inf] * columns, [-1] * columns
        seen: list[int] = []
        row, last = start, -1
        while True:
            free = [column for column in range(columns) if column not in seen]
            for column in free:
                reduced = costs[row][column] - of_row[row] - of_column[column]
                if reduced < slack[column]:
                    slack[column], before[column] = reduced, last
            nearest = min(free, key=slack.__getitem__)
            step = slack[nearest]
            of_row[start] += step
            for column in seen:
                of_row[row_of[column]] += step
                of_column[column] -= step
            for column in free:
                slack[column] -= step
            seen.append(nearest)
            last = nearest
            if nearest not in row_of:
                break
            row = row_of[nearest]
        while last != -1:  # along the path back to the start
            previous = before[last]
            row_of[last] = row_of[previous] if previous != -1 else start
            last = previous
    return row_of

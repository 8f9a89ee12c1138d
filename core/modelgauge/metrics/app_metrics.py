"""Metrics of an app beyond its words: the form of its JSON, the tools that it called, its time and cost."""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Unpack

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import from_json

from modelgauge.config.options import YES_NO
from modelgauge.data.estimates import Score
from modelgauge.data.items import PromptWithContext
from modelgauge.data.responses import SUTCompletion, ToolCall
from modelgauge.data.spans import SPAN, TRACE
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.errors import InvalidDataError, InvalidOptionError
from modelgauge.interfaces.annotator import judged_cost
from modelgauge.metrics.base import Metric
from modelgauge.metrics.definition import MetricSettings, parse_members
from modelgauge.metrics.judged_cases import TestCase
from modelgauge.metrics.ngrams import extra_module
from modelgauge.metrics.replies import describe_problems

_LIMITS = ("recursion limit exceeded", "number out of range")
"""Beginnings of the parser's errors about its own limits, not about the text."""


class JsonCorrectnessMetric(Metric):
    """1 if the output is JSON that fits a schema, else 0. JSON beyond the parser's limits gets no score.

    Args:
        uid: see `Metric`, also for the settings.
        expected_schema: a pydantic model, any type that pydantic knows (`list[Row]`), or a JSON Schema as a dict,
            which needs an extra: `pip install "modelgauge-framework[metrics]"`. By default any JSON passes.
        threshold: 1 by default.

    Raises:
        InvalidOptionError: the schema is neither, or refers to what is not in it; nothing is fetched.
    """

    required_params = ("actual_output",)
    score_range = (0.0, 1.0)
    asks_nobody = True
    threshold = 1.0

    def __init__(
        self,
        uid: str | None = None,
        *,
        expected_schema: Any = None,
        **settings: Unpack[MetricSettings],
    ) -> None:
        super().__init__(uid, **settings)
        self.expected_schema = expected_schema
        self._adapter: TypeAdapter[Any] | None = None
        self._validator: Any = None
        if isinstance(expected_schema, Mapping):
            self._validator = _schema_validator(expected_schema, self.name)
        elif expected_schema is not None:
            self._adapter = _adapter(expected_schema)

    def score(self, test_case: LLMTestCase) -> Score:
        """Return 1 if the output is JSON that fits the schema."""
        problem = self._problem(test_case.actual_output or "")
        if problem is None:
            return Score(
                1.0, "The output is JSON that fits." if self.expected_schema else "The output is JSON."
            )
        return Score(0.0, problem)

    def _problem(self, text: str) -> str | None:
        try:
            value = from_json(text, allow_inf_nan=False)
        except ValueError as error:
            if str(error).startswith(_LIMITS):
                raise InvalidDataError(
                    f"{self.name} cannot read the output, which may be JSON: {error}.",
                    fix="It reads objects and lists in 200 others, and whole numbers of 4,300 digits.",
                ) from None
            return f"The output is not JSON: {error}."
        if self._adapter is not None:
            try:
                self._adapter.validate_json(text)
            except ValidationError as error:
                return f"The output does not fit the schema: {describe_problems(error, 'the whole', 5)}."
        if self._validator is not None:
            violations = self._validator.iter_errors(value)
            errors = [f"{violation.json_path}: {violation.message}" for violation in violations]
            if errors:
                return f"The output does not fit the schema: {'; '.join(errors[:5])}."
        return None


class _LimitMetric(Metric):
    """A figure of the case, its one required parameter, up to a limit. Lower is better; none is perfect.

    Args:
        uid: see `Metric`, also for the settings.
        threshold: the most that passes, or None for no verdict; needed.

    Raises:
        InvalidOptionError: there is no threshold, or `strict_mode` is asked for.
    """

    higher_is_better = False
    best_score = None
    score_range = (0.0, math.inf)
    asks_nobody = True
    wording: ClassVar[str]
    threshold = math.nan  # so that a subclass can say it, too

    def __init__(self, uid: str | None = None, **settings: Unpack[MetricSettings]) -> None:
        super().__init__(uid, **settings)
        if isinstance(self.threshold, float) and math.isnan(self.threshold):
            name = type(self).__name__
            raise InvalidOptionError(
                f"{name} needs a threshold.", fix=f"Say what is too much: {name}(threshold=2.5)."
            )

    async def score(self, test_case: LLMTestCase) -> Score:
        """Return the figure of the case."""
        value: float = getattr(test_case, self.required_params[0])
        return Score(value, self.wording.format(value))


class LatencyMetric(_LimitMetric):
    """Response time of the app in seconds: the case's `completion_time`. Lower is better.

    Without a `completion_time`, it is the time of the observed function: an app, or the function of a `FunctionSUT`,
    with `@observe`. The time is stored with the answer, so an answer from the cache has the time of the paid call. Any
    other SUT must say it itself, in the metadata of its completion (`SUTCompletion(text, metadata={"completion_time":
    1.2})`): the calls that the engine times include waiting and other attempts. Needs a `threshold`: the most seconds
    that pass. Cannot be strict.
    """

    required_params = ("completion_time",)
    wording = "{:.15g} s."

    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> TestCase:
        """Return the test case with the time of the observed function, which only this metric gets, so others stay
        cached.
        """
        held = completion.metadata
        reported = held.get("completion_time", getattr(prompt.context, "completion_time", None))
        trace = held.get(TRACE)
        # A part has a time of its own.
        if reported is None and isinstance(trace, Mapping) and SPAN not in held:
            completion = completion.replaced(metadata={**held, "completion_time": trace.get("seconds")})
        return super().translate_request(prompt, completion)


class CostMetric(_LimitMetric):
    """Cost of the answer in US dollars: the case's `token_cost`. Lower is better.

    If a SUT is asked and its completion has no cost, it is the cost of the call as the SUT reports it
    (`Usage.cost_usd`), shared equally by several completions. Needs a `threshold`: the most dollars that pass. Cannot
    be strict.
    """

    required_params = ("token_cost",)
    wording = "${:.15g}."

    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> TestCase:
        """Return the test case with the cost of the call."""
        cost = judged_cost.get()
        if cost is not None and completion.metadata.get("token_cost") is None:
            completion = completion.replaced(metadata={**completion.metadata, "token_cost": cost})
        return super().translate_request(prompt, completion)


def _adapter(schema: Any) -> TypeAdapter[Any]:
    try:
        if not isinstance(schema, str):  # which pydantic looks up as the name of a type
            return TypeAdapter(schema)
    except (PydanticUserError, TypeError):
        pass  # its message is about the internals of pydantic
    raise InvalidOptionError(
        f"expected_schema={schema!r} is not a schema.",
        fix="Give a pydantic model, a type such as list[int], or a JSON Schema as a dict.",
    )


def _schema_validator(schema: Mapping[str, Any], metric: str) -> Any:
    module = extra_module("jsonschema", metric)
    cls = module.validators.validator_for(schema, default=module.Draft202012Validator)
    try:
        cls.check_schema(schema)
    except module.SchemaError as error:
        raise InvalidOptionError(
            f"expected_schema is no JSON Schema: {error.message}.", fix="Correct it: see json-schema.org."
        ) from None
    _check_references(schema, metric)
    return cls(schema, registry=extra_module("jsonschema_specifications", metric).REGISTRY)


def _check_references(schema: Mapping[str, Any], metric: str) -> None:
    """Refuse references that lead out of the schema: nothing is fetched, and cases would fail later."""
    referencing = extra_module("referencing", metric)
    dialect = extra_module("referencing.jsonschema", metric).DRAFT202012
    whole = referencing.Resource.from_contents(schema, default_specification=dialect)
    specifications = extra_module("jsonschema_specifications", metric).REGISTRY
    left = [(specifications.resolver_with_root(whole), whole)]
    while left:
        resolver, part = left.pop()
        reference = part.contents.get("$ref") if isinstance(part.contents, Mapping) else None
        try:
            if reference is not None:
                resolver.lookup(reference)
        except referencing.exceptions.Unresolvable:
            raise InvalidOptionError(
                f"expected_schema refers to {reference!r}, which is not in it.",
                fix='Put it into the schema: under "$defs", say, for {"$ref": "#/$defs/NAME"}.',
            ) from None
        left += [(resolver.in_subresource(resource), resource) for resource in part.subresources()]


# --- tool calls ---------------------------------------------------------------------------------------------


class ToolCallParams(StrEnum):
    """Parts of a tool call that must match, besides its name."""

    INPUT_PARAMETERS = "input_parameters"
    OUTPUT = "output"


class ToolCorrectnessMetric(Metric):
    """The share of the expected tool calls that were made: 0 to 1.

    Each call counts once: two expected calls of one tool need two calls of it. Calls are matched so that the score is
    highest. With `INPUT_PARAMETERS` a call counts as much as the share of its parameters that are right (of those
    expected and those given); with `OUTPUT` a call with another output does not count. If no tool is expected, the
    score is 1 if none was called, else 0.

    Args:
        uid: see `Metric`, also for the settings.
        evaluation_params: `ToolCallParams` or their names; by default none of them.
        should_consider_ordering: calls count in the order in which they are expected: the best common
            subsequence.
        should_exact_match: the score is 1 if the calls are exactly the expected calls, in the same order; else 0.

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
        given = () if evaluation_params is None else evaluation_params
        self.evaluation_params = parse_members(ToolCallParams, given, type(self).__name__)
        self.should_consider_ordering = YES_NO.check(
            "ToolCorrectnessMetric.should_consider_ordering", should_consider_ordering
        )
        self.should_exact_match = YES_NO.check("ToolCorrectnessMetric.should_exact_match", should_exact_match)

    async def score(self, test_case: LLMTestCase) -> Score:
        """Return the share of the expected calls that were made."""
        expected, called = test_case.expected_tools or [], test_case.tools_called or []
        rightness = [[self._rightness(call, other) for other in called] for call in expected]
        whole = math.lcm(*(fraction.denominator for row in rightness for fraction in row))
        weights = [[int(fraction * whole) for fraction in row] for row in rightness]
        if not expected:
            value = float(not called)
        elif self.should_exact_match:
            same = len(expected) == len(called)
            value = float(same and all(weights[place][place] == whole for place in range(len(expected))))
        else:
            best = in_order if self.should_consider_ordering else in_any_order
            value = best(weights) / (whole * len(expected))
        names = [", ".join(call.name for call in calls) or "none" for calls in (expected, called)]
        return Score(
            value,
            f"Expected: {names[0]}. Called: {names[1]}.",
            {"matches": [[float(fraction) for fraction in row] for row in rightness]},
        )

    def _rightness(self, expected: ToolCall, called: ToolCall) -> Fraction:
        """Return the share of an expected call that another call matches, 0 to 1."""
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
    """Return whether two JSON values are equal. 1 equals 1.0, but unlike in Python neither equals true."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(alike(first[name], second[name]) for name in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(alike, first, second))
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def in_order(weights: Sequence[Sequence[int]]) -> int:
    """Return the heaviest common subsequence of rows and columns; weights are 0 or more."""
    above = [0] * (len(weights[0]) + 1)
    for row in weights:
        line = [0]
        for place, weight in enumerate(row):
            line.append(max(above[place + 1], line[place], above[place] + weight))
        above = line
    return above[-1]


def in_any_order(weights: Sequence[Sequence[int]]) -> int:
    """Return the heaviest matching of rows with columns; weights are 0 or more.

    The Hungarian algorithm in its O(n³) form: Kuhn 1955, "The Hungarian method for the assignment problem".
    """
    if not weights[0]:
        return 0
    if len(weights) > len(weights[0]):
        weights = [list(column) for column in zip(*weights, strict=True)]
    # Column 0 holds the row that is to be matched next; row 0 is none.
    columns = range(1, len(weights[0]) + 1)
    row_of = [0, *(0 for _ in columns)]
    row_potentials, column_potentials = [0.0] * (len(weights) + 1), [0.0] * len(row_of)
    for start in range(1, len(weights) + 1):
        row_of[0], last = start, 0
        seen: set[int] = set()
        slack, before = [math.inf] * len(row_of), [0] * len(row_of)
        while row := row_of[last]:
            seen.add(last)
            free = [column for column in columns if column not in seen]
            for column in free:
                reduced = -weights[row - 1][column - 1] - row_potentials[row] - column_potentials[column]
                if reduced < slack[column]:
                    slack[column], before[column] = reduced, last
            last = min(free, key=slack.__getitem__)
            step = slack[last]
            for column in seen:
                row_potentials[row_of[column]] += step
                column_potentials[column] -= step
            for column in free:
                slack[column] -= step
        while last:  # along the path back to the start
            row_of[last] = row_of[before[last]]
            last = before[last]
    return sum(weights[row_of[column] - 1][column - 1] for column in columns if row_of[column])

"""Metrics of form and effort, without a reference text: JSON, latency, cost."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import from_json

from modelgauge.data.estimates import Score
from modelgauge.data.items import PromptWithContext
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.spans import SPAN, TRACE
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.errors import InvalidDataError, InvalidOptionError
from modelgauge.interfaces.annotator import judged_cost
from modelgauge.metrics.base import Metric
from modelgauge.metrics.definition import MetricSettings
from modelgauge.metrics.judged_cases import TestCase
from modelgauge.metrics.ngrams import extra_module

_LIMITS = ("recursion limit exceeded", "number out of range")
"""How the parser's errors begin where not the text is wrong."""


class JsonCorrectnessMetric(Metric):
    """1 where the output is JSON that fits a schema, else 0. What is beyond the parser's limits has no score.

    Args:
        uid: see `Metric`, as for the settings.
        expected_schema: a pydantic model, any type that pydantic knows (`list[Row]`), or a JSON Schema as a
            dict, which needs an extra: `pip install "modelgauge-framework[metrics]"`. Without one, any JSON will do.
        threshold: 1 by default.

    Raises:
        InvalidOptionError: the schema is neither, or refers to what is not in it; nothing is fetched.
    """

    required_params = ("actual_output",)
    score_range = (0.0, 1.0)
    asks_nobody = True

    def __init__(
        self,
        uid: str | None = None,
        *,
        expected_schema: Any = None,
        **settings: Unpack[MetricSettings],
    ) -> None:
        settings.setdefault("threshold", 1.0)
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
                return f"The output does not fit the schema: {_problems(error)}."
        if self._validator is not None:
            errors = [f"{one.json_path}: {one.message}" for one in self._validator.iter_errors(value)]
            if errors:
                return f"The output does not fit the schema: {'; '.join(errors[:5])}."
        return None


class _LimitMetric(Metric):
    """A figure of the case, its one required parameter, up to a limit. Lower is better; none is perfect.

    Args:
        uid: see `Metric`, as for the settings.
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
    """How long the app took, in seconds: the case's `completion_time`. Lower is better.

    Where nobody says it, it is how long the observed function took, `@observe` in front of an app or of the function
    of a `FunctionSUT`; that time is kept with the answer, so one that comes from the cache has the time of when it was
    paid. Any other SUT must say it itself, in the metadata of its completion (`SUTCompletion(text,
    metadata={"completion_time": 1.2})`): the calls that the engine times include waiting and other attempts. Needs a
    `threshold`: the most seconds that pass. Cannot be strict.
    """

    required_params = ("completion_time",)
    wording = "{:.15g} s."

    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> TestCase:
        """The test case, with the time of the observed function; no other metric's, so that theirs are cached."""
        held = completion.metadata
        said = held.get("completion_time", getattr(prompt.context, "completion_time", None))
        trace = held.get(TRACE)
        if said is None and isinstance(trace, Mapping) and SPAN not in held:  # a part has a time of its own
            completion = completion.replaced(metadata={**held, "completion_time": trace.get("seconds")})
        return super().translate_request(prompt, completion)


class CostMetric(_LimitMetric):
    """What the answer cost, in US dollars: the case's `token_cost`. Lower is better.

    Where a SUT is asked and its completion says nothing of it, it is what the SUT says that the call cost
    (`Usage.cost_usd`); of several completions each has an equal share. Needs a `threshold`: the most dollars
    that pass. Cannot be strict.
    """

    required_params = ("token_cost",)
    wording = "${:.15g}."

    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> TestCase:
        """The test case, with the cost of the call."""
        cost = judged_cost.get()
        if cost is not None and completion.metadata.get("token_cost") is None:
            completion = completion.replaced(metadata={**completion.metadata, "token_cost": cost})
        return super().translate_request(prompt, completion)


def _adapter(schema: Any) -> TypeAdapter[Any]:
    try:
        if not isinstance(schema, str):  # which pydantic looks up as the name of a type
            return TypeAdapter(schema)
    except (PydanticUserError, TypeError):
        pass  # what its message says is of pydantic's inner life
    raise InvalidOptionError(
        f"expected_schema={schema!r} is no schema.",
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
    """Refuse references to what is not there, which cases would meet later, and which must not be fetched."""
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
        left += [(resolver.in_subresource(one), one) for one in part.subresources()]


def _problems(error: ValidationError) -> str:
    lines = error.errors(include_url=False)[:5]
    return "; ".join(f"{'.'.join(map(str, line['loc'])) or 'the whole'}: {line['msg']}" for line in lines)

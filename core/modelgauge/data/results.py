"""Results of a run: counts, and the values computed by `stats`; and thresholds for measurements.

A result contains numbers, `Estimate`s, or one level of named groups of these.
"""

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat

from modelgauge.data.base import Count, Frozen, Seconds, added_later, of_valid
from modelgauge.data.estimates import Estimate, interval_text, reaches, value_text
from modelgauge.data.json_values import finite_number
from modelgauge.documents.document import Heading, TableBlock, TableColumn
from modelgauge.documents.notebook import as_notebook
from modelgauge.errors import InvalidDataError, MissingResultError
from modelgauge.wording.did_you_mean import known_names
from modelgauge.wording.phrases import a_thing

GIVEN = "given_outputs"
"""The uid of the SUT in records of answers that existed before the run."""

PYTEST = "pytest"
"""The class name of a pytest session's test in records, and its uid if the user gave no name."""

Direction = Literal["higher", "lower"]
"""The better values of a measurement."""

RecordedRange = Annotated[tuple[FiniteFloat | None, FiniteFloat | None], Field(strict=False)]
"""The lowest and highest possible value of a measurement, a list in JSON; None if there is no end."""


def recorded_ranges(ranges: Mapping[str, tuple[float, float]]) -> dict[str, RecordedRange]:
    """Convert ranges of measurements for a record, in which an infinite end is None."""
    return {
        name: (None if low == -math.inf else float(low), None if high == math.inf else float(high))
        for name, (low, high) in ranges.items()
    }


def get_range(recorded: RecordedRange) -> tuple[float, float]:
    """Return a recorded range with None replaced by infinity."""
    low, high = recorded
    return -math.inf if low is None else low, math.inf if high is None else high


_MOST_OF_A_GROUP = 20  # rows in a notebook
_ESTIMATE_FIELDS = frozenset(Estimate.model_fields)
_ALL_ESTIMATES_HAVE = frozenset(Estimate.positional_fields)  # the others came later: older records lack them


def normalized_result(raw: Any, reduction: str | None = None) -> dict[str, Any]:
    """Convert the return value of `aggregate_measurements` for a record.

    Args:
        raw: a mapping or model of numbers, Estimates, or one level of named groups of these.
        reduction: how the measurements of repeats are combined, unless by their mean. It is added to the names and the
            Estimates of such results; whole numbers are counts, and keep their names.

    Raises:
        InvalidDataError: anything else; the message names the part.
    """
    named = None if isinstance(raw, Estimate) else _fields(raw)
    if named is None:
        raise InvalidDataError(
            f"aggregate_measurements returned {a_thing(raw)}.",
            fix="Return a mapping from names to numbers, Estimates or one level of groups of these "
            '({"accuracy": 0.5}), or a pydantic model of these.',
        )
    result = {str(name): _result_value(str(name), value, depth=1) for name, value in named.items()}
    if reduction is None:
        return result
    return {
        name if _is_count(value) else f"{name}.{reduction}": _with_reduction(value, reduction)
        for name, value in result.items()
    }


def _with_reduction(value: Any, reduction: str) -> Any:
    return _mapped(
        value, lambda part: part.replaced(reduction=reduction) if isinstance(part, Estimate) else part
    )


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to each number and Estimate of a result or group."""
    if isinstance(value, Mapping):
        return {name: _mapped(part, function) for name, part in value.items()}
    return function(value)


def _is_count(value: Any) -> bool:
    return all(map(_is_count, value.values())) if isinstance(value, dict) else isinstance(value, int)


def _fields(raw: Any) -> dict[Any, Any] | None:
    if isinstance(raw, BaseModel):
        return {name: getattr(raw, name) for name in [*type(raw).model_fields, *(raw.model_extra or {})]}
    return dict(raw) if isinstance(raw, Mapping) else None


def _result_value(name: str, value: Any, depth: int) -> Any:
    if isinstance(value, Estimate):
        return value
    if isinstance(value, numbers.Integral):
        finite_number(f"Result '{name}'", value, instead="leave it out")
        return int(value)  # a bool too: a result is a number
    group = _fields(value)
    if group is not None and depth:
        return {str(key): _result_value(f"{name}.{key}", part, depth - 1) for key, part in group.items()}
    if group is not None or not hasattr(value, "__float__"):
        raise InvalidDataError(
            f"Result '{name}' is {a_thing(value)}.",
            fix="A result is a number, an Estimate, or one level of named groups of these.",
        )
    return finite_number(f"Result '{name}'", value, instead="leave it out")


def plain_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a result to JSON data."""
    made: dict[str, Any] = _mapped(
        result, lambda value: value.model_dump(mode="json") if isinstance(value, Estimate) else value
    )
    return made


def listed(result: Mapping[str, Any], most: int | None) -> Iterator[tuple[str, Any]]:
    """Yield the names of results with their values. A group's name has the value None, and its results follow,
    indented.

    Args:
        result: of a run.
        most: values of one group; None for all.
    """
    for name, value in result.items():
        if not isinstance(value, Mapping):
            yield name, value
            continue
        yield name, None
        for place, (key, inner) in enumerate(value.items()):
            if most is not None and place >= most:
                yield f"  ... {len(value) - place} more", None
                break
            yield f"  {key}", inner


class Results(dict[str, Any]):
    """Results by name. The error for a missing result explains why it is missing.

    Attributes:
        why: the run failed.
    """

    why = ""

    def __missing__(self, name: object) -> Any:
        why = f": {self.why}" if self.why else ""
        fix = known_names(str(name), self, "Its results are")
        raise MissingResultError(f"The run has no result {name!r}{why}.", fix=fix)

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        return as_notebook([Heading("Results"), *notebook_results(self)])


def notebook_results(result: Mapping[str, Any]) -> list[TableBlock]:
    """Return what notebooks show of results; nothing for none."""
    return [results_table(listed(result, _MOST_OF_A_GROUP))] if result else []


def results_table(rows: Iterable[tuple[str, Any]]) -> TableBlock:
    """Return a table of results.

    Args:
        rows: at least one: names with values, as `listed` has them.
    """
    names, values = zip(*rows, strict=True)
    numbers = [f"{value.n:,}" if isinstance(value, Estimate) else "" for value in values]
    has_estimates = any(numbers)
    columns = [
        TableColumn("Result", names, fold=12),
        TableColumn("value ± std err" if has_estimates else "value", [*map(value_text, values)]),
    ]
    if has_estimates:
        columns.append(TableColumn("95 % interval", [*map(interval_text, values)]))
        columns.append(TableColumn("n", numbers, right=True))
    return TableBlock(columns)


def revived_result(result: Mapping[str, Any]) -> Results:
    """Restore a result from JSON data, with its Estimates as objects.

    Raises:
        InvalidDataError: it holds something else than these, numbers and groups of them.
    """
    return Results({name: _revived(name, value) for name, value in result.items()})


def _revived(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _result_value(name, value, depth=0)
    # No group is like this: what it holds are numbers and Estimates, never None or a list.
    if _ALL_ESTIMATES_HAVE <= value.keys() <= _ESTIMATE_FIELDS and isinstance(
        value["interval"], list | tuple | None
    ):
        return Estimate.model_validate(value)
    return Results({key: _revived(f"{name}.{key}", part) for key, part in value.items()})


Result = Annotated[dict[str, Any], AfterValidator(revived_result)]
"""Names to numbers, `Estimate`s, or one level of named groups of these."""


# --- what was used ----------------------------------------------------------------------------------
#
# `TotalUsage` has all of it. Files contain its parts: record.json has `CallsByKind` among its `counts`, `Spent` as
# `spent`, and `seconds`; totals.json has all fields side by side.


class Amounts(Frozen):
    """A value whose fields are numbers or such values. `+` and `-` work field by field.

    The result has the class of the left operand, and so its fields: `Spent() + used` is what `used` spent.
    """

    def __add__(self, other: Self) -> Self:
        mine = self.__dict__
        return of_valid(type(self), **{name: mine[name] + getattr(other, name) for name in mine})

    def __sub__(self, other: Self) -> Self:
        mine = self.__dict__
        return of_valid(type(self), **{name: mine[name] - getattr(other, name) for name in mine})


class CallCounts(Amounts):
    """Numbers of calls with a response: paid in this run, or cached (from the cache, or an identical call in flight).

    A response that the SUT refused counts too if the error has its usage (`CallError.usage`). A score that a metric
    only computes counts as paid in each run, although it costs nothing.
    """

    paid: Count = 0
    cached: Count = 0


class CallsByKind(Amounts):
    """Numbers of calls by the object that answered them.

    Args:
        sut_calls: answers of the SUT.
        annotator_calls: answers of annotators.
        judge_calls: answers to the questions that annotators asked their own SUTs.
        unkept: paid calls that hold a secret, and so are not in the cache.
    """

    sut_calls: CallCounts = CallCounts()
    annotator_calls: CallCounts = CallCounts()
    judge_calls: CallCounts = CallCounts()
    unkept: Count = 0


class Spent(Amounts):
    """Usage of all calls of a run, including judges, over all its sessions.

    Args:
        attempts: calls that were sent, further attempts included.
        tokens: input and output tokens that SUTs reported.
        cost_usd: US dollars that SUTs reported.
        forward_passes: passes through local models, as their SUTs reported.
    """

    attempts: Count = 0
    tokens: Count = 0
    cost_usd: float = Field(0.0, ge=0)
    forward_passes: Count = added_later(0)


class TotalUsage(CallsByKind, Spent):
    """Everything that calls used. What a session used is the difference of two.

    Args:
        seconds: wall time.
    """

    model_config = ConfigDict(strict=True)

    seconds: Seconds = 0.0

    @property
    def cached(self) -> int:
        """Answers that were not paid, of all kinds."""
        return self.sut_calls.cached + self.annotator_calls.cached + self.judge_calls.cached

    @property
    def spent(self) -> Spent:
        """Attempts, tokens and dollars, as a record has them."""
        return Spent() + self


class Outcomes(Frozen):
    """Numbers of items by outcome, as `Counts` describes them."""

    items: Count = 0
    not_begun: Count | None = None
    scored: Count = 0
    partial: Count = 0
    sut_errors: Count = 0
    annotator_errors: Count = 0
    unscored: Count = 0
    blocked: Count = added_later(0)
    empty: Count = added_later(0)
    failed_repeats: Count = 0

    @property
    def failed(self) -> int:
        """Items that ended in an exception record."""
        return self.sut_errors + self.annotator_errors + self.unscored

    @property
    def finished(self) -> int:
        """Items that have a record: scored or failed."""
        return self.scored + self.failed


class Counts(CallsByKind, Outcomes):
    """Numbers of items by outcome: `items` = scored + sut_errors + annotator_errors + unscored + not finished.

    `not_begun` counts the items that were never taken from the test; None if its items were not read to their end.
    `blocked` counts those of the `sut_errors` that the service of the SUT blocked; JSON leaves it out where it is 0.
    `empty` counts answers without text, and items that failed because of one; older versions did not count them.
    `partial` counts the scored items with failed repeats, and `failed_repeats` these repeats. `judge_calls` counts the
    questions that annotators asked their own SUTs. `unkept` counts the paid calls of all three kinds that hold a
    secret, and so are not in the cache.
    """


RunStage = Literal["items", "aggregate", "run"]


class RunFailure(Frozen):
    """The reason why a pair ended early, or has no result.

    Args:
        stage: items (`make_test_items` failed), aggregate, or run (a cap, the disk, a fatal SUT error).
        error_type: the class of the exception.
        message: what it says.
        traceback: where it was raised.
    """

    stage: RunStage
    error_type: str
    message: str
    traceback: str = ""


class ConcurrencyChange(Frozen):
    """A limiter changed how many calls may be under way at once.

    Args:
        seconds: since the run began, without the time between its sessions.
        limit: the calls at once from then on.
        why: "saturated" (it grew), "no faster" (growth brought no more answers and was taken back), "rate limited" or
            "timed out" (it was cut), or "cut in vain" (as many calls were refused, and the cut was taken back).
    """

    seconds: Seconds
    limit: Count
    why: str


class Sample(Frozen):
    """Sample of a test's items drawn by `max_test_items`.

    Args:
        size: how many were wanted.
        total: how many there are.
        seed: what the choice depended on.
    """

    size: Count
    total: Count
    seed: int


class Threshold(Frozen):
    """Threshold of a measurement for its item to pass.

    Args:
        value: the least that passes; where lower is better, the most. A value within 1e-9 of it passes.
        higher_is_better: the direction.
    """

    value: FiniteFloat
    higher_is_better: bool = True

    def is_reached(self, value: float) -> bool:
        """Return whether a value reaches the threshold."""
        return reaches(value, self.value, higher_is_better=self.higher_is_better)

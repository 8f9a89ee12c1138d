"""Validation of the arguments of `evaluate` and `assert_test`: metrics, test cases, goldens and hyperparameters."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, overload

from pydantic import BaseModel

from modelgauge.api import Runner
from modelgauge.config.run_options import RunOptions
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.json_values import check_exact
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.dataset_test import item_ids, make_prompt
from modelgauge.datasets.rows import Member
from modelgauge.engine.items.item_ids import Ids
from modelgauge.engine.items.source import numbered, sample
from modelgauge.errors import DefinitionError, InvalidDataError
from modelgauge.metrics.base import Metric
from modelgauge.metrics.judged_cases import TestCase
from modelgauge.wording.phrases import a_class, a_thing, beginning, capitalized

F = TypeVar("F", bound=Callable[[], Mapping[str, Any]])

AnyMetric: TypeAlias = Metric | str
"""A metric, or its uid."""

TestCases: TypeAlias = TestCase | Iterable[TestCase] | EvaluationDataset
Goldens: TypeAlias = Golden | Sequence[Golden] | EvaluationDataset


def make_metrics(metrics: AnyMetric | Sequence[AnyMetric] | None, runner: Runner) -> list[Metric]:
    """Return metrics as objects, creating those named by uid.

    Raises:
        InvalidDataError: they are neither a metric nor several.
        UnknownNameError: no metric has this uid.
    """
    if metrics is None:
        return []
    if isinstance(metrics, Mapping) or not isinstance(metrics, Iterable | Metric | type):
        raise InvalidDataError(
            f"metrics is {beginning(repr(metrics), 60)}.", fix="Give a list: metrics=[ExactMatchMetric()]."
        )
    listed = [metrics] if isinstance(metrics, Metric | str | type) else list(metrics)
    return [
        runner.plugins().metrics.make(metric, secrets=runner.secrets) if isinstance(metric, str) else metric
        for metric in listed
    ]


def given_members(
    test_cases: TestCases | None, goldens: Goldens | None, callback: object
) -> tuple[Sequence[Any], EvaluationDataset | None]:
    """Return the test cases to judge, or the goldens to ask an app; and the data set that contains them.

    Raises:
        InvalidDataError: both are given, or goldens without an app, or a member that cannot be judged.
    """
    if goldens is None and callback is None:
        return _given_cases(test_cases)
    if goldens is None or callback is None or test_cases is not None:
        raise InvalidDataError(
            "evaluate takes either test_cases and metrics, or goldens and observed_callback.",
            fix="Give evaluate(test_cases, metrics), or evaluate(goldens=…, observed_callback=…).",
        )
    return _given_goldens(goldens)


def _given_cases(test_cases: TestCases | None) -> tuple[list[TestCase], EvaluationDataset | None]:
    dataset: EvaluationDataset | None = getattr(test_cases, "dataset", None)
    if isinstance(test_cases, EvaluationDataset):
        dataset, test_cases = test_cases, test_cases.test_cases
        if dataset.goldens and not test_cases:
            raise InvalidDataError(
                "The data set holds goldens and no test cases.",
                fix="Run your app on them, and add what it answers: "
                "dataset.add_test_case(golden.to_test_case(…)); "
                "or give goldens=dataset and observed_callback=your_app.",
            )
    if test_cases is None:
        return [], dataset
    several = isinstance(test_cases, Iterable) and not isinstance(test_cases, BaseModel | Mapping | str)
    return [checked_case(case) for case in (test_cases if several else [test_cases])], dataset


def checked_case(case: Any) -> TestCase:
    """Return a test case, checked.

    Raises:
        InvalidDataError: it is not a test case, or was edited in place into an invalid test case.
    """
    if not isinstance(case, LLMTestCase | ConversationalTestCase):
        fix = "Give LLMTestCase(input=…, actual_output=…), or ConversationalTestCase(turns=[…])."
        if isinstance(case, Golden):
            fix = (
                "Let your app answer it: goldens=… (of assert_test: golden=…) and observed_callback=your_app; or make "
                'a case of an answer: golden.to_test_case("…").'
            )
        if isinstance(case, ConversationalGolden):
            fix = "Make a case of the conversation: golden.to_test_case(turns)."
        raise InvalidDataError(f"{capitalized(a_thing(case))} is not a test case.", fix=fix)
    case.check()
    return case


def _given_goldens(goldens: Goldens) -> tuple[list[Golden], EvaluationDataset | None]:
    dataset = goldens if isinstance(goldens, EvaluationDataset) else getattr(goldens, "dataset", None)
    if isinstance(goldens, Golden):  # one alone, as one test case can be
        goldens = [goldens]
    if not isinstance(goldens, EvaluationDataset | Iterable):
        raise InvalidDataError(
            f"goldens is {beginning(repr(goldens), 60)}.", fix="Give a list: goldens=[Golden(input=…)]."
        )
    listed = list(goldens.goldens if isinstance(goldens, EvaluationDataset) else goldens)
    if not listed:
        raise InvalidDataError("There is no golden.", fix="Give at least one: goldens=[Golden(input=…)].")
    return [checked_golden(golden) for golden in listed], dataset


def checked_golden(golden: Any) -> Golden:
    """Return a golden that an app can be asked, checked.

    Raises:
        InvalidDataError: it is no single-turn golden, or was edited into none.
    """
    if not isinstance(golden, Golden):
        fix = "Give goldens with an input: Golden(input=…)."
        if isinstance(golden, ConversationalGolden):
            fix += " Of a conversation make a test case, and judge that: golden.to_test_case(turns)."
        elif isinstance(golden, LLMTestCase | ConversationalTestCase):
            fix += " What was answered already is judged without the app: evaluate(test_cases, metrics)."
        raise InvalidDataError(
            f"observed_callback answers a Golden, and got {a_class(type(golden))}.", fix=fix
        )
    golden.check()
    return golden


def sampled(members: Sequence[Member], options: RunOptions) -> list[Any]:
    """Return the test cases or goldens that a run with these options judges, before an app is called for any.

    Raises:
        InvalidOptionError: `max_test_items` chooses none.
    """
    most = options.max_test_items
    if most is None or most >= len(members):
        return list(members)
    asked = (PromptWithContext(make_prompt(member)) for member in members)
    items = (TestItem(prompt, id=item_id) for prompt, item_id in zip(asked, item_ids(members), strict=True))
    chosen = sample(numbered(items, Ids("evaluate"), "evaluate"), most, options.seed)
    return [members[item.index] for item in chosen]


# --- hyperparameters: what the app was set to (model, prompt template, chunk size) -----------------------

_logged: dict[str, Any] = {}
"""Hyperparameters logged by a test file. Every later run of this process records them."""


@overload
def log_hyperparameters(function: F) -> F: ...
@overload
def log_hyperparameters(**hyperparameters: Any) -> Callable[[F], F]: ...
def log_hyperparameters(function: Callable[[], Any] | None = None, **hyperparameters: Any) -> Any:
    """Record hyperparameters: those that a function returns, and those that are given to the decorator.

        @log_hyperparameters(model="gpt-4", prompt_template="…")
        def hyperparameters():
            return {"temperature": 1, "chunk size": 500}

    The function is called once, at its definition, so that a mistake in it shows there.

    Args:
        function: returns a dict, which may be empty; the decorated function, if there are no parentheses.
        hyperparameters: more of them by name (model, prompt_template); the function's values replace them.

    Raises:
        DefinitionError: what is decorated is not a function.
        InvalidDataError: the function returned no dict, or something that JSON would change.
    """

    def decorated(target: Callable[[], Any]) -> Callable[[], Any]:
        if not callable(target):
            raise DefinitionError(
                f"@log_hyperparameters got {a_thing(target)}, not a function.",
                fix="Decorate a function that returns a dict, or {} where there is nothing to add.",
            )
        if inspect.iscoroutinefunction(target):
            raise DefinitionError(
                "@log_hyperparameters got an async function, and nothing waits for it.",
                fix="Write def, without async.",
            )
        _logged.update({**_checked(hyperparameters), **_checked(target())})
        return target

    return decorated if function is None else decorated(function)


def _checked(hyperparameters: Any) -> dict[str, Any]:
    """Validate hyperparameters for a record.

    Raises:
        InvalidDataError: they are no mapping, or JSON would change them.
    """
    if not isinstance(hyperparameters, Mapping):
        raise InvalidDataError(
            f"Hyperparameters are {a_thing(hyperparameters)}, not a dict.",
            fix='Return a dict: {"temperature": 0.2}, or {} where there is nothing to add.',
        )
    made: dict[str, Any] = check_exact(dict(hyperparameters), "hyperparameters")
    return made


def logged_hyperparameters(others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the hyperparameters logged in this process, overridden by others."""
    return {**_logged, **_checked(others or {})}


def forget_hyperparameters() -> None:
    """Forget what was logged: for several experiments in one process, and between tests."""
    _logged.clear()

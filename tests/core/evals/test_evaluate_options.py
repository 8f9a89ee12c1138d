"""The options of `evaluate`, checked when they are given, and arguments that there are not."""

import inspect

import pytest

from modelgauge.errors import ArgumentError, InvalidOptionError
from modelgauge.evals import (
    AsyncConfig,
    CacheConfig,
    DisplayConfig,
    ErrorConfig,
    EvaluationDataset,
    Golden,
    LLMTestCase,
    evaluate,
)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("pause", [0.5, 7, 45, 90, 3600])
def test_a_pause_between_questions_is_kept_exactly(pause):
    config = AsyncConfig(throttle_value=pause)
    assert 60 / config.options()["requests_per_minute"] == pytest.approx(pause)
    right = LLMTestCase("a", "b", expected_output="b")
    assert evaluate([right], ["exact_match"], async_config=config, print_results=False).success


@pytest.mark.parametrize(
    "option",
    ["run_async", "show_indicator", "print_results", "use_cache", "ignore_errors", "skip_on_missing_params"],
)
def test_what_only_looks_like_no_is_refused(option):
    with pytest.raises(InvalidOptionError, match=rf"{option} is 'no'\. Give True or False"):
        evaluate([LLMTestCase("a", "b")], ["exact_match"], **{option: "no"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: DisplayConfig(display_option="all"),
            "DisplayConfig: there is no argument 'display_option'.",
        ),
        (lambda: ErrorConfig(ignore_error=True), "ErrorConfig: there is no argument 'ignore_error'."),
        (lambda: CacheConfig(cache=False), "CacheConfig: there is no argument 'cache'."),
        (lambda: AsyncConfig(max_concurrency=3), "AsyncConfig: there is no argument 'max_concurrency'."),
        (lambda: AsyncConfig(True, 1, 0, 3), "AsyncConfig: too many positional arguments."),
        (lambda: AsyncConfig(True, run_async=True), "AsyncConfig: multiple values for argument 'run_async'."),
        (lambda: EvaluationDataset(golden=[]), "EvaluationDataset: there is no argument 'golden'."),
        (lambda: EvaluationDataset([], []), "EvaluationDataset: too many positional arguments."),
    ],
)
def test_an_argument_that_there_is_not_is_told_with_the_right_ones(make, message):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert caught.value.problem == message
    assert "The arguments are: " in caught.value.fix


@pytest.mark.parametrize(
    ("make", "right"),
    [
        (lambda: DisplayConfig(display_option="all"), "display"),
        (lambda: ErrorConfig(ignore_error=True), "ignore_errors"),
        (lambda: CacheConfig(cache=False), "use_cache"),
        (lambda: AsyncConfig(max_concurrency=3), "max_concurrent"),
        (lambda: EvaluationDataset(golden=[]), "goldens"),
    ],
)
def test_the_right_argument_is_suggested(make, right):
    with pytest.raises(ArgumentError, match=f"Did you mean '{right}'"):
        make()


def test_other_type_errors_of_a_constructor_are_its_own():
    with pytest.raises(TypeError, match="Give a list") as caught:
        EvaluationDataset(Golden("a"))
    assert not isinstance(caught.value, ArgumentError)


def test_the_signatures_are_those_that_are_written():
    assert list(inspect.signature(DisplayConfig).parameters) == ["show_indicator", "print_results", "display"]
    assert list(inspect.signature(EvaluationDataset).parameters) == ["goldens", "test_cases", "name"]

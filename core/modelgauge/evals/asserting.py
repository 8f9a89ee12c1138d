"""`assert_test`: one test case, or one use of an observed app, in a test of pytest or anywhere else."""

import sys
from collections.abc import Callable, Collection, Sequence, Sized
from itertools import zip_longest
from types import TracebackType
from typing import Any, TypeAlias, cast

from modelgauge.api import Runner
from modelgauge.config.options import YES_NO
from modelgauge.data.test_cases import ConversationalGolden, Golden
from modelgauge.engine.bookkeeping.failures import as_exception
from modelgauge.errors import CallError, ModelGaugeError
from modelgauge.evals import pytest_plugin
from modelgauge.evals.apps import AppMetrics, answered, check_app
from modelgauge.evals.evaluation import judged, raise_first_of_app
from modelgauge.evals.given_test import GivenTest
from modelgauge.evals.inputs import (
    AnyMetric,
    checked_case,
    checked_golden,
    logged_hyperparameters,
    make_metrics,
)
from modelgauge.evals.results import TestResult, why_unjudged
from modelgauge.evals.session_options import TestRunOptions
from modelgauge.metrics.base import Metric
from modelgauge.metrics.judged_cases import TestCase, called
from modelgauge.observe import tracing

Asked: TypeAlias = tuple[TestCase | None, Golden | None, Callable[[str], Any] | None]
"""A test case; or a golden and the app that answers it."""


def assert_test(
    test_case: TestCase | Golden | None = None,
    metrics: AnyMetric | Sequence[AnyMetric] | Callable[[str], Any] | None = None,
    *,
    golden: Golden | None = None,
    observed_callback: Callable[[str], Any] | None = None,
    run_async: bool = True,
    display_progress: bool = True,
) -> None:
    """Raise unless a test case passes all its metrics. Give `test_case`, or `golden` and `observed_callback`.

    `assert_test(golden, app)` means `assert_test(golden=golden, observed_callback=app)`.

    Under pytest all cases of a session end in one run record, those of xdist's workers too.

    Args:
        test_case: what went in and came out of the app.
        metrics: objects or uids; at least one for a test case; for an app, further metrics that judge its answer as a
            whole.
        golden: what to ask the app, and the references for a good answer.
        observed_callback: the app, decorated with `@observe`, plain or async; it gets the golden's input. An async
            function may take as long as a call of a SUT (MODELGAUGE_TIMEOUT); a plain function has no time limit. Its
            metrics are those of `@observe(metrics=[…])`; if there are no metrics, answer relevancy judges.
        run_async: False judges by one metric after the other.
        display_progress: show a progress bar, on a terminal, outside of pytest.

    Raises:
        AssertionError: a metric failed; the message names each failing metric with its reason.
        ValueError: the arguments fit neither of the two modes.
        MissingParameterError: the case lacks what a metric needs; with `modelgauge test run --ignore-errors` that is an
            AssertionError too.
        CallError: a metric gave no score, since its judge failed.
        Exception: what the app raised; the spans until then are in the record of the run.
    """
    __tracebackhide__ = True
    session = begun = None
    try:
        session = pytest_plugin.session()
        begun = None if session is None else session.begin()
        asked, chosen_metrics = _by_name(test_case, metrics, golden, observed_callback)
        _check_mode(chosen_metrics, *asked)
        chosen = TestRunOptions() if session is None else session.options
        YES_NO.check("run_async", run_async)
        options: dict[str, Any] = {} if run_async else {"concurrency": 1}
        if session is None or begun is None:
            runner = Runner(hyperparameters=logged_hyperparameters(), progress=display_progress, **options)
            alone = judged(_test(asked, chosen_metrics, chosen, runner), runner)
            result, shown_by = alone.test_results[0], alone.shown_by
        else:
            runner, resolver = session.runner(begun, options)
            test = _test(asked, chosen_metrics, chosen, runner)
            result, shown_by = session.judge(begun, test, runner, resolver), ""
    except BaseException as error:  # an app may raise anything
        if session is not None and begun is not None:
            session.ended_early(begun, test_case if test_case is not None else golden, error)
        if not isinstance(error, Exception):
            raise
        raise error.with_traceback(_of_users(error))  # noqa: B904  it is the same error, with causes of its own
    _assert_passed(result, chosen, shown_by)


def _by_name(
    given: Any, metrics: Any, golden: Golden | None, callback: Callable[[str], Any] | None
) -> tuple[Asked, Any]:
    """Distinguish a golden and an app, given by position, from a test case and its metrics."""
    if isinstance(given, Golden | ConversationalGolden) and golden is None:
        if callback is None and callable(metrics) and not isinstance(metrics, Metric | type):
            callback, metrics = metrics, None
        if callback is not None:
            return (None, cast("Golden", given), callback), metrics
    return (cast("TestCase", given), golden, callback), metrics


def _test(
    asked: Asked,
    metrics: AnyMetric | Sequence[AnyMetric] | None,
    chosen: TestRunOptions,
    runner: Runner,
) -> GivenTest:
    """Return the test for the arguments of one of the two modes. In one of them, this calls the app."""
    test_case, golden, callback = asked
    judging = AppMetrics(runner, make_metrics(metrics, runner), skip=chosen.skip_on_missing_params)
    members: list[Any] = [checked_case(test_case) if callback is None else checked_golden(golden)]
    return GivenTest(
        "assert_test",
        *answered(members, callback, judging, at_once=None),
        skip_on_missing_params=chosen.skip_on_missing_params,
        fail_one_by_one=chosen.ignore_errors,
    )


def _left_by(error: Exception) -> BaseException | None:
    """Return the exception that ended the test inside the app, if it is not an `Exception` (pytest.fail, sys.exit)."""
    cause = error.__cause__
    if cause is None or isinstance(cause, Exception) or str(error) != str(as_exception(cause)):
        return None
    return cause


def _of_users(error: BaseException) -> TracebackType | None:
    """Remove the library's frames from the traceback of an error, because they do not help users.

    Another error than ours that happened within the library is a defect of it: then all frames stay.
    """
    kept = _steps(error, _ON_THE_WAY)
    if not kept and not isinstance(error, ModelGaugeError) and not _was_called_wrongly(error):
        return error.__traceback__
    if isinstance(error, ModelGaugeError):
        _cut_causes(error)
    for step, following in zip_longest(kept, kept[1:]):
        step.tb_next = following
    return kept[0] if kept else None


def _was_called_wrongly(error: BaseException) -> bool:
    """Return whether an observed function was called with wrong arguments, so that its code never ran."""
    names = [step.tb_frame.f_globals.get("__name__") for step in _steps(error, ())]
    return isinstance(error, TypeError) and names[-1:] == [tracing.__name__]


def _steps(error: BaseException, left_out: Collection[str]) -> list[TracebackType]:
    """Yield the frames of a traceback, except those of some packages."""
    kept: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in left_out:
            kept.append(step)
        step = step.tb_next
    return kept


def _cut_causes(error: BaseException) -> None:
    """Remove the tracebacks of the causes of our errors in which no code of users had a part."""
    cause, nothing = error.__cause__, {*_ON_THE_WAY, *sys.stdlib_module_names}
    known: list[BaseException] = []
    while cause is not None and cause not in known:
        known.append(cause)
        if not _steps(cause, nothing):
            cause.with_traceback(None)
        cause = cause.__cause__ or cause.__context__


_ON_THE_WAY = ("modelgauge", "asyncio", "concurrent", "threading")
"""Packages between a user's test and a user's app."""


def _check_mode(
    metrics: Any, test_case: Any, golden: Golden | None, callback: Callable[[str], Any] | None
) -> None:
    """Refuse arguments that are not those of one mode; an empty list of metrics is none.

    Raises:
        ValueError: they are not.
    """
    __tracebackhide__ = True
    has_case = test_case is not None
    has_metrics = metrics is not None and not (isinstance(metrics, Sized) and len(metrics) == 0)
    has_golden, has_callback = golden is not None, callback is not None
    if has_golden and has_callback:
        check_app(callback)
        if has_case:
            raise ValueError(
                "You cannot provide both ('golden' + 'observed_callback') and 'test_case'. Choose one mode."
            )
    elif has_golden or has_callback:
        raise ValueError("Both 'golden' and 'observed_callback' must be provided together.")
    elif has_case != has_metrics:
        raise ValueError("Both 'test_case' and 'metrics' must be provided together.")
    elif not has_case:
        raise ValueError(
            "You must provide either ('golden' + 'observed_callback') or ('test_case' + 'metrics')."
        )


def _assert_passed(result: TestResult, options: TestRunOptions, shown_by: str) -> None:
    """Raise what did not pass; what could not be judged is an error, unless errors are ignored.

    Args:
        one: what became of the case.
        options: of the session.
        shown_by: the command that shows the run; empty in a session, whose run is named at its end.
    """
    __tracebackhide__ = True
    named = "" if shown_by else " (RUN is named at the end of this session)"
    see = f"{shown_by or 'modelgauge show RUN'} --failures{named}"
    if result.raised is not None:
        left_by = _left_by(result.raised)
        if left_by is not None:
            raise left_by.with_traceback(_of_users(left_by))
        # Not assigned, which some classes of exceptions refuse.
        result.raised.with_traceback(_of_users(result.raised))
        raise_first_of_app([result], see)
    if result.error is not None and not (options.ignore_errors and result.metrics_data):
        raise CallError(
            f"The test case {called(result.test_case)} could not be judged: {why_unjudged(result)}",
            fix=f"See the traceback: {see}. To let it be a failed assertion instead: "
            "modelgauge test run --ignore-errors",
        )
    if result.failures:
        raise AssertionError("\n".join(result.failures))

"""`evaluate`: judge test cases by metrics, as one run of the engine, and return the results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from modelgauge.api import Runner
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.records import TestRecord
from modelgauge.datasets.differences import link_to
from modelgauge.engine.bookkeeping.failures import add_note
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import CallError, RunStoppedError
from modelgauge.evals.apps import AppMetrics, answered
from modelgauge.evals.display import print_result
from modelgauge.evals.evaluate_options import AsyncConfig, CacheConfig, Configs, DisplayConfig, ErrorConfig
from modelgauge.evals.given_test import GivenTest
from modelgauge.evals.inputs import (
    AnyMetric,
    Goldens,
    TestCases,
    given_members,
    logged_hyperparameters,
    make_metrics,
    sampled,
)
from modelgauge.evals.results import EvaluationResult, TestResult, test_result, why_unjudged
from modelgauge.metrics.judged_cases import called
from modelgauge.wording.phrases import counted


def evaluate(
    test_cases: TestCases | None = None,
    metrics: AnyMetric | Sequence[AnyMetric] | None = None,
    *,
    goldens: Goldens | None = None,
    observed_callback: Callable[[str], Any] | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    identifier: str | None = None,
    async_config: AsyncConfig | None = None,
    display_config: DisplayConfig | None = None,
    cache_config: CacheConfig | None = None,
    error_config: ErrorConfig | None = None,
    **options: Any,
) -> EvaluationResult:
    """Judge test cases; or run an observed app on goldens, and judge what it did. Blocks, also in a notebook.

    The run is recorded like any other: `modelgauge show` shows it again. A case passes only if all its
    metrics pass.

    Args:
        test_cases: a test case, several, or a data set with test cases.
        metrics: objects or uids, at least one.
        goldens: a golden, several, or a data set with goldens; with `observed_callback`, instead of test cases.
        observed_callback: the app, decorated with `@observe`, plain or async. It gets each golden's input, up to 20 at
            once unless `max_concurrent` says otherwise; a plain app runs in a thread. A use that outlives
            `attempt_timeout` fails its golden. The metrics are those of `@observe(metrics=[…])`, and `metrics` for each
            case as a whole; if there are none, the default judge is looked up after the first golden. Answers are kept
            once all goldens are answered; `modelgauge run-test --dataset …` keeps them after a kill too.
        hyperparameters: the settings of the app; they replace those of `log_hyperparameters`.
        identifier: your name for this run.
        async_config: how much is done at once.
        display_config: what is shown.
        cache_config: what is kept.
        error_config: what becomes of cases that cannot be judged.
        options: single options of these four (`ignore_errors=True`), and those of `Runner` (`data_dir=…`). With
            `max_test_items` only as many cases or goldens are judged; the result says how many were left out.

    Raises:
        InvalidDataError: there is no test case or no metric, or every metric is skipped for a case.
        InvalidOptionError: an option does not exist, or has no such value.
        MissingParameterError: a case lacks what a metric needs; where errors are ignored, it only fails.
        CallError: cases could not be judged, unless errors are ignored; the run is recorded all the same.
        Exception: what the app raised; all goldens were asked, and what it answered was judged.
    """
    configs, more = Configs.of((async_config, display_config, cache_config, error_config), options)
    logged, errors = logged_hyperparameters(hyperparameters), configs.error_config
    runner = Runner(hyperparameters=logged, identifier=identifier, **{**configs.runner_options(), **more})
    judging = AppMetrics(runner, make_metrics(metrics, runner), skip=errors.skip_on_missing_params)
    members, dataset = given_members(test_cases, goldens, observed_callback)
    chosen = sampled(members, runner.options)
    link = None if dataset is None else link_to(dataset, chosen)  # before the app, which may edit goldens
    test = GivenTest(
        identifier or "evaluate",
        *answered(chosen, observed_callback, judging, configs.async_config.options().get("concurrency", 20)),
        left_out=len(members) - len(chosen),
        link=link,
        skip_on_missing_params=errors.skip_on_missing_params,
        fail_one_by_one=errors.ignore_errors,
    )
    return _report(judged(test, runner), runner, configs)


def _report(result: EvaluationResult, runner: Runner, configs: Configs) -> EvaluationResult:
    """Print a result and raise its errors, as the configs say."""
    if configs.display_config.print_results:
        print_result(result, runner.options.runs / result.run_id, configs.display_config.display)
    if not configs.error_config.ignore_errors:
        raise_unjudged(result)
    return result


def judged(test: GivenTest, runner: Runner) -> EvaluationResult:
    """Judge answers in a run of their own.

    Args:
        test: holds and judges them.
        runner: runs it.

    Raises:
        UsageError: a judge is unknown, or lacks a secret.
        RunStoppedError: the run ended early.
    """
    items, resolver = _CaseResults(test), runner.resolver()
    work = test.work(resolver.judges)
    record = blocking(lambda: runner.do([work], resolver, items))[0]
    if record.failure is not None:
        uncached = set(record.notes) - set(test.record_notes)  # notes about judges that cannot be cached
        kept = runner.options.caching and not uncached
        raise RunStoppedError(
            f"The run {record.run_id} stopped early: {record.failure.message}",
            fix="What judges answered is in the cache, and not paid again."
            if kept
            else "What judges answered is paid again where it could not be cached.",
        )
    shown_by = RunFolder(runner.options.runs / record.run_id).command("show")
    results = items.results()
    if len(results) != len(test.answered):  # a case without a result must not pass
        raise RunStoppedError(
            f"The run {record.run_id} has results of {len(results):,} of {counted(len(test.answered), 'test case')}.",
            fix=f"See why: {shown_by}",
        )
    return EvaluationResult(results, record, shown_by, test.left_out)


class _CaseResults:
    """Observes a run, and keeps the result of each test case."""

    def __init__(self, test: GivenTest) -> None:
        self._test = test
        self._results: dict[int, TestResult] = {}

    def results(self) -> tuple[TestResult, ...]:
        """Return the results in the order of the cases."""
        return tuple(result for _, result in sorted(self._results.items()))

    def run_started(self, run: Mapping[str, Any]) -> None:
        """Do nothing: the result is made of the items."""

    def item_finished(self, run_id: str, record: ItemRecord) -> None:
        del run_id
        self._results[record.index] = test_result(self._test, record)

    def run_finished(self, record: TestRecord) -> None:
        """Do nothing: the result is made of the items."""


def raise_first_of_app(results: Iterable[TestResult], see: str) -> None:
    """Raise what the app raised instead of an answer, in the first case in which it did.

    Args:
        results: of the cases.
        see: the command that shows the record of the case.

    Raises:
        Exception: there is such a case.
    """
    __tracebackhide__ = True
    for error in [result.raised for result in results if result.raised is not None]:
        add_note(error, f"What the app did until then stands in the record of the run: {see}")
        raise error


def raise_unjudged(result: EvaluationResult) -> None:
    """Raise where cases could not be judged.

    Raises:
        CallError: some could not; it says how many, why the first, and where the record is.
        Exception: what the app raised instead of an answer comes first.
    """
    raise_first_of_app(result.test_results, f"{result.shown_by} --failures")
    unjudged = [test_result for test_result in result.test_results if test_result.error is not None]
    if unjudged:
        first = unjudged[0]
        raise CallError(
            f"{len(unjudged):,} of {counted(len(result), 'test case')} could not be judged. "
            f"The first, {called(first.test_case)}: {why_unjudged(first)}",
            fix=f"See `{result.shown_by}`; with ignore_errors=True the others are returned.",
        )

"""Using an observed app on goldens: each use becomes a test case, with its trace and judged components.

An app has the deadlines of a run, as a SUT has; any exception that it raises is a failure of its golden.
"""

import asyncio
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from typing import Any, TypeAlias

from modelgauge.api import Runner
from modelgauge.config.run_options import RunOptions
from modelgauge.data.items import PromptWithContext
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.test_cases import Golden, LLMTestCase
from modelgauge.datasets.dataset_test import as_asked, make_prompt
from modelgauge.datasets.judged_test import keyed
from modelgauge.engine.bookkeeping.failures import add_note, as_exception, is_from_outside
from modelgauge.engine.calls.ask_sut import split_off
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.loop.deadlines import Deadlines, call_timed_out
from modelgauge.engine.loop.stalls import watching_the_loop
from modelgauge.engine.loop.threads import CallPool
from modelgauge.engine.loop.together import end_task
from modelgauge.engine.observers import Progress, show_progress
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import CallTimeoutError, ModelGaugeError
from modelgauge.evals.given_test import AnsweredCase, Component
from modelgauge.evals.inputs import make_metrics
from modelgauge.metrics.base import Metric
from modelgauge.metrics.judged_cases import NO_OUTPUT, Origin, case_of, check_case
from modelgauge.observe.readable import is_stream, shown
from modelgauge.observe.spans import Observation, OpenSpan, OpenTrace, Use, as_text, get_observation

App: TypeAlias = Callable[[str], Any]

_OF_ANOTHER_LOOP = (
    "different loop",
    "different event loop",
    "Event loop is closed",
    "await wasn't used with future",  # what asyncio says when the same future is awaited once more
)
_LOOPS = (
    "An app is used in an event loop of modelgauge's own. What belongs to the loop in which it was made (a client, a "
    "pool, a lock) is made within the app, when it is first called, and not before it is evaluated."
)

DEFAULT_METRIC = "answer_relevancy"
"""The metric of an app that names none."""


def check_app(callback: object) -> Observation:
    """Check that an app can be called and is observed, so that its calls become spans.

    Raises:
        ValueError: it cannot be called, or is not observed.
    """
    __tracebackhide__ = True
    if not callable(callback):
        raise ValueError("observed_callback must be callable")  # noqa: TRY004  the promise is a ValueError
    observation = get_observation(callback)
    if observation is None:
        raise ValueError(
            "The provided 'observed_callback' must be decorated with '@observe' from modelgauge.evals."
        )
    return observation


# --- the use of an app ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AppAnswer:
    """The trace of one use of an app, and what the app returned or raised."""

    trace: OpenTrace
    value: Any
    error: Exception | None = None


Check: TypeAlias = Callable[[AppAnswer], None]


class AppCalls:
    """Calls an app, under the deadlines of a run.

    Args:
        app: decorated with `@observe`.
        observation: of its calls.
        options: of the run: deadlines, and whether progress is shown.
        check: raises where the app must not be used any more.
    """

    def __init__(self, app: App, observation: Observation, options: RunOptions, check: Check) -> None:
        self._app, self._observation, self._options, self._check = app, observation, options, check
        self._seconds = min(options.attempt_timeout, options.call_timeout)

    def on(self, questions: Sequence[str], at_once: int) -> list[AppAnswer]:
        """Use the app once for each question; blocks, also inside a running event loop.

        Raises:
            ModelGaugeError: the check did; what was under way has ended, and nothing more began.
        """
        return blocking(lambda: self._use_app(questions, at_once)) if questions else []

    async def _use_app(self, questions: Sequence[str], at_once: int) -> list[AppAnswer]:
        places = asyncio.Semaphore(at_once)
        refused: list[ModelGaugeError] = []
        done: dict[int, AppAnswer] = {}
        pool, deadlines = CallPool(), Deadlines()

        async def use(number: int, asked: str) -> None:
            async with places:
                if refused:
                    return
                done[number] = await self._use(asked, pool, deadlines)
                try:
                    self._check(done[number])
                except ModelGaugeError as error:
                    refused.append(error)

        def progress() -> Progress:
            failed = sum(answer.error is not None for answer in done.values())
            oldest = max(pool.oldest or 0.0, deadlines.oldest or 0.0)
            return Progress(len(done), len(questions), failed, oldest=oldest)

        async with AsyncExitStack() as stack:
            if self._options.progress:
                stack.push_async_callback(end_task, asyncio.create_task(show_progress(progress)))
            stack.callback(pool.close)
            stack.callback(deadlines.close)
            stack.enter_context(watching_the_loop())
            await asyncio.gather(*map(use, range(len(questions)), questions))
        if refused:
            raise refused[0]
        return [used for _, used in sorted(done.items())]

    async def _use(self, asked: str, pool: CallPool, deadlines: Deadlines) -> AppAnswer:
        """Use the app once; plain code runs in a thread, where it may block, and is left there when its time is up."""
        use = self._begun(asked)
        try:
            with use:
                value = await pool.run(lambda question: _collected(self._app(question)), asked, self._seconds)
                if _goes_on(value):
                    value = await deadlines.within(self._seconds, _awaited(value))
        except Exception as error:  # noqa: BLE001  the author's; it stands in the record
            return self._failed(use, error)
        return AppAnswer(use.ended(value), value)

    def here(self, asked: str) -> AppAnswer:
        """Use the app once; plain code runs in this thread, with its debugger and fixtures, and has no deadline.

        Raises:
            ModelGaugeError: the check did.
        """
        use = self._begun(asked)
        try:
            with use:
                value = _collected(self._app(asked))
                if _goes_on(value):
                    value = blocking(lambda: _within(self._seconds, value))
            used = AppAnswer(use.ended(value), value)
        except BaseException as error:  # the author's; pytest.fail and sys.exit too
            if is_from_outside(error) or is_skip(error):
                raise
            used = self._failed(use, as_exception(error))
        self._check(used)
        return used

    def _begun(self, asked: str) -> Use:
        return Use(self._observation.name, {"input": asked}, self._observation)

    def _failed(self, use: Use, error: Exception) -> AppAnswer:
        """Return the trace of the app up to its failure, with advice if asyncio only names a wrong loop."""
        if isinstance(error, CallTimeoutError) and self._options.call_timeout < self._options.attempt_timeout:
            error = call_timed_out(self._options.call_timeout)
        if isinstance(error, RuntimeError) and any(part in str(error) for part in _OF_ANOTHER_LOOP):
            add_note(error, _LOOPS)
        return AppAnswer(use.ended(None, error), None, error)


def is_skip(error: BaseException) -> bool:
    """Return whether an error skips the test of pytest that raised it."""
    pytest = sys.modules.get("pytest")
    return pytest is not None and isinstance(error, pytest.skip.Exception)


async def _within(seconds: float, value: Any) -> Any:
    with closing(Deadlines()) as deadlines:
        return await deadlines.within(seconds, _awaited(value))


async def _awaited(value: Any) -> Any:
    answer = await value if inspect.isawaitable(value) else value
    if _is_async_stream(answer):
        return [part async for part in answer]
    return _collected(answer)


def _collected(value: Any) -> Any:
    return list(value) if is_stream(value) else value


def _goes_on(value: Any) -> bool:
    return inspect.isawaitable(value) or _is_async_stream(value)


def _is_async_stream(value: Any) -> bool:
    return hasattr(type(value), "__anext__")


# --- the answers of an app, to be judged ---------------------------------------------------------------------


class AppMetrics:
    """The metrics of an app's answers, as objects with judges.

    Args:
        runner: makes metrics and judges of their names.
        metrics: judge each answer as a whole, in addition to those of the app.
        skip: leave out metrics that lack a parameter.
    """

    def __init__(self, runner: Runner, metrics: Sequence[Metric] = (), *, skip: bool) -> None:
        self.options, self.metrics, self.skip = runner.options, metrics, skip
        self._runner, self._resolver = runner, runner.resolver()
        self._made: dict[Any, Metric] = {}

    def objects(self, metrics: Iterable[Any]) -> list[Metric]:
        """Make metrics of what spans name: one object for each name.

        Raises:
            InvalidDataError: an object is not a metric.
            UsageError: a metric has no judge.
        """
        named = {metric if isinstance(metric, str) else id(metric): metric for metric in metrics}
        for key, metric in named.items():
            if key not in self._made:
                (self._made[key],) = made = make_metrics([metric], self._runner)
                keyed(made)
                self._resolver.judges(self._made[key])
        return [self._made[key] for key in named]

    def check(self, used: AppAnswer) -> None:
        """Refuse metrics of the app that cannot judge, so that the app is not used again."""
        if used.error is None:
            self.objects(_list_metrics(used))


def answered(
    members: Sequence[Any], callback: App | None, judging: AppMetrics, at_once: int | None
) -> tuple[list[AnsweredCase], list[Metric]]:
    """Return given test cases as they are, or run an app on goldens; blocks, also inside a running event loop.

    Args:
        members: test cases; for an app, goldens of a single turn.
        callback: the app, decorated with `@observe`; None for test cases.
        judging: how it is going to be judged; what can be known of that is checked before the app is used.
        at_once: most uses of the app at once; None for one after the other, plain code in this thread.

    Returns:
        What was answered, or what the app raised instead, and the metrics that judge each answer as a whole.

    Raises:
        ValueError: the callback is not callable, or not observed.
        UsageError: there is no judge, or none of that name.
        RunStoppedError: what it answers could not be recorded.
    """
    if callback is None:
        return [AnsweredCase(case) for case in members], list(judging.metrics)
    observation, objects = check_app(callback), judging.objects
    app = AppCalls(callback, observation, judging.options, judging.check)

    def used(goldens: Sequence[Golden]) -> list[AppAnswer]:
        RunFolder.create(judging.options.runs).forget_if_empty()  # else its answers would be lost
        questions = [golden.input for golden in goldens]
        if at_once is None:
            return [app.here(question) for question in questions]
        return app.on(questions, at_once)

    known = [*objects(judging.metrics), *objects(observation.metrics)]
    first: list[AppAnswer] = []
    if known:
        keyed(known)
    else:  # the metrics of functions that the app calls are known once it was used
        first = used(members[:1])
        if any(_is_answer_without_metrics(answer, observation) for answer in first):
            known = objects([DEFAULT_METRIC])
    for metric in known if not judging.skip else ():  # what else the metric needs the app may say
        check_case(LLMTestCase(""), metric.test_case_type, (), metric.name, Origin("app"))
    uses = first + used(members[len(first) :])
    answers = [answer for answer in uses if answer.error is None]
    whole = objects(metric for answer in answers for metric in answer.trace.root.metrics)
    if not judging.metrics and answers and not any(_list_metrics(answer) for answer in answers):
        whole = objects([DEFAULT_METRIC])
    cases = [_case_with_answer(golden, use, judging) for golden, use in zip(members, uses, strict=True)]
    return cases, [*judging.metrics, *whole]


def _list_metrics(used: AppAnswer) -> list[Any]:
    return [metric for span in used.trace.spans for metric in span.metrics]


def _is_answer_without_metrics(used: AppAnswer, app: Observation) -> bool:
    """Return whether the app itself answered, not a wrapper, without calling a function that has metrics."""
    is_own = any(span.of is app for span in used.trace.spans)
    return used.error is None and is_own and not _list_metrics(used)


def _case_with_answer(golden: Golden, used: AppAnswer, judging: AppMetrics) -> AnsweredCase:
    """Return the golden's input and references with the app's answer, without its reasoning."""
    trace, golden = used.trace, as_asked(golden)
    if used.error is not None:
        return AnsweredCase(golden.to_test_case(), trace.frozen(), error=used.error)
    parts = _components(trace, judging)
    given = trace.given_case()
    if given is not None:
        return AnsweredCase(given, trace.frozen(), parts)
    completion = used.value
    if not isinstance(completion, SUTCompletion):
        output = _text(trace.fields.get("output", completion))
        completion = SUTCompletion(output or "", metadata=NO_OUTPUT if output is None else {})
    completion = split_off(completion)
    asked = PromptWithContext(make_prompt(golden), context=golden)
    case = case_of(asked, completion).replaced(**trace.all_case_fields())
    return AnsweredCase(case, trace.frozen(), parts, completion=completion)


def _text(value: Any) -> str | None:
    """Convert an app's return value to text; the parts of a stream are joined."""
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return "".join(value)
    return as_text(shown(value))


def _components(trace: OpenTrace, judging: AppMetrics) -> tuple[Component, ...]:
    """Return the spans with metrics of their own, in order, numbered if names repeat."""
    found: list[Component] = []
    times = Counter[str]()
    for span in trace.spans[1:]:
        if span.metrics and not _was_called_again(span):
            name = span.fields["name"]
            times[name] += 1
            name = name if times[name] == 1 else f"{name}~{times[name]}"
            found.append(Component(name, span.case(), tuple(judging.objects(span.metrics))))
    return tuple(found)


def _was_called_again(span: OpenSpan) -> bool:
    """Return whether a call failed, and its caller called again with the same input and got an answer."""
    return span.error is not None and any(
        (other.of, other.parent, other.error) == (span.of, span.parent, None)
        and other.fields["input"] == span.fields["input"]
        for other in span.trace.spans[span.trace.spans.index(span) :]
    )

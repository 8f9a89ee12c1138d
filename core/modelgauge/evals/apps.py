"""Running an observed app on goldens: each use becomes a test case, with its trace and judged components.

How it is used is in `app_uses.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from modelgauge.config.options import RunOptions
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.shown import shown
from modelgauge.data.test_cases import (
    IN_METADATA,
    ConversationalGolden,
    ConversationalTestCase,
    Golden,
    LLMTestCase,
)
from modelgauge.datasets.dataset_test import as_asked, keyed
from modelgauge.engine.calls.asking import split_off
from modelgauge.engine.files.journal import RunFolder
from modelgauge.errors import InvalidDataError
from modelgauge.evals.app_uses import App, Used, Uses
from modelgauge.evals.recorded_answers import AnsweredCase, Component
from modelgauge.metrics.base import Metric
from modelgauge.metrics.cases import Origin, check_case
from modelgauge.observe.spans import OpenSpan, OpenTrace, as_text, is_observed, metrics_of_observed
from modelgauge.wording.articles import a_class

Resolved: TypeAlias = Callable[[Sequence[Any]], list[Metric]]

DEFAULT_METRIC = "answer_relevancy"
"""What judges an app that names no metric of its own."""


def check_app(callback: object) -> None:
    """Refuse what is no observed app.

    Raises:
        ValueError: it cannot be called, or is not observed.
    """
    __tracebackhide__ = True
    if not callable(callback):
        raise ValueError("observed_callback must be callable")  # noqa: TRY004  the promise is a ValueError
    if not is_observed(callback):
        raise ValueError(
            "The provided 'observed_callback' must be decorated with '@observe' from modelgauge.evals."
        )


@dataclass(frozen=True, slots=True)
class Judging:
    """How an app's answers are going to be judged.

    Args:
        resolved: makes objects of metrics that are named by uids.
        ready: raises where a metric's judge is not there.
        options: of the run: where its files go, how long the app may take for an answer.
        metrics: judge each answer as a whole, beside those of the app.
        skip: leave out metrics that lack a parameter.
    """

    resolved: Resolved
    ready: Callable[[Metric], object]
    options: RunOptions
    metrics: Sequence[Metric] = ()
    skip: bool = False


def answered_goldens(
    goldens: Sequence[Golden], callback: App, judging: Judging, *, at_once: int | None
) -> tuple[list[AnsweredCase], list[Metric]]:
    """Run an app on goldens; blocks, also inside a running event loop.

    Args:
        goldens: single-turn ones.
        callback: the app, decorated with `@observe`.
        judging: how it is going to be judged; what can be known of that is checked before the app is used.
        at_once: most uses of the app at once; None for one after the other, plain code in this thread.

    Returns:
        What was answered, or what the app raised instead, and the metrics that judge each answer as a whole.

    Raises:
        ValueError: the callback is not callable, or not observed.
        UsageError: there is no judge, or none of that name.
        RunStoppedError: what it answers could not be recorded.
    """
    check_app(callback)
    check_goldens(goldens)
    objects = _Objects(judging.resolved)
    used = Uses(callback, judging.options, _Checked(judging, objects), at_once)
    uses = _uses_before(goldens, used, judging, objects)
    uses += _recordable_uses(goldens[len(uses) :], used, judging)
    answers = [one for one in uses if one.error is None]
    whole = objects([metric for one in answers for metric in one.trace.root.metrics])
    parts = [_components(one.trace, objects) if one.error is None else () for one in uses]
    if not judging.metrics and answers and not whole and not any(parts):
        whole = objects([DEFAULT_METRIC])
    answered = [_answered(*one) for one in zip(goldens, uses, parts, strict=True)]
    return answered, [*judging.metrics, *whole]


def _uses_before(goldens: Sequence[Golden], used: Uses, judging: Judging, objects: "_Objects") -> list[Used]:
    """Refuse metrics that could judge nothing before the app is used for all goldens.

    Whether the functions that an app calls have metrics of their own shows when it is used: where nobody names any,
    it is used for the first golden alone.

    Raises:
        InvalidDataError: something among the metrics is none.
        MissingParameterError: a metric judges conversations.
        UsageError: a metric has no judge.
    """
    known = [*judging.metrics, *objects(metrics_of_observed(used.app))]
    if known:
        keyed(known)
    uses = [] if known else _recordable_uses(goldens[:1], used, judging)
    if any(
        one.called and one.error is None and not any(span.metrics for span in one.trace.spans) for one in uses
    ):
        known = objects([DEFAULT_METRIC])
    for metric in known:
        if not judging.skip:  # what else the metric needs the app may say
            check_case(LLMTestCase(""), metric.test_case_type, (), metric.name, Origin("app"))
        judging.ready(metric)
    return uses


def _recordable_uses(goldens: Sequence[Golden], used: Uses, judging: Judging) -> list[Used]:
    """Use the app, unless the folder of the run could not be made: its answers would be lost.

    Raises:
        RunStoppedError: the disk refuses.
    """
    RunFolder.create(judging.options.runs).forget_if_empty()
    return used.on([golden.input for golden in goldens])


def check_goldens(goldens: Sequence[object]) -> None:
    """Refuse what no app can be asked.

    Raises:
        InvalidDataError: something is no single-turn golden, or was edited into none.
    """
    for golden in goldens:
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


class _Objects:
    """Makes one object for each metric, however many spans name it, and gives it once."""

    def __init__(self, resolved: Resolved) -> None:
        self._resolved = resolved
        self._made: dict[Any, Metric] = {}

    def __call__(self, metrics: Sequence[Any]) -> list[Metric]:
        named = {metric if isinstance(metric, str) else id(metric): metric for metric in metrics}
        for key, metric in named.items():
            if key not in self._made:
                self._made[key] = self._resolved([metric])[0]
        return [self._made[key] for key in named]


class _Checked:
    """Refuses metrics that show in a use of the app and can judge nothing, so that it is not used any more."""

    def __init__(self, judging: Judging, objects: _Objects) -> None:
        self._judging, self._objects = judging, objects
        self._known: set[int] = set()

    def __call__(self, used: Used) -> None:
        found = self._objects([metric for span in used.trace.spans for metric in span.metrics])
        for metric in found if used.error is None else ():
            if id(metric) not in self._known:
                keyed([metric])
                self._judging.ready(metric)
                self._known.add(id(metric))


def _answered(golden: Golden, used: Used, components: tuple[Component, ...]) -> AnsweredCase:
    """The golden's input and references, and what the app answered and said; thoughts are no part of an answer."""
    trace, golden = used.trace, as_asked(golden)
    if used.error is not None:
        return AnsweredCase(golden.to_test_case(), trace.frozen(), components, used.error)
    given = trace.given_case()
    if given is not None:
        return AnsweredCase(given, trace.frozen(), components)
    completion, said = _said(used)
    case = golden.to_test_case(**said).replaced(actual_output=None if completion is None else completion.text)
    return AnsweredCase(case, trace.frozen(), components, completion=completion)


def _said(used: Used) -> tuple[SUTCompletion | None, dict[str, Any]]:
    """What the app answered, None where it was nothing, and what it said of the test case besides."""
    said, value = used.trace.said(), used.value
    if isinstance(value, SUTCompletion):
        runtime = {name: value.metadata[name] for name in IN_METADATA if name in value.metadata}
        tools = {} if value.tool_calls is None else {"tools_called": list(value.tool_calls)}
        return split_off(value), {**runtime, **tools, **said}
    output = _text(used.trace.fields.get("output", value))
    return None if output is None else split_off(SUTCompletion(output)), said


def _text(value: Any) -> str | None:
    """What an app returned, as text: what it streamed in one piece."""
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return "".join(value)
    return as_text(shown(value))


def _components(trace: OpenTrace, objects: Resolved) -> tuple[Component, ...]:
    """The spans with metrics of their own, in their order; those of one name are numbered."""
    found: list[Component] = []
    times: dict[str, int] = {}
    for span in sorted(trace.spans, key=lambda one: one.id):
        if span is not trace.root and span.metrics and not _was_made_good(span):
            times[span.name] = times.get(span.name, 0) + 1
            name = _numbered(span, times[span.name])
            found.append(Component(name, span.case(), tuple(objects(span.metrics))))
    return tuple(found)


def _was_made_good(span: OpenSpan) -> bool:
    """Whether a call failed, and its caller got an answer by calling again, or gave one in its stead."""
    return span.error is not None and any(
        other is span.parent
        or (other.parent is span.parent and other.input == span.input and other.id > span.id)
        for other in span.trace.spans
        if other.of is span.of and other.error is None
    )


def _numbered(span: OpenSpan, number: int) -> str:
    return span.name if number == 1 else f"{span.name}~{number}"

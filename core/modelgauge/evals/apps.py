"""Running an observed app on goldens: each use becomes a test case, with its trace and judged components.

How it is used is in `app_uses.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelgauge.config.options import RunOptions
from modelgauge.data.items import PromptWithContext
from modelgauge.data.readable import shown
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.test_cases import (
    ConversationalGolden,
    ConversationalTestCase,
    Golden,
    LLMTestCase,
)
from modelgauge.datasets.dataset_test import as_asked, keyed, prompt_of
from modelgauge.engine.calls.asking import split_off
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import InvalidDataError
from modelgauge.evals.app_uses import App, Used, Uses
from modelgauge.evals.given_test import AnsweredCase, Component
from modelgauge.metrics.base import Metric
from modelgauge.metrics.judged_cases import NO_OUTPUT, Origin, case_of, check_case
from modelgauge.observe.spans import Observation, OpenSpan, OpenTrace, as_text, observation_of
from modelgauge.wording.phrases import a_class

DEFAULT_METRIC = "answer_relevancy"
"""What judges an app that names no metric of its own."""


def check_app(callback: object) -> Observation:
    """How the calls of an app become spans.

    Raises:
        ValueError: it cannot be called, or is not observed.
    """
    __tracebackhide__ = True
    if not callable(callback):
        raise ValueError("observed_callback must be callable")  # noqa: TRY004  the promise is a ValueError
    observation = observation_of(callback)
    if observation is None:
        raise ValueError(
            "The provided 'observed_callback' must be decorated with '@observe' from modelgauge.evals."
        )
    return observation


@dataclass(frozen=True)
class Judging:
    """How an app's answers are going to be judged.

    Args:
        resolved: makes objects of metrics that are named by uids.
        ready: raises where a metric's judge is not there.
        options: of the run: where its files go, how long the app may take for an answer.
        metrics: judge each answer as a whole, beside those of the app.
        skip: leave out metrics that lack a parameter.
        made: the one object for each metric, however many spans name it.
    """

    resolved: Callable[[Sequence[Any]], list[Metric]]
    ready: Callable[[Metric], object]
    options: RunOptions
    metrics: Sequence[Metric] = ()
    skip: bool = False
    made: dict[Any, Metric] = field(default_factory=dict)

    def objects(self, metrics: Iterable[Any]) -> list[Metric]:
        """Metrics, each once.

        Raises:
            InvalidDataError: something is none.
            UsageError: one has no judge.
        """
        named = {metric if isinstance(metric, str) else id(metric): metric for metric in metrics}
        for key, metric in named.items():
            if key not in self.made:
                (self.made[key],) = made = self.resolved([metric])
                keyed(made)
                self.ready(self.made[key])
        return [self.made[key] for key in named]

    def check(self, used: Used) -> None:
        """Refuse metrics that show in a use of the app and can judge nothing, so that it is not used any more."""
        if used.error is None:
            self.objects(_metrics_of(used))


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
    observation, objects = check_app(callback), judging.objects
    check_goldens(goldens)

    def used(asked: Sequence[Golden]) -> list[Used]:
        RunFolder.create(judging.options.runs).forget_if_empty()  # else its answers would be lost
        app = Uses(callback, observation, judging.options, judging.check)
        questions = [golden.input for golden in asked]
        return [app.here(one) for one in questions] if at_once is None else app.on(questions, at_once)

    known = [*objects(judging.metrics), *objects(observation.metrics)]
    first: list[Used] = []
    if known:
        keyed(known)
    else:  # which metrics the functions have that the app calls shows when it is used
        first = used(goldens[:1])
        if any(_is_answer_without_metrics(one, observation) for one in first):
            known = objects([DEFAULT_METRIC])
    for metric in known if not judging.skip else ():  # what else the metric needs the app may say
        check_case(LLMTestCase(""), metric.test_case_type, (), metric.name, Origin("app"))
    uses = first + used(goldens[len(first) :])
    answers = [one for one in uses if one.error is None]
    whole = objects(metric for one in answers for metric in one.trace.root.metrics)
    if not judging.metrics and answers and not any(_metrics_of(one) for one in answers):
        whole = objects([DEFAULT_METRIC])
    answered = [_answered(golden, used, judging) for golden, used in zip(goldens, uses, strict=True)]
    return answered, [*judging.metrics, *whole]


def _metrics_of(used: Used) -> list[Any]:
    return [metric for span in used.trace.spans for metric in span.metrics]


def _is_answer_without_metrics(used: Used, app: Observation) -> bool:
    """Whether the app itself answered, not a wrapper in its stead, and nothing that it called has metrics."""
    is_own = any(span.of is app for span in used.trace.spans)
    return used.error is None and is_own and not _metrics_of(used)


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


def _answered(golden: Golden, used: Used, judging: Judging) -> AnsweredCase:
    """The golden's input and references, and what the app answered and said; thoughts are no part of an answer."""
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
    asked = PromptWithContext(prompt_of(golden), context=golden)
    case = case_of(asked, completion).replaced(**trace.said())
    return AnsweredCase(case, trace.frozen(), parts, completion=completion)


def _text(value: Any) -> str | None:
    """What an app returned, as text: what it streamed in one piece."""
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return "".join(value)
    return as_text(shown(value))


def _components(trace: OpenTrace, judging: Judging) -> tuple[Component, ...]:
    """The spans with metrics of their own, in their order; those of one name are numbered."""
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
    """Whether a call failed, and its caller called again with the same input and got an answer."""
    return span.error is not None and any(
        (other.of, other.parent, other.error) == (span.of, span.parent, None)
        and other.fields["input"] == span.fields["input"]
        for other in span.trace.spans[span.trace.spans.index(span) :]
    )

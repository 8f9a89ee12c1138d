"""The test over given answers: test cases, or the answers of an observed app with its spans. No SUT is asked."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from modelgauge.data.annotations import TestItemAnnotations
from modelgauge.data.base import of_valid
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.data.results import GIVEN
from modelgauge.data.spans import SPAN, TRACE, Trace
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.datasets.dataset_test import ItemsOfNumber, item_ids, make_prompt
from modelgauge.datasets.differences import DatasetLink
from modelgauge.datasets.judged_test import JudgedTest, keyed
from modelgauge.engine.bookkeeping.app_trace import attach_trace
from modelgauge.engine.calls.policy import JudgeSUTs
from modelgauge.engine.items.item_ids import Ids
from modelgauge.engine.work import AnswerSource, Work
from modelgauge.errors import InvalidDataError
from modelgauge.interfaces.identity import Initialization
from modelgauge.metrics.base import Metric
from modelgauge.metrics.judged_cases import NO_OUTPUT, TestCase, called
from modelgauge.wording.phrases import a_class


@dataclass(frozen=True, slots=True)
class Component:
    """A part of an app with metrics of its own.

    Args:
        name: of the span.
        case: the span's own test case.
        metrics: judge it.
    """

    name: str
    case: LLMTestCase
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class AnsweredCase:
    """A use of an app that is to be judged.

    Args:
        case: what went in and came out.
        trace: what the app did.
        components: parts with metrics of their own.
        error: what the app raised instead of an answer; then there is nothing to judge.
        completion: the answer with its reasoning, which is no part of the case.
    """

    case: TestCase
    trace: Trace | None = None
    components: tuple[Component, ...] = ()
    error: Exception | None = None
    completion: SUTCompletion | None = None


class GivenTest(JudgedTest):
    """A test over given answers, without a SUT.

    Args:
        uid: the name in records.
        answered: the test cases, in order.
        metrics: judge each case; there may be none where there are components.
        left_out: how many further cases `max_test_items` left out.
        link: to the data set that the cases are from.
        skip_on_missing_params: leave out metrics that need what a case does not have.
        fail_one_by_one: a case that its metrics cannot judge fails by itself, instead of raising.

    Raises:
        InvalidDataError: there is no case, or a case that no metric judges.
        MissingParameterError: a case lacks what a metric needs; the message names metric, parameter and case.
            Where an app was used for it, that is a failure of this case, since what it did is paid for.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make it without a copy of its arguments: they say nothing of who answered."""
        del args, kwargs
        return object.__new__(cls)

    def __init__(
        self,
        uid: str,
        answered: Sequence[AnsweredCase],
        metrics: Sequence[Metric] = (),
        *,
        left_out: int = 0,
        link: DatasetLink | None = None,
        skip_on_missing_params: bool = False,
        fail_one_by_one: bool = False,
    ) -> None:
        super().__init__(uid)
        self.requires_sut_capabilities = ()  # type: ignore[misc]  # nobody is asked
        self.answered, self.left_out = answered, left_out
        self.dataset, self.record_notes = (None, ()) if link is None else link
        self._skip = skip_on_missing_params
        nothing = bool(self.answered) and all(case.error is not None for case in self.answered)
        metrics = () if nothing else metrics  # a metric that judges nothing needs no judge
        own = [
            (part, metric) for case in self.answered for part in case.components for metric in part.metrics
        ]
        self.metrics = {} if nothing else keyed(metrics, [metric for _, metric in own])
        self._keys = {id(metric): key for key, metric in self.metrics.items()}
        self._of_cases = tuple(dict.fromkeys(self._keys[id(metric)] for metric in metrics))
        self._parts: dict[str, Component] = {}
        self._uses: dict[str, AnsweredCase] = {}
        named = {key: self.metrics[key] for key in self._of_cases} | {
            self._name_of_part(part.name, metric): metric for part, metric in own
        }
        self._declare(named)
        self._check(fail_one_by_one=fail_one_by_one)

    def _of_whole(self) -> Collection[str]:
        return self._of_cases

    def _check(self, *, fail_one_by_one: bool) -> None:
        if not self.answered:
            raise InvalidDataError("There is no test case.", fix="Give at least one.")
        # Those of apps fail one by one.
        given = [answered.case for answered in self.answered if answered.trace is None]
        for case in () if fail_one_by_one else given:
            judges = [self.metrics[key] for key in self._of_cases]
            if self._skip:
                judges = [metric for metric in judges if _judges(metric, case)]
            for metric in judges:
                metric.check(case)
            if not judges:
                raise InvalidDataError(
                    f"Every metric was skipped for the test case {called(case)}, so it cannot pass.",
                    fix=_GIVE_MORE,
                )

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterable[TestItem]:
        """Yield one item for each case. The cases of components are further prompts of it."""
        del dependencies
        return ItemsOfNumber(len(self.answered), self._items)

    def _items(self) -> Iterator[TestItem]:
        names = item_ids([case.case for case in self.answered])
        ids: Ids | None = None
        for place, (case, name) in enumerate(zip(self.answered, names, strict=True)):
            main = PromptWithContext(make_prompt(case.case), context=case.case)
            if case.trace is None:
                yield of_valid(TestItem, prompts=(main,), context=None, id=name)
                continue
            ids = ids or Ids(self.uid)
            source_id = str(place)
            self._uses[source_id] = case
            prompts = [main.replaced(source_id=source_id)]
            for number, part in enumerate(case.components):
                part_id = f"{source_id}.{number}"
                self._parts[part_id] = part
                prompts.append(PromptWithContext(make_prompt(part.case), part_id, part.case))
            # The id depends on what was asked only, not on what the app did.
            yield TestItem(prompts, id=ids.identified(TestItem(main, id=name)).id)

    def choose_annotators(self, prompt: PromptWithContext) -> Collection[str]:
        """Return the metrics of the case, or those of a component."""
        keys = self._list_keys(prompt)
        if not self._skip:
            return keys
        return [key for key in keys if _judges(self.metrics[key], prompt.context)]

    def _list_keys(self, prompt: PromptWithContext) -> Sequence[str]:
        part = self._parts.get(prompt.source_id or "")
        return self._of_cases if part is None else [self._keys[id(metric)] for metric in part.metrics]

    def _nothing_judged(self, item: TestItemAnnotations) -> InvalidDataError:
        """Return the error for an answer without a score: its metrics lack something, or there are none."""
        prompts = [interaction.prompt for interaction in item.interactions]
        name = called(prompts[0].context)
        lacking = [
            _why_skipped(self.metrics[key], prompt.context)
            for prompt in prompts
            for key in self._list_keys(prompt)
        ]
        if lacking:
            return InvalidDataError(
                f"Every metric was skipped for {name}, so it cannot pass: {'; '.join(lacking)}.",
                fix="Give the golden what its metrics need, let the app say it: update_current_trace(…), or use "
                "metrics that need less."
                if prompts[0].source_id in self._uses
                else _GIVE_MORE,
            )
        return InvalidDataError(
            f"No metric judges {name}: the app called nothing that has one.",
            fix="Give the app itself metrics: @observe(metrics=[…]), or evaluate(…, metrics=[…]).",
        )

    def component(self, prompt: PromptWithContext) -> str | None:
        """Return the name of a prompt's span; None for the prompt of a whole answer."""
        part = self._parts.get(prompt.source_id or "")
        return None if part is None else part.name

    def answer(self, prompt: PromptWithContext) -> SUTResponse:
        """Return the answer to a prompt.

        Raises:
            Exception: what the app raised.
        """
        use = self._uses.get(prompt.source_id or "")
        if use is not None and use.error is not None:
            attach_trace(use.error, use.trace)
            raise use.error
        output, part = _output(prompt.context), self.component(prompt)
        metadata: dict[str, Any] = dict(NO_OUTPUT) if output is None else {}
        if part is not None:
            metadata[SPAN] = part
        if use is not None and use.trace is not None:
            metadata[TRACE] = use.trace.model_dump(mode="json")
        reply = use.completion if use is not None and use.completion is not None else _SAID_NOTHING
        # The rest is in the case, which is judged as it is.
        completion = reply.replaced(text=output or "", tool_calls=None, metadata=metadata)
        return of_valid(SUTResponse, completions=(completion,), usage=None)

    def work(self, resolve_judges: Callable[[Metric], JudgeSUTs]) -> Work:
        """Return the work of judging the cases, which contain their answers.

        Args:
            resolve_judges: gives the SUTs that a metric asks, by its own names.
        """
        again = "Then evaluate again, since answers that were given cannot be resumed."
        return Work(
            test=self,
            answer_source=AnswerSource(
                uid=GIVEN, initialization=_GIVEN, given=self.answer, again=again, left_out=self.left_out
            ),
            annotators=self.metrics,
            judge_suts={name: resolve_judges(metric) for name, metric in self.metrics.items()},
        )


_GIVEN = Initialization(uid=GIVEN, class_name=GIVEN)
_SAID_NOTHING = SUTCompletion("")
_GIVE_MORE = "Give the case what its metrics need, or use metrics that need less."


def _judges(metric: Metric, case: TestCase) -> bool:
    return isinstance(case, metric.test_case_type) and not metric.missing_params(case)


def _why_skipped(metric: Metric, case: TestCase) -> str:
    if not isinstance(case, metric.test_case_type):
        return f"{metric.name} judges {a_class(metric.test_case_type)}"
    return f"{metric.name} needs {', '.join(map(repr, metric.missing_params(case)))}"


def _output(case: TestCase) -> str | None:
    if isinstance(case, LLMTestCase):
        return case.actual_output
    last = case.turns[-1]
    return last.content if last.role == "assistant" else ""

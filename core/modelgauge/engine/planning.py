"""Plan of a run: every request is built and looked up, none is sent."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modelgauge.cache.keys import KeyMaker
from modelgauge.config.run_options import RunOptions
from modelgauge.data.base import Frozen
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import AnyPrompt, prompt_text
from modelgauge.data.responses import SUTResponse
from modelgauge.data.results import CallCounts
from modelgauge.engine.bookkeeping.app_trace import AppReport, without_report
from modelgauge.engine.bookkeeping.failures import NOT_OF_THE_ITEM, describe_error
from modelgauge.engine.calls.ask_sut import translated
from modelgauge.engine.calls.policy import CallPolicy, JudgeSUTs, Owner, declared_response, learn_secrets
from modelgauge.engine.calls.splitting import always_splits, joined, note_key, single_prompts
from modelgauge.engine.items.item import checked_choice
from modelgauge.engine.items.item_ids import DigestSet
from modelgauge.engine.items.source import chosen
from modelgauge.engine.recorded_items import RecordedItems
from modelgauge.engine.work import Work
from modelgauge.errors import CacheError, RunStoppedError
from modelgauge.interfaces.annotator import cost_of_each, make_request
from modelgauge.interfaces.codec import ResponseCodec
from modelgauge.interfaces.identity import overrides
from modelgauge.interfaces.sut import PromptResponseSUT, request_for
from modelgauge.interfaces.watched import in_use

_MOST_REASONS = 3
_CHARACTERS_OF_A_TOKEN = 4

Kept = Callable[[str], str | None]
"""Gives the stored text under a digest; None if there is none."""

log = logging.getLogger(__name__)


class Plan(Frozen):
    """The calls, tokens and dollars that one pair would take.

    Args:
        test_uid: the test.
        sut_uid: the SUT.
        sut_label: what tables call the SUT; None for its uid.
        items: how many items would be measured.
        sut_calls: answers of the SUT to be paid, and those that the cache has, or an earlier call of the same command.
        annotator_calls: those of annotators; where the SUT's answer is not known yet, one call for each completion
            that is asked for. Questions that judges ask are not among them.
        unsent: annotator calls among these that send nothing themselves: of judges, who ask SUTs, and of metrics
            that cost nothing.
        prompt_tokens: about how many tokens of prompts are sent to the SUT: a quarter of the characters, as in English.
        cost_usd: what the SUT expects the calls to cost, where it knows its prices.
        failing: items that would fail, as far as can be seen without a call: no request can be made of them.
        reasons: why; the first few different reasons.
    """

    test_uid: str
    sut_uid: str
    sut_label: str | None = None
    items: int
    sut_calls: CallCounts
    annotator_calls: CallCounts
    unsent: int = 0
    prompt_tokens: int = 0
    cost_usd: float | None = None
    failing: int = 0
    reasons: tuple[str, ...] = ()


class Planner:
    """Planner of the calls for the pairs of one command, which share the calls that they have in common. Nothing is
    sent.

    Args:
        options: as for the run.
        kept: looks into the run's cache; None if nothing is cached.
    """

    def __init__(self, options: RunOptions, kept: Kept | None) -> None:
        self._options, self._kept = options, kept
        self._seen = DigestSet()

    def plan(self, work: Work) -> Plan:
        """Count the calls of a work; of a run that is continued, those that are left.

        Reads the test's data, the cache, and the journal of a run that is continued.

        Args:
            work: a test and a SUT that fit.

        Raises:
            CacheError: the cache cannot be read.
            RecordError: the run that is continued is damaged, or its items are not those of the test.
            Exception: what `make_test_items` raised.
        """
        with in_use(callee.owner for callee in work.called()):
            return self._plan(work)

    def _plan(self, work: Work) -> Plan:
        sut = work.answer_source.sut
        if sut is None:
            raise TypeError(work.answer_source)
        asked = self._calls(sut)
        judged = {
            name: self._calls(annotator, work.judge_suts.get(name))
            for name, annotator in work.annotators.items()
        }
        counting = _WorkCounter(work, sut, self._options, asked, judged)
        journal = Path() if work.continues is None else work.continues.journal
        recorded = RecordedItems(journal, retry_failed=self._options.retry_failed)
        if work.continues is not None:
            recorded.read()
        for item, place in recorded.matched(chosen(work.test, work.dependencies, self._options).items):
            if place is None:
                counting.add(item.item)
        return counting.result()

    def _calls(self, owner: Owner, judge_suts: JudgeSUTs | None = None) -> "_Calls":
        learn_secrets(owner, self._options.redactor)
        keys = None if self._kept is None else CallPolicy.of(owner, judge_suts).make_keys()
        codec = ResponseCodec(f"'{owner.uid}'", declared_response(owner))
        return _Calls(keys, codec, self._kept or (lambda _: None), self._seen)


@dataclass(slots=True)
class _Calls:
    """Calls of one object in one work: known answers, and the number to be sent.

    Args:
        keys: None if nothing of the object is cached.
        codec: reads its stored responses.
        kept: gives their texts.
        seen: the calls that the command sends before; all its pairs share it.
    """

    keys: KeyMaker | None
    codec: ResponseCodec
    kept: Kept
    seen: DigestSet
    paid: int = 0
    cached: int = 0

    def splits(self, sut: PromptResponseSUT[Any, Any]) -> bool:
        """Return whether several completions of a prompt are known to need separate calls."""
        found_out = sut.completions == "auto" and self.keys is not None
        return always_splits(sut) or (found_out and self.kept(note_key(sut).digest) is not None)

    def knows(self, number: int, request: Any) -> bool:
        """Return whether the cache has the answer to a call."""
        return self.keys is not None and self.kept(self.keys.key(request, number).digest) is not None

    def look_up(self, request: Any, number: int = 0) -> tuple[bool, tuple[Any, AppReport | None] | None]:
        """Return whether a call would be paid for, and its stored response with the app's report, if any."""
        digest = "" if self.keys is None else self.keys.key(request, number).digest
        text = self.kept(digest) if digest else None
        if text is None and (not digest or self.seen.add(digest)):
            self.paid += 1
            return True, None
        self.cached += 1
        if text is None:
            return False, None
        plain, report = without_report(text)
        return False, (self.codec.load(plain), report)


@dataclass(slots=True)
class _WorkCounter:
    """Counter of the calls of one work, item by item."""

    work: Work
    sut: PromptResponseSUT[Any, Any]
    options: RunOptions
    asked: _Calls
    judged: Mapping[str, _Calls]
    items: int = 0
    failing: int = 0
    characters: int = 0
    cost: float | None = 0.0
    reasons: dict[str, None] = field(default_factory=dict)
    is_sound: bool = True

    def add(self, item: TestItem) -> None:
        """Count the calls of an item: as in a run, all prompts are asked, whatever fails beside them."""
        self.items += 1
        self.is_sound = True
        answers: list[tuple[PromptWithContext, SUTResponse | None]] = []
        for prompt in item.prompts:
            with self._noting_failures(self.sut.uid):
                answers += [(prompt, answer) for answer in self._ask(prompt)]
        for prompt, answer in answers if self.is_sound else []:
            self._judge(prompt, answer)
        self.failing += not self.is_sound

    @contextmanager
    def _noting_failures(self, uid: str) -> Iterator[None]:
        """Note what an author's code raises as a failure of the item."""
        try:
            yield
        except (*NOT_OF_THE_ITEM, CacheError, RunStoppedError):
            raise
        except BaseException as error:  # noqa: BLE001  the author's; it would be the item's failure
            self.is_sound = False
            if len(self.reasons) < _MOST_REASONS:
                self.reasons[f"'{uid}': {type(error).__name__}: {describe_error(error)}"] = None

    def _ask(self, prompt: PromptWithContext) -> list[SUTResponse | None]:
        asked = prompt.prompt.with_options(self.options.sut_options)
        first = self.options.first_repeat
        calls = [self._look_up(asked, number) for number in range(first, first + self.options.repeats)]
        return [self._answer(asked, call) for call in calls]

    def _look_up(self, prompt: AnyPrompt, number: int) -> list[tuple[Any, Any]]:
        """Return the requests for one repeat of a prompt, each with its response if known."""
        requests = [(number, request_for(self.sut, prompt))]
        is_split = prompt.num_completions > 1 and self.asked.splits(self.sut)
        if is_split and not self.asked.knows(*requests[0]):
            requests = [
                (its, request_for(self.sut, single)) for its, single in single_prompts(prompt, number)
            ]
        found = []
        for its, request in requests:
            paid, known = self.asked.look_up(request, its)
            if paid:
                self.characters += len(prompt_text(prompt))
                self._add_cost(request)
            found.append((request, known))
        return found

    def _answer(self, prompt: AnyPrompt, calls: list[tuple[Any, Any]]) -> SUTResponse | None:
        """Return the answer to one repeat of a prompt, if all its calls are known."""
        if any(known is None for _, known in calls):
            return None
        try:
            answer = joined([translated(self.sut, prompt, request, *known) for request, known in calls])
        except Exception:
            if not self.options.retry_failed:
                raise
        else:
            if not (answer.is_blocked and self.options.retry_failed):
                return answer
        self.asked.paid, self.asked.cached = self.asked.paid + len(calls), self.asked.cached - len(calls)
        return None

    def _judge(self, prompt: PromptWithContext, answer: SUTResponse | None) -> None:
        test = self.work.test
        names: Collection[str] = ()
        with self._noting_failures(test.uid):
            chooses = overrides(type(test), "choose_annotators")
            names = checked_choice(test.choose_annotators(prompt), self.judged) if chooses else self.judged
        for name in names:
            calls, annotator = self.judged[name], self.work.annotators[name]
            if answer is None:
                options = prompt.prompt.with_options(self.options.sut_options).options
                calls.paid += options.num_completions or 1
                continue
            cost = cost_of_each(answer.usage, len(answer.completions))
            with self._noting_failures(annotator.uid):
                for completion in answer.completions:
                    calls.look_up(make_request(annotator, prompt, completion, cost))

    def _add_cost(self, request: Any) -> None:
        if self.cost is None:
            return
        try:
            expected = self.sut.expected_cost(request)
        except Exception:
            log.exception("expected_cost of '%s' failed; its prices are taken as unknown.", self.sut.uid)
            expected = None
        self.cost = None if expected is None else self.cost + expected

    def result(self) -> Plan:
        judged = self.judged.values()
        return Plan(
            test_uid=self.work.test.uid,
            sut_uid=self.sut.uid,
            sut_label=self.work.answer_source.label,
            items=self.items,
            sut_calls=CallCounts(paid=self.asked.paid, cached=self.asked.cached),
            annotator_calls=CallCounts(
                paid=sum(calls.paid for calls in judged), cached=sum(calls.cached for calls in judged)
            ),
            unsent=sum(
                calls.paid
                for name, calls in self.judged.items()
                if self.work.annotators[name].is_cheap or self.work.judge_suts.get(name)
            ),
            prompt_tokens=-(-self.characters // _CHARACTERS_OF_A_TOKEN),
            cost_usd=self.cost,
            failing=self.failing,
            reasons=tuple(self.reasons),
        )

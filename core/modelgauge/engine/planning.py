"""What a run would cost: every prompt is made and looked up, none is sent."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from modelgauge.cache.keys import KeyMaker
from modelgauge.config.run_options import RunOptions
from modelgauge.data.base import Frozen
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.responses import SUTResponse
from modelgauge.data.results import CallCounts
from modelgauge.engine.bookkeeping.app_trace import Told, opened
from modelgauge.engine.bookkeeping.failures import NOT_OF_THE_ITEM, message_of
from modelgauge.engine.calls.asking import translated
from modelgauge.engine.calls.callee import Asked, Owner, declared_response, keys_of, learn_secrets
from modelgauge.engine.item import checked_choice
from modelgauge.engine.item_ids import DigestSet, Ids
from modelgauge.engine.source import chosen
from modelgauge.engine.work import Work
from modelgauge.errors import CacheError, RunStoppedError
from modelgauge.interfaces.annotator import cost_of_each, request_of
from modelgauge.interfaces.codec import ResponseCodec
from modelgauge.interfaces.identity import overrides
from modelgauge.interfaces.sut import PromptResponseSUT, request_for

_MOST_REASONS = 3

Kept = Callable[[str], str | None]
"""Gives the stored text under a digest; None where there is none."""

log = logging.getLogger(__name__)


class Plan(Frozen):
    """What one pair would take.

    Args:
        test_uid: the test.
        sut_uid: the SUT.
        items: how many items would be measured.
        sut_calls: answers of the SUT to be paid, and those that the cache has, or an earlier call of the same command.
        annotator_calls: likewise for annotators; where the SUT's answer is not known yet, one call for each completion
            that is asked for. Questions that judges ask are not among them.
        unsent: annotator calls among these that send nothing themselves: of judges, who ask SUTs, and of metrics
            that cost nothing.
        cost_usd: what the SUT expects the calls to cost, where it knows its prices.
        failing: items that would fail, as far as can be seen without a call: no request can be made of them.
        reasons: why, the first few different ones.
    """

    test_uid: str
    sut_uid: str
    items: int
    sut_calls: CallCounts
    annotator_calls: CallCounts
    unsent: int = 0
    cost_usd: float | None = None
    failing: int = 0
    reasons: tuple[str, ...] = ()


class Planner:
    """Counts the calls of the pairs of one command, which pay once for what they share. Sends nothing.

    Args:
        options: as for the run.
        kept: looks into the run's cache; None where nothing is cached.
    """

    def __init__(self, options: RunOptions, kept: Kept | None) -> None:
        self._options, self._kept = options, kept
        self._seen = DigestSet()

    def plan(self, work: Work) -> Plan:
        """Count the calls of a work. Reads the test's data and the cache.

        Args:
            work: a test and a SUT that fit.

        Raises:
            CacheError: the cache cannot be read.
            Exception: what `make_test_items` raised.
        """
        sut = work.respondent.sut
        if sut is None:
            raise TypeError(work.respondent)
        asked = self._side(sut)
        judged = {name: self._side(one, work.judge_suts.get(name)) for name, one in work.annotators.items()}
        counting = _Counting(work, sut, self._options, asked, judged)
        for one in chosen(work.test, work.dependencies, Ids(work.test.uid), self._options).items:
            counting.add(one.item)
        return counting.result()

    def _side(
        self,
        owner: Owner,
        asked: Asked | None = None,
    ) -> "_Side":
        keys: KeyMaker | None = None
        learn_secrets(owner, self._options.redactor)
        if self._kept is not None:
            keys = keys_of(owner, asked)
        codec = ResponseCodec(f"'{owner.uid}'", declared_response(owner))
        return _Side(keys, codec, self._kept, self._seen)


class _Known(NamedTuple):
    """A stored response, and what an observed app told while it gave it."""

    response: Any
    told: Told | None


@dataclass(slots=True)
class _Side:
    """Calls of one object in one work: which are known, and how many would be sent.

    Args:
        keys: None where nothing of the object is cached.
        codec: reads its stored responses.
        kept: gives their texts.
        seen: the calls that the command sends before; all its pairs share it.
    """

    keys: KeyMaker | None
    codec: ResponseCodec
    kept: Kept | None
    seen: DigestSet
    paid: int = 0
    cached: int = 0

    def look_up(self, request: Any, repeat: int = 0) -> tuple[bool, "_Known | None"]:
        """Whether a call would be paid, and its response where it is known."""
        if self.keys is None or self.kept is None:
            self.paid += 1
            return True, None
        digest = self.keys.key(request, repeat).digest
        text = self.kept(digest)
        if text is None and self.seen.add(digest):
            self.paid += 1
            return True, None
        self.cached += 1
        if text is None:
            return False, None
        plain, told = opened(text)
        return False, _Known(self.codec.load(plain), told)

    def counts(self) -> CallCounts:
        return CallCounts(paid=self.paid, cached=self.cached)


@dataclass(slots=True)
class _Counting:
    """One work, item by item."""

    work: Work
    sut: PromptResponseSUT[Any, Any]
    options: RunOptions
    asked: _Side
    judged: Mapping[str, _Side]
    items: int = 0
    failing: int = 0
    cost: float | None = 0.0
    reasons: dict[str, None] = field(default_factory=dict)

    def add(self, item: TestItem) -> None:
        """Count the calls of an item: as in a run, all prompts are asked, whatever fails beside them."""
        self.items += 1
        answers: list[tuple[PromptWithContext, SUTResponse | None]] = []
        sound = True
        for prompt in item.prompts:
            try:
                answers += [(prompt, answer) for answer in self._ask(prompt)]
            except (*NOT_OF_THE_ITEM, CacheError, RunStoppedError):
                raise
            except BaseException as error:  # noqa: BLE001  the author's; it would be the item's failure
                self._note(self.sut.uid, error)
                sound = False
        for prompt, answer in answers if sound else []:
            sound = self._judge(prompt, answer) and sound
        self.failing += not sound

    def _ask(self, prompt: PromptWithContext) -> list[SUTResponse | None]:
        """The answers to a prompt, where they are known."""
        request = request_for(self.sut, prompt.prompt.with_options(self.options.sut_options))
        answers = []
        for repeat in range(self.options.repeats):
            paid, known = self.asked.look_up(request, self.options.first_repeat + repeat)
            if paid:
                self._add_cost(request)
            answers.append(known)
        return [None if known is None else translated(self.sut, request, *known) for known in answers]

    def _judge(self, prompt: PromptWithContext, answer: SUTResponse | None) -> bool:
        """Count the annotators' calls; whether a request can be made of all."""
        uid = self.work.test.uid
        try:
            for name in self._chosen(prompt):
                side, annotator = self.judged[name], self.work.annotators[name]
                uid = annotator.uid
                if answer is None:
                    options = prompt.prompt.with_options(self.options.sut_options).options
                    side.paid += options.num_completions or 1
                    continue
                cost = cost_of_each(answer.usage, len(answer.completions))
                for completion in answer.completions:
                    side.look_up(request_of(annotator, prompt, completion, cost))
        except (*NOT_OF_THE_ITEM, CacheError, RunStoppedError):
            raise
        except BaseException as error:  # noqa: BLE001  likewise
            self._note(uid, error)
            return False
        return True

    def _chosen(self, prompt: PromptWithContext) -> Collection[str]:
        test = self.work.test
        if not overrides(type(test), "choose_annotators"):
            return list(self.judged)
        return checked_choice(test.choose_annotators(prompt), self.judged)

    def _note(self, uid: str, error: BaseException) -> None:
        if len(self.reasons) < _MOST_REASONS:
            self.reasons[f"'{uid}': {type(error).__name__}: {message_of(error)}"] = None

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
        judged = [side.counts() for side in self.judged.values()]
        return Plan(
            test_uid=self.work.test.uid,
            sut_uid=self.sut.uid,
            items=self.items,
            sut_calls=self.asked.counts(),
            annotator_calls=CallCounts(
                paid=sum(one.paid for one in judged), cached=sum(one.cached for one in judged)
            ),
            unsent=sum(
                side.paid
                for name, side in self.judged.items()
                if self.work.annotators[name].is_cheap or self.work.judge_suts.get(name)
            ),
            cost_usd=self.cost,
            failing=self.failing,
            reasons=tuple(self.reasons),
        )

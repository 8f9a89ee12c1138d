"""The stages of one item: prompts are asked, answers annotated and measured; whatever fails, there is a record."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from modelgauge.data.annotations import (
    Interaction,
    TestItemAnnotations,
    add_annotations,
    list_completions,
)
from modelgauge.data.base import of_valid
from modelgauge.data.item_records import ItemRecord, TestItemExceptionRecord, TestItemRecord
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.json_values import check_exact
from modelgauge.engine.bookkeeping.failures import (
    AtStage,
    StageError,
    add_note,
    as_exception,
    describe_error,
    exception_record,
    is_from_outside,
)
from modelgauge.engine.bookkeeping.tally import Tally, judge_keys
from modelgauge.engine.calls.afresh import replacing
from modelgauge.engine.calls.ask_sut import note_kept_answer
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.services import AnswerTurns
from modelgauge.engine.items.answers import Answerer, Failed, note_failed
from modelgauge.engine.items.measurer import MeasuredValues, Measurer, Reducer, joined
from modelgauge.engine.loop.together import all_done
from modelgauge.errors import BlockedError, DefinitionError, RecordError, RunStoppedError
from modelgauge.interfaces.annotator import cost_of_each, make_request

_BLOCKED = "The service blocked the answer."
_JUDGE_BLOCKED = "A Test with judges_blocked_answers = True judges such answers."


@dataclass(slots=True)
class ItemWorker:
    """Processor of the items of a test, which takes each through all stages; several items can be in progress.

    Args:
        answerer: answers the prompts.
        annotators: judge each completion, by the test's own names.
        chosen: names those that judge the completions of a prompt; None for all.
        measurer: measures.
        sut_uid: who answers, in records of failures.
        tally: the pair's counts.
        turns: of the items that are answered.
        reduce: how often each prompt is asked, and how one measurement is made of those of the repeats.
    """

    answerer: Answerer
    annotators: Mapping[str, Target]
    chosen: Callable[[PromptWithContext], Collection[str]] | None
    measurer: Measurer
    sut_uid: str
    tally: Tally
    turns: AnswerTurns
    reduce: Reducer

    async def process(self, index: int, item: TestItem) -> ItemRecord:
        """Work on an item until it has a record.

        Raises:
            RunStoppedError: no call may be sent any more; the item is not done.
        """
        answers: list[Interaction] = []
        failed: Failed = {}
        try:
            ended = await self.answerer.answer(index, item, answers, failed)
            if not self.measurer.judges_blocked:
                self._fail_blocked(answers, failed)
            return ended or await self._judge(index, item, answers, failed)
        except StageError as failure:
            return _failed(index, item, answers, failure)
        except (RunStoppedError, RecordError):
            raise
        except Exception as error:  # noqa: BLE001  a defect, of ours or of an author's object, ends no other item
            return _failed(index, item, answers, StageError("measure", self.measurer.uid, error))

    def _fail_blocked(self, answers: Sequence[Interaction], failed: Failed) -> None:
        """Fail the repeats that the service blocked. Keep their answers in the record, for `rescore`.

        Raises:
            StageError: too few repeats remain to measure the item.
        """
        blocked = [answer for answer in answers if answer.response.is_blocked and answer.repeat not in failed]
        if blocked:
            failure = StageError("sut", self.sut_uid, BlockedError(_BLOCKED, fix=_JUDGE_BLOCKED))
            note_failed([answer.repeat for answer in blocked], [failure] * len(blocked), failed, self.reduce)

    async def _judge(
        self, index: int, item: TestItem, answers: list[Interaction], failed: Failed
    ) -> ItemRecord:
        """Annotate and measure answers, except those of failed repeats.

        Raises:
            StageError: an annotator or the test failed.
        """
        if self.annotators:
            try:
                await self._annotate_all(answers, failed)
            except StageError as failure:
                return await self._failed_in_part(index, item, answers, failure, whole=not failed)
        if self.turns.needed:
            await self.turns.turn()
        with self.measurer.stage:
            interactions = tuple(answers)
            measured, each = await self._measured_all(item, interactions, failed)
        return of_valid(
            TestItemRecord,
            kind="item",
            index=index,
            replaces=(),
            test_item=item,
            interactions=interactions,
            measurements=measured.values,
            binary=measured.binary,
            repeat_measurements=each,
            failures=tuple([failed[repeat] for repeat in sorted(failed)]),
            digests=None,
            redacted=False,
        )

    async def _failed_in_part(
        self, index: int, item: TestItem, answers: Sequence[Interaction], failure: StageError, *, whole: bool
    ) -> ItemRecord:
        """Return the record of an item after some annotators failed, with the measurements of the other annotations.

        This does not apply if the SUT failed in some repeats (`whole` is False): measurements then need all of them.
        """
        measured = MeasuredValues({}, ())
        is_annotated = whole and any(each.annotations for each in list_completions(answers))
        if is_annotated and self.measurer.measures_in_part and not isinstance(failure.error, RunStoppedError):
            try:
                measured = await self._measured_in_part(item, answers)
            except BaseException as error:
                if is_from_outside(error) or isinstance(error, RunStoppedError):
                    raise
                why = f"{type(error).__name__}: {describe_error(error).rstrip('.')}"
                add_note(as_exception(failure.error), f"What the others said could not be measured: {why}.")
        record = _failed(index, item, answers, failure)
        return record.replaced(measurements=measured.values, binary=measured.binary)

    # --- judging -----------------------------------------------------------------------------------------------------

    async def _annotate_all(self, answers: list[Interaction], failed: Failed) -> None:
        """Annotate the completions of all answers, except those of failed repeats.

        No local variable holds the results: a failure would stand in a frame that its own error holds.

        Args:
            answers: get their annotations, also where others fail.
            failed: gets the repeats that failed, where the others are enough.

        Raises:
            StageError: too few repeats are annotated.
        """
        keys_of_judges: dict[int, list[str]] = defaultdict(list)
        places = [
            (at, place, name)
            for at, answer in enumerate(answers)
            if answer.repeat not in failed
            for place in range(len(answer.response.completions))
            for name in (self.annotators if self.chosen is None else self._chosen_annotators(answer.prompt))
        ]
        calls = [self._annotate(answers[at], place, name, keys_of_judges[at]) for at, place, name in places]
        note_failed(
            [answers[at].repeat for at, _, _ in places],
            _kept(answers, places, await all_done(calls), keys_of_judges),
            failed,
            self.reduce,
        )

    def _chosen_annotators(self, prompt: PromptWithContext) -> Collection[str]:
        with AtStage("annotator", self.measurer.uid):
            return checked_choice(self.chosen(prompt) if self.chosen is not None else (), self.annotators)

    async def _annotate(
        self, answer: Interaction, place: int, name: str, of_judges: list[str]
    ) -> tuple[Any, str | None]:
        target = self.annotators[name]
        annotator: Any = target.owner
        judge_keys.set(of_judges)
        with AtStage("annotator", annotator.uid):
            completions = answer.response.completions
            cost = cost_of_each(answer.response.usage, len(completions))
            request = target.paces.request.of(
                make_request, annotator, answer.prompt, completions[place].completion, cost
            )
            return await replacing(lambda: self._annotation(name, request), target.services.options)

    async def _annotation(self, name: str, request: Any) -> tuple[Any, str | None]:
        target = self.annotators[name]
        annotator: Any = target.owner
        called = await target.call(request, self.tally.annotator_calls)
        try:
            annotation = target.paces.response.of(annotator.translate_response, request, called.response)
            return check_exact(annotation, f"The annotation '{name}'"), called.key
        except Exception as error:
            note_kept_answer(target, error)
            raise

    async def _measured_all(
        self, item: TestItem, interactions: Sequence[Interaction], failed: Failed
    ) -> tuple[MeasuredValues, tuple[dict[str, float], ...]]:
        """Return the item's measurements and, with repeats, those of each repeat that did not fail."""
        if self.reduce.repeats == 1:
            return await self.measurer.measure(_of_repeat(0, item, interactions)), ()
        left = [repeat for repeat in range(self.reduce.repeats) if repeat not in failed]
        results = await all_done([self._measure(_of_repeat(repeat, item, interactions)) for repeat in left])
        note_failed(left, results, failed, self.reduce)
        several: list[MeasuredValues] = [result for result in results if isinstance(result, MeasuredValues)]
        return joined(several, self.reduce), tuple(measured.values for measured in several)

    async def _measure(self, answered: TestItemAnnotations) -> MeasuredValues:
        with self.measurer.stage:
            return await self.measurer.measure(answered)

    async def _measured_in_part(self, item: TestItem, interactions: Sequence[Interaction]) -> MeasuredValues:
        several = [
            await self.measurer.measure_in_part(_of_repeat(repeat, item, interactions))
            for repeat in range(self.reduce.repeats)
        ]
        names = [name for name in several[0].values if all(name in measured.values for measured in several)]
        shared = [
            measured._replace(values={name: measured.values[name] for name in names}) for measured in several
        ]
        return joined(shared, self.reduce)


def _kept(
    answers: list[Interaction],
    places: Sequence[tuple[int, int, str]],
    results: list[Any],
    keys_of_judges: Mapping[int, Sequence[str]],
) -> list[Any]:
    """Replace answers by annotated ones; return all results, also those that are exceptions.

    Args:
        answers: of the item.
        places: the answer, the completion and the annotator of each result, answer by answer.
        results: annotations with their keys, or exceptions.
        keys_of_judges: for each answer, the keys of the answers to its judges.
    """
    for at, own in groupby(zip(places, results, strict=True), key=lambda pair: pair[0][0]):
        found = [
            (place, name, *result)
            for (_, place, name), result in own
            if not isinstance(result, BaseException)
        ]
        answers[at] = add_annotations(answers[at], found, keys_of_judges[at])
    return results


def _failed(
    index: int, item: TestItem, answers: Sequence[Interaction], failure: StageError
) -> TestItemExceptionRecord:
    """Return the record of a failed item.

    Raises:
        RunStoppedError: it was no failure of the item.
    """
    if isinstance(failure.error, RunStoppedError):
        raise failure.error from failure
    record = exception_record(index, item, answers, failure)
    # Its traceback's frames refer to it: without the cycle, memory is freed now, not by some collection.
    failure.__traceback__ = None
    return record


def _of_repeat(repeat: int, item: TestItem, interactions: Sequence[Interaction]) -> TestItemAnnotations:
    own = tuple([interaction for interaction in interactions if interaction.repeat == repeat])
    return of_valid(TestItemAnnotations, test_item=item, interactions=own)


def checked_choice(given: Iterable[str], annotators: Collection[str]) -> Collection[str]:
    """Validate the names returned by `choose_annotators`, and remove duplicates.

    Raises:
        DefinitionError: it returned something else, or an unknown name.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DefinitionError(
            f"choose_annotators returned {given!r}.", fix="Return a list of names of get_annotators."
        )
    names = tuple(dict.fromkeys(given))  # a generator can be read but once
    unknown = [name for name in names if name not in annotators]
    if unknown:
        raise DefinitionError(
            f"choose_annotators named '{unknown[0]}', which is not in get_annotators.",
            fix=f"There are: {', '.join(annotators) or 'none'}.",
        )
    return names

"""The life of one item: asked, annotated, measured; and what is left of it, whatever happens: one record."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from modelgauge.data.base import of_valid
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.json_values import check_exact
from modelgauge.data.measured import PromptInteractionAnnotations, TestItemAnnotations, interaction
from modelgauge.data.prompts import SUTOptions
from modelgauge.data.records import ItemRecord, RepeatFailure, TestItemRecord
from modelgauge.data.responses import SUTResponse
from modelgauge.engine.bookkeeping.failures import (
    StageError,
    add_note,
    as_exception,
    exception_record,
    is_from_outside,
    message_of,
    repeat_failure,
)
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.calls.asking import ask_sut, tell_of_kept
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.scheduling import Turns
from modelgauge.engine.measuring import Measured, Measurer
from modelgauge.engine.repeats import Reducer, reduced
from modelgauge.errors import DefinitionError, RunStoppedError
from modelgauge.interfaces.annotator import cost_of_each, request_of

Interactions = Sequence[PromptInteractionAnnotations]
Failed = dict[int, RepeatFailure]


class Answered(NamedTuple):
    """What was answered to a prompt, and what is said of each completion, by the annotators' names."""

    prompt: PromptWithContext
    response: SUTResponse
    repeat: int
    annotations: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, prompt: PromptWithContext, response: SUTResponse, repeat: int = 0) -> "Answered":
        """An answer that is not annotated yet."""
        return cls(prompt, response, repeat, tuple([{} for _ in response.completions]))

    def recorded(self) -> PromptInteractionAnnotations:
        """Its form in records."""
        return interaction(self.prompt, self.response, self.repeat, self.annotations)


@dataclass(slots=True)
class ItemWorker:
    """Takes the items of a pair through all their stages.

    Args:
        sut: is asked; None where only recorded answers are judged.
        sut_uid: who answers, or has answered.
        given: gives the answers instead of a SUT.
        annotators: judge each completion, by the test's own names.
        chosen: names those that judge the completions of a prompt; None for all.
        measurer: measures.
        tally: the pair's counts.
        turns: of the items that are answered.
        options: of the run, laid over each prompt's; None where the run asks for none.
        repeats: how often each prompt is asked.
        reduce: makes one measurement of those of the repeats, some of which may have failed.
    """

    sut: Target | None
    sut_uid: str
    given: Callable[[PromptWithContext], SUTResponse] | None
    annotators: Mapping[str, Target]
    chosen: Callable[[PromptWithContext], Collection[str]] | None
    measurer: Measurer
    tally: Tally
    turns: Turns
    options: SUTOptions | None
    repeats: int
    reduce: Reducer

    async def process(self, index: int, item: TestItem) -> ItemRecord:
        """Work on an item until it has a record.

        Raises:
            RunStoppedError: no call may be sent any more; the item is not done.
        """
        answers: list[Answered] = []
        failed: Failed = {}
        try:
            await self._ask_all(item, answers, failed)
            return await self.judged(index, item, answers, failed)
        except StageError as failure:
            return self.failed(index, item, answers, failure)
        except Exception as error:
            if isinstance(error, RunStoppedError):
                raise
            # A defect, of ours or of an object of an author's: it shall not end the other items.
            return self.failed(index, item, answers, StageError("measure", self.measurer.uid, error))

    async def judged(
        self, index: int, item: TestItem, answers: Sequence[Answered], failed: Failed
    ) -> ItemRecord:
        """Annotate and measure answers, but those of failed repeats.

        Raises:
            StageError: an annotator or the test failed.
        """
        if self.annotators:
            try:
                await self._annotate_all([one for one in answers if one.repeat not in failed], failed)
            except StageError as failure:
                return await self._failed_in_part(index, item, answers, failure, whole=not failed)
        if self.turns.needed:
            await self.turns.turn()
        try:
            interactions = tuple([one.recorded() for one in answers])
            measured, each = await self._measured_all(item, interactions, failed)
        except BaseException as error:
            if is_from_outside(error) or isinstance(error, StageError):
                raise
            raise StageError("measure", self.measurer.uid, as_exception(error)) from error
        return of_valid(
            TestItemRecord,
            kind="item",
            index=index,
            test_item=item,
            interactions=interactions,
            measurements=measured.values,
            binary=measured.binary,
            repeat_measurements=each,
            failed_repeats=tuple([failed[repeat] for repeat in sorted(failed)]),
            digests=None,
            redacted=False,
        )

    async def _failed_in_part(
        self, index: int, item: TestItem, answers: Sequence[Answered], failure: StageError, *, whole: bool
    ) -> ItemRecord:
        """The record of an item whose annotators failed in part: what the others said is measured all the same.

        Not where the SUT had failed in some repeats (`whole` is False then): a measurement is made of all of them.
        """
        measured = Measured({}, ())
        is_said = whole and any(said for one in answers for said in one.annotations)
        if is_said and self.measurer.measures_in_part and not isinstance(failure.error, RunStoppedError):
            try:
                measured = await self._measured_in_part(item, tuple([one.recorded() for one in answers]))
            except BaseException as error:
                if is_from_outside(error) or isinstance(error, RunStoppedError):
                    raise
                told = f"{type(error).__name__}: {message_of(error).rstrip('.')}"
                add_note(as_exception(failure.error), f"What the others said could not be measured: {told}.")
        record = self.failed(index, item, answers, failure)
        return record.replaced(measurements=measured.values, binary=measured.binary)

    def failed(
        self, index: int, item: TestItem, answers: Sequence[Answered], failure: StageError
    ) -> ItemRecord:
        """The record of a failure.

        Raises:
            RunStoppedError: it was no failure of the item.
        """
        if isinstance(failure.error, RunStoppedError):
            raise failure.error from failure
        record = exception_record(index, item, [one.recorded() for one in answers], failure)
        # It holds frames that hold it: what they hold is freed now, not by some collection.
        failure.__traceback__ = None
        return record

    def _note_failed(self, repeats: Iterable[int], results: Sequence[Any], failed: Failed) -> None:
        """Note the repeats that failed.

        Raises:
            StageError: too few are left to measure the item.
        """
        errors: dict[int, StageError] = {}
        for repeat, result in zip(repeats, results, strict=True):
            if isinstance(result, StageError) and not isinstance(result.error, RunStoppedError):
                errors.setdefault(repeat, result)
            elif isinstance(result, BaseException):
                _raise_first(results)
        left = self.repeats - len(failed) - len(errors)
        if errors and left < self.reduce.least:
            if left:
                first, least = next(iter(errors.values())), self.reduce.least
                told = f"{least} of the {self.repeats} repeats are needed for {self.reduce.name}; {left} did not fail."
                add_note(as_exception(first.error), told)
            _raise_first(results)
        failed |= {repeat: repeat_failure(repeat, error) for repeat, error in errors.items()}

    # --- asking ------------------------------------------------------------------------------------------------------

    async def _ask_all(self, item: TestItem, answers: list[Answered], failed: Failed) -> None:
        if self.repeats == 1 and len(item.prompts) == 1:  # nearly always: nothing to gather
            answers.append(Answered.of(item.prompts[0], await self._ask(item.prompts[0], 0)))
            return
        questions = [(prompt, repeat) for repeat in range(self.repeats) for prompt in item.prompts]
        responses = await all_done([self._ask(prompt, repeat) for prompt, repeat in questions])
        for (prompt, repeat), response in zip(questions, responses, strict=True):
            if isinstance(response, SUTResponse):
                answers.append(Answered.of(prompt, response, repeat))
        self._note_failed([repeat for _, repeat in questions], responses, failed)

    async def _ask(self, prompt: PromptWithContext, repeat: int) -> SUTResponse:
        try:
            if self.given is not None:
                return self.given(prompt)
            if self.sut is None:
                raise TypeError("nobody to ask")  # noqa: TRY301  a defect of ours
            sent: Any = prompt.prompt if self.options is None else prompt.prompt.with_options(self.options)
            return await ask_sut(self.sut, sent, self.tally.sut_calls, repeat)
        except BaseException as error:
            if is_from_outside(error):
                raise
            raise StageError("sut", self.sut_uid, as_exception(error)) from error

    # --- judging -----------------------------------------------------------------------------------------------------

    async def _annotate_all(self, answers: Sequence[Answered], failed: Failed) -> None:
        """Keep annotations, in the order of the test, whichever came first.

        Not done by who awaits them: a failure would stand in a frame that its own error holds.
        """
        places = [
            (answered, place, name)
            for answered in answers
            for place in range(len(answered.annotations))
            for name in (self.annotators if self.chosen is None else self._chosen(answered.prompt))
        ]
        annotations = await all_done([self._annotate(*one) for one in places])
        for (answered, place, name), annotation in zip(places, annotations, strict=True):
            if not isinstance(annotation, BaseException):
                answered.annotations[place][name] = annotation
        self._note_failed([answered.repeat for answered, _, _ in places], annotations, failed)

    def _chosen(self, prompt: PromptWithContext) -> Collection[str]:
        """The annotators that the test wants for a prompt."""
        try:
            return checked_choice(self.chosen(prompt) if self.chosen is not None else (), self.annotators)
        except BaseException as error:
            if is_from_outside(error):
                raise
            raise StageError("annotator", self.measurer.uid, as_exception(error)) from error

    async def _annotate(self, answered: Answered, place: int, name: str) -> Any:
        target = self.annotators[name]
        annotator: Any = target.owner
        try:
            completions = answered.response.completions
            cost = cost_of_each(answered.response.usage, len(completions))
            paces = target.paces
            request = paces.request.of(request_of, annotator, answered.prompt, completions[place], cost)
            called = await target.call(request, self.tally.annotator_calls)
            try:
                annotation = paces.response.of(annotator.translate_response, request, called.response)
                return check_exact(annotation, f"The annotation '{name}'")
            except Exception as error:
                tell_of_kept(target, error)
                raise
        except BaseException as error:
            if is_from_outside(error):
                raise
            raise StageError("annotator", annotator.uid, as_exception(error)) from error

    async def _measured_all(
        self, item: TestItem, interactions: Interactions, failed: Failed
    ) -> tuple[Measured, tuple[dict[str, float], ...]]:
        """The item's measurements, and where prompts were repeated those of each repeat that did not fail."""
        if self.repeats == 1:
            return await self.measurer.measure(_of_repeat(0, item, interactions)), ()
        left = [repeat for repeat in range(self.repeats) if repeat not in failed]
        results = await all_done([self._measured(_of_repeat(repeat, item, interactions)) for repeat in left])
        self._note_failed(left, results, failed)
        several: list[Measured] = [one for one in results if isinstance(one, Measured)]
        each = tuple(one.values for one in several)
        values = reduced(each, self.reduce)
        return Measured(
            values, tuple(name for name in values if all(name in one.binary for one in several))
        ), each

    async def _measured(self, answered: TestItemAnnotations) -> Measured:
        """The measurements of one repeat."""
        try:
            return await self.measurer.measure(answered)
        except BaseException as error:
            if is_from_outside(error):
                raise
            raise StageError("measure", self.measurer.uid, as_exception(error)) from error

    async def _measured_in_part(self, item: TestItem, interactions: Interactions) -> Measured:
        """What can be measured in all repeats of an item."""
        several = [
            await self.measurer.measure_in_part(_of_repeat(repeat, item, interactions))
            for repeat in range(self.repeats)
        ]
        names = [name for name in several[0].values if all(name in one.values for one in several)]
        values = several[0].values
        if self.repeats > 1:
            values = reduced([{name: one.values[name] for name in names} for one in several], self.reduce)
        binary = tuple([name for name in names if all(name in one.binary for one in several)])
        return Measured(values, binary)


def _of_repeat(repeat: int, item: TestItem, interactions: Interactions) -> TestItemAnnotations:
    """An item with the answers of one repeat."""
    own = tuple([one for one in interactions if one.repeat == repeat])
    return of_valid(TestItemAnnotations, test_item=item, interactions=own)


def checked_choice(given: Iterable[str], annotators: Collection[str]) -> Collection[str]:
    """The names that `choose_annotators` returned, each once.

    Raises:
        DefinitionError: it returned something else, or names one that there is not.
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


async def all_done(work: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Results or exceptions, in order; what is paid is waited for, whatever fails beside it."""
    if len(work) == 1:
        try:
            return [await work[0]]
        except StageError as failure:
            return [failure]
    return await asyncio.gather(*work, return_exceptions=True)


def _raise_first(results: Sequence[Any]) -> None:
    """Raise what failed; that no call may be sent any more comes first, since the item is not done then.

    It takes the traces of all along, since the others are not told of.
    """
    failures = [one for one in results if isinstance(one, BaseException)]
    if not failures:
        return
    traces = tuple(trace for one in failures if isinstance(one, StageError) for trace in one.traces)
    stopped = [
        one for one in failures if isinstance(one, StageError) and isinstance(one.error, RunStoppedError)
    ]
    for failure in [*stopped, *failures]:
        if isinstance(failure, StageError):
            failure.traces = traces
        raise failure

"""The answers to the prompts of an item: those of a SUT that is asked, or of cases that hold theirs.

What the journal of an earlier run answers is in `earlier_run.py`.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelgauge.data.annotations import Interaction, make_interaction
from modelgauge.data.item_records import Failure, ItemRecord
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import SUTOptions
from modelgauge.data.responses import SUTResponse
from modelgauge.engine.bookkeeping.failures import AtStage, StageError, add_note, as_exception, described
from modelgauge.engine.bookkeeping.tally import CallTally
from modelgauge.engine.calls.ask_sut import ask_sut
from modelgauge.engine.calls.call import Target
from modelgauge.engine.items.measurer import Reducer
from modelgauge.engine.items.source import NumberedItem
from modelgauge.engine.loop.together import all_done
from modelgauge.errors import RunStoppedError

Failed = dict[int, Failure]
"""The repeats of an item that failed, while the others are enough to measure it."""


class Answerer:
    """The source of answers to the prompts of items. Only `RecordedAnswers` overrides what follows `answer`."""

    async def answer(
        self, index: int, item: TestItem, answers: list[Interaction], failed: Failed
    ) -> ItemRecord | None:
        """Answer all prompts of an item, in all repeats.

        Args:
            index: its place in the test.
            item: asks the prompts.
            answers: gets each answer, also where another prompt fails.
            failed: gets the repeats that failed, where the others are enough.

        Returns:
            The item's record, where it is known without its annotations and measurements; else None.

        Raises:
            StageError: a prompt has no answer.
        """
        raise NotImplementedError

    def handed_on(self, index: int) -> bytes:
        """Return the data that another process needs to answer an item: a line of JSON without its end, or ""."""
        del index
        return b""

    def take(self, index: int, handed_on: bytes) -> None:
        """Take what the process that made an item handed on."""

    def check(self, make: Callable[[], Iterator[NumberedItem]]) -> None:
        """Compare the test's items with what can be answered, before anything is measured.

        Args:
            make: gives the items.

        Raises:
            RecordError: they do not fit.
        """

    def answered(
        self, items: Iterator[NumberedItem], number: int | None
    ) -> tuple[Iterator[NumberedItem], int | None]:
        """Return the answerable items and their number; None if it is unknown before they are read.

        Args:
            items: of the test.
            number: of these.
        """
        return items, number

    def number(self, known: int | None) -> int | None:
        """Return the number of items that the result covers, including those without an answer.

        Args:
            known: how many items the source has.
        """
        return known

    def notes(self) -> Iterator[str]:
        """Return notes about the answers for readers of the record."""
        yield from ()

    def manifest(self) -> Mapping[str, Any]:
        """Return the fields of `run.json` that describe the source of the answers."""
        return {}


@dataclass(slots=True)
class PromptAnswerer(Answerer):
    """The answers of a SUT or of cases, which are asked one by one.

    Args:
        stage: of who answers, in records of failures.
        ask: answers a prompt; the second argument is the number of the repeat, from 0.
        reduce: how often each prompt is asked, and how the repeats are reduced.
    """

    stage: AtStage
    ask: Callable[[PromptWithContext, int], Awaitable[Interaction]]
    reduce: Reducer

    async def answer(
        self, index: int, item: TestItem, answers: list[Interaction], failed: Failed
    ) -> ItemRecord | None:
        """Ask all prompts at once."""
        del index
        if self.reduce.repeats == 1 and len(item.prompts) == 1:  # nearly always: nothing to gather
            answers.append(await self._ask(item.prompts[0], 0))
            return None
        questions = [(prompt, repeat) for repeat in range(self.reduce.repeats) for prompt in item.prompts]
        results = await all_done([self._ask(*question) for question in questions])
        answers.extend(result for result in results if isinstance(result, Interaction))
        note_failed([repeat for _, repeat in questions], results, failed, self.reduce)
        return None

    async def _ask(self, prompt: PromptWithContext, repeat: int) -> Interaction:
        with self.stage:
            return await self.ask(prompt, repeat)


def asking_sut(
    sut: Target, calls: CallTally, options: SUTOptions
) -> Callable[[PromptWithContext, int], Awaitable[Interaction]]:
    """Return a function that sends a prompt to a SUT.

    Args:
        sut: is asked.
        calls: counts the answers.
        options: of the run, laid over each prompt's.
    """
    over = None if options == SUTOptions() else options
    return lambda prompt, repeat: ask_sut(sut, prompt, calls, repeat, over)


def asking_cases(
    given: Callable[[PromptWithContext], SUTResponse],
) -> Callable[[PromptWithContext, int], Awaitable[Interaction]]:
    """Return a function that looks up the given answer of a case.

    Args:
        given: returns the answer to a prompt.
    """

    async def ask(prompt: PromptWithContext, repeat: int) -> Interaction:
        return make_interaction(prompt, given(prompt), repeat)

    return ask


def note_failed(repeats: Iterable[int], results: Sequence[Any], failed: Failed, reduce: Reducer) -> None:
    """Note the repeats that failed.

    Args:
        repeats: of each result.
        results: values or exceptions.
        failed: gets the failures, by repeat.
        reduce: how many repeats there are, and how they are reduced.

    Raises:
        StageError: too few are left to measure the item.
    """
    errors: dict[int, StageError] = {}
    for repeat, result in zip(repeats, results, strict=True):
        if isinstance(result, StageError) and not isinstance(result.error, RunStoppedError):
            errors.setdefault(repeat, result)
        elif isinstance(result, BaseException):
            _raise_first(results)
    left = reduce.repeats - len(failed) - len(errors)
    if errors and left < reduce.least:
        if left:
            first, needed = next(iter(errors.values())), f"{reduce.least} of the {reduce.repeats} repeats"
            note = f"{needed} are needed for {reduce.name}; {left} did not fail."
            add_note(as_exception(first.error), note)
        _raise_first(results)
    failed |= {repeat: described(error, repeat) for repeat, error in errors.items()}


def _raise_first(results: Sequence[Any]) -> None:
    """Raise the first failure, with the traces of all; one that stops all calls first, since it is not the item's."""
    failures = [result for result in results if isinstance(result, BaseException)]
    if not failures:
        return
    traces = tuple(
        trace for failure in failures if isinstance(failure, StageError) for trace in failure.traces
    )
    stopped = [
        failure
        for failure in failures
        if isinstance(failure, StageError) and isinstance(failure.error, RunStoppedError)
    ]
    for failure in [*stopped, *failures]:
        if isinstance(failure, StageError):
            failure.traces = traces
        raise failure

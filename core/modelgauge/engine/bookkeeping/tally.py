"""Counts of one pair, as they grow during a run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from modelgauge.data.annotations import completions_of
from modelgauge.data.base import of_valid
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.results import CallCounts, Counts, Spent
from modelgauge.data.spans import Trace
from modelgauge.errors import EmptyAnswerError
from modelgauge.wording.phrases import counted, first_few

_MOST_NAMED = 5
_EMPTY = EmptyAnswerError.__name__
_FAILED_AT = {"sut": "sut_errors", "annotator": "annotator_errors", "measure": "unscored"}


@dataclass(slots=True)
class CallTally:
    """Calls of one kind, and the metrics of observed functions in them: their names with that of the span.

    Attributes:
        unkept: whose calls hold which secret, and so are not in the cache; of how many of those that were paid.
    """

    paid: int = 0
    cached: int = 0
    metrics: set[str] = field(default_factory=set)
    unkept: Counter[str] = field(default_factory=Counter)

    def add(self, paid: int, cached: int, metrics: Iterable[str], unkept: Mapping[str, int]) -> None:
        """Add what a worker has counted."""
        self.paid += paid
        self.cached += cached
        self.metrics.update(metrics)
        self.unkept.update(unkept)

    def note_metrics(self, trace: Trace) -> None:
        """Note the metrics of an app's observed functions."""
        for span in trace.spans:
            self.metrics.update(f"{metric} of '{span.name}'" for metric in span.metrics)

    def unjudged(self) -> tuple[str, ...]:
        """The note that these metrics judged nothing, where there are any: a SUT does not know who judges it."""
        if not self.metrics:
            return ()
        named = first_few(sorted(self.metrics), _MOST_NAMED)
        note = f"Metrics of observed functions judged nothing here: {named}."
        where = "evaluate(goldens=…, observed_callback=…) and assert_test(golden=…, observed_callback=…)"
        return (f"{note} They judge in {where}; in this run only the test's own do.",)

    def repaid(self) -> Iterator[str]:
        """The notes of what a further run pays for again, since it is not in the cache."""
        for what, number in self.unkept.items():
            yield f"Not cached, so that another run pays again: {counted(number, 'call')} of {what}."

    def frozen(self) -> CallCounts:
        return of_valid(CallCounts, paid=self.paid, cached=self.cached)


@dataclass(slots=True)
class Tally:
    """Everything that a pair counts, in all its sessions.

    Attributes:
        items: how many were taken from the test.
        outcomes: what became of those that are committed, by the fields of `Counts`.
        attempts: calls that were sent, further attempts included.
        tokens: input and output tokens that SUTs reported.
        cost: US dollars that SUTs reported.
        left_out: the number of answers in which each field was not understood.
        unkept_before: calls of earlier sessions that hold a secret, and so are not in the cache.
    """

    items: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    sut_calls: CallTally = field(default_factory=CallTally)
    annotator_calls: CallTally = field(default_factory=CallTally)
    judge_calls: CallTally = field(default_factory=CallTally)
    attempts: int = 0
    tokens: int = 0
    cost: float = 0.0
    left_out: Counter[str] = field(default_factory=Counter)
    unkept_before: int = 0

    @property
    def calls(self) -> tuple[CallTally, CallTally, CallTally]:
        """The tallies of SUT calls, annotator calls and judge calls."""
        return self.sut_calls, self.annotator_calls, self.judge_calls

    @property
    def failed(self) -> int:
        """Items that ended in an exception record."""
        return sum(self.outcomes[name] for name in _FAILED_AT.values())

    @property
    def unkept(self) -> int:
        """Paid calls that hold a secret, and so are not in the cache."""
        return self.unkept_before + sum([sum(calls.unkept.values()) for calls in self.calls])

    def count(self, record: ItemRecord) -> None:
        """Count a record that is committed."""
        if record.failure is None:
            self.outcomes["scored"] += 1
            if record.failures:
                self.outcomes["partial"] += 1
                self.outcomes["failed_repeats"] += len(record.failures)
        else:
            self.outcomes[_FAILED_AT[record.failure.stage]] += 1
            self.outcomes["blocked"] += record.failure.is_blocked
        self.outcomes["empty"] += sum([failure.error_type == _EMPTY for failure in record.failures])
        for annotated in completions_of(record.interactions):
            self.outcomes["empty"] += annotated.completion.is_empty
            self.left_out.update(annotated.completion.left_out)

    def notes(self) -> Iterator[str]:
        """Yield the notes for the record about these counts."""
        if self.left_out:
            fields = [f"{name} ({number:,})" for name, number in self.left_out.most_common()]
            yield f"Fields of answers that were not understood are left out: {first_few(fields, _MOST_NAMED)}."
        yield from self.sut_calls.unjudged()
        for calls in self.calls:
            yield from calls.repaid()

    def frozen(self, not_begun: int | None = None) -> Counts:
        """The counts as a record has them.

        Args:
            not_begun: how many items were never taken; None if nobody knows.
        """
        return Counts(
            items=self.items,
            not_begun=not_begun,
            **self.outcomes,
            sut_calls=self.sut_calls.frozen(),
            annotator_calls=self.annotator_calls.frozen(),
            judge_calls=self.judge_calls.frozen(),
            unkept=self.unkept,
        )

    def spent(self) -> Spent:
        """The counts of all calls, for the record."""
        return Spent(attempts=self.attempts, tokens=self.tokens, cost_usd=self.cost)


current_tally: ContextVar[Tally] = ContextVar("modelgauge_tally")
"""The counts of the pair whose item is being worked on: a judge's question finds them here."""

judge_keys: ContextVar[list[str]] = ContextVar("modelgauge_judge_keys")
"""The cache keys of what judges were answered while they annotate; the one list for all questions of a prompt."""

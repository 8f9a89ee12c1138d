"""Counts of one pair, as they grow during a run.

They change several times in each call, so they are plain numbers here; `Tally.used` and `Tally.counts` make values.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from modelgauge.data.annotations import list_completions
from modelgauge.data.base import of_valid
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.results import CallCounts, CallsByKind, Counts, TotalUsage
from modelgauge.data.spans import Trace
from modelgauge.errors import EmptyAnswerError
from modelgauge.wording.phrases import counted, first_few

_MOST_NAMED = 5
_EMPTY = EmptyAnswerError.__name__
_FAILED_AT = {"sut": "sut_errors", "annotator": "annotator_errors", "measure": "unscored"}


@dataclass(slots=True)
class CallTally:
    """Counts of one kind of calls, and the metrics of observed functions seen in them, with the names of their
    spans.

    Attributes:
        unkept: whose calls hold which secret, and so are not in the cache; of how many of those that were paid.
    """

    paid: int = 0
    cached: int = 0
    metrics: set[str] = field(default_factory=set)
    unkept: Counter[str] = field(default_factory=Counter)

    def add(self, paid: int, cached: int, metrics: Iterable[str], unkept: Mapping[str, int]) -> None:
        """Add a worker's counts."""
        self.paid += paid
        self.cached += cached
        self.metrics.update(metrics)
        self.unkept.update(unkept)

    def note_metrics(self, trace: Trace) -> None:
        """Record the metrics of an app's observed functions."""
        for span in trace.spans:
            self.metrics.update(f"{metric} of '{span.name}'" for metric in span.metrics)

    def unjudged(self) -> tuple[str, ...]:
        """Return a note if these metrics judged nothing: a SUT does not know its judges."""
        if not self.metrics:
            return ()
        named = first_few(sorted(self.metrics), _MOST_NAMED)
        note = f"Metrics of observed functions judged nothing here: {named}."
        where = "evaluate(goldens=…, observed_callback=…) and assert_test(golden=…, observed_callback=…)"
        return (f"{note} They judge in {where}; in this run only the test's own do.",)

    def repaid(self) -> Iterator[str]:
        """Return notes about calls that another run pays for again because they are not in the cache."""
        for what, number in self.unkept.items():
            yield f"Not cached, so that another run pays again: {counted(number, 'call')} of {what}."

    @property
    def counts(self) -> CallCounts:
        """The paid and cached calls until now."""
        return of_valid(CallCounts, paid=self.paid, cached=self.cached)


@dataclass(slots=True)
class Tally:
    """All counts of a pair, over all its sessions.

    Attributes:
        before: what earlier sessions used.
        items: how many were taken from the test.
        outcomes: what became of those that are committed, by the fields of `Outcomes`.
        attempts: sent in this session; see `Spent`.
        tokens: reported in this session.
        cost: reported in this session, in US dollars.
        forward_passes: reported in this session.
        left_out: the number of answers in which each field was not understood.
    """

    before: TotalUsage = field(default_factory=TotalUsage)
    items: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    sut_calls: CallTally = field(default_factory=CallTally)
    annotator_calls: CallTally = field(default_factory=CallTally)
    judge_calls: CallTally = field(default_factory=CallTally)
    attempts: int = 0
    tokens: int = 0
    cost: float = 0.0
    forward_passes: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> tuple[CallTally, CallTally, CallTally]:
        """The tallies of SUT calls, annotator calls and judge calls."""
        return self.sut_calls, self.annotator_calls, self.judge_calls

    @property
    def failed(self) -> int:
        """Items that ended in an exception record."""
        return sum(self.outcomes[name] for name in _FAILED_AT.values())

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
        for annotated in list_completions(record.interactions):
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

    def used(self, seconds: float = 0.0) -> TotalUsage:
        """Return what all sessions used until now.

        Args:
            seconds: wall time of this session.
        """
        return self.before + of_valid(
            TotalUsage,
            sut_calls=self.sut_calls.counts,
            annotator_calls=self.annotator_calls.counts,
            judge_calls=self.judge_calls.counts,
            unkept=sum([sum(calls.unkept.values()) for calls in self.calls]),
            attempts=self.attempts,
            tokens=self.tokens,
            cost_usd=self.cost,
            forward_passes=self.forward_passes,
            seconds=seconds,
        )

    def counts(self, used: TotalUsage, not_begun: int | None = None) -> Counts:
        """Return the counts of a record.

        Args:
            used: by all sessions.
            not_begun: how many items were never taken; None if nobody knows.
        """
        return Counts(items=self.items, not_begun=not_begun, **self.outcomes, **dict(CallsByKind() + used))


current_tally: ContextVar[Tally] = ContextVar("modelgauge_tally")
"""The counts of the pair whose item is being worked on: a judge's question finds them here."""

judge_keys: ContextVar[list[str]] = ContextVar("modelgauge_judge_keys")
"""The cache keys of what judges were answered while they annotate; the one list for all questions of a prompt."""

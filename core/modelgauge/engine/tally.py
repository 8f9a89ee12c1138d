"""Counts of one pair, as they grow during a run."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from modelgauge.data.records import CallCounts, Counts, ItemRecord, Spent, TestItemRecord
from modelgauge.data.spans import Trace

_MOST_NAMED = 5


@dataclass(slots=True)
class CallTally:
    """Calls of one kind, and the metrics of observed functions in them: their names with that of the span."""

    paid: int = 0
    cached: int = 0
    metrics: set[str] = field(default_factory=set)

    def note_metrics(self, trace: Trace) -> None:
        """Note the metrics of an app's observed functions."""
        for span in trace.spans:
            self.metrics.update(f"{metric} of '{span.name}'" for metric in span.metrics)

    def unjudged(self) -> tuple[str, ...]:
        """The note that these metrics judged nothing, where there are any: a SUT does not know who judges it."""
        if not self.metrics:
            return ()
        named = sorted(self.metrics)
        more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
        told = f"Metrics of observed functions judged nothing here: {', '.join(named[:_MOST_NAMED])}{more}."
        where = "evaluate(goldens=…, observed_callback=…) and assert_test(golden=…, observed_callback=…)"
        return (f"{told} They judge in {where}; in this run only the test's own do.",)

    def frozen(self) -> CallCounts:
        return CallCounts(paid=self.paid, cached=self.cached)


@dataclass(slots=True)
class Tally:
    """Everything that a pair counts, in all its sessions.

    Attributes:
        items: how many were taken from the test.
        attempts: calls that were sent, further attempts included.
        tokens: input and output tokens that SUTs reported.
        cost: US dollars that SUTs reported.
    """

    items: int = 0
    scored: int = 0
    sut_errors: int = 0
    annotator_errors: int = 0
    unscored: int = 0
    sut_calls: CallTally = field(default_factory=CallTally)
    annotator_calls: CallTally = field(default_factory=CallTally)
    judge_calls: CallTally = field(default_factory=CallTally)
    attempts: int = 0
    tokens: int = 0
    cost: float = 0.0

    def count(self, record: ItemRecord) -> None:
        """Count a record that is committed."""
        if isinstance(record, TestItemRecord):
            self.scored += 1
        elif record.stage == "sut":
            self.sut_errors += 1
        elif record.stage == "annotator":
            self.annotator_errors += 1
        else:
            self.unscored += 1

    def frozen(self, not_begun: int | None = None) -> Counts:
        """The counts of the record.

        Args:
            not_begun: how many items were never taken; None where nobody knows.
        """
        return Counts(
            items=self.items,
            not_begun=not_begun,
            scored=self.scored,
            sut_errors=self.sut_errors,
            annotator_errors=self.annotator_errors,
            unscored=self.unscored,
            sut_calls=self.sut_calls.frozen(),
            annotator_calls=self.annotator_calls.frozen(),
            judge_calls=self.judge_calls.frozen(),
        )

    def spent(self) -> Spent:
        """What the record says of all calls."""
        return Spent(attempts=self.attempts, tokens=self.tokens, cost_usd=self.cost)


current_tally: ContextVar[Tally] = ContextVar("modelgauge_tally")
"""The counts of the pair whose item is being worked on: a judge's question finds them here."""

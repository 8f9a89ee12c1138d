"""The summary of a comparison and its gates, as a build shows it: one table, and the items that were won and lost."""

from collections.abc import Iterator, Sequence
from itertools import islice

from modelgauge.comparison.gates import GateOutcome
from modelgauge.comparison.result import Comparison
from modelgauge.comparison.units import choose_unit
from modelgauge.documents.document import Block, Fact, FactList, Heading, Sentences, TableBlock, TableColumn
from modelgauge.reports.comparisons.report import answers, differing, question
from modelgauge.reports.comparisons.tables import values_text
from modelgauge.reports.comparisons.words import VERDICTS
from modelgauge.wording.figures import p_text
from modelgauge.wording.phrases import counted

_MOST_ROWS = 500  # GitHub takes a summary of 1 MiB
_MOST_FLIPS = 10  # of each measurement and candidate, lost and won


def summary_document(comparison: Comparison, outcomes: Sequence[GateOutcome]) -> Iterator[Block]:
    """Return the summary of a comparison and its gates.

    Args:
        comparison: what was found.
        outcomes: what gates say of it.
    """
    yield Heading(question(comparison))
    yield Sentences([*answers(comparison)])
    if outcomes:
        failed = [outcome for outcome in outcomes if not outcome.passed]
        passed = f"{len(outcomes) - len(failed):,} of {counted(len(outcomes), 'gate')} passed."
        facts = [Fact("Failed", f"{outcome.about}: {outcome.why}") for outcome in failed]
        yield FactList([*facts, Fact("", passed)])
    yield _table(comparison)
    if flipped := [*_flipped(comparison)]:
        yield Sentences(flipped)
    if differs := differing(comparison):
        yield Sentences(differs, title="Also differs")
    if comparison.notes:
        yield Sentences(comparison.notes, title="Notes")


def _table(comparison: Comparison) -> TableBlock:
    rows = comparison.comparisons[:_MOST_ROWS]
    more = len(comparison.comparisons) - len(rows)
    units = [choose_unit(row.value_range) for row in rows]
    p_values = ["" if row.p_adjusted is None else p_text(row.p_adjusted, comparison.alpha) for row in rows]
    columns = {
        "Test": [row.test for row in rows],
        "Measurement": [row.measurement for row in rows],
        "Candidate": [row.candidate for row in rows],
        "Values": [*map(values_text, rows)],
        "Difference": [
            f"{unit.signed(row.difference, row.stderr)} {unit.name}"
            for unit, row in zip(units, rows, strict=True)
        ],
        "95 % interval": [
            unit.between(row.interval, row.stderr) for unit, row in zip(units, rows, strict=True)
        ],
        "Adjusted p": p_values,
        "Verdict": [VERDICTS[row.verdict] for row in rows],
    }
    return TableBlock(
        [TableColumn(head, cells) for head, cells in columns.items()],
        note=f"{counted(more, 'more comparison is', 'more comparisons are')} left out." if more else "",
    )


def _flipped(comparison: Comparison) -> Iterator[str]:
    """Name some items that each candidate lost and won, the largest differences first."""
    numbers = {
        (row.test, row.measurement, row.candidate, won): row.wins if won else row.losses
        for row in comparison.comparisons
        for won in (False, True)
    }
    ids: dict[tuple[str, str, str, bool], list[str]] = {}
    for flip in islice(comparison.iter_flips(_MOST_FLIPS), _MOST_ROWS):
        ids.setdefault((flip.test, flip.measurement, flip.candidate, flip.won), []).append(flip.item_id)
    for (test, measurement, candidate, won), shown in ids.items():
        more = numbers[test, measurement, candidate, won] - len(shown)
        rest = f" and {more:,} more" if more else ""
        yield f"{'Won' if won else 'Lost'} by {candidate} ({test}, {measurement}): {', '.join(shown)}{rest}"

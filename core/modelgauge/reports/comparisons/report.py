"""Report of a comparison: the answer in words, then the numbers with their intervals drawn.

The tables are in `tables.py`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from modelgauge.comparison.difference import MarginTest, MeasurementComparison
from modelgauge.comparison.families import Family
from modelgauge.comparison.result import Comparison, System
from modelgauge.comparison.units import choose_unit
from modelgauge.comparison.verdicts import found_difference
from modelgauge.data.results import GIVEN
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import Block, Fact, FactList, Heading, RoomyTable, Sentences
from modelgauge.reports.comparisons.tables import difference_tables, leaderboard_blocks, matrix_table
from modelgauge.reports.comparisons.words import METHODS, VERDICTS, listed, short_json
from modelgauge.wording.figures import figure, p_phrase
from modelgauge.wording.phrases import counted, one_line

_DETAILED = 6  # comparisons that are answered one by one, and candidates that are named in the question
_MOST_OF_A_LINE = 2000  # characters: names may be of any length, and hold line breaks
_MANY = 30  # comparisons, of which none is shown in full where all stand in a matrix
_MOST_LINES = 3  # of what is said of single tests


def comparison_document(comparison: Comparison, *, next_command: str = "") -> Iterator[Block]:
    """Return the report of a comparison.

    Args:
        comparison: what was found.
        next_command: what shows more; empty if nothing does.
    """
    yield Heading(one_line(question(comparison), _MOST_OF_A_LINE))
    yield Sentences([one_line(answer, _MOST_OF_A_LINE) for answer in answers(comparison)])
    matrix, differences = matrix_table(comparison), difference_tables(comparison)
    if matrix is None:
        yield from differences
    else:
        many = len(comparison.comparisons) > _MANY
        yield RoomyTable(matrix, [*_means(comparison)] if many else differences, otherwise=differences)
    yield from leaderboard_blocks(comparison)
    more = [Fact("next", next_command, is_whole=True)] if next_command else []
    yield FactList([*facts(comparison), *more])


def _means(comparison: Comparison) -> Iterator[Block]:
    """Return the differences of means over tests, beside a matrix of many comparisons."""
    yield from difference_tables(comparison, only_means=True)
    text = "The interval of each comparison: with fewer candidates, or with --json."
    yield Sentences([text], look="dim")


def question(comparison: Comparison) -> str:
    """Return the question that a comparison answers."""
    tests = list(dict.fromkeys(row.test for row in comparison.comparisons))
    on = f" on {tests[0]}" if len(tests) == 1 else f" on {counted(len(tests), 'test')}"
    baseline, *labels = comparison.labels
    if len(labels) == 1:
        return f"Is {labels[0]} better than {baseline}{on}?"
    named = listed(labels) if len(labels) <= _DETAILED else counted(len(labels), "candidate")
    return f"Are {named} better than {baseline}{on}?"


def answers(comparison: Comparison) -> Iterator[str]:
    """Answer for test cases that pass or fail, on average over tests, then by each comparison.

    Of many comparisons the verdicts are counted.
    """
    rows = comparison.comparisons
    yield from _changed_cases(comparison)
    several = len({mean.measurement for mean in comparison.macro}) > 1
    for mean in comparison.macro:
        yield f"{mean.measurement}: {mean.verdict_text}" if several else mean.verdict_text
    if len(rows) <= _DETAILED:
        for row in rows:
            about = ", ".join(distinct_names(row, rows, "test", "measurement"))
            yield f"{about}: {row.verdict_text}" if about else row.verdict_text
        return
    for system in comparison.candidates:
        verdicts = Counter(row.verdict for row in rows if row.candidate == system.label)
        counts = [f"{word} in {verdicts[name]:,}" for name, word in VERDICTS.items() if verdicts[name]]
        yield f"{system.label}: {', '.join(counts)} of {counted(verdicts.total(), 'comparison')}."


def _changed_cases(comparison: Comparison) -> Iterator[str]:
    """Count the test cases that pass in one run and fail in the other."""
    systems = {system.label: system for system in comparison.candidates}
    pairs = [
        (row, pair)
        for row, pair in zip(comparison.comparisons, comparison.paired, strict=False)
        if row.measurement == PASSED
    ]
    for row, pair in pairs[:_DETAILED]:
        before, after = pair.before.values[PASSED], pair.after.values[PASSED]
        judged = ~(np.isnan(before) | np.isnan(after))
        passed, passes = before[judged] >= 1, after[judged] >= 1  # in all repeats
        counts = int((passed & ~passes).sum()), int((~passed & passes).sum()), int((passed & passes).sum())
        about = ", ".join(distinct_names(row, [row for row, _ in pairs], "test", "candidate"))
        yield (f"{about}: " if about else "") + _changes(counts, comparison.baseline, systems[row.candidate])


def _changes(counts: tuple[int, int, int], baseline: System, candidate: System) -> str:
    """Say how many cases pass with the baseline alone and with the candidate alone."""
    broken, fixed, both = counts
    if not broken and not fixed:
        return f"No test case passes in one run and fails in the other; {both:,} pass in both."
    first, other = (broken, fixed) if broken else (fixed, broken)
    passes, fails = ("passes", "fails") if first == 1 else ("pass", "fail")
    was, then, now = ("passed", passes, fails) if broken else ("failed", fails, passes)
    if baseline.sut_uid == candidate.sut_uid:
        change = f"{was} before and {now} now"
    else:
        change = f"{then} with {baseline.label} and {now} with {candidate.label}"
    return f"{first:,} {change}; {f'{other:,}' if other else 'none'} the other way."


def distinct_names(
    row: MeasurementComparison, rows: Sequence[MeasurementComparison], *fields: str
) -> list[str]:
    """Return what tells a comparison from others: its names in those of the fields in which they differ."""
    return [getattr(row, name) for name in fields if len({getattr(other, name) for other in rows}) > 1]


# --- facts beside the tables ------------------------------------------------------------------------


def facts(comparison: Comparison, *, most_lines: int | None = _MOST_LINES) -> Iterator[Fact]:
    """Return what else a reader should know.

    Args:
        comparison: what was found.
        most_lines: the most lines about how items were paired; None for all.
    """
    rows = comparison.comparisons
    for system in (comparison.baseline, *comparison.candidates):
        if len(system.label) < len(system.sut_uid) and system.sut_uid != GIVEN:
            yield Fact("system", f"{system.label}: {system.sut_uid}")
    yield from _pairing(rows, most_lines)
    if len(rows) == 1:
        yield from _precision(rows[0], Family.of(comparison))
    for row in rows:
        if row.groups_text is not None:
            about = _of(row, rows)
            yield Fact("groups", f"{about}: {row.groups_text}" if about else row.groups_text)
    if comparison.family > 1:
        yield Fact(
            "family",
            f"{comparison.family:,} p values, adjusted together (Holm); intervals are not adjusted",
        )
    for text in differing(comparison) or ["in nothing else that the runs record"]:
        yield Fact("differs", text)
    for note in comparison.notes:
        yield Fact("note", note)


def _pairing(rows: Sequence[MeasurementComparison], most: int | None) -> Iterator[Fact]:
    """Say how many items were paired, and by which key; of several tests those first that lack most."""
    found: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row.n_paired - items_in(row)):
        found.setdefault(_paired(row, by_side=len(rows) <= _DETAILED), []).append(_of(row, rows))
    for place, (text, names) in enumerate(found.items()):
        if place == most:
            yield Fact("paired", f"{counted(len(found) - place, 'more kind')} of this; --json has all")
            return
        of = "" if len(found) == 1 else f"{names[0] if len(names) == 1 else f'{len(names):,} comparisons'}: "
        yield Fact("paired", f"{of}{text}")


def items_in(row: MeasurementComparison) -> int:
    """Return how many items the two runs have, paired or not."""
    return row.n_paired + row.n_failed + row.n_unmeasured + row.n_only_baseline + row.n_only_candidate


def _paired(row: MeasurementComparison, *, by_side: bool) -> str:
    parts = {
        "measured in one run alone": row.n_unmeasured,
        "only in the baseline": row.n_only_baseline,
        f"only in {row.candidate}": row.n_only_candidate,
    }
    lacking = [f"{row.n_failed:,} failed{_by_side(row) if by_side else ''}"] if row.n_failed else []
    lacking += [f"{number:,} {where}" for where, number in parts.items() if number]
    return "; ".join([f"{row.n_paired:,} of {counted(items_in(row), 'item')}, by {row.matched_by}", *lacking])


def _by_side(row: MeasurementComparison) -> str:
    """Say on which side items failed, in brackets; nothing where it is not known."""
    both = row.n_failed_baseline + row.n_failed_candidate - row.n_failed
    failed = {
        "in the baseline alone": row.n_failed_baseline - both,
        f"in {row.candidate} alone": row.n_failed_candidate - both,
        "in both": both,
    }
    where = ", ".join(f"{number:,} {side}" for side, number in failed.items() if number > 0)
    return f" ({where})" if where else ""


def _of(row: MeasurementComparison, rows: Sequence[MeasurementComparison]) -> str:
    """Name the comparison that a fact is of, where there are several."""
    of = ", ".join(distinct_names(row, rows, "test", "measurement"))
    return " on ".join(filter(None, [*distinct_names(row, rows, "candidate"), of]))


def _precision(row: MeasurementComparison, family: Family) -> Iterator[Fact]:
    """Say how sure the only comparison is, and what pairing bought."""
    unit = choose_unit(row.value_range)
    if row.bounds is not None and row.bounds[0] < row.bounds[1]:
        around = (
            f", 95 % interval {unit.between(row.bounds_interval, row.stderr)}" if row.bounds_interval else ""
        )
        yield Fact(
            "bounds",
            (
                f"{unit.counted(unit.between(row.worst_to_best, row.stderr))} if all missing items were worst or best"
                f"{around}"
            ),
        )
    if row.stderr is not None and row.stderr_unpaired is not None:
        error, apart = (
            figure(unit.scale * stderr, unit.scale * row.stderr)
            for stderr in (row.stderr, row.stderr_unpaired)
        )
        related = "" if row.correlation is None else f" (correlation {figure(row.correlation, 0.1)})"
        yield Fact("error", f"{unit.counted(error)}; on two separate samples it would be {apart}{related}")
    mde = found_difference(row, family)
    if mde is not None:
        found = unit.counted(figure(unit.scale * mde, unit.scale * mde))
        yield Fact("finds", f"a true difference of {found} 4 times in 5")
    if row.equivalence is not None:
        yield Fact("margin", _margin(row.equivalence, row, family.alpha))
    if row.repeats is not None and row.repeats.between + row.repeats.within:
        share = 100 * row.repeats.within / (row.repeats.between + row.repeats.within)
        yield Fact(
            "repeats",
            f"{share:.0f} % of the variance is between answers to one item: more repeats make it less",
        )
    if row.n_clusters is not None:
        yield Fact("clusters", f"{row.n_clusters:,}; items of one are not independent")
    kinds = {"p": row.p_kind, "interval": row.interval_kind}
    by = [f"{what} by {METHODS.get(kind, kind)}" for what, kind in kinds.items() if kind]
    if by:
        yield Fact("method", ", ".join(by))


def _margin(found: MarginTest, row: MeasurementComparison, alpha: float) -> str:
    """Return a margin with the interval that its one-sided tests go by, and their p values."""
    unit = choose_unit(row.value_range)
    margin = unit.counted(figure(unit.scale * found.margin))
    interval = f"{100 * (1 - 2 * alpha):.0f} % interval {unit.between(found.interval, row.stderr)}"
    p_values = {"not worse": found.p_not_worse, "no larger difference": found.p_equivalent}
    shown = [f"{what} {p_phrase(p, alpha)}" for what, p in p_values.items() if p is not None]
    missing = ["with missing items at their worst"] if row.n_failed else []
    return "; ".join([margin, *([interval] if found.interval else []), *shown, *missing])


def differing(comparison: Comparison) -> list[str]:
    """Say in what else runs differ; what several tests and candidates have in common stands once."""
    found = Counter(
        f"{item.kind} {item.name}: {short_json(item.baseline)} -> {short_json(item.candidate_value)}"
        for item in comparison.differs
    )
    return [f"{text} (in {number:,} pairs of runs)" if number > 1 else text for text, number in found.items()]

"""`compare_pairs`: from paired items to a `Comparison`."""

from collections.abc import Iterator, Mapping

from modelgauge.comparison.contrasts import contrast
from modelgauge.comparison.families import adjusted, leaderboards, macro_means
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.paired_items import PairedItems, PairedRuns
from modelgauge.comparison.result import Comparison, MeasurementComparison
from modelgauge.comparison.verdicts import Judge
from modelgauge.errors import UnknownNameError
from modelgauge.wording.did_you_mean import did_you_mean


def compare_pairs(runs: PairedRuns, options: CompareOptions) -> Comparison:
    """Compare each measurement of each test that the baseline and a candidate have in common.

    Raises:
        UnknownNameError: an option names a measurement that no test has.
        InvalidOptionError: the margin is no part of a measurement's range.
        InvalidDataError: a value is outside its range.
    """
    names = _names(runs, options)
    rows, family = adjusted(
        [
            contrast(items, name, options)
            for items in runs.items
            for name in names
            if name in items.baseline_values and name in items.candidate_values
        ]
    )
    judge = Judge(runs.baseline.label, family, options.alpha)
    return Comparison(
        baseline=runs.baseline,
        candidates=runs.candidates,
        alpha=options.alpha,
        family=family,
        comparisons=tuple(judge.judged(row) for row in rows),
        macro=tuple(macro_means(rows)),
        leaderboards=tuple(leaderboards(runs.items, runs.baseline.label, names, options)),
        differs=runs.differs,
        notes=(*runs.notes, *_notes(runs, names, rows, options)),
    )


def _names(runs: PairedRuns, options: CompareOptions) -> list[str]:
    """The measurements to compare, in the order in which tests have them.

    Raises:
        UnknownNameError: an option names one that no test has.
    """
    known = dict.fromkeys(name for items in runs.items for values in _sides(items) for name in values)
    for name in (*options.measurements, *options.lower_is_better, *options.higher_is_better):
        if name not in known:
            raise UnknownNameError(
                f"There is no measurement '{name}' to compare.",
                fix=f"{did_you_mean(name, known)}The measurements are: {', '.join(known) or 'none'}.",
            )
    return [name for name in known if not options.measurements or name in options.measurements]


def _sides(items: PairedItems) -> tuple[Mapping[str, object], Mapping[str, object]]:
    return items.baseline_values, items.candidate_values


def _notes(
    runs: PairedRuns, names: list[str], rows: list[MeasurementComparison], options: CompareOptions
) -> Iterator[str]:
    for items in runs.items:
        for name in names:
            having = [name in values for values in _sides(items)]
            if any(having) and not all(having):
                label = runs.baseline.label if having[0] else items.candidate
                yield f"Only {label} has the measurement '{name}' of {items.test}."
    others = [row for row in rows if options.test and row.p_kind not in (options.test, None)]
    for row in others:
        yield (
            f"The {options.test} test does not fit {row.measurement} of {row.test}, {row.candidate}: "
            f"its p value is by {row.p_kind}."
        )

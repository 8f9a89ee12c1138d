"""The verdict on each item, and the columns of a table of items: for pages of runs and for the workbench."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from modelgauge.data.results import Threshold
from modelgauge.data.thresholds import PASSED, failing, has_passed
from modelgauge.reports.pages.columns import Labels
from modelgauge.wording.figures import exact

ANSWER, EXPECTED = "answer", "expected"
_MOST_METRICS = 6  # beside the verdict, before people choose
_FEW_METRICS = 3  # leave room for the answer
_OWN_PASSED = f".{PASSED}"


class ItemVerdicts(NamedTuple):
    """The verdicts on the items of a run.

    Args:
        passed: how many passed all their thresholds.
        failed: how many did not, in one of their repeats at least.
        unjudged: how many have no verdict: something failed before.
    """

    passed: int
    failed: int
    unjudged: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "ItemVerdicts":
        """Count the verdicts.

        Args:
            values: the measurement `passed` or `NAME.passed` of each item, NaN where there is none.
        """
        passed, unjudged = sum(value >= 1 for value in values), sum(map(math.isnan, values))
        return cls(passed, len(values) - passed - unjudged, unjudged)


class ItemColumn(NamedTuple):
    """A column that people may choose.

    Args:
        title: its title: `ANSWER`, `EXPECTED` or the name of a measurement.
        is_measured: whether it is a measurement.
        is_shown: whether it is shown before people choose.
    """

    title: str
    is_measured: bool
    is_shown: bool


def metric_verdicts(measured: Mapping[str, Sequence[float]]) -> dict[str, ItemVerdicts]:
    """Return the verdicts by metric, those that failed most first.

    Args:
        measured: the values of each measurement, NaN for items that have none.
    """
    every = {
        name.removesuffix(_OWN_PASSED): ItemVerdicts.of(values)
        for name, values in measured.items()
        if name.endswith(_OWN_PASSED)
    }
    return dict(sorted(every.items(), key=lambda pair: -pair[1].failed))


def scores_in(measured: Iterable[str]) -> list[str]:
    """Return the names of measurements that are scores, not verdicts on scores."""
    return [name for name in measured if name != PASSED and not name.endswith(_OWN_PASSED)]


def item_columns(
    measured: Mapping[str, Sequence[float]], *, has_answers: bool, has_expected: bool
) -> list[ItemColumn]:
    """Return the columns that people may choose. Where items have verdicts, metrics that failed most come first.

    Args:
        measured: see `metric_verdicts`.
        has_answers: whether the items have answers that are shown.
        has_expected: whether any item has an expected answer.
    """
    names, has_verdicts = scores_in(measured), PASSED in measured
    worst = [*metric_verdicts(measured)]
    if has_verdicts:
        names.sort(key=lambda name: worst.index(name) if name in worst else len(worst))
    found = []
    if has_answers:
        found.append(ItemColumn(ANSWER, False, not has_verdicts or len(names) <= _FEW_METRICS))
    if has_expected:
        found.append(ItemColumn(EXPECTED, False, not has_verdicts))
    most = _MOST_METRICS if has_verdicts else len(names)
    return [*found, *(ItemColumn(name, True, at < most) for at, name in enumerate(names))]


def shown_columns(columns: Sequence[ItemColumn], names: str) -> list[ItemColumn]:
    """Return the columns that an address names, or the usual ones; `columns.js` writes such addresses.

    Args:
        columns: those that people may choose.
        names: encoded titles with commas between them; empty for the usual columns.
    """
    chosen = {unquote(name) for name in names.split(",")}
    return [column for column in columns if (column.title in chosen if names else column.is_shown)]


def reason_of(measured: Mapping[str, float], thresholds: Mapping[str, Threshold], failure: str = "") -> str:
    """Return the verdict on an item and its reason: `passed`, `below 0.5: faithfulness`, `not judged: …`.

    Args:
        measured: its measurements.
        thresholds: of the test, by the names of measurements.
        failure: the title of its failure; empty if nothing failed.
    """
    misses: dict[str, list[str]] = {}
    for name in failing(measured):
        misses.setdefault(_miss(measured[name], thresholds.get(name)), []).append(name)
    why = "; ".join(f"{miss}: {', '.join(names)}" for miss, names in misses.items())
    passed = has_passed(measured)
    if passed is None:
        return ": ".join(filter(None, ("not judged", why or failure)))
    return PASSED if passed else why or "failed"


def _miss(value: float, threshold: Threshold | None) -> str:
    """Say how a value missed its threshold; the mean of several repeats may have reached it."""
    if threshold is None or threshold.is_reached(value):
        return "failed"
    return f"{'below' if threshold.higher_is_better else 'above'} {exact(threshold.value)}"


def reasons(
    measured: Mapping[str, Sequence[float]], thresholds: Mapping[str, Threshold], failures: Sequence[str]
) -> Labels:
    """Return the verdict on each item with its reason, see `reason_of`.

    Args:
        measured: see `metric_verdicts`.
        thresholds: of the test.
        failures: the title of the failure of each item, empty where nothing failed.
    """
    found, passed = Labels(most=len(failures)), measured.get(PASSED)
    for place, failure in enumerate(failures):
        if passed is not None and passed[place] >= 1:  # as most items, of which no more need be looked at
            found.add(place, PASSED)
            continue
        own = {name: values[place] for name, values in measured.items() if not math.isnan(values[place])}
        found.add(place, reason_of(own, thresholds, failure))
    return found


def title_of_failure(key: Sequence[str]) -> str:
    """Return the title of a kind of failures, from its key."""
    stage, _, error_type = key[:3]
    return f"{error_type} at {stage}"

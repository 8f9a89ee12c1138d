"""`latest` and `latest~N` in a comparison: the newest runs that can be compared with each other.

Elsewhere these names count all invocations; see `runs/naming.py`.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice
from pathlib import Path

from modelgauge.comparison.named_runs import GivenRuns, named_runs
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.comparability import is_of_same_data, test_name
from modelgauge.comparison.pairing.matching import KEYS, pairing
from modelgauge.data.results import GIVEN
from modelgauge.engine.items.item_frame import ItemFrame
from modelgauge.engine.run_files.folder import RUNS, RunFolder, by_invocation
from modelgauge.errors import RecordError
from modelgauge.runs.naming import data_folder, find_runs, get_id, invocations_before_latest
from modelgauge.runs.recorded_run import RecordedRun, recorded_run

log = logging.getLogger(__name__)


def ids_of_latest(given: Sequence[GivenRuns], options: CompareOptions) -> dict[str, str]:
    """Map `latest` and `latest~N` to the ids that they mean in a comparison.

    They count back over invocations that can be compared with each other and with the runs that are given by other
    names. If only one name is given, they count invocations whose SUTs can be compared with each other.

    Args:
        given: the names of the baseline and the candidates.
        options: of the comparison.

    Returns:
        The ids by these names. If there are too few such invocations, the usual ids: the comparison explains the rest.

    Raises:
        RecordError: a run does not exist.
    """
    folder = data_folder(options.data_dir)
    before = {
        name: number
        for name in given
        if isinstance(name, str) and (number := invocations_before_latest(folder, name)) is not None
    }
    if not before:
        return {}
    others = [name for name in given if not (isinstance(name, str) and name in before)]
    found = [] if "test" in options.allow else _counted(folder, others, before.values(), options)
    if not found:
        return {name: get_id(find_runs(folder, name)) for name in before}
    return {name: found[place].id for name, place in before.items()}


def _counted(
    data_dir: Path, others: Sequence[GivenRuns], before: Collection[int], options: CompareOptions
) -> list["_Runs"]:
    """Return the invocations that `latest` counts in a comparison, newest first; none if there are too few."""
    invocations, number = _invocations(data_dir), max(before) + 1
    if others or len(before) > 1:
        named = [_Runs(named_runs(name, data_dir)) for name in others]
        return _comparable(invocations, named, number, options.match)
    having = (runs for runs in invocations if runs.has_systems(options.baseline_sut))
    found = [*islice(having, number)]
    return found if len(found) == number else []


def name_comparable_runs(options: CompareOptions) -> str:
    """Return a sentence that names the newest two runs that can be compared; empty if there are none."""
    found = _comparable(_invocations(data_folder(options.data_dir)), [], 2, options.match)
    return f" The newest that can be compared are {found[1].id} and {found[0].id}." if found else ""


class _Runs:
    """The runs that one name refers to.

    Args:
        runs: the runs, or their folders, which are read when needed.
    """

    def __init__(self, runs: Sequence[RecordedRun | RunFolder]) -> None:
        self._runs = runs
        self._items: dict[int, ItemFrame] = {}

    @property
    def id(self) -> str:
        """The id of the run or of the invocation."""
        return get_id([run for run in self._runs if isinstance(run, RunFolder)])

    @cached_property
    def read(self) -> list[RecordedRun]:
        """Return the runs that have items and can be read."""
        found = []
        for run in self._runs:
            try:
                found.append(run if isinstance(run, RecordedRun) else recorded_run(run))
            except RecordError as error:
                log.warning("A run that 'latest' may refer to cannot be read. %s", error)
        return [run for run in found if run.record.counts.items]

    def has_systems(self, baseline_sut: str | None) -> bool:
        """Return whether the runs measured several SUTs with one test, a given SUT among them."""
        suts = {name for run in self.read for name in (run.record.sut_uid, run.record.sut_name)}
        return (baseline_sut is None or baseline_sut in suts) and any(
            one.record.sut_uid != other.record.sut_uid and _are_of_one_test(one, other)
            for one, other in combinations(self.read, 2)
        )

    def can_be_compared(self, other: "_Runs", match: str | None) -> bool:
        """Return whether one of these runs and one of others are of the same test and share items, or are the same."""
        return any(
            mine.record.run_id == its.record.run_id
            or (_are_of_one_test(mine, its) and _share_items(self, mine, other, its, match))
            for mine in self.read
            for its in other.read
        )

    def items(self, run: RecordedRun, match: str | None) -> ItemFrame:
        """Return the items of one of these runs. They are read once."""
        if id(run) not in self._items:
            self._items[id(run)] = run.frame(match=None if match in KEYS else match)
        return self._items[id(run)]


def _invocations(data_dir: Path) -> list[_Runs]:
    """Yield all invocations in a data folder, newest first."""
    found, damaged = by_invocation(data_dir / RUNS)
    for error in damaged:
        log.warning("A run that 'latest' may refer to cannot be read. %s", error)
    return [_Runs(folders) for folders in reversed(found.values())]


def _comparable(
    invocations: Sequence[_Runs], named: Sequence[_Runs], number: int, match: str | None
) -> list[_Runs]:
    """Return the newest invocations that can be compared with each other and with named runs; none if too few.

    Args:
        invocations: newest first.
        named: the runs that each must be comparable with.
        number: how many to find.
        match: the key by which items are paired.
    """

    def group(first: int) -> Iterator[_Runs]:
        taken = [*named]
        for runs in invocations[first:]:
            if runs.read and all(runs.can_be_compared(other, match) for other in taken):
                taken.append(runs)
                yield runs

    groups = ([*islice(group(first), number)] for first in range(len(invocations)))
    return next((found for found in groups if len(found) == number), [])


def _are_of_one_test(run: RecordedRun, other: RecordedRun) -> bool:
    return test_name(run.record) == test_name(other.record) or is_of_same_data(run.record, other.record)


def _share_items(mine: _Runs, run: RecordedRun, others: _Runs, other: RecordedRun, match: str | None) -> bool:
    """Return whether two runs of a test share items. All pytest sessions are of one test, whatever files they ran."""
    if GIVEN not in (run.record.sut_uid, other.record.sut_uid):
        return True
    try:
        pairing(mine.items(run, match), others.items(other, match), match)
    except RecordError:  # no item is paired, or a journal is damaged
        return False
    return True

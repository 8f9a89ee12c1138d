"""The systems that are compared: the runs that a caller names, grouped by SUT and by test, and their labels."""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from modelgauge.comparison.named_runs import GivenRuns, named_runs
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.baselines import resolve_baseline
from modelgauge.comparison.pairing.comparability import test_name
from modelgauge.comparison.pairing.latest import ids_of_latest
from modelgauge.comparison.result import System
from modelgauge.data.base import list_names
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.errors import RecordError
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.labels import short_labels


@dataclass(frozen=True, slots=True)
class MeasuredSystem:
    """A SUT or an app, and the runs that measured it.

    Args:
        given: what the caller named.
        runs: by test (or data set), in the order of the runs.
    """

    given: str
    runs: Mapping[str, RecordedRun]

    @property
    def record(self) -> TestRecord:
        """The record of its first run, which says what it is as those of the others do."""
        return next(iter(self.runs.values())).record

    def labeled(self, label: str) -> System:
        """Return the system as a comparison shows it."""
        runs = {test: run.record.run_id for test, run in self.runs.items()}
        return System(label=label, sut_uid=self.record.sut_uid, runs=runs, given=self.given)


def measured_systems(
    baseline: GivenRuns, candidates: Sequence[GivenRuns], options: CompareOptions
) -> list[MeasuredSystem]:
    """Return the baseline and the candidates, in this order. Each SUT of the named runs is a system.

    Args:
        baseline: names the runs of one SUT; if they have several, `options.baseline_sut` chooses, and without
            candidates the others are the candidates.
        candidates: name the runs of one SUT or several each.
        options: say where runs are.

    Raises:
        RecordError: a name means no run, or a run that cannot be read; the baseline is several SUTs; a system has two
            runs of one test; or a run is given twice.
    """
    meant = resolve_baseline(baseline, candidates, options)
    latest = ids_of_latest([meant, *candidates], options)
    found = _systems(meant, options, latest)
    if meant != baseline:
        found = [replace(system, given=str(baseline)) for system in found]
    first = _baseline(found, options.baseline_sut)
    others = [] if candidates else [system for system in found if system is not first]
    for given in candidates:
        systems = _systems(given, options, latest)
        # Of an invocation of which the baseline is a part, the other SUTs are meant.
        others += [system for system in systems if len(systems) == 1 or not _share_runs(system, first)]
    if not others:
        raise RecordError(
            f"'{first.given}' has runs of one SUT alone, so there is nothing to compare it with.",
            fix="Name the runs of a candidate too.",
        )
    _check_different([first, *others])
    return [first, *others]


def baseline_sut_for(
    planned: Sequence[tuple[str, str, str | None]], baseline: GivenRuns, options: CompareOptions
) -> str | None:
    """Check that runs can be compared with a baseline, before they are made, by the names of tests and SUTs.

    Args:
        planned: for each run its test, its SUT, and what tables call the SUT; None for its uid.
        baseline: names the runs of one SUT, or of several, one of which is measured now too.
        options: say where runs are, and what may differ.

    Returns:
        What `baseline_sut` must be: the SUT that is measured now too; None if the baseline has one SUT.

    Raises:
        RecordError: the baseline cannot be read, has several SUTs, or has none of the tests.
    """
    found = _systems(baseline, options)
    given = found[0].given
    uids, labels = {uid for _, uid, _ in planned}, {label or uid for _, uid, label in planned}
    same = [system for system in found if system.record.sut_uid in uids] or [
        system for system in found if _name(system) in labels
    ]
    if len(found) > 1 and len(same) != 1:
        which = same or found
        raise RecordError(
            f"The baseline '{given}' has runs of {len(found)} SUTs, "
            f"{len(same) or 'none'} of which this command measures: {', '.join(map(_name, found))}.",
            fix=f"Name the run of one of them: --baseline {next(iter(which[0].runs.values())).record.run_id}.",
        )
    system = found[0] if len(found) == 1 else same[0]
    for uid in uids:
        tests = {test for test, sut, _ in planned if sut == uid}
        # Which data a test measures is not known before it is made.
        may_pair = any(run.record.dataset is not None for run in system.runs.values()) or (
            "test" in options.allow and len(system.runs) == len(tests) == 1
        )
        if tests.isdisjoint(system.runs) and not may_pair:
            raise RecordError(
                f"The baseline '{given}' has no run of {' or '.join(sorted(tests))}: it was measured by "
                f"{list_names(system.runs)}.",
                fix="Name a run of the same test; two runs of different tests are compared with --allow test.",
            )
    return None if len(found) == 1 else _name(system)


def make_labels(systems: Sequence[MeasuredSystem]) -> list[str]:
    """Return a distinct label for each system: the SUT's label or uid, with details added if several share it.

    For long uids, the labels contain the parts that differ.
    """
    names = short_labels([_name(system) for system in systems])
    shared = Counter(names)
    alike = [place for place, name in enumerate(names) if shared[name] > 1]
    further: list[Callable[[MeasuredSystem], str]] = [
        lambda system: system.record.identifier or "",
        lambda system: system.given,
        lambda system: system.record.run_id,
    ]
    tells = next(
        (
            tell
            for tell in further
            if len({(names[place], tell(systems[place])) for place in alike}) == len(alike)
        ),
        further[-1],
    )
    more = {place: tells(systems[place]) for place in alike}
    return [f"{name} ({more[place]})" if more.get(place) else name for place, name in enumerate(names)]


def _name(system: MeasuredSystem) -> str:
    record = system.record
    return record.sut_name if record.sut_uid != GIVEN else record.identifier or system.given


def _systems(
    given: GivenRuns, options: CompareOptions, latest: Mapping[str, str] = MappingProxyType({})
) -> list[MeasuredSystem]:
    """Return the systems in the named runs, in the order of their first runs."""
    meant = latest.get(given, given) if isinstance(given, str) else given
    runs = named_runs(meant, options.data_dir)
    name = str(given) if isinstance(given, str) or hasattr(given, "parts") else runs[0].record.run_id
    by_system: dict[object, dict[str, RecordedRun]] = {}
    for run in runs:
        record = run.record
        own = by_system.setdefault(_identity(record), {})
        test = test_name(record)
        if test in own:
            raise RecordError(
                f"'{name}' has two runs of {test} on {record.sut_uid}: {own[test].record.run_id} and {record.run_id}.",
                fix="Name one of them.",
            )
        own[test] = run
    return [MeasuredSystem(name, own) for own in by_system.values()]


def list_systems(runs: Sequence[RecordedRun]) -> list[MeasuredSystem]:
    """Return the systems in the order of the runs. A SUT that a test measured twice counts as two."""
    found: list[tuple[object, dict[str, RecordedRun]]] = []
    for run in runs:
        test, identity = test_name(run.record), _identity(run.record)
        own = next((tests for other, tests in found if other == identity and test not in tests), None)
        if own is None:
            own = {}
            found.append((identity, own))
        own[test] = run
    return [MeasuredSystem(next(iter(own.values())).record.run_id, own) for _, own in found]


def _identity(record: TestRecord) -> tuple[str, str | None]:
    """Return the key that distinguishes SUTs and apps."""
    return record.sut_uid, record.identifier if record.sut_uid == GIVEN else None


def _baseline(found: Sequence[MeasuredSystem], sut: str | None) -> MeasuredSystem:
    suts = [_name(system) for system in found]
    if sut is None and len(found) == 1:
        return found[0]
    for names in (suts, [system.record.sut_uid for system in found]):
        if sut in names:
            return found[names.index(sut)]
    given = found[0].given
    if sut is None:
        raise RecordError(
            f"'{given}' has runs of {len(suts)} SUTs, and the baseline is one: {', '.join(suts)}.",
            fix=f"Say which: `compare --baseline-sut {shlex.quote(suts[0])}` (in Python baseline_sut={suts[0]!r}), "
            "or name its run.",
        )
    raise RecordError(
        f"'{given}' has no run of the SUT '{sut}'.",
        fix=f"{did_you_mean(sut, suts)}Its SUTs are: {', '.join(suts)}.",
    )


def _check_different(systems: Sequence[MeasuredSystem]) -> None:
    """Refuse a run that is compared with itself."""
    seen: dict[object, MeasuredSystem] = {}
    for system in systems:
        for identity, run in zip(_identities(system), system.runs.values(), strict=True):
            first = seen.setdefault(identity, system)
            if first is not system:
                what = "is both baseline and candidate" if first is systems[0] else "is given twice"
                raise RecordError(
                    f"Run {run.record.run_id} {what}: '{first.given}' and '{system.given}' name it.",
                    fix="Name two different runs: `modelgauge runs` lists them.",
                )


def _identities(system: MeasuredSystem) -> list[tuple[str, str]]:
    """Return the keys that distinguish runs, wherever their records were read from."""
    return [(run.record.run_id, run.record.run_timestamp) for run in system.runs.values()]


def _share_runs(system: MeasuredSystem, other: MeasuredSystem) -> bool:
    return not {*_identities(system)}.isdisjoint(_identities(other))

"""From names of runs to paired items: `paired_runs`."""

from collections.abc import Sequence
from pathlib import Path

from modelgauge.comparison.matching import pairing
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.paired_items import PairedItems, PairedRuns
from modelgauge.comparison.result import System
from modelgauge.comparison.side import Side
from modelgauge.config.settings import load_settings
from modelgauge.data.records import TestRecord
from modelgauge.runs.naming import recorded_runs
from modelgauge.runs.recorded_run import RecordedRun

Given = str | Path | TestRecord
"""What a caller names a system by: an id or the beginning of one, `latest`, a folder, a file, or a record."""


def paired_runs(
    baseline: Given, candidates: Sequence[Given], options: CompareOptions | None = None
) -> PairedRuns:
    """Read the runs of a baseline and its candidates, and pair their items test by test.

    Nothing that a run names is imported.

    Args:
        baseline: what the candidates are compared with.
        candidates: in the order in which they are shown.
        options: how.

    Raises:
        RecordError: a run cannot be found or read, or there is nothing that can be compared.
    """
    options = options if options is not None else CompareOptions()
    data_dir = Path(options.data_dir) if options.data_dir is not None else load_settings().data_dir
    runs = [_runs(one, data_dir)[0] for one in (baseline, *candidates)]
    sides = [Side(run, options.match, options.group_by) for run in runs]
    systems = [
        System(
            label=f"{run.record.sut_uid} ({run.record.run_id})",
            sut_uid=run.record.sut_uid,
            runs={run.record.test_uid: run.record.run_id},
            given=str(given) if not isinstance(given, TestRecord) else given.run_id,
        )
        for run, given in zip(runs, (baseline, *candidates), strict=True)
    ]
    items = [
        _paired(sides[0], side, system.label, options)
        for side, system in zip(sides[1:], systems[1:], strict=True)
    ]
    return PairedRuns(systems[0], tuple(systems[1:]), tuple(items))


def _runs(given: Given, data_dir: Path) -> Sequence[RecordedRun]:
    if isinstance(given, TestRecord):
        return [RecordedRun(given)]
    return recorded_runs(data_dir, str(given))[0]


def _paired(baseline: Side, candidate: Side, label: str, options: CompareOptions) -> PairedItems:
    matched_by, first, second = pairing(baseline, candidate, options.match)
    names = [name for name in baseline.names if name in candidate.names]
    return PairedItems(
        test=baseline.run.record.test_uid,
        candidate=label,
        matched_by=matched_by,
        n_only_baseline=len(baseline) - len(first),
        n_only_candidate=len(candidate) - len(second),
        baseline_places=first,
        candidate_places=second,
        baseline_values={name: baseline.values(name)[first] for name in names},
        candidate_values={name: candidate.values(name)[second] for name in names},
        clusters=None if baseline.clusters is None else baseline.clusters[first],
        groups=None if baseline.groups is None else [baseline.groups[place] for place in first],
        baseline_repeats=baseline.repeats(first),
        candidate_repeats=candidate.repeats(second),
        ranges={**candidate.bool_ranges, **baseline.bool_ranges},
        baseline_failed=baseline.failed[first],
        candidate_failed=candidate.failed[second],
        baseline_items=baseline.read,
        candidate_items=candidate.read,
    )

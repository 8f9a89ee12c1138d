"""Runs and measurements by name."""

from collections.abc import Sequence
from pathlib import Path

from modelgauge.config.options import Values
from modelgauge.data.records import TestRecord
from modelgauge.engine.run_files.folder import RUNS, RunFolder
from modelgauge.engine.run_files.ids import why_no_run_id
from modelgauge.errors import RecordError, UnknownNameError
from modelgauge.runs.naming import data_folder, recorded_runs
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.did_you_mean import did_you_mean

Given = str | Path | TestRecord
"""The name of a run: an id or the beginning of one, `latest`, a folder, a file; or its record."""

GivenRuns = Given | Sequence[Given]
"""The name of one or more runs, or a list of names and records."""

_GIVEN = Values(
    "the id or the folder of a run, a record, or a list of these",
    lambda value: (
        isinstance(value, str | Path | TestRecord)
        or (
            isinstance(value, Sequence)
            and all(isinstance(each, str | Path | TestRecord | RecordedRun) for each in value)
        )
    ),
)


def named_runs(
    given: Given | Sequence[Given | RecordedRun], data_dir: str | Path | None = None
) -> list[RecordedRun]:
    """Return the runs with these names; an invocation may have several.

    Args:
        given: what names runs, or a list of such, and of runs that were read already.
        data_dir: where runs are looked up by id; by default what the settings say.

    Raises:
        InvalidOptionError: something else is given.
        RecordError: there is no run, or a run cannot be read.
    """
    _GIVEN.check("A run", given)
    folder = data_folder(data_dir)
    if isinstance(given, TestRecord):
        return [_of_record(given, folder)]
    if not isinstance(given, str | Path):
        return [
            run
            for each in given
            for run in ([each] if isinstance(each, RecordedRun) else named_runs(each, folder))
        ]
    found, damaged = recorded_runs(folder, str(given))
    if damaged:
        raise damaged[0]
    return [*found]


def _of_record(record: TestRecord, data_dir: Path) -> RecordedRun:
    """Return the run of a record, with its folder if that contains this very record, to read items from there."""
    if why_no_run_id(record.run_id) is not None:
        return RecordedRun(record)
    folder = RunFolder(data_dir / RUNS / record.run_id)
    try:
        return RecordedRun(record, folder if folder.read_record() == record else None)
    except RecordError:  # it lies elsewhere, or was made by hand
        return RecordedRun(record)


def named_run(given: Given, data_dir: str | Path | None = None) -> RecordedRun:
    """Return the only run that a name means; for the arguments see `named_runs`.

    Raises:
        RecordError: there is no run, there are several, or it cannot be read.
    """
    runs = named_runs(given, data_dir)
    if len(runs) > 1:
        ids = ", ".join(run.record.run_id for run in runs)
        raise RecordError(f"'{given}' means {len(runs)} runs.", fix=f"Name one of them: {ids}.")
    return runs[0]


def chosen_measurements(common: Sequence[str], named: Sequence[str]) -> tuple[str, ...]:
    """Return the measurements that a caller names, or the only measurement.

    Args:
        common: what all runs have.
        named: by the caller; empty for the only measurement.

    Raises:
        UnknownNameError: a named measurement is missing, or none is named and there are several.
    """
    names = tuple(dict.fromkeys(named)) or tuple(common)
    missing = next((name for name in names if name not in common), None)
    if missing is None and (named or len(names) == 1):
        return names
    what = "several measurements" if common else "no measurement"
    raise UnknownNameError(
        f"The runs have {what if missing is None else f'no measurement {missing!r}'} in common.",
        fix=f"{did_you_mean(missing or '', common)}Choose with --measurement: {', '.join(common)}."
        if common
        else "Give runs with scored items.",
    )

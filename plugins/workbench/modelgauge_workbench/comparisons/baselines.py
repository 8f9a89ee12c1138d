"""Pinned baselines on pages: which run others are compared with. The form that pins one is in `runs/changes.py`."""

import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from modelgauge.comparison.pairing.baselines import Baselines, BaselineSubject, list_subjects
from modelgauge.datasets.versions import VersionsFolder
from modelgauge.errors import RecordError
from modelgauge.runs.recorded_run import recorded_run
from modelgauge_workbench.index.queries import latest_of, run_in
from modelgauge_workbench.index.scan import folder_of, scan_run
from modelgauge_workbench.workbench import Workbench

_FIX = "Move it back on the page Trash, or pin another run on its page."


def baseline_of(workbench: Workbench, row: sqlite3.Row) -> sqlite3.Row | None:
    """Return the pinned baseline of a run in the index; None if no run is pinned but the run itself.

    Args:
        workbench: has the run.
        row: of the run in the index.

    Raises:
        RecordError: the baseline is not there any more.
    """
    pins = _pins(workbench, row)
    own = _subjects(workbench, row)
    return _pinned_row(workbench, row["folder"], [of for of in own if pins.get(of) != row["name"]])


def _pinned_row(workbench: Workbench, folder: int, subjects: Sequence[BaselineSubject]) -> sqlite3.Row | None:
    """Return the baseline of the first subject that has one in a data folder."""
    try:
        found = Baselines(workbench.data_dirs[folder]).of(subjects)
    except RecordError as error:
        raise RecordError(error.problem, fix=_FIX) from None
    if found is None:
        return None
    scan_run(workbench.index, folder, found[1].run_id)  # it may be newer than the last look at the folders
    with workbench.index.reading() as db:
        return run_in(db, folder, found[1].run_id)


def baseline_choices(workbench: Workbench, row: sqlite3.Row) -> list[dict[str, Any]]:
    """Return what a run can be a baseline of, as the form on its page shows it.

    Args:
        workbench: has the run.
        row: of the run in the index.
    """
    pins = _pins(workbench, row)
    return [
        {
            "value": str(subject),
            "words": subject.words,
            "is_this": pins.get(subject) == row["name"],
            "has_other": pins.get(subject) not in (None, row["name"]),
        }
        for subject in _subjects(workbench, row)
    ]


def shown_baseline(workbench: Workbench, kind: str, name: str) -> dict[str, Any] | None:
    """Return what the page of a data set, a test or a tag shows of its baseline; None if it has none.

    Args:
        workbench: has the runs.
        kind: "dataset", "test" or "tag".
        name: of it.
    """
    subject = BaselineSubject(kind, name)
    folders = [
        place for place, folder in enumerate(workbench.data_dirs) if subject in Baselines(folder).pins()
    ]
    if not folders:
        return None
    shown: dict[str, Any] = {"words": subject.words, "run": None, "problem": "", "compare": ""}
    try:
        row = _pinned_row(workbench, folders[0], [subject])
    except RecordError as error:
        return shown | {"problem": f"{error.problem} {error.fix}"}
    versions = VersionsFolder(workbench.data_dir).versions(name) if kind == "dataset" else []
    with workbench.index.reading() as db:
        latest = latest_of(db, kind, name, [version.content_hash for version in versions])
    if row is None:
        return None
    if latest is not None and latest["key"] != row["key"]:
        shown["compare"] = compared_address([row["key"], latest["key"]], baseline=row["key"])
    return shown | {"run": dict(row)}


def compared_address(keys: Sequence[str], **more: str) -> str:
    """Return the address of the comparison of runs.

    Args:
        keys: of the runs.
        more: other fields of the address.
    """
    return f"/compare?{urlencode({'runs': [*keys], **more}, doseq=True)}"


def _pins(workbench: Workbench, row: sqlite3.Row) -> dict[BaselineSubject, str]:
    """Return the pinned baselines of the data folder of a run."""
    return Baselines(workbench.data_dirs[row["folder"]]).pins()


def _subjects(workbench: Workbench, row: sqlite3.Row) -> list[BaselineSubject]:
    return list_subjects(recorded_run(folder_of(workbench.index, row)))

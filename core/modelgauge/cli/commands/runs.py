"""`modelgauge runs`: what was run, the latest last."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import data_dir_option, shared_options

if TYPE_CHECKING:
    from modelgauge.cli.app import App
    from modelgauge.data.records import TestRecord
    from modelgauge.engine.run_files.folder import RunFolder


@click.command("runs")
@click.option("-n", "--last", type=click.IntRange(min=1), help="Only the last N.")
@data_dir_option
@shared_options
def runs(app: App, /, *, last: int | None, as_json: bool) -> None:
    """List the runs that were made, the latest last, with how many test cases passed or their first result.

    STATE is finished, interrupted (Ctrl-C), stopped (a cap, a full disk, a SUT that cannot answer), killed, running,
    or damaged. SCORED is of all items of the test; 27/38+ of a run that was stopped before it had read them all.

    \b
    Example:
      modelgauge runs --last 10
    """
    from modelgauge.engine.run_files.folder import all_runs

    folder = app.settings.data_dir
    found = all_runs(folder)
    rows = [_row(app, one) for one in (found if last is None else found[-last:])]
    if as_json:
        app.show_json({"runs": rows})
        return
    table = [
        (row["run_id"], _tested(row), row["sut_uid"], row["state"], _counted(row), row["headline"])
        for row in rows
    ]
    head = ("RUN", "TEST", "SUT", "STATE", "SCORED", "RESULT")
    folds = {"TEST": 8, "SUT": 8, "RESULT": 20}
    app.show_table(table, head, folds=folds, empty=f"There are no runs in {folder}.")


def _row(app: App, folder: RunFolder) -> dict[str, Any]:
    from modelgauge.errors import RecordError
    from modelgauge.reports.layout import Style
    from modelgauge.reports.run_report import headline
    from modelgauge.reports.shown_run import state_of

    record: TestRecord | None = None
    manifest: dict[str, Any] = {}
    state = ""
    try:
        manifest = folder.read_manifest()
        state, record = state_of(folder)
    except RecordError as error:  # one damaged run must not hide the others
        app.note(f"Warning: {error}")
        state = "damaged"
    dataset = None if record is None else record.dataset
    return {
        "run_id": folder.run_id,
        "invocation_id": manifest.get("invocation_id"),
        "run_timestamp": manifest.get("run_timestamp"),
        "test_uid": str(manifest.get("test_uid") or "?"),
        "sut_uid": str(manifest.get("sut_uid") or "?"),
        "dataset": None if dataset is None else {"name": dataset.name, "digest": dataset.digest},
        "state": state,
        "counts": None if record is None else record.counts.model_dump(mode="json"),
        "headline": "" if record is None else headline(record, Style.of(sys.stdout)),
        "path": str(folder.path),
    }


def _tested(row: dict[str, Any]) -> str:
    """The test; of answers that were given, whose tests are all called alike, with the data set that they are of."""
    if row["dataset"] is None:
        return str(row["test_uid"])
    from modelgauge.data.records import DatasetReference
    from modelgauge.data.results import GIVEN

    given = row["sut_uid"] == GIVEN
    return f"{row['test_uid']} ({DatasetReference(**row['dataset'])})" if given else str(row["test_uid"])


def _counted(row: dict[str, Any]) -> str:
    """Scored items of all, with a `+` where the run was stopped before it knew how many there are."""
    counts = row["counts"]
    if counts is None:
        return ""
    not_begun = counts["not_begun"]
    more = "+" if not_begun is None and row["state"] != "finished" else ""
    return f"{counts['scored']:,}/{counts['items'] + (not_begun or 0):,}{more}"

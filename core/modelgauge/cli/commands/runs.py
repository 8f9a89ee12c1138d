"""`modelgauge runs`: the list of recorded runs, and deletion of runs. Nothing that they name is imported."""

from __future__ import annotations

from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import confirm, data_dir_option, shared_options
from modelgauge.cli.program import LazyGroup
from modelgauge.documents.document import TableColumn
from modelgauge.errors import RecordError
from modelgauge.wording.phrases import counted, parse_time

if TYPE_CHECKING:
    from modelgauge.cli.app import App
    from modelgauge.data.records import TestRecord
    from modelgauge.engine.run_files.folder import RunFolder


def _time(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    try:
        return None if value is None else parse_time(value)
    except ValueError:
        message = f"{value!r} is not a time. Give 7d, 12h, 2026-01-31 or 2026-01-31T12:00."
        raise click.BadParameter(message, ctx, param) from None


@click.group("runs", cls=LazyGroup, invoke_without_command=True)
@click.option("-n", "--last", type=click.IntRange(min=1), help="Only the last N.")
@click.option("--test", metavar="NAME", help="Only runs of this test; * stands for any characters.")
@click.option("--sut", metavar="NAME", help="Only runs of this SUT; * stands for any characters.")
@click.option(
    "--since",
    callback=_time,
    metavar="TIME",
    help="Only runs that began since: 7d, 12h, or 2026-01-31 (UTC).",
)
@data_dir_option
@shared_options
@click.pass_context
def runs(
    ctx: click.Context,
    app: App,
    /,
    *,
    last: int | None,
    test: str | None,
    sut: str | None,
    since: datetime | None,
) -> None:
    """List recorded runs, the latest last, with how many test cases passed or the first result.

    STATE is finished, interrupted (Ctrl-C), stopped (a cap, a full disk, a SUT that cannot answer), killed, running,
    or damaged. SCORED is scored items of all items; 27/38+ means that the run stopped before it had read all items.

    \b
    Examples:
      modelgauge runs --last 10
      modelgauge runs --test 'bbh_*' --since 7d
    """
    from modelgauge.engine.run_files.folder import all_runs

    if ctx.invoked_subcommand is not None:
        return
    folder = app.settings.data_dir
    found = [run for run in all_runs(folder) if _is_like(run, test, sut, since)]
    rows = [_row(app, run) for run in (found if last is None else found[-last:])]
    if app.as_json:
        app.show_json({"runs": rows})
        return
    labels = [_pair_labels(row) for row in rows]
    such = "such " if test or sut or since else ""
    app.show_list(
        TableColumn("RUN", [row["run_id"] for row in rows]),
        TableColumn("TEST", [label for label, _ in labels], fold=8),
        TableColumn("SUT", [label for _, label in labels], fold=8),
        TableColumn("STATE", [row["state"] for row in rows]),
        TableColumn("SCORED", [*map(_scored_of_all, rows)]),
        TableColumn("RESULT", [row["headline"] for row in rows], fold=20),
        empty=f"There are no {such}runs in {folder}.",
    )


def _is_like(folder: RunFolder, test: str | None, sut: str | None, since: datetime | None) -> bool:
    """Return whether a run matches. Runs with a damaged manifest match unless a test or SUT is named."""
    if not (test or sut or since):
        return True
    try:
        manifest = folder.read_manifest()
        began = datetime.fromisoformat(str(manifest.get("run_timestamp")))
    except (RecordError, ValueError):
        return not (test or sut)
    is_test = test is None or fnmatchcase(str(manifest.get("test_uid")), test)
    of_sut = sut is None or any(fnmatchcase(str(manifest.get(key)), sut) for key in ("sut_uid", "sut_label"))
    return is_test and of_sut and (since is None or began >= since)


@runs.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_dir_option
@shared_options
def delete(app: App, /, *, names: tuple[str, ...], yes: bool) -> None:
    """Move runs to DATA_DIR/trash, where they stay until you remove them. Their answers stay in the cache.

    RUN is as for `modelgauge show`; an invocation's id means all of its runs.

    \b
    Example:
      modelgauge runs delete 20260131-120000-a1b2c3
    """
    from modelgauge.runs.naming import find_each
    from modelgauge.runs.trash import move_to_trash

    data_dir = app.settings.data_dir
    folders = find_each(data_dir, names)
    if not yes:
        app.note("\n".join(str(run.path) for run in folders))
        confirm(f"Move {counted(len(folders), 'run')} to {data_dir / 'trash'}?")
    moved = [str(move_to_trash(run, data_dir)) for run in folders]
    app.show_answer({"moved": moved}, "\n".join(moved))


def _row(app: App, folder: RunFolder) -> dict[str, Any]:
    from modelgauge.reports.runs_report import headline
    from modelgauge.runs.recorded_run import read_state

    record: TestRecord | None = None
    manifest: dict[str, Any] = {}
    state = ""
    try:
        manifest = folder.read_manifest()
        state, record = read_state(folder)
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
        "sut_label": manifest.get("sut_label"),
        "dataset": None if dataset is None else {"name": dataset.name, "digest": dataset.digest},
        "state": state,
        "counts": None if record is None else record.counts.model_dump(mode="json"),
        "headline": "" if record is None else headline(record),
        "path": str(folder.path),
    }


def _pair_labels(row: dict[str, Any]) -> tuple[str, str]:
    """Return the labels of test and SUT. Tests of recorded answers share a name, so they include the data set."""
    from modelgauge.data.records import DatasetReference
    from modelgauge.data.results import GIVEN

    test, sut = str(row["test_uid"]), str(row["sut_label"] or row["sut_uid"])
    of_data = row["dataset"] is not None and sut == GIVEN
    return f"{test} ({DatasetReference(**row['dataset'])})" if of_data else test, sut


def _scored_of_all(row: dict[str, Any]) -> str:
    """Scored items of all items, with a `+` where the run stopped before it had counted them."""
    counts = row["counts"]
    if counts is None:
        return ""
    not_begun = counts["not_begun"]
    more = "+" if not_begun is None and row["state"] != "finished" else ""
    return f"{counts['scored']:,}/{counts['items'] + (not_begun or 0):,}{more}"

"""`modelgauge baselines`: the runs that are pinned as baselines of data sets, tests and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import data_dir_option, shared_options
from modelgauge.cli.program import LazyGroup
from modelgauge.documents.document import TableColumn
from modelgauge.errors import RecordError

if TYPE_CHECKING:
    from modelgauge.cli.app import App
    from modelgauge.comparison.pairing.baselines import Baselines, BaselineSubject

_SUBJECT = "dataset:NAME, test:NAME or tag:NAME"


@click.group("baselines", cls=LazyGroup, invoke_without_command=True)
@data_dir_option
@shared_options
@click.pass_context
def baselines(ctx: click.Context, app: App, /) -> None:
    """List the pinned baselines, with which runs of a data set, a test or a tag are compared.

    `pinned` names them in a comparison: the baseline of the first tag of a run that has one, else of its data set, else
    of its test. The workbench compares with them by default.

    \b
    Examples:
      modelgauge baselines
      modelgauge baselines pin latest
    """
    from modelgauge.comparison.pairing.baselines import Baselines

    if ctx.invoked_subcommand is not None:
        return
    kept = Baselines(app.settings.data_dir)
    rows = [_row(kept, subject) for subject in kept.pins()]
    if app.as_json:
        app.show_json({"baselines": rows})
        return
    app.show_list(
        TableColumn("BASELINE OF", [row["subject"] for row in rows], fold=12),
        TableColumn("RUN", [row["run_id"] for row in rows]),
        TableColumn("SUT", [row["sut"] for row in rows], fold=8),
        TableColumn("RESULT", [row["headline"] or row["problem"] for row in rows], fold=20),
        empty="No baseline is pinned. Pin a run: modelgauge baselines pin RUN",
    )


def _row(kept: Baselines, subject: BaselineSubject) -> dict[str, Any]:
    from modelgauge.reports.runs_report import headline
    from modelgauge.runs.recorded_run import recorded_run

    row = {"subject": str(subject), "run_id": kept.pins()[subject], "sut": "", "headline": "", "problem": ""}
    try:
        found = kept.of([subject])
        record = recorded_run(found[1]).record if found else None
    except RecordError as error:
        return row | {"problem": f"{error.problem} {error.fix}"}
    return row if record is None else row | {"sut": record.sut_name, "headline": headline(record)}


@baselines.command("pin")
@click.argument("run", metavar="RUN")
@click.option(
    "--for",
    "subjects",
    multiple=True,
    metavar="SUBJECT",
    help=f"Pin it for this: {_SUBJECT}; repeatable.  [default: the run's data set, or else its test]",
)
@data_dir_option
@shared_options
def pin(app: App, /, *, run: str, subjects: tuple[str, ...]) -> None:
    """Pin a run as a baseline. It takes the place of an earlier one.

    RUN is as for `modelgauge show`; of an invocation with several runs, each is pinned for its own data set or test.

    \b
    Examples:
      modelgauge baselines pin latest
      modelgauge baselines pin 20260131-120000-a1b2c3 --for tag:production
    """
    from modelgauge.comparison.pairing.baselines import Baselines, BaselineSubject, list_subjects
    from modelgauge.runs.naming import find_runs
    from modelgauge.runs.recorded_run import recorded_run

    data_dir = app.settings.data_dir
    chosen = [BaselineSubject.parse(text) for text in subjects]
    pins: dict[BaselineSubject, str] = {}
    for folder in find_runs(data_dir, run):
        of_run = list_subjects(recorded_run(folder))
        own = chosen or [next(subject for subject in of_run if subject.kind != "tag")]
        for subject in own:
            if subject in pins:
                raise RecordError(
                    f"'{run}' means several runs of {subject.words}: {pins[subject]} and {folder.run_id}.",
                    fix="Name one of them.",
                )
            pins[subject] = folder.run_id
    Baselines(data_dir).pin(pins)
    app.show_answer(
        {"pinned": {str(subject): run_id for subject, run_id in pins.items()}},
        "\n".join(f"{run_id} is the baseline of {subject.words}." for subject, run_id in pins.items()),
    )


@baselines.command("unpin")
@click.argument("subject", metavar="SUBJECT")
@data_dir_option
@shared_options
def unpin(app: App, /, *, subject: str) -> None:
    """Leave a data set, a test or a tag without a baseline. The run stays.

    SUBJECT is dataset:NAME, test:NAME or tag:NAME, as `modelgauge baselines` lists them.

    \b
    Example:
      modelgauge baselines unpin tag:production
    """
    from modelgauge.comparison.pairing.baselines import Baselines, BaselineSubject

    of = BaselineSubject.parse(subject)
    Baselines(app.settings.data_dir).unpin(of)
    app.show_answer({"unpinned": str(of)}, f"No baseline is pinned for {of.words} any more.")

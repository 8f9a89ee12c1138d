"""`modelgauge show`: a run as it was recorded; nothing that it names is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.list_items import prompt_text
from modelgauge.cli.options import data_dir_option, shared_options
from modelgauge.report.plain import counted, indented

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modelgauge.data.measured import PromptInteractionAnnotations
    from modelgauge.data.records import ItemRecord, TestItemExceptionRecord
    from modelgauge.report.items import ShownRun


@click.command("show")
@click.argument("run")
@click.option("--items", is_flag=True, help="Show every item with its prompts, completions and measurements.")
@click.option(
    "--failures",
    is_flag=True,
    help="Show every item that failed, with the traceback, and those below a threshold.",
)
@data_dir_option
@shared_options
@pass_app
def show(app: App, /, *, run: str, items: bool, failures: bool, data_dir: Path | None, as_json: bool) -> None:
    """Show a run: its results, what failed, where it lies; and of one that has not ended, how far it is.

    RUN is a run's id or folder, an invocation's id (all runs of one command), or a file of --output-file.

    \b
    Examples:
      modelgauge show 20260131-120000-a1b2c3
      modelgauge show run_data/runs/20260131-120000-a1b2c3 --failures
      modelgauge show records.json --items --json
    """
    from modelgauge.report.items import records_as_json

    app.configure(data_dir=data_dir)
    runs = _found(app, run)
    if as_json:
        app.show_pieces(records_as_json(runs, scored=items, failed=items or failures, not_passed=failures))
        return
    if not (items or failures):
        app.show_report(runs, whole=True)
        return
    for one in runs:
        if len(runs) > 1:
            app.show(f"{one.record.test_uid} on {one.record.sut_uid}\n")
        _show_items(app, one, only_failures=not items)


def _found(app: App, name: str) -> Sequence[ShownRun]:
    from modelgauge.api import load_records
    from modelgauge.engine.journal import RECORD, find_run
    from modelgauge.errors import RecordError
    from modelgauge.report.items import ShownRun
    from modelgauge.report.unfinished import shown_run

    path = Path(name)
    if path.is_file() and path.name != RECORD:
        return [ShownRun(record) for record in load_records(path)]
    folders = find_run(app.settings.data_dir, str(path.parent) if path.is_file() else name)
    found: list[ShownRun] = []
    damaged: list[RecordError] = []
    for folder in folders:
        try:
            found.append(shown_run(folder))
        except RecordError as error:
            damaged.append(error)
    if not found:
        raise damaged[0]
    for skipped in damaged:
        app.note(f"Warning: {skipped}")
    return found


def _show_items(app: App, run: ShownRun, *, only_failures: bool) -> None:
    from modelgauge.data.records import TestItemExceptionRecord

    number = 0
    for record in run.failures() if only_failures else run.order().records():
        number += 1
        app.show("\n".join([*_item_lines(record), ""]))
        if isinstance(record, TestItemExceptionRecord):
            app.show("\n".join([*_failure_lines(record, whole=only_failures), ""]))
    below = _show_not_passed(app, run) if only_failures else 0
    more = f", {below:,} below a threshold" if below else ""
    app.show(f"{counted(number, 'failed item' if only_failures else 'item')}{more}.")
    counts = run.record.counts
    recorded = counts.failed if only_failures else counts.scored + counts.failed
    if run.ended and number != recorded:
        app.note(f"Warning: the record counts {recorded:,} of them, but the run's journal holds {number:,}.")


def _show_not_passed(app: App, run: ShownRun) -> int:
    """Show the scored items that are below a threshold, and say how many there are."""
    from modelgauge.report.thresholds import failing

    number = 0
    for record in run.not_passed():
        number += 1
        named = [f"{name} = {record.measurements[name]:g}" for name in failing(record)]
        app.show("\n".join([*_item_lines(record), f"  NOT PASSED: {', '.join(named)}", ""]))
    return number


def _item_lines(record: ItemRecord) -> Iterator[str]:
    from modelgauge.data.records import TestItemRecord

    yield f"{record.index + 1}. {record.test_item.id}"
    answered = len(record.interactions)
    for interaction in record.interactions:
        yield from _interaction_lines(interaction)
    if answered < len(record.test_item.prompts):
        asked = [one.prompt for one in record.interactions]
        for prompt in record.test_item.prompts:
            if prompt not in asked:
                yield f"  prompt\n{indented(prompt_text(prompt.prompt), '    ')}"
    if isinstance(record, TestItemRecord) or record.measurements:
        measured = ", ".join(f"{name} = {value:g}" for name, value in record.measurements.items())
        yield f"  measured: {measured or 'nothing'}"


def _interaction_lines(interaction: PromptInteractionAnnotations) -> Iterator[str]:
    from modelgauge.cli.exchange import shown

    yield f"  prompt\n{indented(prompt_text(interaction.prompt.prompt), '    ')}"
    for annotated in interaction.response.completions:
        completion = annotated.completion
        if completion.reasoning:
            yield f"  reasoning\n{indented(completion.reasoning, '    ')}"
        yield f"  completion\n{indented(completion.text, '    ')}"
        for name, annotation in annotated.annotations.items():
            yield f"  annotation {name}\n{indented(shown(annotation))}"


def _failure_lines(record: TestItemExceptionRecord, *, whole: bool) -> Iterator[str]:
    yield f"  FAILED at {record.stage} ({record.source_uid}): {record.error_type}: {record.message}"
    if whole:
        yield indented(record.traceback.rstrip("\n"), "    ")

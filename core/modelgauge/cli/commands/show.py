"""`modelgauge show`: recorded runs and their items. Nothing that they name is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    OUTPUT,
    data_dir_option,
    shared_options,
    together,
    verbose_option,
)
from modelgauge.cli.program import GroupedCommand
from modelgauge.cli.thresholds import parsed_by
from modelgauge.wording.phrases import counted, indented, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from modelgauge.cli.app import App
    from modelgauge.data.item_records import Failure, ItemRecord
    from modelgauge.data.items import PromptWithContext
    from modelgauge.runs.recorded_run import RecordedRun
    from modelgauge.runs.selection import Selection

_MOST_OF_A_CONTEXT = 500


@click.command("show", cls=GroupedCommand)
@click.argument("run")
@together(
    click.option(
        "--items", is_flag=True, help="Show every item with its prompts, completions and measurements."
    ),
    click.option(
        "--failures",
        is_flag=True,
        help="Show the items that failed, one of each kind with its traceback, and those below a threshold.",
    ),
    click.option(
        "--item",
        "ids",
        multiple=True,
        metavar="ID",
        help="Show this item, by its id or its number; repeatable.",
    ),
    click.option("--wrong", is_flag=True, help="Show the items that are wrong or below a threshold."),
    click.option(
        "--grep",
        "text",
        metavar="TEXT",
        help="Show the items with this text in a prompt, an answer or an error.",
    ),
    click.option(
        "--where",
        "conditions",
        multiple=True,
        callback=parsed_by("modelgauge.runs.conditions:Condition"),
        metavar="CONDITION",
        help='Show the items for which this holds: "accuracy == 0"; repeatable.',
    ),
    click.option(
        "--sort", metavar="NAME", help="Sort items by a measurement, lowest first; -NAME for highest first."
    ),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N items."),
    heading="Which items",
)
@together(verbose_option, data_dir_option, heading=OUTPUT)
@shared_options
def show(app: App, /, *, run: str, items: bool, failures: bool, verbose: bool, **wanted: Any) -> None:
    """Show a run: its results, failures and folder, or its progress while it goes on.

    RUN is the id of a run, or of an invocation for all runs of one command; the unique beginning of an id; `latest`,
    or `latest~1` for the command before; a folder; or a file of --output-file.

    \b
    Examples:
      modelgauge show latest
      modelgauge show latest --wrong --limit 3
      modelgauge show latest --where "accuracy == 0" --grep train
      modelgauge show run_data/runs/20260131-120000-a1b2c3 --failures
      modelgauge show records.json --items --json
    """
    from modelgauge.cli.comparing import describe_differences
    from modelgauge.runs.record_files import records_as_json
    from modelgauge.runs.selection import Selection

    selection = Selection(**wanted)
    runs = shown_runs(app, run)
    if app.as_json:
        chosen = selection.of if selection else None
        parts = {"scored": items, "failed": items or failures, "not_passed": failures, "chosen": chosen}
        app.show_pieces(records_as_json(runs, **parts))
        return
    if not (items or failures or selection):
        app.show_report(runs, shown_by="show", details=verbose, differences=describe_differences(app, runs))
        return
    for number, recorded in enumerate(runs):
        if len(runs) > 1:
            app.show("\n" * (number > 0) + f"{recorded.record.test_uid} on {recorded.record.sut_name}\n")
        if selection:
            _show_selected(app, recorded, selection)
        else:
            (_show_items if items else _show_failures)(app, recorded)


def _show_selected(app: App, run: RecordedRun, selection: Selection) -> None:
    number = _show_records(app, selection.of(run))
    app.show(f"{counted(number, 'item')} shown, of {run.record.counts.finished:,}.")


def _show_records(app: App, records: Iterable[ItemRecord]) -> int:
    """Show items, and return how many there are."""
    number = 0
    for record in records:
        app.show("\n".join([*_item_lines(record), *map(_failed, record.failures), ""]))
        number += 1
    return number


def shown_runs(app: App, name: str) -> Sequence[RecordedRun]:
    from modelgauge.runs.naming import recorded_runs

    found, damaged = recorded_runs(app.settings.data_dir, name)
    for skipped in damaged:
        app.note(f"Warning: {skipped}")
    return found


def name_of_files(names: Sequence[str], runs: Sequence[RecordedRun]) -> str:
    """Return the base name for files about runs: the invocation if one name meant several of its runs.

    Args:
        names: that a command was given.
        runs: that they meant.
    """
    first, invocations = runs[0].record, {run.record.invocation_id for run in runs}
    return first.invocation_id if len(names) == len(invocations) == 1 < len(runs) else first.run_id


def _show_items(app: App, run: RecordedRun) -> None:
    number = _show_records(app, run.items().records())
    app.show(f"{counted(number, 'item')}.")
    _check_count(app, run, number, run.record.counts.finished)


def _show_failures(app: App, run: RecordedRun) -> None:
    """Show the first item of each kind of failure, then the items below a threshold."""
    from modelgauge.reports.failures import group_failures, without_our_frames

    groups = group_failures(run.failures())
    for group in groups:
        trace = group.failure.traceback if app.debug else without_our_frames(group.failure.traceback)
        lines = [*_item_lines(group.item), _failed(group.failure), indented(trace.rstrip("\n"), "    ")]
        app.show("\n".join(lines))
        more = ", ..." if group.count - 1 > len(group.others) else ""
        if group.others:
            app.show(f"  {group.count - 1:,} more failed alike: {', '.join(group.others)}{more}")
        app.show("")
    number, below = sum(1 for _ in run.failures()), _show_not_passed(app, run)
    kinds = f", {counted(len(groups), 'kind')} of failure" if len(groups) < number else ""
    app.show(f"{counted(number, 'failed item')}{kinds}{f', {below:,} below a threshold' if below else ''}.")
    _check_count(app, run, number, run.record.counts.failed + run.record.counts.partial)


def _check_count(app: App, run: RecordedRun, number: int, recorded: int) -> None:
    if run.ended and number != recorded:
        app.note(f"Warning: the record counts {recorded:,} of them, but the run's journal holds {number:,}.")


def _show_not_passed(app: App, run: RecordedRun) -> int:
    """Show the scored items that are below a threshold, and say how many there are."""
    from modelgauge.data.thresholds import failing
    from modelgauge.wording.figures import exact

    number = 0
    for record in run.not_passed():
        number += 1
        named = [f"{name} = {exact(record.measurements[name])}" for name in failing(record.measurements)]
        app.show("\n".join([*_item_lines(record), f"  NOT PASSED: {', '.join(named)}", ""]))
    return number


def _item_lines(record: ItemRecord) -> Iterator[str]:
    from modelgauge.cli.commands.run_one import shown
    from modelgauge.data.spans import TRACE
    from modelgauge.wording.figures import duration, exact

    yield f"{record.index + 1}. {record.test_item.id}"
    for interaction in record.interactions:
        yield from _prompt_lines(interaction.prompt)
        for annotated in interaction.response.completions:
            completion = annotated.completion
            if completion.reasoning:
                yield f"  reasoning\n{indented(completion.reasoning, '    ')}"
            blocked = ", blocked by the service" if completion.blocked else ""
            yield f"  completion{blocked}\n{indented(completion.text, '    ')}"
            if completion.left_out:
                yield f"  not understood: {', '.join(completion.left_out)}"
            metadata = {name: value for name, value in completion.metadata.items() if name != TRACE}
            if completion.blocked and metadata:
                yield f"  metadata\n{indented(shown(metadata))}"
            for name, annotation in annotated.annotations.items():
                yield f"  annotation {name}\n{indented(shown(annotation))}"
        if interaction.time is not None:
            yield f"  took {duration(interaction.time.seconds)}"
    if len(record.interactions) < len(record.test_item.prompts):
        asked = [interaction.prompt for interaction in record.interactions]
        for prompt in record.test_item.prompts:
            if prompt not in asked:
                yield from _prompt_lines(prompt)
    yield from _known_lines(record.test_item.context)
    if record.is_scored or record.measurements:
        measured = ", ".join(f"{name} = {exact(value)}" for name, value in record.measurements.items())
        yield f"  measured: {measured or 'nothing'}"


def _prompt_lines(prompt: PromptWithContext) -> Iterator[str]:
    from modelgauge.data.prompts import prompt_text

    yield f"  prompt\n{indented(prompt_text(prompt.prompt), '    ')}"
    yield from _known_lines(prompt.context)


def _known_lines(context: Any) -> Iterator[str]:
    """Return the right answer in an item's context: fields with telling names, or the whole context, shortened."""
    from modelgauge.cli.commands.run_one import shown
    from modelgauge.reports.item_texts import expected_in

    expected = expected_in(context)
    for name, value in expected.items():
        yield f"  {name.replace('_', ' ')}\n{indented(shown(value))}"
    if context is not None and not expected:
        yield f"  context\n    {one_line(shown(context), _MOST_OF_A_CONTEXT)}"


def _failed(failure: Failure) -> str:
    which = "" if failure.repeat is None else f" (repeat {failure.repeat + 1})"
    return f"  FAILED at {failure.stage} ({failure.source_uid}){which}: {failure.reason}"

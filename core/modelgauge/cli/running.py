"""Shared by `run-test`, `resume`, `rescore` and `merge`: options of the report, its file, the report, the exit code.

Each command decides what is run.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from contextlib import chdir
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    ALLOWANCE,
    OUTPUT,
    no_report_option,
    together,
    verbose_option,
)
from modelgauge.cli.output_file import OUTPUT_PATH, OutputFile
from modelgauge.cli.program import FAILED, INTERRUPTED, STOPPED, TOO_MANY_ERRORS
from modelgauge.cli.thresholds import ThresholdCheck, threshold_option
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from modelgauge.cli.app import App
    from modelgauge.cli.comparing import BaselineCheck
    from modelgauge.config.allowance import Allowance
    from modelgauge.data.item_records import ItemRecord
    from modelgauge.data.records import TestRecord
    from modelgauge.plugins.resolution import LeftOut
    from modelgauge.runs.recorded_run import RecordedRun

log = logging.getLogger(__name__)


# --- options -----------------------------------------------------------------------------------------


def _too_many_failed(allowed: Allowance, record: TestRecord) -> bool:
    """Return whether more items or repeats of a run failed than are allowed.

    If an item was scored by some of its repeats, each other repeat counts as one more failure, or as its share of
    the item.
    """
    counts = record.counts
    repeats = counts.failed_repeats / (record.repeats if allowed.percent else 1)
    return allowed.exceeded_by(counts.failed + repeats, counts.items)


report_options = together(
    click.option(
        "--max-errors",
        type=ALLOWANCE,
        metavar="N|P%",
        default="0",
        show_default=True,
        help="Exit with 3 if more items or repeats of a run fail: a number, or a percentage of its items.",
    ),
    threshold_option,
    click.option(
        "--output-file",
        type=OUTPUT_PATH,
        metavar="FILE",
        help="Also write one JSON file with the records and all their items.",
    ),
    no_report_option,
    verbose_option,
    click.option("--no-progress-bar", is_flag=True, help="Show no progress."),
    heading=OUTPUT,
)
"""Options for the records: `--max-errors`, `--threshold`, `--output-file`, `--no-report` and the like."""


# --- running and reporting ---------------------------------------------------------------------------


class RunObserver:
    """Observer of runs as they start and end, so that an interrupted command can list the unfinished ones.

    It writes the page of a run before plugins hear of its end, so that they find it in the run's folder.

    Args:
        app: of this invocation.

    Attributes:
        unwritten: a sentence for each page that could not be written.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self.unwritten: list[str] = []
        self.started: list[Mapping[str, Any]] = []
        self.records: list[TestRecord] = []

    def run_started(self, run: Mapping[str, Any]) -> None:
        """Called when the run's folder exists."""
        self.started.append(run)
        log.info("Run %s: %s on %s", run["run_id"], run["test_uid"], run["sut_uid"])

    def item_finished(self, run_id: str, record: ItemRecord) -> None:
        """Called when an item has a record."""
        if (failure := record.failure) is not None:
            item = record.test_item.id
            log.info("Run %s: item %s failed at %s: %s", run_id, item, failure.source_uid, failure.reason)

    def run_finished(self, record: TestRecord) -> None:
        """Called when a run has a record."""
        self.records.append(record)
        log.info("Run %s ended after %s s", record.run_id, record.seconds)
        if self._app.settings.report and not record.cancelled and record.folder is not None:
            from modelgauge.engine.run_files.folder import RunFolder
            from modelgauge.reports import write_reports
            from modelgauge.runs.recorded_run import RecordedRun

            run = RecordedRun(record, RunFolder(record.folder))
            self.unwritten += write_reports([run], redact=self._app.redact)

    def unfinished(self) -> list[Mapping[str, Any]]:
        """Return the manifests of unfinished runs."""
        ended = {record.run_id for record in self.records if not record.ended_early}
        return [run for run in self.started if run["run_id"] not in ended]


def run_and_report(
    app: App,
    given: dict[str, Any],
    run: Callable[[dict[str, Any]], list[TestRecord]],
    runs: Path,
    *,
    verb: str = "run-test",
    again: str = "",
    baseline: BaselineCheck | None = None,
    left_out: Sequence[LeftOut] = (),
) -> None:
    """Run tests, show the results, and set the exit code.

    Args:
        app: of this invocation.
        given: the command's arguments, with those of `report_options` and `--json`.
        run: makes the records; it is handed options of `Runner`.
        runs: the folder of the runs.
        verb: the command: `run-test`, `resume`, `rescore` or `merge`.
        again: the command line that does what is left when not all was done; by default, `resume` for what is left.
        baseline: compares the runs; None if there is nothing to compare them with.
        left_out: pairs that do not fit; `run` may add some.
    """
    from modelgauge.engine.run_files.folder import RunFolder
    from modelgauge.runs.recorded_run import RecordedRun

    path = given["output_file"]
    output = None if path is None else OutputFile(path, app.settings.data_dir)
    watch = RunObserver(app)
    interrupted, broken = False, len(app.plugins.failures)
    try:
        with chdir("."):  # back to it, wherever a SUT went
            records = run({"progress": not given["no_progress_bar"], "observers": [watch]})
    except KeyboardInterrupt:
        interrupted, records = True, sorted(watch.records, key=lambda record: record.run_id)
    shown = [RecordedRun(record, RunFolder(runs / record.run_id)) for record in records]
    ending = _Ending(app, shown, watch.unfinished(), given["max_errors"], verb, again, interrupted)
    app.exit_code = ending.exit_code()
    checks: list[ThresholdCheck | BaselineCheck] = [
        ThresholdCheck(app, given["thresholds"], [] if interrupted else records)
    ]
    if baseline is not None and records and not interrupted:
        baseline.compare(records)
        checks.append(baseline)
    try:
        ending.show(output, checks, left_out, details=given["verbose"])
    finally:  # also where stdout takes no more: Ctrl-C ends all that stands in a pipe
        for problem in watch.unwritten:
            app.note(f"Warning: {problem}")
        for failure in app.plugins.failures[broken:]:
            app.note(f"Warning: the plugin {failure.name} failed as an observer: {failure.cause}")
        ending.note_reasons()
        if interrupted and not watch.started:
            app.note("Interrupted before a run began: nothing was asked.")
        for folder in sorted(runs / str(manifest["run_id"]) for manifest in ending.unfinished if interrupted):
            app.note(f"Interrupted: {folder}")
        ending.note_next_command()
        for check in checks:
            check.show()


def left_out_as_json(pairs: Iterable[LeftOut]) -> dict[str, list[dict[str, Any]]]:
    """Return the pairs that do not fit, as JSON for `--json`; empty if there are none."""
    found = [pair._asdict() for pair in pairs]
    return {"left_out": found} if found else {}


@dataclass(frozen=True, slots=True)
class _Ending:
    """Outcome of the runs of a command.

    Args:
        app: of this invocation.
        runs: those that have a record.
        unfinished: the manifests of the runs that have something left to do.
        allowed: how many items may fail.
        verb: see `run_and_report`.
        again: see `run_and_report`.
        interrupted: whether the command was interrupted.
    """

    app: App
    runs: Sequence[RecordedRun]
    unfinished: Sequence[Mapping[str, Any]]
    allowed: Allowance
    verb: str
    again: str
    interrupted: bool

    def exit_code(self) -> int:
        """Return the exit code, in order of precedence: interrupted, stopped early, too many errors, thresholds."""
        from modelgauge.runs.passing import why_not_passed

        records = [run.record for run in self.runs]
        if self.interrupted:
            return INTERRUPTED
        if any(record.failure is not None for record in records):
            return STOPPED
        if any(_too_many_failed(self.allowed, record) for record in records):
            return TOO_MANY_ERRORS
        return FAILED if any(why_not_passed(record) for record in records) else 0

    def show(
        self,
        output: OutputFile | None,
        checks: Sequence[BaselineCheck | ThresholdCheck],
        left_out: Sequence[LeftOut],
        *,
        details: bool,
    ) -> None:
        """Write the output file, then print the results."""
        from modelgauge.cli.comparing import describe_differences
        from modelgauge.runs.group_means import group_means
        from modelgauge.runs.record_files import record_as_json, records_as_json

        app, runs = self.app, self.runs
        try:
            if output is not None:
                with output.writing() as file:
                    if len(runs) == 1:
                        file.writelines(record_as_json(runs[0], redact_json=app.redact_json))
                    else:
                        file.writelines(records_as_json(runs, redact_json=app.redact_json))
                    file.write("\n")
        finally:  # also where the file has no room
            if app.as_json:
                records = [run.record for run in runs]
                found = {"records": [record.model_dump(mode="json") for record in records]}
                if means := [mean.model_dump(mode="json") for mean in group_means(records)]:
                    found["groups"] = means
                found |= left_out_as_json(left_out)
                for check in checks:
                    found |= check.as_json()
                app.show_json(found)
            elif runs:
                app.show_report(
                    runs,
                    shown_by=self.verb,
                    details=details,
                    differences=()
                    if len(checks) > 1 or self.interrupted
                    else describe_differences(app, runs),
                )

    def note_reasons(self) -> None:
        """Print why the exit code is not 0."""
        from modelgauge.runs.passing import why_not_passed

        in_tables = not self.app.as_json and _has_one_reader()  # who has read there what stopped a run
        for run in self.runs:
            record, counts = run.record, run.record.counts
            pair = f"{record.test_uid} on {record.sut_name}"
            if (failure := record.failure) is not None:
                why = "" if in_tables else f": {failure.error_type}: {failure.message.rstrip('.')}"
                self.app.note(f"Error: {pair} stopped early{why}.")
            elif record.cancelled:
                continue
            elif _too_many_failed(self.allowed, record):
                repeats = (
                    f" and {counted(counts.failed_repeats, 'repeat')} of others" if counts.partial else ""
                )
                self.app.note(
                    f"Error: {counts.failed:,} of {counted(counts.items, 'item')}{repeats} failed in {pair}; "
                    f"--max-errors allows {self.allowed.text}."
                )
            elif (not_passed := why_not_passed(record)) is not None:
                self.app.note(f"Failed: {pair}: {not_passed}. See which: {run.command('show')} --failures")

    def note_next_command(self) -> None:
        """Print the command that does what is left; never the command that failed just now."""
        ended = {run.record.run_id: run for run in self.runs}
        left = [
            run
            for run in self.unfinished
            if run["run_id"] not in ended or ended[run["run_id"]].to_go_on() is not None
        ]
        if not left:
            return
        from modelgauge.runs.recorded_run import higher_cap

        # `resume` needs a higher cap to go on where one was reached; `rescore` begins again.
        more = "" if self.verb == "rescore" else higher_cap(run.record for run in self.runs)
        if self.verb in ("resume", "rescore") and not self.interrupted and not more:
            self.app.note("To go on, correct that and run the same command again.")
            return
        corrected = ", once that is corrected" if any(run.needs_correction for run in self.runs) else ""
        manifest = left[0]
        resume = f"modelgauge resume {manifest['run_id'] if len(left) == 1 else manifest['invocation_id']}"
        folder = self.app.given.get("data_dir")  # without which the run would be looked for elsewhere
        data_dir = f" --data-dir {shlex.quote(str(folder))}" if folder else ""
        self.app.note(f"To go on{corrected}: {self.again or resume}{data_dir}{more}")


def _has_one_reader() -> bool:
    """Return whether stdout and stderr go to the same terminal, file or pipe."""
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno()))
    except (OSError, ValueError, AttributeError):  # not even files
        return False

"""Comparisons in `compare` and `run-test --baseline`: gates, and output."""

from __future__ import annotations

import os
import shlex
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import ALLOWANCE, declared_options, together
from modelgauge.cli.thresholds import parsed_by
from modelgauge.comparison.options import OPTIONS
from modelgauge.documents.terminal import Style, as_text
from modelgauge.errors import InputFileError, ModelGaugeError, RecordError
from modelgauge.files.regular import is_file
from modelgauge.wording.phrases import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from modelgauge.cli.app import App
    from modelgauge.comparison.gates import GateOutcome, Gates
    from modelgauge.comparison.pairing.baselines import BaselineSubject
    from modelgauge.comparison.result import Comparison
    from modelgauge.data.records import TestRecord
    from modelgauge.engine.run_files.folder import RunFolder
    from modelgauge.runs.recorded_run import RecordedRun

FORMATS = ("text", "github")
_MOST_OF_A_LINE = 2000
_MOST_COMPARED = 50_000  # items, which are read once more
_SUMMARY = "GITHUB_STEP_SUMMARY"


format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="How a comparison is shown. github: annotations and a summary in Markdown, which is also appended to "
    "$GITHUB_STEP_SUMMARY.",
)


gate_options = together(
    click.option(
        "--fail-if-worse",
        is_flag=True,
        help="Exit with 1 if a candidate is significantly worse than the baseline, after adjustment; or could be if "
        "the failed items had been scored.",
    ),
    click.option(
        "--require-not-worse",
        type=click.FloatRange(min=0, min_open=True),
        metavar="MARGIN",
        help="Exit with 1 unless the items show that no candidate is worse by MARGIN or more, in units of the "
        "measurement: 0.01 for one point. Failed items count as a loss.",
    ),
    click.option(
        "--fail-if",
        multiple=True,
        callback=parsed_by("modelgauge.runs.conditions:Condition"),
        metavar="CONDITION",
        help="Exit with 1 if this is true of a candidate over the paired items, or could be with the failed items: "
        '"accuracy < 0.9"; repeatable.',
    ),
    click.option(
        "--max-failed",
        type=ALLOWANCE,
        metavar="N|P%",
        help="Exit with 1 if more of the common items failed in either run: a number, or a percentage.",
    ),
    heading="Gates",
)
"""Options for the conditions of exit code 0; `pop_gates` creates the object."""
_OF_GATES = ("fail_if_worse", "require_not_worse", "fail_if", "max_failed")


def pop_gates(given: dict[str, Any]) -> Gates:
    """Move the options that `gate_options` added from a command's arguments to a `Gates`."""
    from modelgauge.comparison.gates import Gates

    return Gates(**_taken(given, _OF_GATES))


def _taken(given: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: given.pop(name) for name in names}


def compare_options(given: dict[str, Any], gates: Gates, data_dir: Path) -> dict[str, Any]:
    """Return the given comparison options, with the margin that a gate needs.

    Raises:
        UsageError: the gate needs another margin than was given.
    """
    options = {name: value for name, value in given.items() if value not in (None, ())}
    margin = gates.require_not_worse
    if margin is not None and options.setdefault("margin", margin) != margin:
        raise click.UsageError("--margin and --require-not-worse differ: give one of them.")
    return {**options, "data_dir": data_dir}


def show_failed_gates(app: App, outcomes: Sequence[GateOutcome]) -> None:
    """Print a line for each failed gate, and set the exit code."""
    for outcome in outcomes:
        if not outcome.passed:
            app.fail(one_line(f"Failed: {outcome.about}: {outcome.why}", _MOST_OF_A_LINE))


def show_comparison(app: App, comparison: Comparison, *, flips: int = 0, next_command: str = "") -> None:
    """Print the tables of a comparison, and some of its flipped items.

    Args:
        app: of this invocation.
        comparison: what was found.
        flips: how many of each measurement and candidate.
        next_command: what shows more.
    """
    from modelgauge.reports.comparisons.exports import without_commands
    from modelgauge.reports.comparisons.flips import flips_document
    from modelgauge.reports.comparisons.report import comparison_document

    flipped = flips_document(comparison.iter_flips(flips), comparison.baseline.label) if flips else ()
    document = chain(comparison_document(comparison, next_command=next_command), flipped)
    text = as_text(document, Style.of(sys.stdout), app.redact)
    in_actions = os.environ.get("GITHUB_ACTIONS") == "true"  # whose log obeys lines that begin with `::`
    click.echo(without_commands(text) if in_actions else text, color=True)


def show_for_github(app: App, comparison: Comparison, outcomes: Sequence[GateOutcome]) -> None:
    """Print annotations of failed gates and a summary in Markdown, which goes to the build's page too.

    Raises:
        InputFileError: the file of the page cannot be written.
    """
    from modelgauge.documents.markdown import as_markdown
    from modelgauge.reports.comparisons.exports import annotations, without_commands
    from modelgauge.reports.comparisons.summary import summary_document

    for line in annotations(outcomes, app.redact):
        click.echo(line)
    summary = as_markdown(summary_document(comparison, outcomes), app.redact)
    click.echo(without_commands(summary))
    page = os.environ.get(_SUMMARY)
    if not page:
        return
    try:
        with Path(page).open("a", encoding="utf-8") as file:
            file.write(summary)
    except OSError as error:
        raise InputFileError(
            f"${_SUMMARY} {page} cannot be written: {error.strerror}.", fix="Unset it, or give --format text."
        ) from error


# --- what differs between the SUTs of one command -------------------------------------------------------


def describe_differences(app: App, runs: Sequence[RecordedRun]) -> list[str]:
    """Describe the difference between the first SUT and each other one, by the first measurement of each test.

    Nothing if runs were stopped or are in progress, are too large to read again, or cannot be compared.
    """
    records = [run.record for run in runs]
    first = records[0].sut_name
    others = [record for record in records if record.sut_name != first]
    many = sum(record.counts.items for record in records) > _MOST_COMPARED
    if not others or many or any(record.ended_early for record in records):
        return []
    from modelgauge.comparison.compare import compare
    from modelgauge.comparison.families import Family
    from modelgauge.comparison.verdicts import verdict_text
    from modelgauge.reports.comparisons.report import answers

    mine = [record for record in records if record.sut_name == first]
    try:
        found = compare(mine, others, data_dir=app.settings.data_dir)
    except ModelGaugeError:
        return []  # they have no test in common, say, or two runs of one
    family = Family.of(found)
    leading = {(row.test, row.candidate): row for row in reversed(found.comparisons)}
    rows = [
        row.replaced(
            verdict_text=verdict_text(row.candidate, row, family, margin=row.equivalence, in_short=True)
        )
        for row in found.comparisons
        if row in leading.values()
    ]
    names = {row.measurement for row in rows}
    means = [
        mean.replaced(
            verdict_text=verdict_text(mean.candidate, mean, family, n_tests=len(mean.tests), in_short=True)
        )
        for mean in found.macro
        if mean.measurement in names
    ]
    sentences = list(answers(found.replaced(comparisons=rows, macro=means)))
    if found.family > 1:
        sentences.append(f"Adjusted for {found.family:,} comparisons; intervals are not.")
    return sentences


# --- comparing runs with a baseline once they have ended ----------------------------------------------

_OF_BASELINE = ("measurements", "lower_is_better", "higher_is_better", "allow")

baseline_options = together(
    click.option(
        "--baseline",
        metavar="RUN",
        help="Compare with this run afterwards: an id, a folder, a file of --output-file, `latest`, the newest run "
        "before this command, or `pinned`, the baseline that `modelgauge baselines` lists for the data set or test. If "
        "it has several SUTs, the SUT that is measured again is the baseline.",
    ),
    gate_options,
    declared_options({name: OPTIONS[name] for name in _OF_BASELINE}),
    format_option,
    heading="Comparison with a baseline",
)
"""The options of commands that compare their runs with a baseline; `pop_baseline` takes them."""


def pop_baseline(app: App, given: dict[str, Any]) -> BaselineCheck | None:
    """Take what `baseline_options` added out of a command's arguments; None if there is no baseline.

    Raises:
        UsageError: a gate has no baseline.
        RecordError: there is no such run.
    """
    # As they were given: what makes gates of them imports all that compares, which few runs need.
    demanded, options = _taken(given, _OF_GATES), _taken(given, _OF_BASELINE)
    name, output_format = given.pop("baseline"), given.pop("output_format")
    for_github = output_format != FORMATS[0]
    if for_github and app.as_json:
        raise click.UsageError("--format github does not go with --json.")
    if name is not None:
        gates = pop_gates(demanded)
        options = compare_options(options, gates, app.settings.data_dir)
        return BaselineCheck(app, name, gates, options, for_github=for_github)
    if for_github or any((*demanded.values(), *options.values())):
        raise click.UsageError("--fail-if-worse and the like compare with a baseline: give --baseline RUN.")
    return None


class BaselineCheck:
    """Comparison of finished runs with a baseline. The runs themselves are kept, whatever the outcome.

    Args:
        app: of this invocation.
        name: of the baseline.
        gates: what the comparison must show.
        options: of the comparison.
        for_github: whether it is shown as Markdown with annotations.

    Raises:
        RecordError: there is no such run.
    """

    def __init__(
        self, app: App, name: str, gates: Gates, options: Mapping[str, Any], *, for_github: bool = False
    ) -> None:
        from modelgauge.runs.naming import PINNED, find_runs, lasting_name

        self._is_pinned = name == PINNED  # for what, is known when the tests are
        # The run that is meant now: by the end, others are the latest.
        folders = [] if self._is_pinned or is_file(Path(name)) else find_runs(app.settings.data_dir, name)
        self._baseline: str | list[str] = name if self._is_pinned else lasting_name(name, folders)
        self._runs = {folder.run_id for folder in folders}
        self._app, self._gates, self._options, self._for_github = app, gates, options, for_github
        self._comparison: Comparison | None = None
        self._compared: list[str] = []
        self._outcomes: Sequence[GateOutcome] = ()
        self._error: ModelGaugeError | None = None

    def choose(self, subjects: Iterable[Sequence[BaselineSubject]]) -> None:
        """Find the pinned baselines of runs, if these are the baseline.

        Args:
            subjects: of each run.

        Raises:
            RecordError: none is pinned, or one is not there any more.
        """
        from modelgauge.comparison.pairing.baselines import pinned_runs

        if self._is_pinned:
            self._baseline = pinned_runs(self._app.settings.data_dir, subjects)
            self._runs = {*self._baseline}

    def check(self, planned: Iterable[tuple[str, str, str | None]]) -> None:
        """Check that runs can be compared with the baseline, before anything is asked for them.

        Args:
            planned: test, SUT and label of each, see `baseline_sut_for`.

        Raises:
            RecordError: they cannot.
            InvalidOptionError: an option or a gate does not fit the baseline.
        """
        from modelgauge.comparison.named_runs import named_runs
        from modelgauge.comparison.options import CompareOptions
        from modelgauge.comparison.pairing.systems import baseline_sut_for

        options = CompareOptions.of(**self._options)
        sut = baseline_sut_for([*planned], self._baseline, options)
        self._gates.check_before(named_runs(self._baseline, options.data_dir), options)
        self._options = {**self._options, "baseline_sut": sut}

    def check_again(self, folders: Sequence[RunFolder], test: str | None, *, resumes: bool) -> None:
        """Check the baseline like `check`, for runs that are repeated.

        Args:
            folders: of the runs.
            test: what measures them now; None for the test of each.
            resumes: whether they go on, so that none of them can be the baseline.
        """
        from modelgauge.comparison.pairing.baselines import list_subjects
        from modelgauge.data.results import GIVEN
        from modelgauge.runs.recorded_run import recorded_run

        self.choose(list_subjects(recorded_run(folder)) for folder in folders)
        own = self._runs.intersection(folder.run_id for folder in folders) if resumes else None
        if own:
            raise RecordError(
                f"The baseline {min(own)} is the run that this command continues: a run does not differ from itself.",
                fix="Name another run, or leave --baseline out.",
            )

        manifests = [folder.read_manifest() for folder in folders]
        if all(manifest["sut_uid"] != GIVEN for manifest in manifests):
            self.check(
                (test or manifest["test_uid"], manifest["sut_uid"], manifest.get("sut_label"))
                for manifest in manifests
            )

    def compare(self, records: Sequence[TestRecord]) -> None:
        """Compare the runs of this command with the baseline."""
        from modelgauge.comparison.compare import compare

        self._compared = [record.run_id for record in records]
        try:
            self._comparison = compare(self._baseline, list(records), **self._options)
            self._outcomes = self._gates.outcomes(self._comparison)
        except ModelGaugeError as error:
            self._error = error

    def as_json(self) -> dict[str, Any]:
        """Return the findings for the object printed by `--json`."""
        if self._comparison is None:
            return {}
        gates = [outcome.model_dump(mode="json") for outcome in self._outcomes]
        return {"comparison": {**self._comparison.model_dump(mode="json"), "gates": gates}}

    def show(self) -> None:
        """Print what was found, and set the exit code; `--json` has printed the tables already."""
        if self._comparison is not None and not self._app.as_json:
            click.echo()
            if self._for_github:
                show_for_github(self._app, self._comparison, self._outcomes)
            else:
                baseline = [self._baseline] if isinstance(self._baseline, str) else self._baseline
                runs = shlex.join(["modelgauge", "report", *baseline, *self._compared])
                show_comparison(self._app, self._comparison, next_command=f"{runs} --open")
        show_failed_gates(self._app, self._outcomes)
        if self._error is not None:
            why = f"not compared with the baseline: {self._error.problem}\n{self._error.fix}"
            self._app.fail(f"Error: {why}", self._error.exit_code)

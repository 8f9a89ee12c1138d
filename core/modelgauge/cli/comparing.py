"""What `compare` and `run-test --baseline` share: gates, and what becomes of a comparison."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import together
from modelgauge.cli.program import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App
    from modelgauge.comparison.gates import GateOutcome, Gates
    from modelgauge.comparison.result import Comparison
    from modelgauge.data.conditions import Condition

FORMATS = ("text", "github")
_SUMMARY = "GITHUB_STEP_SUMMARY"


def _conditions(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> tuple[Condition, ...]:
    if not given:
        return ()
    from modelgauge.data.conditions import Condition

    return tuple(Condition.parse(text) for text in given)


gate_options = together(
    click.option(
        "--fail-if-worse",
        is_flag=True,
        help="Exit with 1 where a candidate is significantly worse than the baseline, after adjustment.",
    ),
    click.option(
        "--require-not-worse",
        type=click.FloatRange(min=0, min_open=True),
        metavar="MARGIN",
        help="Exit with 1 unless it is shown that no candidate is worse by MARGIN or more, in units of the "
        "measurement: 0.01 for one point.",
    ),
    click.option(
        "--fail-if",
        multiple=True,
        callback=_conditions,
        metavar="CONDITION",
        help='Exit with 1 where this is true of a candidate, over the paired items: "accuracy < 0.9"; repeatable.',
    ),
)
"""What a comparison must show for the exit code 0; `pop_gates` makes the object."""


def pop_gates(given: dict[str, Any]) -> Gates:
    """Take what `gate_options` added out of a command's arguments."""
    from modelgauge.comparison.gates import Gates

    return Gates(
        fail_if_worse=given.pop("fail_if_worse"),
        require_not_worse=given.pop("require_not_worse"),
        fail_if=given.pop("fail_if"),
    )


def compare_options(given: dict[str, Any], gates: Gates, data_dir: Path) -> dict[str, Any]:
    """The options of a comparison that were given, with the margin that a gate needs.

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
    failed = [one for one in outcomes if not one.passed]
    for one in failed:
        app.note(f"Failed: {one.gate}: {one.test}, {one.measurement}: {one.why}")
    if failed:
        app.exit_code = app.exit_code or FAILED


def show_comparison(app: App, comparison: Comparison, *, flips: int = 0, next_command: str = "") -> None:
    """Print the tables of a comparison, and some of its flipped items.

    Args:
        app: of this invocation.
        comparison: what was found.
        flips: how many of each measurement and candidate.
        next_command: what shows more.
    """
    from modelgauge.reports.comparison_report import render
    from modelgauge.reports.flip_report import render_flips
    from modelgauge.reports.layout import Style

    style = Style.of(sys.stdout)
    click.echo(render(comparison, style, app.redact, next_command=next_command), color=True)
    if flips:
        click.echo(
            f"\n{render_flips(comparison.iter_flips(flips), comparison, style, app.redact)}", color=True
        )


def show_for_github(app: App, comparison: Comparison, outcomes: Sequence[GateOutcome]) -> None:
    """Print annotations of failed gates and a summary in Markdown, which goes to the build's page too.

    Raises:
        InputFileError: the file of the page cannot be written.
    """
    from modelgauge.errors import InputFileError
    from modelgauge.reports.github import annotations, markdown, without_commands

    for line in annotations(outcomes, app.redact):
        click.echo(line)
    summary = markdown(comparison, outcomes, app.redact)
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

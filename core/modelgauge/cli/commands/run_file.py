"""`modelgauge run`: what `run-test` does, with options that stand in a file."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from modelgauge.cli.app import App
from modelgauge.cli.commands.measure import run_test

if TYPE_CHECKING:
    from collections.abc import Iterator

_HELP = """Run what a file says: tests, SUTs, options, thresholds, and a comparison with a baseline.

FILE is TOML. Its keys are the options of `run-test`, all of which can be given here too: what the command line says
takes the place of what the file says. The records of the runs hold the file. The exit code is that of run-test.

\b
Examples:
  modelgauge run suite.toml
  modelgauge run suite.toml --dry-run
  modelgauge run suite.toml --max-test-items 10 --sut small=openai/gpt-4o-mini
"""


def _read(ctx: click.Context, _: click.Parameter, path: Path) -> Path:
    """Let the file say what options are that the command line does not give."""
    if ctx.resilient_parsing:
        return path
    from modelgauge.cli.run_file import read_run_file

    file = read_run_file(path, ctx, run_test)
    ctx.default_map = {**(ctx.default_map or {}), **file.values}
    ctx.ensure_object(App).run_file = {"path": str(file.path), "text": file.text}
    return path


def _options() -> Iterator[click.Parameter]:
    """Those of `run-test`, which its help lists."""
    for option in run_test.params:
        hidden = copy(option)
        if isinstance(hidden, click.Option):
            hidden.hidden = True
        yield hidden


def _run(**given: Any) -> Any:
    ctx = click.get_current_context()
    sources = [ctx.get_parameter_source(name) for name in ("tests", "thresholds")]
    if sources == [ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP]:  # a part of what the file says
        given["thresholds"] = tuple(replace(one, is_optional=True) for one in given["thresholds"])
    return run_test.callback(**given) if run_test.callback else None


run = click.Command(
    "run",
    callback=_run,
    params=[
        click.Argument(
            ["file"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=_read,
        ),
        *_options(),
    ],
    help=_HELP,
)
"""The command."""

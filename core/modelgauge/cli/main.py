"""The entry point of the `modelgauge` command, and the table of its commands."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

import click

from modelgauge.cli.lazy import Lazy
from modelgauge.cli.options import plugin_option, program_options
from modelgauge.cli.program import Program

_RUN, _LOOK, _KEEP = "Run", "Look around", "Look after"

COMMANDS = {
    "run-test": Lazy("modelgauge.cli.commands.run_test:run_test", "Run tests on SUTs.", _RUN),
    "resume": Lazy("modelgauge.cli.commands.rerun:resume", "Continue a run that was stopped.", _RUN),
    "rescore": Lazy(
        "modelgauge.cli.commands.rerun:rescore", "Measure the recorded answers of a run anew.", _RUN
    ),
    "run-sut": Lazy(
        "modelgauge.cli.commands.run_one:run_sut", "Ask a SUT one prompt and show all that is said.", _RUN
    ),
    "run-annotator": Lazy(
        "modelgauge.cli.commands.run_one:run_annotator", "Have an annotator judge one completion.", _RUN
    ),
    "list-items": Lazy(
        "modelgauge.cli.commands.list_items:list_items", "Show every prompt that a test will send.", _RUN
    ),
    "test": Lazy(
        "modelgauge.cli.commands.test_run:test", "Run test files that use assert_test, with pytest.", _RUN
    ),
    "runs": Lazy("modelgauge.cli.commands.runs:runs", "List the runs that were made.", _RUN),
    "show": Lazy("modelgauge.cli.commands.show:show", "Show a run: its results, items and failures.", _RUN),
    "list": Lazy("modelgauge.cli.commands.listing:list_all", "List all that is installed.", _LOOK),
    "list-tests": Lazy("modelgauge.cli.commands.listing:list_tests", "List the tests.", _LOOK),
    "list-suts": Lazy(
        "modelgauge.cli.commands.listing:list_suts", "List the SUTs (systems under test).", _LOOK
    ),
    "list-annotators": Lazy("modelgauge.cli.commands.listing:list_annotators", "List the annotators.", _LOOK),
    "list-metrics": Lazy("modelgauge.cli.commands.listing:list_metrics", "List the metrics.", _LOOK),
    "list-secrets": Lazy(
        "modelgauge.cli.commands.listing:list_secrets",
        "List the secrets that plugins want, and where to get them.",
        _LOOK,
    ),
    "datasets": Lazy(
        "modelgauge.cli.commands.datasets:datasets",
        "List, show, validate or compare data sets of goldens.",
        _LOOK,
    ),
    "plugins": Lazy(
        "modelgauge.cli.commands.plugins:plugins", "List the plugins, and what is wrong with them.", _LOOK
    ),
    "cache": Lazy(
        "modelgauge.cli.commands.cache:cache", "Look at the cache of responses, check it, or clear it.", _KEEP
    ),
    "dependencies": Lazy(
        "modelgauge.cli.commands.dependencies:dependencies",
        "List, fetch or add the data that tests need.",
        _KEEP,
    ),
}


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value:
        return
    import platform

    from modelgauge.config.entry_points import DISTRIBUTION, installed_version

    click.echo(f"modelgauge {installed_version(DISTRIBUTION)} (Python {platform.python_version()})")
    ctx.exit()


@click.group(
    "modelgauge",
    cls=Program,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command explains itself: modelgauge COMMAND --help",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version.",
)
@program_options(hidden=False)
@plugin_option
def cli() -> None:
    """Run any test on any AI system: every call cached, every failure visible, every number with its
    error bar.

    \b
    Example:
      modelgauge run-test --sut demo_yes_no --test demo_01
    """


def main() -> None:
    """What the `modelgauge` command runs; ends the process with an exit code of its own."""
    # Closed by `>&-`, say. A file that is opened first would be the process's stdout, and get what is printed there.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  until the end
    for stream in (sys.stdout, sys.stderr):
        # What the encoding cannot hold is shown as an escape, not an error.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    cli.main(prog_name="modelgauge")

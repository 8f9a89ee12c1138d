"""The `modelgauge` group, and the table of its commands."""

import gc
import os
import sys
from io import TextIOWrapper

import click

from modelgauge.cli.app import COMPLETION
from modelgauge.cli.command_options import plugin_option, program_options
from modelgauge.cli.program import Lazy, Program
from modelgauge.config.entry_points import DISTRIBUTION
from modelgauge.documents.terminal import WIDEST

COMMANDS = {
    name: Lazy(f"modelgauge.cli.commands.{target}", about, section)
    for section, commands in {
        "Run": {
            "run-test": ("measure:run_test", "Run tests on SUTs."),
            "run": ("measure:run", "Run what a file describes: tests, SUTs, options, thresholds."),
            "resume": ("rerun:resume", "Continue a run that was stopped."),
            "rescore": ("rerun:rescore", "Measure the recorded answers of a run again."),
            "merge": ("merge:merge", "Join runs that each measured some items of a test."),
            "run-sut": ("run_one:run_sut", "Ask a SUT one prompt, and show request and response."),
            "run-annotator": ("run_one:run_annotator", "Let an annotator judge one completion."),
            "list-items": ("listing:list_items", "Show every prompt that a test will send."),
            "test": ("pytest_session:test", "Run test files that use assert_test, with pytest."),
            "runs": ("runs:runs", "List recorded runs."),
            "show": ("show:show", "Show a run: its results, items and failures."),
            "report": ("export:report", "Write runs as an HTML page."),
            "export": ("export:export", "Write runs as tables: CSV, JSONL or Parquet."),
            "bundle": ("bundles:bundle", "Write runs into one file for other people."),
            "unbundle": ("bundles:unbundle", "Unpack a bundle into a new folder."),
            "check": ("bundles:check", "Check that runs or bundles are complete and consistent."),
        },
        "Compare": {
            "compare": ("compare:compare", "Compare runs: who is better, by how much, how sure that is."),
            "baselines": (
                "baselines:baselines",
                "List, pin and unpin the baselines of data sets, tests and tags.",
            ),
            "plan": ("compare:plan", "Plan a comparison: how many items it needs, what it can find."),
            "sample": ("compare:sample", "Draw judged answers at random, for people to label."),
            "calibrate-judge": (
                "compare:calibrate_judge",
                "Compare a judge with people, and correct its scores.",
            ),
        },
        "Look around": {
            "list": ("listing:list_all", "List everything that is installed."),
            "list-tests": ("listing:list_tests", "List the tests."),
            "list-suts": ("listing:list_suts", "List the SUTs (systems under test)."),
            "list-annotators": ("listing:list_annotators", "List the annotators."),
            "list-metrics": ("listing:list_metrics", "List the metrics."),
            "list-secrets": (
                "listing:list_secrets",
                "List the secrets that plugins use, and where to get them.",
            ),
            "datasets": ("datasets:datasets", "List, show, validate or compare data sets of goldens."),
            "plugins": ("plugins:plugins", "List the plugins and their problems."),
        },
        "Maintain": {
            "new": ("new:new", "Write a package with a plugin of your own, to begin from."),
            "cache": ("cache:cache", "Look at the cache of responses, check it, or clear it."),
            "dependencies": ("dependencies:dependencies", "List, fetch or add the data that tests need."),
            "completion": (
                "completion:completion",
                "Print the script that completes commands at the Tab key.",
            ),
        },
    }.items()
    for name, (target, about) in commands.items()
}


@click.group(
    "modelgauge",
    cls=Program,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
    epilog="Each command explains itself: modelgauge COMMAND --help",
)
@click.version_option(
    package_name=DISTRIBUTION,
    message=f"modelgauge %(version)s (Python {sys.version.split()[0]})",
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
    """Run the `modelgauge` command, and exit with its exit code."""
    # A command imports much and makes little garbage: to search it for cycles, and once more at the interpreter's end,
    # takes a quarter of a small run's processor time. As often as in runs: see `rarer_collections`.
    gc.set_threshold(20_000, *gc.get_threshold()[1:])
    # Closed by `>&-`, say. A file that is opened first would be the process's stdout, and get what is printed there.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  until the end
    if COMPLETION in os.environ:
        from modelgauge.cli.commands.completion import complete

        complete(cli, os.environ[COMPLETION])
        return
    for stream in (sys.stdout, sys.stderr):
        # What the encoding cannot hold is shown as an escape, not an error.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        cli.main()
    finally:
        gc.freeze()

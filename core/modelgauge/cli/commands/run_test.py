"""`modelgauge run-test`: every given test on every given SUT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    data_dir_option,
    data_options,
    pop_run_options,
    pop_sut_options,
    run_options,
    shared_options,
    sut_options,
)
from modelgauge.cli.dataset_options import dataset_options, judged_by, pop_dataset_tests
from modelgauge.cli.running import report_options, run_and_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App


@click.command("run-test")
@click.option("--test", "tests", multiple=True, metavar="UID", help="A test; repeatable.")
@dataset_options
@click.option(
    "--sut",
    "suts",
    multiple=True,
    required=True,
    metavar="UID",
    help="A SUT, its options behind a question mark (acme/model?key=value); repeatable.",
)
@run_options("sample", "results")
@click.option("--dry-run", is_flag=True, help="Say what the run would take, and send nothing.")
@report_options
@click.option("--no-caching", is_flag=True, help="Ask for every answer again, and keep none.")
@data_dir_option
@run_options("calls", "limits")
@data_options
@sut_options
@shared_options
def run_test(
    app: App, /, *, tests: Sequence[str], suts: Sequence[str], judge: str | None, dry_run: bool, **given: Any
) -> None:
    """Run tests on SUTs, every test on every SUT, and show what came out and how sure that is.

    What was answered is kept: the same command again pays for nothing, and `modelgauge resume` continues a
    run that was stopped. Items that fail are counted, never scored.

    The exit code is 4 when a run stopped early; else 3 when more items fail than --max-errors allows; else 1
    when an item does not reach the threshold of a metric, or nothing was scored by metrics; else 0.

    \b
    Examples:
      modelgauge run-test --test demo_01 --sut demo_yes_no
      modelgauge run-test --test gsm8k --sut openai/gpt-4o --max-test-items 100 --temperature 0
      modelgauge run-test --test gsm8k --sut openai/gpt-4o --repeats 5 --reduce pass@2 --dry-run
      modelgauge run-test --test gsm8k --sut replay/answers.jsonl --json > records.json
      modelgauge run-test --dataset goldens.csv --metric answer_relevancy --judge openai/gpt-4o-mini --sut app
    """
    options = {
        "sut_options": pop_sut_options(given),
        "caching": not given["no_caching"],
        **pop_run_options(given),
    }
    app.configure(judge=judge)
    of_datasets, inputs = pop_dataset_tests(app, given, tests)
    if not tests and not of_datasets:
        raise click.UsageError("Missing option '--test', or '--dataset' with '--metric'.")
    pairs: tuple[list[Any], list[str]] = [*dict.fromkeys(tests), *of_datasets], list(dict.fromkeys(suts))
    with judged_by(judge):
        if dry_run:
            _show_plans(app, pairs, options, given)
            return
        run_and_report(
            app,
            given,
            lambda more: app.runner(inputs=inputs, **options, **more).run(*pairs),
            app.settings.data_dir / "runs",
        )


def _show_plans(
    app: App, pairs: tuple[list[Any], list[str]], options: dict[str, Any], given: dict[str, Any]
) -> None:
    """What the run would take.

    Raises:
        UsageError: records were asked for, of which there are none.
    """
    if given["output_file"] is not None:
        raise click.UsageError("--dry-run makes no records: leave --output-file out, or give --json.")
    plans = app.runner(progress=not given["no_progress_bar"], **options).plan(*pairs)
    if given["as_json"]:
        app.show_json({"plans": [plan.model_dump(mode="json") for plan in plans]})
    else:
        app.show_plans(plans)

"""`modelgauge run-test` and `run`: the commands that start runs."""

from __future__ import annotations

import shlex
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from modelgauge.cli.app import App
from modelgauge.cli.command_options import (
    CALLS,
    LIMITS,
    MEASURED,
    cache_option,
    data_dir_option,
    data_options,
    pop_run_options,
    run_options,
    shared_options,
    together,
)
from modelgauge.cli.comparing import baseline_options, pop_baseline
from modelgauge.cli.dataset_options import (
    dataset_options,
    judged_by,
    pop_dataset_tests,
)
from modelgauge.cli.program import GroupedCommand
from modelgauge.cli.running import left_out_as_json, report_options, run_and_report
from modelgauge.cli.sut_options import pop_sut_options, sut_options
from modelgauge.cli.thresholds import check_before
from modelgauge.plugins.name_matches import check_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from modelgauge.api import Runner
    from modelgauge.cli.comparing import BaselineCheck
    from modelgauge.data.records import TestRecord
    from modelgauge.engine.work import Work
    from modelgauge.plugins.resolution import LeftOut, Resolver

    _Pairs = tuple[list[Any], list[str]]  # tests and SUTs


dry_run_option = together(
    click.option("--dry-run", is_flag=True, help="Estimate what the run takes, and send nothing."),
    heading=LIMITS,
)


class NamesByOption(GroupedCommand):
    """A command that takes names by options only. For bare words, the error shows the options that they need."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            click.UsageError: it is invalid.
        """
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError:
            options, words, _ = self.make_parser(ctx).parse_args(given)
            if not words:
                raise
            named = _name_options(ctx.ensure_object(App), options, words)
            raise click.UsageError(
                f"A test or a SUT is named by an option: modelgauge run-test {named}", ctx
            ) from None


def _name_options(app: App, options: Mapping[str, Any], words: Sequence[str]) -> str:
    """Return the names that a command line gives, bare or not, with their options: "--test gsm8k --sut SUT"."""
    tests, suts = list(options.get("tests", ())), list(options.get("suts", ()))
    for word in words:
        is_test = word in app.plugins.tests
        is_sut = not is_test and ("/" in word or bool(tests) or word in app.plugins.suts)
        (suts if is_sut else tests).append(word)
    names = [("--test", name) for name in tests or ["TEST"]] + [("--sut", name) for name in suts or ["SUT"]]
    return " ".join(f"{option} {shlex.quote(name)}" for option, name in names)


@click.command("run-test", cls=NamesByOption)
@together(
    click.option(
        "--test",
        "tests",
        multiple=True,
        metavar="UID",
        help="A test, a group of tests, or a pattern such as 'bbh_*'; repeatable.",
    ),
    click.option(
        "--sut",
        "suts",
        multiple=True,
        required=True,
        metavar="[LABEL=]UID",
        help="A SUT, with options after a question mark (acme/model?key=value) and a label for tables before an "
        "equals sign (small=acme/model); or a group or a pattern; repeatable.",
    ),
    dataset_options,
    heading=MEASURED,
)
@run_options("sample", "results")
@sut_options
@together(
    dry_run_option,
    run_options("limits", "code"),
    heading=LIMITS,
)
@together(
    click.option("--no-caching", is_flag=True, help="Ask for every answer again, and store none."),
    cache_option,
    run_options("calls", "workers"),
    heading=CALLS,
)
@report_options
@data_dir_option
@baseline_options
@data_options
@shared_options
def run_test(
    app: App, /, *, tests: Sequence[str], suts: Sequence[str], judge: str | None, dry_run: bool, **given: Any
) -> None:
    """Run each test on each SUT, and show the results with their intervals.

    A SUT that cannot answer a test is an error; if a group or a pattern named either, the pair is left out and listed.
    A group also gets the mean over its tests.

    Answers are cached: repeating the command costs nothing, and `modelgauge resume` continues a stopped run. Failed
    items are counted, never scored.

    The exit code is 4 if a run stopped early; else 3 if more items failed than --max-errors allows; else 1 if an item
    misses the threshold of a metric, metrics scored nothing, a result misses its --threshold, or a gate of the
    --baseline fails; else 0.

    \b
    Examples:
      modelgauge run-test --test demo_01 --sut demo_yes_no
      modelgauge run-test --test gsm8k --sut openai/gpt-4o --max-test-items 100 --temperature 0
      modelgauge run-test --test bbh --sut small=openai/gpt-4o-mini --sut large=openai/gpt-4o
      modelgauge run-test --test gsm8k --sut openai/gpt-4o --repeats 5 --reduce pass@2 --dry-run
      modelgauge run-test --test gsm8k --sut replay/answers.jsonl --json > records.json
      modelgauge run-test --test gsm8k --sut openai/gpt-4o --baseline latest --fail-if-worse
      modelgauge run-test --dataset goldens.csv --metric answer_relevancy --judge openai/gpt-4o-mini --sut app
    """
    options = {
        "sut_options": pop_sut_options(given),
        "caching": not given["no_caching"],
        **pop_run_options(given),
    }
    app.configure(judge=judge)
    baseline = pop_baseline(app, given)
    of_datasets, inputs = pop_dataset_tests(app, given, tests)
    if app.run_file is not None:
        inputs |= {"run_file": app.run_file}
    if not tests and not of_datasets:
        raise click.UsageError("Missing option '--test', or '--dataset' with '--metric'.")
    check_names(app.plugins, tests, [*suts, *filter(None, [judge])])  # before the much that a run imports
    pairs: _Pairs = [*tests, *of_datasets], list(suts)
    left_out: list[LeftOut] = []
    with judged_by(judge):
        if dry_run:
            if given["output_file"] is not None:
                raise click.UsageError("--dry-run makes no records: leave --output-file out, or give --json.")
            runner = app.runner(progress=not given["no_progress_bar"], **options)
            works, resolver = _checked_works(runner, pairs, given, baseline)
            app.show_plans(runner.plan_works(works), more=left_out_as_json(resolver.left_out))
            return
        run_and_report(
            app,
            given,
            lambda more: _run(app.runner(inputs=inputs, **options, **more), pairs, given, baseline, left_out),
            app.settings.data_dir / "runs",
            baseline=baseline,
            left_out=left_out,
        )


def _run(
    runner: Runner,
    pairs: _Pairs,
    given: dict[str, Any],
    baseline: BaselineCheck | None,
    left_out: list[LeftOut],
) -> list[TestRecord]:
    from modelgauge.engine.loop.blocking import blocking

    works, resolver = _checked_works(runner, pairs, given, baseline)
    left_out += resolver.left_out
    return blocking(lambda: runner.do(works, resolver))


def _checked_works(
    runner: Runner, pairs: _Pairs, given: dict[str, Any], baseline: BaselineCheck | None
) -> tuple[list[Work], Resolver]:
    """Return the works to run, after checking thresholds and the baseline.

    Raises:
        UsageError: a name, a secret, data, a combination, a threshold or the baseline is wrong; raised before any call.
    """
    from modelgauge.comparison.pairing.baselines import subjects_of_test

    resolver = runner.resolver()
    works = resolver.works(*pairs)
    check_before(given["thresholds"], works, runner.options.reduction)
    if baseline is not None:
        baseline.choose(subjects_of_test(work.test.uid, work.test.dataset) for work in works)
        baseline.check([(work.test.uid, work.answer_source.uid, work.answer_source.label) for work in works])
    return works, resolver


# --- run -----------------------------------------------------------------------------------------------

_RUN_HELP = """Run what a file describes: tests, SUTs, options, thresholds and a comparison with a baseline.

FILE is TOML. Its keys are the options of `run-test`. Options on the command line override those of the file. The
records of the runs contain the file. The exit code is that of run-test.

\b
Examples:
  modelgauge run suite.toml
  modelgauge run suite.toml --dry-run
  modelgauge run suite.toml --max-test-items 10 --sut small=openai/gpt-4o-mini
"""


def _read_file(ctx: click.Context, _: click.Parameter, path: Path) -> Path:
    """Let the file say what options are that the command line does not give."""
    if ctx.resilient_parsing:
        return path
    if not path.exists():
        message = f"File '{path}' does not exist."
        if str(path) in ctx.ensure_object(App).plugins.tests:
            message += f" Run the test of this name by modelgauge run-test --test {path} --sut SUT"
        raise click.BadParameter(message)
    from modelgauge.cli.run_file import read_run_file

    text, values = read_run_file(path, ctx, run_test)
    ctx.default_map = {**(ctx.default_map or {}), **values}
    ctx.ensure_object(App).run_file = {"path": str(path), "text": text}
    return path


def _hidden_options() -> Iterator[click.Parameter]:
    """Return the options of `run-test`, hidden from the help of `run`, which refers to `run-test`."""
    for option in run_test.params:
        hidden = copy(option)
        if isinstance(hidden, click.Option):
            hidden.hidden = True
        yield hidden


def _run_file(**given: Any) -> Any:
    ctx = click.get_current_context()
    sources = [ctx.get_parameter_source(name) for name in ("tests", "thresholds")]
    if sources == [ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP]:  # a part of what the file says
        given["thresholds"] = tuple(replace(threshold, is_optional=True) for threshold in given["thresholds"])
    return run_test.callback(**given) if run_test.callback else None


run = click.Command(
    "run",
    callback=_run_file,
    params=[
        click.Argument(
            ["file"],
            type=click.Path(dir_okay=False, path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=_read_file,
        ),
        *_hidden_options(),
    ],
    help=_RUN_HELP,
)
"""`modelgauge run`: what `run-test` does, with options that stand in a file."""

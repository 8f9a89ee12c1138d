"""`modelgauge run-test`, `run`, `resume` and `rescore`: the commands that make records of runs."""

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
    DATA,
    LIMITS,
    MEASURED,
    cache_option,
    data_dir_option,
    data_options,
    dependency_option,
    offline_option,
    pop_run_options,
    pop_sut_options,
    run_options,
    shared_options,
    sut_options,
    together,
)
from modelgauge.cli.comparing import baseline_options, pop_baseline
from modelgauge.cli.dataset_options import (
    dataset_options,
    judged_by,
    other_dataset_options,
    pop_dataset_tests,
)
from modelgauge.cli.program import GroupedCommand
from modelgauge.cli.running import report_options, run_and_report
from modelgauge.plugins.chosen import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from modelgauge.api import Runner
    from modelgauge.cli.comparing import BaselineCheck
    from modelgauge.data.records import TestRecord

    _Pairs = tuple[list[Any], list[str]]  # tests and SUTs


@click.command("run-test", cls=GroupedCommand)
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
        help="A SUT, its options behind a question mark (acme/model?key=value), its label in tables before an equals "
        "sign (small=acme/model); a group or a pattern; repeatable.",
    ),
    dataset_options,
    heading=MEASURED,
)
@run_options("sample", "results")
@sut_options
@together(
    click.option("--dry-run", is_flag=True, help="Say what the run would take, and send nothing."),
    run_options("limits"),
    heading=LIMITS,
)
@together(
    click.option("--no-caching", is_flag=True, help="Ask for every answer again, and keep none."),
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
    """Run tests on SUTs, every test on every SUT, and show what came out and how sure that is.

    A pair that does not fit is an error; where a group or a pattern named the test or the SUT, it is left out and
    listed. Of a group, the mean over its tests is shown too.

    What was answered is kept: the same command again pays for nothing, and `modelgauge resume` continues a
    run that was stopped. Items that fail are counted, never scored.

    The exit code is 4 when a run stopped early; else 3 when more items fail than --max-errors allows; else 1
    when an item does not reach the threshold of a metric, nothing was scored by metrics, a result does not reach
    a --threshold, or a gate fails that compares with the --baseline; else 0.

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
    check_names(app.plugins, tests, suts)  # before the much that a run imports
    pairs: _Pairs = [*tests, *of_datasets], list(suts)
    with judged_by(judge):
        if dry_run:
            _show_plans(app, pairs, options, given, baseline)
            return
        run_and_report(
            app,
            given,
            lambda more: _run(app.runner(inputs=inputs, **options, **more), pairs, baseline),
            app.settings.data_dir / "runs",
            baseline=baseline,
        )


def _run(runner: Runner, pairs: _Pairs, baseline: BaselineCheck | None) -> list[TestRecord]:
    """Run tests, once it is known that the baseline, if any, fits them.

    Raises:
        UsageError: a name, a secret, data, a combination or the baseline is wrong; raised before any call.
    """
    from modelgauge.engine.loop.blocking import blocking

    resolver = runner.resolver()
    works = resolver.works(*pairs)
    if baseline is not None:
        baseline.check([(one.test.uid, one.respondent.uid, one.respondent.label) for one in works])
    return blocking(lambda: runner.do(works, resolver))


def _show_plans(
    app: App, pairs: _Pairs, options: dict[str, Any], given: dict[str, Any], baseline: BaselineCheck | None
) -> None:
    """Say what the run would take, once it is known that the baseline, if any, fits it."""
    if given["output_file"] is not None:
        raise click.UsageError("--dry-run makes no records: leave --output-file out, or give --json.")
    plans = app.runner(progress=not given["no_progress_bar"], **options).plan(*pairs)
    if baseline is not None:
        baseline.check([(one.test_uid, one.sut_uid, one.sut_label) for one in plans])
    if given["as_json"]:
        app.show_json({"plans": [plan.model_dump(mode="json") for plan in plans]})
    else:
        app.show_plans(plans)


# --- run -----------------------------------------------------------------------------------------------

_RUN_HELP = """Run what a file says: tests, SUTs, options, thresholds, and a comparison with a baseline.

FILE is TOML. Its keys are the options of `run-test`, all of which can be given here too: what the command line says
takes the place of what the file says. The records of the runs hold the file. The exit code is that of run-test.

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
    from modelgauge.cli.run_file import read_run_file

    file = read_run_file(path, ctx, run_test)
    ctx.default_map = {**(ctx.default_map or {}), **file.values}
    ctx.ensure_object(App).run_file = {"path": str(file.path), "text": file.text}
    return path


def _hidden_options() -> Iterator[click.Parameter]:
    """The options of `run-test`, hidden from the help of `run`: that of `run-test` lists them."""
    for option in run_test.params:
        hidden = copy(option)
        if isinstance(hidden, click.Option):
            hidden.hidden = True
        yield hidden


def _run_file(**given: Any) -> Any:
    ctx = click.get_current_context()
    sources = [ctx.get_parameter_source(name) for name in ("tests", "thresholds")]
    if sources == [ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP]:  # a part of what the file says
        given["thresholds"] = tuple(replace(one, is_optional=True) for one in given["thresholds"])
    return run_test.callback(**given) if run_test.callback else None


run = click.Command(
    "run",
    callback=_run_file,
    params=[
        click.Argument(
            ["file"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=_read_file,
        ),
        *_hidden_options(),
    ],
    help=_RUN_HELP,
)
"""`modelgauge run`: what `run-test` does, with options that stand in a file."""


# --- resume and rescore ------------------------------------------------------------------------------

_rerun_options = together(
    report_options,
    data_dir_option,
    cache_option,
    baseline_options,
    run_options("calls", "limits", "workers"),
    together(offline_option, dependency_option, heading=DATA),
    shared_options,
)
"""What does not change the results of a run."""

_names_again = together(
    click.option("--sut", metavar="UID", help="The run's SUT, named again."),
    click.option("--test", metavar="UID", help="The run's test, named again."),
    click.option("--dataset", metavar="FILE", help="The run's file of goldens, named again."),
    click.option(
        "--metric", "metrics", multiple=True, metavar="UID", help="The run's metric, named again; repeatable."
    ),
    click.option("--judge", metavar="UID", help="The run's judge, named again."),
    heading="Names, for a run of somebody else",
)
"""The names that `resume` is given only for a run that is not known to be one's own."""


@click.command("resume", cls=GroupedCommand)
@click.argument("run")
@_names_again
@_rerun_options
def resume(app: App, /, *, run: str, **given: Any) -> None:
    """Continue a run that was interrupted, stopped or killed, and show what came out.

    RUN is the id of a run, or of an invocation: then each of its runs that is not complete is continued, one after the
    other. What only one id begins with will do, `latest`, `latest~1`, or a folder. Items that have a record, failed
    ones too, are not done again, also where the run kept no cache. What the results depend on is as it was, and need
    not be given again.

    Of a run that is not known to be your own (somebody sent it, it was made on another machine, or lay in an
    archive) no name is used unasked: give its --sut, --judge, --dataset, --dependency and --plugin again, as the
    message lists them, or name its folder in MODELGAUGE_TRUSTED.

    Concurrency, retries, time-outs, rates and caps are those of the run too; one that is given here takes
    its place from then on. Caps are those of the command that began the run: what its runs have spent so far
    counts, so a run that stopped at a cap goes on with a higher one. Where the test or its items have changed,
    nothing is asked and nothing written. The exit code is that of run-test.

    \b
    Examples:
      modelgauge resume 20260131-120000-a1b2c3
      modelgauge resume run_data/runs/20260131-120000-a1b2c3 --max-calls 500
    """
    from modelgauge.rerun.again import resume as resumed

    names = {name: given.pop(name) for name in ("test", "sut", "dataset", "metrics", "judge")}
    _run_again(app, resumed, run, given, names)


@click.command("rescore", cls=GroupedCommand)
@click.argument("run")
@together(
    click.option("--test", metavar="UID", help="Measure with this test.  [default: the run's]"),
    other_dataset_options,
    heading=MEASURED,
)
@_rerun_options
def rescore(app: App, /, *, run: str, **given: Any) -> None:
    """Measure the recorded answers of a run with the test and the annotators as they are now.

    Makes new runs, and no SUT is asked or needed: for when a test's `measure_quality` or its annotators have changed.
    Annotators go through the cache. RUN is the id of a run, or of an invocation for all its runs; what only one id
    begins with; `latest`, `latest~1`; or a folder. Of a run that is not known to be your own, names must be given
    again, as for resume. Of a run of goldens, the goldens must be as they were, unless --dataset names others that
    ask the same, or --column other columns; --metric and --judge judge the answers in another way. With --ratings,
    `human` is the mean of people's ratings, and an answer that nobody rated fails. The exit code is that of run-test.

    \b
    Examples:
      modelgauge rescore 20260131-120000-a1b2c3
      modelgauge rescore 20260131-120000-a1b2c3 --test my_test_with_a_better_parser --plugin my_test.py
      modelgauge rescore 20260131-120000-a1b2c3 --metric faithfulness --judge openai/gpt-4o
      modelgauge rescore latest --baseline latest --allow test
    """
    from modelgauge.rerun.again import rescore as rescored

    names = {name: given.pop(name) for name in ("test", "dataset", "metrics", "judge")}
    _run_again(app, rescored, run, given, names, ratings=given.pop("ratings"), **given.pop("form")._asdict())


def _options_of(measured: Mapping[str, Any]) -> Iterator[str]:
    """The options that a run is done again with."""
    for name in ("sut", "test", "dataset", "judge"):
        if measured.get(name) is not None:
            yield from (f"--{name}", str(measured[name]))
    for metric in measured["metrics"]:
        yield from ("--metric", metric)
    for field, column in measured.get("columns", {}).items():
        yield from ("--column", f"{field}={column}")
    for name in ("delimiter", "encoding"):
        if measured.get(name) is not None:
            yield from (f"--{name}", measured[name])
    if measured.get("ratings"):
        yield "--ratings"


def _run_again(
    app: App,
    function: Callable[..., list[TestRecord]],
    run: str,
    given: dict[str, Any],
    names: Mapping[str, Any],
    **how: Any,
) -> None:
    """Do earlier runs again, after loading what they were made with.

    Args:
        app: of this invocation.
        function: `resume` or `rescore`.
        run: an id, or a folder.
        given: the command's other arguments.
        names: of what it is done again with.
        how: what else says by what it is measured.

    Raises:
        RecordError: there are none, or they may be somebody else's and names of theirs were not given.
        PluginError: a local plugin of theirs does not work any more.
    """
    from modelgauge.files.regular import real_path
    from modelgauge.rerun.original import Names, OriginalRun
    from modelgauge.rerun.trust import check_names
    from modelgauge.runs.naming import find_runs, id_of

    verb, folders = function.__name__, find_runs(app.settings.data_dir, run)
    # The same runs in the command that does it once more, whatever has become the latest by then.
    name = str(real_path(run)) if Path(run).exists() else id_of(folders)
    everything = Names(**names, dependencies=given["dependencies"], plugins=app.settings.plugins)
    loaded = {"--plugin": list(app.local_plugins)}
    loaded["--dependency"] = [f"{key}={path}" for key, path in given["dependencies"].items()]
    again: list[str] = []
    for folder in folders:
        if verb == "resume" and folder.is_complete():  # it is only shown
            continue
        original = OriginalRun(folder)
        check_names(original, everything, verb)
        if not original.is_own:
            again = [part for option, values in loaded.items() for one in values for part in (option, one)]
        app.add_plugins(original.plugins)
    baseline = pop_baseline(app, given)
    if baseline is not None and not how.get("ratings"):
        test = names["test"] and app.runner().resolver().test(names["test"]).uid
        baseline.check_again(folders, test or names["dataset"], resumes=verb == "resume")
    measured = {**names, **how}
    options = {**measured, **app.runner_arguments(), **pop_run_options(given)}
    run_and_report(
        app,
        given,
        lambda more: function(name, app.settings.data_dir, **options, **more),
        folders[0].path.parent,
        again=shlex.join(["modelgauge", verb, name, *again, *_options_of(measured)]),
        baseline=baseline,
    )

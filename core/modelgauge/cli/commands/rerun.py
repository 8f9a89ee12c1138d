"""`modelgauge resume` and `rescore`: the commands that continue or repeat a run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    CALLS,
    DATA,
    MEASURED,
    cache_option,
    data_dir_option,
    dependency_option,
    offline_option,
    pop_run_options,
    run_options,
    shared_options,
    together,
)
from modelgauge.cli.commands.measure import dry_run_option
from modelgauge.cli.comparing import baseline_options, pop_baseline
from modelgauge.cli.dataset_options import names_again, other_dataset_options
from modelgauge.cli.program import GroupedCommand
from modelgauge.cli.run_cache import cache_of_runs
from modelgauge.cli.running import report_options, run_and_report
from modelgauge.cli.thresholds import check_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from modelgauge.cli.app import App
    from modelgauge.data.records import TestRecord
    from modelgauge.engine.planning import Plan
    from modelgauge.engine.run_files.folder import RunFolder
    from modelgauge.rerun.original import Names

_rerun_options = together(
    report_options,
    data_dir_option,
    cache_option,
    baseline_options,
    run_options("calls", "limits", "code", "workers"),
    together(offline_option, dependency_option, heading=DATA),
    shared_options,
)
"""Options that do not affect the results of a run."""


@click.command("resume", cls=GroupedCommand)
@click.argument("run")
@together(
    click.option("--sut", metavar="UID", help="The run's SUT, named again."),
    names_again,
    heading="Names, for a run of somebody else",
)
@together(
    click.option(
        "--retry-failed",
        is_flag=True,
        help="Ask the failed items again, even of a complete run. Scored items are kept.",
    ),
    heading=CALLS,
)
@dry_run_option
@_rerun_options
def resume(app: App, /, *, run: str, retry_failed: bool, dry_run: bool, **given: Any) -> None:
    """Continue a run that was interrupted, stopped or killed, and show its results.

    RUN is the id of a run, the unique beginning of an id, `latest`, `latest~1`, or a folder. The id of an invocation
    continues each of its incomplete runs in turn. Items with a record, failed items included, are not asked again,
    even if the run had no cache; with --retry-failed, failed items are, even those of complete runs, and answers in the
    cache that cannot be used are replaced. The cache is that of the run, unless you give another. Options that change
    results are those of the run and cannot be given.

    If the run is not known to be yours (somebody sent it, another machine made it, or it was in an archive), its names
    are not used unless you repeat them: give its --sut, --judge, --dataset, --dependency, --plugin and --cache again,
    as the message lists them, or add its folder to MODELGAUGE_TRUSTED.

    Concurrency, retries, time-outs, rates and caps are those of the run, unless you give them here. A cap counts all
    that the command has spent since it began the run: to continue after a cap, give a higher cap. If the test or its
    items have changed, nothing is asked and nothing is written. --dry-run shows what is left and what it takes. The
    exit code is that of run-test.

    \b
    Examples:
      modelgauge resume 20260131-120000-a1b2c3
      modelgauge resume run_data/runs/20260131-120000-a1b2c3 --max-calls 500
      modelgauge resume latest --retry-failed
    """
    from modelgauge.rerun.again import plan_resume
    from modelgauge.rerun.again import resume as resumed

    names = {name: given.pop(name) for name in ("test", "sut", "dataset", "metrics", "judge")}
    plan = plan_resume if dry_run else None
    _run_again(app, resumed, run, given, names, plan=plan, retry_failed=retry_failed)


@click.command("rescore", cls=GroupedCommand)
@click.argument("run")
@together(
    click.option("--test", metavar="UID", help="Measure with this test.  [default: the run's]"),
    other_dataset_options,
    heading=MEASURED,
)
@_rerun_options
def rescore(app: App, /, *, run: str, **given: Any) -> None:
    """Measure the recorded answers of a run again, with the test and the annotators as they are now.

    Use it after a change of a test's `measure_quality` or of annotators. It makes new runs and asks no SUT; annotators
    use the cache of the run, unless you give another. RUN is the id of a run, or of an invocation for all its runs;
    the unique beginning of an id; `latest`, `latest~1`; or a folder. If the run is not known to be yours, its names
    must be given again, as for resume. Goldens must be unchanged, unless --dataset names others that ask the same, or
    --column other columns. --metric and --judge choose other metrics and another judge. With --ratings, `human` is the
    mean of people's ratings, and an answer that nobody rated fails. The exit code is that of run-test.

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


def _list_options(measured: Mapping[str, Any]) -> Iterator[str]:
    """Return the options with which to repeat a run."""
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
    for flag in ("ratings", "retry_failed"):
        if measured.get(flag):
            yield f"--{flag.replace('_', '-')}"


def _run_again(
    app: App,
    function: Callable[..., list[TestRecord]],
    run: str,
    given: dict[str, Any],
    names: Mapping[str, Any],
    *,
    plan: Callable[..., Sequence[Plan]] | None = None,
    **how: Any,
) -> None:
    """Do earlier runs again, after loading what they were made with.

    Args:
        app: of this invocation.
        function: `resume` or `rescore`.
        run: an id, or a folder.
        given: the command's other arguments.
        names: of what it is done again with.
        plan: says what that would take, where that alone is asked for.
        how: what else says by what it is measured.

    Raises:
        RecordError: there are none, or they may be somebody else's and names of theirs were not given.
        PluginError: a local plugin of theirs does not work any more.
    """
    from modelgauge.rerun.again import is_left
    from modelgauge.rerun.original import Names
    from modelgauge.runs.naming import find_runs, lasting_name

    verb, folders = function.__name__, find_runs(app.settings.data_dir, run)
    # The same runs in the command that does it once more, whatever has become the latest by then.
    name = lasting_name(run, folders)
    cache = cache_of_runs(app, folders)
    everything = Names(**names, dependencies=given["dependencies"], plugins=app.settings.plugins)
    everything = everything._replace(cache=cache or app.settings.cache)
    left = [folder for folder in folders if verb != "resume" or is_left(folder, how["retry_failed"])]
    again = _load_plugins(app, left, everything, verb)
    baseline = pop_baseline(app, given)
    if baseline is not None and not how.get("ratings"):
        test = names["test"] and app.runner().resolver().test(names["test"]).uid
        baseline.check_again(folders, test or names["dataset"], resumes=verb == "resume")
    if names["test"] is None and names["dataset"] is None:
        check_again(given["thresholds"], folders)
    measured = {**names, **how}
    options = {**measured, **app.runner_arguments(), **pop_run_options(given), "cache": cache}
    if plan is not None:
        app.show_plans(plan(name, app.settings.data_dir, **options))
        return
    run_and_report(
        app,
        given,
        lambda more: function(name, app.settings.data_dir, **options, **more),
        folders[0].path.parent,
        verb=verb,
        again=shlex.join(["modelgauge", verb, name, *again, *_list_options(measured)]),
        baseline=baseline,
    )


def _load_plugins(app: App, folders: Sequence[RunFolder], given: Names, verb: str) -> list[str]:
    """Load the plugins of runs, and return the options by which those of somebody else are done once more.

    Raises:
        RecordError: names of a run that may be somebody else's were not given.
        PluginError: a local plugin does not work any more.
    """
    from modelgauge.rerun.original import OriginalRun
    from modelgauge.rerun.trust import check_names

    loaded = {"--plugin": list(app.local_plugins)}
    loaded["--dependency"] = [f"{key}={path}" for key, path in (given.dependencies or {}).items()]
    again: list[str] = []
    for folder in folders:
        original = OriginalRun(folder)
        check_names(original, given, verb)
        if not original.is_own:
            again = [
                part for option, values in loaded.items() for value in values for part in (option, value)
            ]
        app.add_plugins(original.plugins)
    return again

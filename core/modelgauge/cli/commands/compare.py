"""`modelgauge compare`, `plan`, `sample` and `calibrate-judge`: comparisons of systems, and calibration of judges."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    OUTPUT,
    data_dir_option,
    declared_options,
    shared_options,
    together,
)
from modelgauge.cli.comparing import (
    FORMATS,
    compare_options,
    format_option,
    gate_options,
    pop_gates,
    show_comparison,
    show_failed_gates,
    show_for_github,
)
from modelgauge.cli.output_file import OUTPUT_PATH, OutputFile
from modelgauge.cli.program import GroupedCommand
from modelgauge.comparison.options import OPTIONS, PLAN_OPTIONS
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modelgauge.cli.app import App
    from modelgauge.comparison.result import Comparison
    from modelgauge.runs.recorded_run import RecordedRun


@click.command("compare", cls=GroupedCommand)
@click.argument("baseline")
@click.argument("candidates", nargs=-1, metavar="CANDIDATE...")
@declared_options(OPTIONS, {"items": "What to compare", "verdict": "Verdict"})
@gate_options
@together(
    click.option(
        "--flips",
        type=click.IntRange(min=1),
        metavar="N",
        help="Show N items of each measurement that a candidate lost, and N that it won; --json has all.",
    ),
    format_option,
    click.option("--junit", type=OUTPUT_PATH, metavar="FILE", help="Also write the gates as JUnit XML."),
    click.option(
        "--html",
        type=OUTPUT_PATH,
        metavar="FILE",
        help="Also write a page for the browser: differences drawn, and the answers to each item side by side.",
    ),
    click.option(
        "--redact", is_flag=True, help="Leave prompts, answers and contexts out of the page of --html."
    ),
    data_dir_option,
    heading=OUTPUT,
)
@shared_options
def compare(
    app: App,
    /,
    *,
    baseline: str,
    candidates: Sequence[str],
    flips: int | None,
    output_format: str,
    junit: Path | None,
    html: Path | None,
    redact: bool,
    **given: Any,
) -> None:
    """Compare candidates with a baseline, item by item: who is better, by how much, and how sure that is.

    BASELINE and CANDIDATE are runs: an id or the beginning of an id, a folder, an invocation's id for all its runs,
    `latest` or `latest~1`, or a file of --output-file. `latest` counts only runs that can be compared with each
    other, or with the run that is named otherwise. `pinned` as BASELINE is a run of `modelgauge baselines`. Items of
    the same test are paired. Differences are candidate minus baseline. A difference that is not significant is never
    called equality. With --baseline-sut and no CANDIDATE, the SUTs of the invocation are the candidates.

    The exit code is 1 if a gate fails: --fail-if-worse, --require-not-worse, --fail-if or --max-failed. A gate passes
    only if it would pass whatever the failed items would have scored.

    \b
    Examples:
      modelgauge compare latest~1 latest
      modelgauge compare pinned latest --flips 3
      modelgauge compare latest --baseline-sut openai/gpt-4o-mini
      modelgauge compare main.json latest --fail-if-worse --fail-if "accuracy < 0.9" --junit compare.xml
    """
    from modelgauge.comparison.compare import compare as compared
    from modelgauge.reports.comparisons.exports import comparison_as_json, junit_xml

    if output_format != FORMATS[0] and (flips or app.as_json):
        raise click.UsageError(f"--format {output_format} goes with neither --flips nor --json.")
    if redact and html is None:
        raise click.UsageError("--redact is for the page of --html FILE.")
    gates = pop_gates(given)
    options = compare_options(given, gates, app.settings.data_dir)
    file, page = _output(app, junit, "--junit"), _output(app, html, "--html")
    ids = _ids_of_latest(baseline, candidates, options)
    comparison = compared(baseline, *candidates, **options)
    outcomes = gates.outcomes(comparison)
    if file is not None:
        with file.writing() as written:
            written.write(junit_xml(comparison, outcomes, app.redact))
    _write_page(app, page, comparison, without_texts=redact)
    try:
        if app.as_json:
            app.show_pieces(comparison_as_json(comparison, outcomes, app.redact_json))
        elif output_format == "github":
            show_for_github(app, comparison, outcomes)
        else:
            command = _next_command(app, comparison, flips, ids)
            show_comparison(app, comparison, flips=flips or 0, next_command=command)
    finally:  # also where stdout takes no more
        if page is not None:
            app.note(f"Page: {html}")
        show_failed_gates(app, outcomes)


def _output(app: App, path: Path | None, option: str) -> OutputFile | None:
    return None if path is None else OutputFile(path, app.settings.data_dir, option)


def _write_page(app: App, page: OutputFile | None, comparison: Comparison, *, without_texts: bool) -> None:
    if page is None:
        return
    from modelgauge.reports import write_comparison

    with page.writing() as opened:
        write_comparison(comparison, opened.write, redact=app.redact, without_texts=without_texts)


def _next_command(app: App, comparison: Comparison, flips: int | None, ids: Mapping[str, str]) -> str:
    """Return the command that shows items on which systems differ; "" if they are shown already, or there are none."""
    if flips or not any(row.wins + row.losses for row in comparison.comparisons):
        return ""
    return shlex.join(["modelgauge", *(ids.get(arg, arg) for arg in app.args), "--flips", "3"])


def _ids_of_latest(baseline: str, candidates: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids behind names like `latest`, which will soon mean other runs."""
    from modelgauge.comparison.options import CompareOptions
    from modelgauge.comparison.pairing.baselines import resolve_baseline
    from modelgauge.comparison.pairing.latest import ids_of_latest

    options = CompareOptions.of(**given)
    return ids_of_latest([resolve_baseline(baseline, candidates, options), *candidates], options)


# --- plan --------------------------------------------------------------------------------------------

_SYSTEMS = "What the systems are like"


def _check_two_runs(
    _: click.Context, __: click.Parameter, runs: tuple[str, str] | None
) -> tuple[str, str] | None:
    """Refuse an option that was taken for the second run.

    Raises:
        click.BadParameter: the second run is missing.
    """
    if runs is not None and runs[1].startswith("-"):
        raise click.BadParameter(f"It takes two runs: --runs {runs[0]} OTHER {runs[1]} …")
    return runs


@click.command("plan", cls=GroupedCommand)
@together(
    click.option(
        "--runs",
        nargs=2,
        metavar="A B",
        callback=_check_two_runs,
        help="Two runs of one test, from which the assumptions are estimated: ids, folders, latest.",
    ),
    heading=_SYSTEMS,
)
@declared_options(PLAN_OPTIONS, {"systems": _SYSTEMS, "goal": "What to find", "items": "Items and repeats"})
@data_dir_option
@shared_options
def plan(app: App, /, *, runs: tuple[str, str] | None, **options: Any) -> None:
    """Plan a comparison: how many items it needs, how many repeats, and which difference it can find.

    No SUT is asked. Two earlier runs show how much systems vary; without runs, give --rate for right and wrong, or
    --stddev for other numbers. With --effect, the table says how many items find it; with --items, or with runs, which
    difference these items find.

    \b
    Examples:
      modelgauge plan --rate 0.7 --correlation 0.5 --effect 0.05
      modelgauge plan --rate 0.7 --correlation 0.5 --items 500
      modelgauge plan --runs latest~1 latest --effect 0.02
      modelgauge plan --stddev 0.3 --effect 0.05 --comparisons 5 --failure-rate 0.02
    """
    from modelgauge.comparison.plan import plan_comparison
    from modelgauge.reports.comparisons.plan import comparison_plan_document

    given = {name: value for name, value in options.items() if value is not None}
    found = plan_comparison(*(runs or ()), data_dir=app.settings.data_dir, **given)
    app.show_result(found, comparison_plan_document)


# --- people's labels -------------------------------------------------------------------------------


@click.command("sample")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-n", "number", type=click.IntRange(min=1), default=100, show_default=True, help="Number of answers."
)
@click.option("-o", "--output-file", type=OUTPUT_PATH, required=True, metavar="FILE", help="A new CSV file.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws another sample.")
@data_dir_option
@shared_options
def sample(app: App, /, *, runs: tuple[str, ...], number: int, output_file: Path, seed: int) -> None:
    """Draw judged answers at random into a sheet that people label.

    RUN is a run's id or folder, or `latest`; several runs of different SUTs give the same number of answers each. The
    columns are item_id, sut, prompt, answer, rater and label; people fill in the last two. The judge's verdicts are
    not in the sheet. A larger sample with the same seed contains the smaller sample.

    \b
    Example:
      modelgauge sample latest -n 100 -o labels.csv
    """
    from modelgauge.comparison.judges.label_sheets import draw, resolve_runs, write_sheet

    found = resolve_runs(runs, app.settings.data_dir)
    rows = draw(found, number, seed)
    write_sheet(output_file, rows)
    counts = Counter(row["sut"] for row in rows)
    of = ", ".join(f"{count:,} of {sut}" for sut, count in sorted(counts.items()))
    app.show_answer(
        {"path": str(output_file), "seed": seed, "answers": len(rows), "suts": counts},
        f"{output_file}: {counted(len(rows), 'answer')} ({of}).\n"
        "People fill in the columns rater (a name) and label (1 or 0, or a number like the judge's). Then:\n"
        f"  modelgauge calibrate-judge {_names(app, found, runs)} --labels {shlex.quote(str(output_file))}",
    )


def _names(app: App, found: Sequence[RecordedRun], given: Sequence[str]) -> str:
    """Return names that keep meaning the same runs, unlike `latest`."""
    in_folders = all(run.folder is not None for run in found)
    names = [run.record.run_id for run in found] if in_folders else given
    folder = app.given.get("data_dir")
    return shlex.join([*names, *(["--data-dir", str(folder)] if folder else [])])


@click.command("calibrate-judge")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    metavar="FILE",
    help="A filled sheet, or ratings; repeatable.",
)
@click.option(
    "--measurement", multiple=True, metavar="NAME", help="The judge's measurement; repeatable for a panel."
)
@click.option(
    "--good",
    type=click.IntRange(2, 5),
    default=4,
    show_default=True,
    help="The lowest rating of the workbench that counts as right.",
)
@click.option("--encoding", "encoding_type", default="utf-8", show_default=True, help="Of the sheets.")
@data_dir_option
@shared_options
def calibrate_judge(app: App, /, *, runs: tuple[str, ...], labels: tuple[Path, ...], **options: Any) -> None:
    """Show how far a judge agrees with people, and correct its scores for its errors.

    RUN is a run's id or folder, or `latest`; runs of several SUTs are shown separately and together, since judges err
    differently on each. FILE is a sheet of `modelgauge sample` with labels: 1 or 0, yes or no, true or false, pass or
    fail for right and wrong; else a number. A file without names in the column rater is one rater. FILE can also be
    ratings from the pages of `modelgauge serve`, 1 to 5: for right and wrong, --good and more is right; for scores
    from 0 to 1, the ratings are rescaled.

    \b
    Examples:
      modelgauge calibrate-judge latest --labels labels.csv
      modelgauge calibrate-judge latest --labels ann.csv --labels ben.csv --measurement helpful
      modelgauge calibrate-judge RUN --labels run_data/ratings/RUN.jsonl
    """
    from modelgauge.comparison.judges.calibration import calibrate_judge as calibrate
    from modelgauge.reports.comparisons.calibration import calibration_document

    found = calibrate(runs, labels, data_dir=app.settings.data_dir, **options)
    app.show_result(found, calibration_document)

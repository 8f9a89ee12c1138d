"""`modelgauge sample` and `modelgauge calibrate-judge`: people label answers, and a judge is compared with them."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import data_dir_option, shared_options
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App
    from modelgauge.runs.recorded_run import RecordedRun


_FILE = click.Path(path_type=Path)


@click.command("sample")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-n", "number", type=click.IntRange(min=1), default=100, show_default=True, help="How many.")
@click.option("-o", "--output-file", type=_FILE, required=True, metavar="FILE", help="A new CSV file.")
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
    from modelgauge.comparison.judges.label_sheets import draw, runs_of, write_sheet

    found = runs_of(runs, app.settings.data_dir)
    rows = draw(found, number, seed)
    write_sheet(output_file, rows)
    counts = Counter(row["sut"] for row in rows)
    if app.as_json:
        app.show_json({"path": str(output_file), "seed": seed, "answers": len(rows), "suts": counts})
        return
    of = ", ".join(f"{count:,} of {sut}" for sut, count in sorted(counts.items()))
    app.show(f"{output_file}: {counted(len(rows), 'answer')} ({of}).")
    app.show(
        "People fill in the columns rater (a name) and label (1 or 0, or a number like the judge's). Then:\n"
        f"  modelgauge calibrate-judge {_names(app, found, runs)} --labels {shlex.quote(str(output_file))}"
    )


def _names(app: App, found: Sequence[RecordedRun], given: Sequence[str]) -> str:
    """What names the same runs later, as `latest` may not."""
    in_folders = all(run.folder is not None for run in found)
    names = [run.record.run_id for run in found] if in_folders else given
    folder = app.given.get("data_dir")
    return shlex.join([*names, *(["--data-dir", str(folder)] if folder else [])])


@click.command("calibrate-judge")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--labels",
    type=_FILE,
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
    from modelgauge.reports.comparisons.calibration import render_calibration

    found = calibrate(runs, labels, data_dir=app.settings.data_dir, **options)
    app.show_result(found, render_calibration)

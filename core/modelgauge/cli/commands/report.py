"""`modelgauge report`: the page of runs, one HTML file that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelgauge.cli.command_options import data_dir_option, shared_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file; by default report.html in the folder of one run, or report-RUN.html in the working directory for "
    "several.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@click.option("--redact", is_flag=True, help="Leave out prompts, answers and contexts.")
@data_dir_option
@shared_options
def report(app: App, /, *, runs: Sequence[str], output: Path | None, open_it: bool, redact: bool) -> None:
    """Write runs as an HTML page: results with error bars, failures, and every item with its prompts and answers.

    Runs of one test are compared: the first run is the baseline. `modelgauge compare --html` writes the same page with
    other options of a comparison.

    RUN is the id of a run, or of an invocation for all runs of one command; the unique beginning of an id; `latest`,
    or `latest~1` for the command before; a folder; or a file of --output-file. The page is one file that opens from
    disk and needs no network.

    \b
    Examples:
      modelgauge report 20260131-120000-a1b2c3 --open
      modelgauge report 20260131-120000-a1b2c3 -o page.html
      modelgauge report latest~1 latest -o compared.html
    """
    from modelgauge.cli.commands.show import name_of_files, shown_runs
    from modelgauge.cli.output_file import OutputFile
    from modelgauge.engine.run_files.folder import REPORT
    from modelgauge.reports import write_page

    found = [run for name in runs for run in shown_runs(app, name)]
    folder = found[0].folder if len(found) == 1 else None
    own = Path(f"report-{name_of_files(runs, found)}.html") if folder is None else folder.path / REPORT
    path = output or own
    kept = app.settings.data_dir if output is not None else None
    with OutputFile(path, kept, "--output").writing() as file:
        write_page(found, file.write, redact=app.redact, without_texts=redact)
    app.show_answer({"report": str(path), "bytes": path.stat().st_size}, str(path))
    if open_it:
        click.launch(path.resolve().as_uri())

"""`modelgauge report` and `export`: runs as an HTML page that works offline, and as tables in files."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelgauge.cli.command_options import data_dir_option, shared_options
from modelgauge.cli.output_file import OUTPUT_PATH, OutputFile
from modelgauge.documents.document import TableColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App
    from modelgauge.data.tables.run_tables import RecordTable

_FILE_TYPES = ("csv", "jsonl", "parquet")


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-o",
    "--output",
    type=OUTPUT_PATH,
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
        app.open_in_browser(path.resolve().as_uri())


# --- export ------------------------------------------------------------------------------------------


@click.command("export")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--to", "file_type", type=click.Choice(_FILE_TYPES), required=True, help="The type of the files."
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="Only this table; repeatable. They are runs, results, items, completions, annotations, measurements, "
    "repeat_measurements and spans.",
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_PATH,
    metavar="FOLDER|FILE",
    help="The folder of the files, or the file of a single table.  [default: a folder export-RUN]",
)
@click.option(
    "--for-spreadsheets",
    is_flag=True,
    help="In CSV, mark the file as UTF-8 for Excel.",
)
@click.option(
    "--raw",
    is_flag=True,
    help="In CSV, for programs: leave texts unchanged that a spreadsheet would run as a formula. By default they "
    "get a leading apostrophe.",
)
@data_dir_option
@shared_options
def export(
    app: App,
    /,
    *,
    runs: Sequence[str],
    file_type: str,
    tables: Sequence[str],
    output: Path | None,
    for_spreadsheets: bool,
    raw: bool,
) -> None:
    """Write runs as tables: a row for each item, completion, annotation, measurement or span.

    RUN is the id of a run, or of an invocation for all runs of one command; the unique beginning of an id; `latest`,
    or `latest~1` for the command before; a folder; or a file of --output-file. The rows of all runs come into the same
    tables. docs/reference/tables.md lists the columns. Parquet needs pip install "modelgauge-framework[frames]".

    \b
    Examples:
      modelgauge export latest --to parquet
      modelgauge export latest --to csv --table items -o items.csv
    """
    from modelgauge.cli.commands.show import name_of_files, shown_runs
    from modelgauge.data.tables.frames import TABLES, table_named
    from modelgauge.runs.as_tables import write_tables

    for option, is_given in {"--for-spreadsheets": for_spreadsheets, "--raw": raw}.items():
        if is_given and file_type != "csv":
            raise click.UsageError(f"{option} is for --to csv, not for {file_type}.")
    if raw and for_spreadsheets:
        raise click.UsageError("--raw is for programs, --for-spreadsheets for people: give one of them.")
    wanted = [table_named(name) for name in dict.fromkeys(tables or TABLES)]
    found = {run.record.run_id: run for name in runs for run in shown_runs(app, name)}
    paths = _paths(output or Path(f"export-{name_of_files(runs, [*found.values()])}"), wanted, file_type)
    files = {path: OutputFile(path, app.settings.data_dir, "--output") for path in paths}
    with ExitStack() as stack:
        written = {path: stack.enter_context(file.replaced()) for path, file in files.items()}
        counts = write_tables(
            found.values(),
            {written[path]: table for path, table in paths.items()},
            file_type,
            raw=raw,
            for_spreadsheets=for_spreadsheets,
            redact_json=app.redact_json,
        )
    rows = [(str(path), table.name, counts[written[path]]) for path, table in paths.items()]
    if app.as_json:
        app.show_json({"files": [dict(zip(("path", "table", "rows"), row, strict=True)) for row in rows]})
    elif all(path.is_file() for path in paths):  # a pipe, or stdout, takes the table alone
        numbers = [f"{number:,}" for *_, number in rows]
        app.show_list(TableColumn("FILE", [path for path, *_ in rows]), TableColumn("ROWS", numbers))


def _paths(output: Path, tables: Sequence[RecordTable], file_type: str) -> dict[Path, RecordTable]:
    """Return the file for each table.

    Raises:
        UsageError: one file is named for several tables, or its name is that of another type.
    """
    if output.is_dir() or not (output.suffix or output.exists()):
        return {output / f"{table.name}.{file_type}": table for table in tables}
    if len(tables) > 1:
        problem = f"--output {output} is a file, and {len(tables)} tables are exported. "
        raise click.UsageError(f"{problem}Name a folder, or choose one table: --table {tables[0].name}")
    ending = output.suffix.lower().removeprefix(".")
    if ending in _FILE_TYPES and ending != file_type:
        raise click.UsageError(
            f"--output {output} is not {file_type} by its name. Say --to {ending}, or rename it."
        )
    return {output: tables[0]}

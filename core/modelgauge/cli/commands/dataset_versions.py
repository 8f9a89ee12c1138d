"""`modelgauge datasets versions`, `push`, `pull`, `restore`: versions of data sets that were saved under an alias."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from modelgauge.cli.command_options import shared_options
from modelgauge.cli.dataset_options import FILE, form_options
from modelgauge.documents.document import TableColumn
from modelgauge.wording.phrases import counted, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from modelgauge.cli.app import App
    from modelgauge.datasets.dataset_files import FileForm

_author = click.option("--author", default="", metavar="NAME", help="Who changed it.")
_message = click.option("--message", default="", metavar="TEXT", help="Description of the change.")


@click.command("versions")
@click.argument("alias")
@shared_options
def versions(app: App, /, *, alias: str) -> None:
    """List the versions of a data set that were saved under an alias.

    They are in the data folder, or on the workbench that MODELGAUGE_WORKBENCH_URL names.

    \b
    Example:
      modelgauge datasets versions questions
    """
    from modelgauge.datasets.versioned import open_store
    from modelgauge.datasets.versions import no_version

    found = open_store().versions(alias)
    if not found:
        raise no_version(alias, None, found, ())
    if app.as_json:
        app.show_json({"alias": alias, "versions": [version.model_dump(mode="json") for version in found]})
        return
    newest_first = found[::-1]
    app.show_list(
        TableColumn("VERSION", [str(version.number) for version in newest_first]),
        TableColumn("SAVED (UTC)", [f"{version.time:%Y-%m-%d %H:%M}" for version in newest_first]),
        TableColumn("AUTHOR", [version.author for version in newest_first], fold=10),
        TableColumn("ROWS", [f"{version.rows:,}" for version in newest_first]),
        TableColumn("HASH", [version.content_hash[:12] for version in newest_first]),
        TableColumn("MESSAGE", [one_line(version.message, 80) for version in newest_first], fold=20),
    )


@click.command("push")
@click.argument("file", type=FILE)
@click.argument("alias")
@_message
@_author
@click.option("--parent", type=click.IntRange(min=1), help="The version that the file replaces.")
@form_options
@shared_options
def push(
    app: App, /, *, file: Path, alias: str, message: str, author: str, parent: int | None, form: FileForm
) -> None:
    """Save the goldens of a file as a new version under an alias.

    If the alias has versions, --parent names the version that the file replaces. If there is a newer version, nothing
    is saved.

    \b
    Examples:
      modelgauge datasets push goldens.csv questions --message "First ones"
      modelgauge datasets push goldens.csv questions --parent 1
    """
    from modelgauge.datasets.dataset import EvaluationDataset

    dataset = EvaluationDataset.from_file(file, **form.arguments(file))
    saved = dataset.push(alias, message=message, author=author, parent=parent)
    app.show_answer({"alias": alias, "version": saved.model_dump(mode="json")}, f"{alias} has {saved}.")


@click.command("pull")
@click.argument("alias")
@click.argument("file", type=FILE)
@click.option(
    "--version", type=click.IntRange(min=1), help="The number of the version.  [default: the latest]"
)
@shared_options
def pull(app: App, /, *, alias: str, file: Path, version: int | None) -> None:
    """Write a version of a data set to a CSV, JSON or JSONL file; an existing file is replaced.

    \b
    Examples:
      modelgauge datasets pull questions goldens.csv
      modelgauge datasets pull questions old.jsonl --version 1
    """
    from modelgauge.datasets.dataset import EvaluationDataset
    from modelgauge.datasets.dataset_files import detect_file_type, write_rows
    from modelgauge.datasets.rows import make_rows

    kind = detect_file_type(file)
    dataset = EvaluationDataset.pull(alias, version)
    write_rows(file, kind, make_rows(dataset.goldens, dataset.test_cases))
    pulled = dataset.pulled[1]
    facts = {"alias": alias, "version": pulled.model_dump(mode="json"), "path": str(file)}
    app.show_answer(facts, f"{file} has {pulled}: {counted(pulled.rows, 'row')}.")


@click.command("restore")
@click.argument("alias")
@click.argument("version", type=click.IntRange(min=1))
@_message
@_author
@shared_options
def restore(app: App, /, *, alias: str, version: int, message: str, author: str) -> None:
    """Save an earlier version of a data set again, as the latest version.

    \b
    Example:
      modelgauge datasets restore questions 1
    """
    from modelgauge.datasets.versioned import restored

    saved = restored(alias, version, message=message, author=author)
    app.show_answer({"alias": alias, "version": saved.model_dump(mode="json")}, f"{alias} has {saved}.")

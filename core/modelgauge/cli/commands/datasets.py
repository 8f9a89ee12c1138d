"""`modelgauge datasets`: contents and validity of data set files, and differences between two of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import shared_options
from modelgauge.cli.dataset_options import FILE, form_options
from modelgauge.cli.program import FAILED, Lazy, LazyGroup
from modelgauge.documents.document import TableColumn
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.wording.phrases import counted, first_few, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modelgauge.cli.app import App
    from modelgauge.datasets.dataset import EvaluationDataset
    from modelgauge.datasets.dataset_files import FileForm
    from modelgauge.datasets.differences import DatasetDifferences
    from modelgauge.datasets.rows import Reading

_MOST_NAMED = 5
_SHOWN = ("input", "scenario", "expected_output", "expected_outcome")  # in columns of their own


@click.group(
    "datasets",
    cls=LazyGroup,
    lazy={
        name: Lazy(f"modelgauge.cli.commands.dataset_versions:{name}", about)
        for name, about in {
            "versions": "List the versions that were saved under an alias.",
            "push": "Save the goldens of a file as a new version.",
            "pull": "Write a version to a file.",
            "restore": "Save an earlier version again, as the latest.",
        }.items()
    },
)
def datasets() -> None:
    """List, show, validate and compare data sets of goldens, and keep their versions."""


# --- list ---------------------------------------------------------------------------------------------------


@datasets.command("list")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option("-r", "--recursive", is_flag=True, help="Look into the folders inside too.")
@form_options
@shared_options
def list_datasets(app: App, /, *, folder: Path, recursive: bool, form: FileForm) -> None:
    """List the data sets of a folder, and those that `datasets push` saved.

    These are its CSV, JSON and JSONL files with a column 'input', 'scenario' or 'turns', and unreadable files with
    their problem; the exit code is 0 even then, unlike that of `datasets validate`. Other files of these types are
    named too. Hidden files and folders, the data folder of runs, virtual environments and node_modules are left out.
    A data set that was saved in the data folder is listed as ALIAS@VERSION, with its latest version.

    \b
    Examples:
      modelgauge datasets list
      modelgauge datasets list . --recursive
    """
    from modelgauge.datasets.dataset_files import find_files
    from modelgauge.datasets.versions import VersionsFolder
    from modelgauge.files.tables import OtherContentError

    rows, others = [], []
    files, unreadable = find_files(folder, recursive=recursive, data_dir=app.settings.data_dir)
    store = VersionsFolder(app.settings.data_dir)
    saved = [Path(f"{alias}@{store.version(alias).number}") for alias in store.aliases()]
    for path in [*files, *saved]:
        try:
            row, problems, reading = _inspect(app, path, form)
            if reading is None and isinstance(problems[0], OtherContentError):
                raise problems[0]
        except (OtherContentError, InvalidOptionError) as error:
            # An InvalidOptionError is raised where --column names a field that its goldens do not have.
            others.append({"path": str(path), "problem": error.problem})
            continue
        problem = problems[0].problem.removeprefix(str(path)).lstrip(",: ").rstrip(".") if problems else ""
        if reading is not None:
            problem = f"{counted(reading.unread, 'row')} cannot be read" if reading.unread else ""
        rows.append({**row, "problem": problem})
    for failure in unreadable:
        app.note(f"Warning: {failure.filename} cannot be read: {failure.strerror}.")
    broken = sum(bool(row["problem"]) for row in rows)
    if app.as_json:
        app.show_json({"datasets": rows, "broken": broken, "others": others})
        return
    if others:
        named = first_few([other["path"] for other in others], _MOST_NAMED)
        app.note(f"Not data sets: {named}. `modelgauge datasets validate FILE` says why.")
    app.show_list(
        TableColumn("FILE", [row["path"] for row in rows]),
        TableColumn("KIND", [row["kind"] or "?" for row in rows]),
        TableColumn("GOLDENS", [f"{row['goldens']:,}" for row in rows]),
        TableColumn("HASH", [(row["content_hash"] or "")[:12] for row in rows]),
        TableColumn("PROBLEM", [row["problem"] for row in rows], fold=30),
        empty=f"There are no data sets in {folder.resolve()}.",
    )
    if broken:
        app.note(
            f"{broken:,} of {counted(len(rows), 'data set')} cannot be read, or not all of it. "
            "`modelgauge datasets validate FILE` lists all problems."
        )


def _inspect(
    app: App, file: Path, form: FileForm
) -> tuple[dict[str, Any], list[InputFileError], Reading | None]:
    """Read a file, and list everything wrong with it. The reading is None if nothing can be read.

    Raises:
        InvalidOptionError: a column is named for a field that the goldens do not have.
    """
    try:
        dataset, reading, kind = _read(app, file, form)
    except InputFileError as error:
        unknown = {"path": str(file), "name": file.stem, "kind": None, "goldens": 0, "content_hash": None}
        return unknown, [error], None
    return _summary(file, dataset, kind, whole=not reading.problems), reading.problems, reading


def _read(app: App, name: Path, form: FileForm) -> tuple[EvaluationDataset, Reading, str]:
    """Read the goldens of a file or saved data set; return them, the complete reading, and their kind."""
    from modelgauge.datasets.dataset import EvaluationDataset
    from modelgauge.datasets.fields import is_conversation
    from modelgauge.datasets.file_tests import file_named
    from modelgauge.datasets.reading import read_members

    path = file_named(name, app.settings.data_dir)
    table, chosen = form.read(path)
    reading, *marked = read_members(table, chosen)
    for cases in marked:  # of which nothing is shown, but what is wrong
        reading.problems += cases.problems
        reading.unread += cases.unread
        reading.doubts = list(dict.fromkeys([*reading.doubts, *cases.doubts]))
    kind = "multi-turn" if is_conversation(table, form.columns) else "single-turn"
    return EvaluationDataset(reading.members, name=table.name if path == name else str(name)), reading, kind


def _summary(path: Path, dataset: EvaluationDataset, kind: str, *, whole: bool = True) -> dict[str, Any]:
    return {
        "path": str(path),
        "name": dataset.name,
        "kind": kind,
        "goldens": len(dataset.goldens),
        "content_hash": dataset.content_hash if whole else None,  # of a part it would be that of no data set
    }


# --- show ---------------------------------------------------------------------------------------------------


@datasets.command("show")
@click.argument("file", type=FILE)
@click.option("-n", "--first", type=click.IntRange(min=1), help="Only the first N goldens.")
@form_options
@shared_options
def show(app: App, /, *, file: Path, first: int | None, form: FileForm) -> None:
    """Show the goldens of a data set: a file, or the alias of a saved data set, or ALIAS@VERSION.

    --json shows all their fields.

    \b
    Examples:
      modelgauge datasets show questions@1
      modelgauge datasets show goldens.csv --first 10
      modelgauge datasets show questions.jsonl --column input=question --column expected_output=answer
    """
    from modelgauge.datasets.rows import make_row

    dataset = _readable_goldens(app, file, form)
    rows = [make_row(golden) for golden in dataset.goldens[:first]]
    summary = _summary(file, dataset, "multi-turn" if dataset.is_multi_turn else "single-turn")
    if app.as_json:
        app.show_json({**summary, "rows": rows})
        return
    many = counted(len(dataset.goldens), f"{summary['kind']} golden")
    app.show(f"{summary['name']}: {many}, SHA-256 {summary['content_hash']}\n")
    asked = [one_line(row.get("input", row.get("scenario", "")), 60) for row in rows]
    expected = [one_line(row.get("expected_output", row.get("expected_outcome", "")), 40) for row in rows]
    app.show_list(
        TableColumn("ROW", [f"{number}" for number in range(1, len(rows) + 1)]),
        TableColumn("SCENARIO" if dataset.is_multi_turn else "INPUT", asked, fold=12),
        TableColumn("EXPECTED", expected, fold=12),
        TableColumn(
            "OTHER FIELDS", [", ".join(name for name in row if name not in _SHOWN) for row in rows], fold=12
        ),
    )
    if len(rows) < len(dataset.goldens):
        app.show(
            f"{counted(len(dataset.goldens) - len(rows), 'more golden is', 'more goldens are')} not shown."
        )


def _readable_goldens(app: App, file: Path, form: FileForm) -> EvaluationDataset:
    """Read all goldens of a file, printing warnings to stderr.

    Raises:
        InputFileError: a row cannot be read.
    """
    dataset, reading, _ = _read(app, file, form)
    for doubt in reading.doubts:
        app.note(f"Warning: {file}: {doubt}.")
    if reading.problems:
        raise reading.error()
    return dataset


# --- validate -----------------------------------------------------------------------------------------------


@datasets.command("validate")
@click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")
@form_options
@shared_options
def validate(app: App, /, *, files: tuple[Path, ...], form: FileForm) -> None:
    """Report all problems of data sets.

    The exit code is 1 if a file or a row cannot be read, or there is no golden. A likely mistake (a repeated input, a
    misspelt column) is a warning.

    \b
    Example:
      modelgauge datasets validate goldens.csv more.jsonl
    """
    reports = [_validated(app, file, form) for file in files]
    valid = all(report["valid"] for report in reports)
    lines = [line for report in reports for line in _lines(report)]
    app.show_answer({"valid": valid, "datasets": reports}, "\n".join(lines))
    if not valid:
        app.exit_code = FAILED


def _lines(report: dict[str, Any]) -> Iterator[str]:
    yield from (f"Error: {problem}" for problem in report["problems"])
    yield from (f"Warning: {doubt}" for doubt in report["warnings"])
    verdict = "valid" if report["valid"] else "NOT VALID"
    yield f"{report['path']}: {verdict}, {counted(report['goldens'], 'golden')}."


def _validated(app: App, file: Path, form: FileForm) -> dict[str, Any]:
    from modelgauge.datasets.dataset_files import without_goldens

    row, problems, reading = _inspect(app, file, form)
    if not (problems or row["goldens"]):
        row, problems = {**row, "content_hash": None}, [without_goldens(file)]
    doubts = [] if reading is None else [*reading.doubts, *_repetitions(reading.members)]
    return {
        **row,
        "valid": not problems,
        "problems": [str(problem) for problem in problems],
        "warnings": [f"{file}: {doubt}." for doubt in doubts],
    }


def _repetitions(goldens: Sequence[Any]) -> Iterator[str]:
    """Describe inputs and names that several goldens have."""
    for what in ("input", "scenario", "name"):
        times_of = Counter(getattr(golden, what, None) for golden in goldens)
        for text, times in times_of.items():
            if text is not None and times > 1:
                yield f"{times:,} goldens have the {what} {one_line(text, 60)!r}"


# --- diff ---------------------------------------------------------------------------------------------------


@datasets.command("diff")
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("--exit-code", "with_exit_code", is_flag=True, help="Exit with 1 if they differ.")
@form_options
@shared_options
def diff(app: App, /, *, old: Path, new: Path, with_exit_code: bool, form: FileForm) -> None:
    """Compare the goldens of two data sets.

    Shows which goldens were added, removed and changed; the files may have different types, and be saved data sets
    (ALIAS or ALIAS@VERSION). Goldens are matched by their name, else by their input. If only their order differs, it
    says so, and the exit code is 0.

    \b
    Examples:
      modelgauge datasets diff questions@1 questions
      modelgauge datasets diff goldens.csv goldens_new.json
    """
    from modelgauge.datasets.differences import differences

    was, now = _readable_goldens(app, old, form), _readable_goldens(app, new, form)
    found = differences(was, now)
    if app.as_json:
        facts = {
            "added": found.added,
            "removed": found.removed,
            "changed": [
                {"fields": change.fields, "old": change.old, "new": change.new} for change in found.changed
            ],
            "unchanged": found.unchanged,
            "order_differs": found.is_order_other,
            "content_hash": {"old": was.content_hash, "new": now.content_hash},
        }
        app.show_json({"differ": bool(found), **facts})
    else:
        _show_differences(app, found)
        app.show(
            f"{len(found.added):,} added, {len(found.removed):,} removed, {len(found.changed):,} changed, "
            f"{found.unchanged:,} unchanged{', in another order' if found.is_order_other else ''}."
        )
        if was.content_hash != now.content_hash:
            app.show(f"SHA-256 {was.content_hash[:12]} became {now.content_hash[:12]}.")
    if found and with_exit_code:
        app.exit_code = FAILED


def _show_differences(app: App, found: DatasetDifferences) -> None:
    for sign, rows in (("-", found.removed), ("+", found.added)):
        for row in rows:
            app.show(f"{sign} {_title(row)}")
    for change in found.changed:
        app.show(f"~ {_title(change.new)}")
        for name in change.fields:
            for sign, row in (("-", change.old), ("+", change.new)):
                if name in row:
                    app.show(f"    {sign} {name}: {one_line(str(row[name]), 90)}")


def _title(row: dict[str, Any]) -> str:
    asked = row.get("input", row.get("scenario", "a conversation that begins with its turns"))
    named = f"{row['name']}: " if "name" in row else ""
    return named + (one_line(asked, 90) or "(empty input)")

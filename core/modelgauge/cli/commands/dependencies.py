"""`modelgauge dependencies`: the external data of tests, whether present or missing, and how to get it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import data_dir_option, shared_options
from modelgauge.cli.program import LazyGroup
from modelgauge.documents.document import TableColumn
from modelgauge.documents.terminal import ANY_WIDTH, as_list
from modelgauge.errors import DependencyError, UnknownNameError
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.figures import size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modelgauge.cli.app import App
    from modelgauge.dependencies.request import ResolvedDependency
    from modelgauge.dependencies.sources import ExternalData
    from modelgauge.dependencies.store import DependencyStore
    from modelgauge.interfaces.test import PromptResponseTest


@click.group("dependencies", cls=LazyGroup)
def dependencies() -> None:
    """List, fetch or add the data that tests need.

    Data is fetched when a test first runs, verified, and kept in DATA_DIR/dependencies under its SHA-256.
    """


@dependencies.command("list")
@click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="UID",
    help="Show the data that this test, group or pattern of tests needs, stored or not; repeatable.",
)
@data_dir_option
@shared_options
def list_dependencies(app: App, /, *, tests: tuple[str, ...]) -> None:
    """List the stored data; with --test, the data that tests need and whether it is stored.

    \b
    Examples:
      modelgauge dependencies list
      modelgauge dependencies list --test gsm8k --test bbh
    """
    rows = _needed_rows(app, tests) if tests else _stored_rows(app)
    if app.as_json:
        app.show_json({"dependencies": rows})
        return
    if not rows:
        app.show("These tests need no data." if tests else f"No data is stored in {app.settings.data_dir}.")
    elif tests:
        states, sources = [*map(_state, rows)], [row["source"] for row in rows]
        app.show_list(*_names(rows), TableColumn("STATE", states), TableColumn("SOURCE", sources, fold=24))
        for row in rows:
            if row["problem"]:
                app.show(f"\n{row['problem']}")
    else:
        app.show_list(
            *_names(rows),
            TableColumn("VERSION", [row["version"][:12] for row in rows]),
            TableColumn("SIZE", [size(row["bytes"]) for row in rows]),
            TableColumn("PATH", [row["path"] for row in rows], fold=24),
        )


def _names(rows: Sequence[Mapping[str, Any]]) -> tuple[TableColumn, TableColumn]:
    """Return the columns of a list of data that name its owner."""
    tests, keys = [row["test_uid"] for row in rows], [row["key"] for row in rows]
    return TableColumn("TEST", tests, fold=12), TableColumn("KEY", keys, fold=8)


@dependencies.command("fetch")
@click.option(
    "--test",
    "tests",
    multiple=True,
    required=True,
    metavar="UID",
    help="A test, a group of tests, or a pattern such as 'bbh_*'; repeatable.",
)
@data_dir_option
@shared_options
def fetch(app: App, /, *, tests: tuple[str, ...]) -> None:
    """Fetch the data of tests now, so that they run without a network later.

    \b
    Example:
      modelgauge dependencies fetch --test bbh_navigate --test gsm8k
    """
    resolver = app.runner(progress=True).resolver()
    rows: list[dict[str, Any]] = []
    failures = []
    for made in _tests_with_secrets(app, _uids(app, tests)):
        try:
            rows += [
                _fetched_row(made, key, dependency) for key, dependency in resolver.all_data(made).items()
            ]
        except DependencyError as error:
            failures.append(error)
    versions, paths = [row["version"][:12] for row in rows], [row["path"] for row in rows]
    fetched = as_list(
        [*_names(rows), TableColumn("VERSION", versions), TableColumn("PATH", paths)], ANY_WIDTH
    )
    app.show_answer({"dependencies": rows}, fetched or "Nothing was fetched.")
    for failure in failures[:-1]:
        app.note(f"Error: {failure}")
    if failures:
        raise failures[-1]


@dependencies.command("add")
@click.argument("key_and_file", nargs=-1, required=True, metavar="[KEY] FILE")
@click.option("--test", required=True, metavar="UID", help="The test that needs it.")
@click.option("--key", metavar="KEY", help="The test's name for it; not needed if it has only one.")
@data_dir_option
@shared_options
def add(app: App, /, *, key_and_file: tuple[str, ...], test: str, key: str | None) -> None:
    """Add a file that you fetched yourself: it is verified, unpacked and stored like fetched data.

    KEY before FILE means the same as --key.

    \b
    Example:
      modelgauge dependencies add --test gsm8k --key questions ~/Downloads/test.jsonl
    """
    from modelgauge.interfaces.identity import declared

    *keys, file = key_and_file
    keys += [] if key is None else [key]
    if len(keys) > 1:
        raise click.UsageError("Give one FILE, and its key once.")
    made = _tests_with_secrets(app, (test,))[0]
    wanted = declared(made, "get_dependencies")
    name = _declared_key(made.uid, wanted, keys[0] if keys else None)
    resolved = _store(app).add(made.uid, name, wanted[name], Path(file).expanduser())
    addition = f"Added {name} of {made.uid}, version {resolved.version[:12]}: {resolved.path}"
    app.show_answer({"dependencies": [_fetched_row(made, name, resolved)]}, addition)


def _fetched_row(test: PromptResponseTest, key: str, data: ResolvedDependency) -> dict[str, Any]:
    return {"test_uid": test.uid, "key": key, "version": data.version, "path": str(data.path)}


def _declared_key(test: str, declared: dict[str, ExternalData], key: str | None) -> str:
    if key is None and len(declared) == 1:
        return next(iter(declared))
    if key is None or key not in declared:
        known = f"Its keys are: {', '.join(declared)}." if declared else "It needs no data."
        problem = f"{test!r} has no dependency {key!r}." if key else f"Which dependency of {test!r} is it?"
        raise UnknownNameError(problem, fix=f"{did_you_mean(key or '', declared)}{known}")
    return key


def _uids(app: App, tests: Sequence[str]) -> list[str]:
    """Return the tests behind names, groups and patterns."""
    from modelgauge.plugins.name_matches import NameMatch, match_names

    found: list[NameMatch[str]] = match_names(app.plugins.tests, tests)
    return [choice.name for choice in found]


def _tests_with_secrets(app: App, names: Sequence[str]) -> list[PromptResponseTest]:
    """Return the tests, after checking that all their secrets are available."""
    registry = app.plugins.tests
    app.secrets.require([secret for name in names for secret in registry.resolve(name).entry.injections])
    resolver = app.runner().resolver()
    return [resolver.test(name) for name in names]


def _store(app: App) -> DependencyStore:
    from modelgauge.dependencies.store import DependencyStore

    return DependencyStore(app.settings.data_dir / "dependencies", offline=True)


def _stored_rows(app: App) -> list[dict[str, Any]]:
    return [
        {
            "test_uid": version.manifest.owner,
            "key": version.manifest.key,
            "version": version.manifest.version,
            "bytes": version.manifest.size,
            "path": str(version.path),
            "source": ", ".join(version.manifest.sources),
        }
        for version in _store(app).stored()
    ]


def _needed_rows(app: App, tests: tuple[str, ...]) -> list[dict[str, Any]]:
    from modelgauge.interfaces.identity import declared

    rows = []
    for made in _tests_with_secrets(app, _uids(app, tests)):
        for key, data in declared(made, "get_dependencies").items():
            problem = next(iter(_store(app).missing(made.uid, {key: data})), None)
            needed = {"test_uid": made.uid, "key": key, "source": data.source, "sha256": data.sha256}
            needed["when_used"] = data.when_used
            rows.append({**needed, "here": problem is None, "problem": problem})
    return rows


def _state(row: Mapping[str, Any]) -> str:
    if row["here"]:
        return "here"
    return "fetched when used" if row["when_used"] else "missing"

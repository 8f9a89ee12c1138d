"""`modelgauge list`, and the lists of each kind, of the secrets that plugins want, and of the items of a test.

Only the list of items imports what it lists.
"""

from __future__ import annotations

import json
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelgauge.cli.command_options import (
    data_dir_option,
    data_options,
    pop_run_options,
    run_options,
    shared_options,
)
from modelgauge.config.secrets import RequiredSecret
from modelgauge.documents.document import TableColumn
from modelgauge.documents.terminal import ANY_WIDTH, as_list
from modelgauge.errors import ModelGaugeError
from modelgauge.wording.phrases import counted, indented

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from modelgauge.cli.app import App
    from modelgauge.config.secrets import Secret
    from modelgauge.data.items import TestItem
    from modelgauge.plugins.construction import Kind, Registration
    from modelgauge.plugins.discovery import Plugins
    from modelgauge.plugins.registry import Registry

T = TypeVar("T")

_HEADINGS = {"test": "Tests", "sut": "SUTs", "annotator": "Annotators", "metric": "Metrics"}


@click.command("list")
@shared_options
def list_all(app: App, /) -> None:
    """List all tests, SUTs, annotators and metrics that are installed, and the distribution of each.

    A name that ends in /… is a provider: put the name of any model there.

    \b
    Examples:
      modelgauge list
      modelgauge list --plugin my_test.py
    """
    plugins = app.plugins
    if app.as_json:
        app.show_json(_as_json({registry.kind: registry for registry in plugins.registries}))
        return
    for registry in plugins.registries:
        app.show(f"{_HEADINGS[registry.kind]} ({len(registry):,})")
        labels, distributions = (
            [entry.label for entry in registry],
            [entry.distribution for entry in registry],
        )
        entries = as_list([TableColumn("", labels), TableColumn("", distributions)], ANY_WIDTH)
        app.show(f"{indented(entries)}\n" if entries else "")
    app.show(f"{counted(len(plugins.loaded), 'plugin')} loaded.")
    note_failures(app, plugins)


def _list_command(plural: str, about: str) -> click.Command:
    """Create the command that lists one kind."""

    @click.command(f"list-{plural}", help=f"{about}\n\n\b\nExample:\n  modelgauge list-{plural} --json")
    @click.option("-v", "--verbose", is_flag=True, help="Show the class of each, even if lines get long.")
    @click.option("--provider", metavar="PREFIX", help="List the names that this provider knows.")
    @click.option("--search", metavar="TEXT", help="List only names that contain this text, in any case.")
    @shared_options
    def list_kind(app: App, /, *, verbose: bool, provider: str | None, search: str | None) -> None:
        from modelgauge.plugins.registry import KIND_WORDS

        registry: Registry = getattr(app.plugins, plural)
        if provider is not None:
            _show_names(app, plural, _matching(search, registry.list_names(provider.rstrip("/…"))))
            return
        entries = [*_matching(search, registry, attrgetter("label"))]
        if app.as_json:
            app.show_json(_as_json({registry.kind: entries}))
            return
        app.show_list(
            TableColumn("UID", [entry.label for entry in entries]),
            TableColumn("FROM", [entry.distribution for entry in entries]),
            TableColumn("CLASS", [entry.target_name for entry in entries], is_optional=not verbose),
            empty=f"There are no {_HEADINGS[registry.kind]}{f' with {search}' if search else ''}.",
        )
        if registry.groups and not search:
            groups = registry.groups.values()
            members = [counted(len(group), KIND_WORDS[registry.kind]) for group in groups]
            distributions = [group[0].distribution for group in groups]
            columns = {"GROUP": [*registry.groups], "MEMBERS": members, "FROM": distributions}
            listed = as_list([TableColumn(head, cells) for head, cells in columns.items()], ANY_WIDTH)
            app.show(f"\n{listed}")
        note_failures(app, app.plugins)

    return list_kind


def _matching(search: str | None, entries: Iterable[T], name: Callable[[T], str] = str) -> list[T]:
    """Return the entries whose name contains a text, in any case."""
    return [entry for entry in entries if search is None or search.casefold() in name(entry).casefold()]


def _show_names(app: App, plural: str, names: list[str]) -> None:
    if app.as_json:
        app.show_json({plural: [{"uid": name} for name in names]})
        return
    app.show("\n".join([*names, "", f"{counted(len(names), 'name')}."]))


list_tests = _list_command("tests", "List the tests: what `run-test --test` and `list-items --test` take.")
list_suts = _list_command(
    "suts",
    "List the SUTs (systems under test): what `run-test --sut` and `run-sut --sut` take. "
    "A name that ends in /… is a provider: acme/… stands for acme/any-model?option=value.",
)
list_annotators = _list_command(
    "annotators",
    "List the annotators, which judge completions: what tests name, and `run-annotator --annotator` takes.",
)
list_metrics = _list_command(
    "metrics",
    "List the metrics, which score completions: what `run-test --dataset FILE --metric` takes. "
    "Settings follow a name: answer_relevancy?threshold=0.7.",
)


def note_failures(app: App, plugins: Plugins) -> None:
    """Warn on stderr of plugins that could not be loaded, and of names that two plugins claim."""
    if plugins.failures:
        names = ", ".join(dict.fromkeys(failure.name for failure in plugins.failures))
        app.note(f"Plugins that could not be loaded: {names}. `modelgauge plugins` says why.")
    disputed = [label for registry in plugins.registries for label in registry.conflicts]
    if disputed:
        app.note(f"Claimed by two plugins: {', '.join(disputed)}. `modelgauge plugins` says by which.")


def _as_json(entries_by_kind: Mapping[Kind, Iterable[Registration]]) -> dict[str, list[dict[str, Any]]]:
    facts = {
        "uid": "uid",
        "provider": "is_provider",
        "class": "target_name",
        "distribution": "distribution",
        "groups": "groups",
    }
    return {
        f"{kind}s": [{name: getattr(entry, held) for name, held in facts.items()} for entry in entries]
        for kind, entries in entries_by_kind.items()
    }


# --- secrets ---


@click.command("list-secrets")
@shared_options
def list_secrets(app: App, /) -> None:
    """List the secrets that plugins use: where each is looked up, whether it is set, where to get it.

    Secrets come from environment variables or from secrets.toml, a file of mode 0600 beside modelgauge.toml.
    Their values are never shown.

    \b
    Example:
      modelgauge list-secrets
    """
    wanted, failures = _wanted_secrets(app)
    rows = [_row(app, secret, users) for _, (secret, users) in sorted(wanted.items())]
    if app.as_json:
        app.show_json({"secrets": rows, "failures": failures})
        return
    for row in rows:
        app.show(_secret_text(row, str(app.settings.secrets_file)))
    missing = sum(not row["found"] and row["required"] for row in rows)
    found = f"{counted(len(rows), 'secret')}, {missing} required and missing."
    app.show(found if rows else "No plugin uses a secret.")
    for failure in failures:
        app.note(f"Warning: {failure}")


def _wanted_secrets(app: App) -> tuple[dict[str, tuple[type[Secret], list[str]]], list[str]]:
    """Return the required secrets by name with the uids that require them, and errors from importing their classes."""
    found: dict[str, tuple[type[Secret], list[str]]] = {}
    failures: dict[str, None] = {}
    for registry in app.plugins.registries:
        for entry in registry:
            for injection in entry.injections:
                try:
                    secret = injection.secret_class()
                    name = secret.description().name
                except ModelGaugeError as error:
                    failures[f"{entry.label}: {error}"] = None
                    continue
                found.setdefault(name, (secret, []))[1].append(entry.label)
    return found, list(failures)


def _row(app: App, secret: type[Secret], users: list[str]) -> dict[str, Any]:
    description = secret.description()
    return {
        "name": description.name,
        "scope": description.scope,
        "key": description.key,
        "required": issubclass(secret, RequiredSecret),
        "found": app.secrets.find(description) is not None,
        "env": list(description.variables),
        "instructions": description.instructions,
        "wanted_by": sorted(set(users)),
    }


def _secret_text(row: dict[str, Any], file: str) -> str:
    state = "found" if row["found"] else "MISSING" if row["required"] else "not set (optional)"
    facts = [
        ("environment", " or ".join(row["env"])),
        (file, f'under [{row["scope"]}]: {row["key"]} = "..."'),
        ("wanted by", ", ".join(row["wanted_by"])),
        ("get one", row["instructions"]),
    ]
    labels, texts = zip(*facts, strict=True)
    listed = as_list([TableColumn("", labels), TableColumn("", texts)], ANY_WIDTH)
    return f"{row['name']}: {state}\n{indented(listed)}\n"


# --- items ---


@click.command("list-items")
@click.option("--test", required=True, metavar="UID", help="The test.")
@run_options("sample")
@data_dir_option
@data_options
@shared_options
def list_items(app: App, /, *, test: str, **given: Any) -> None:
    """Show every prompt that a test will send, by item, with its ids; no SUT is asked.

    With --json, one object: `test_uid`, and `items` with the prompts and contexts of each, one item a line.

    \b
    Examples:
      modelgauge list-items --test demo_01
      modelgauge list-items --test bbh_navigate --max-test-items 3 --json
    """
    from modelgauge.api import list_items as made_items
    from modelgauge.engine.items.source import warning_when_slow

    items = made_items(test, **app.runner_arguments(), **pop_run_options(given))
    if app.as_json:
        items = warning_when_slow(items, "--json prints all or none of the items of", test)
        app.show_pieces(_items_as_json(app, test, items))
        return
    number = 0
    for number, item in enumerate(items, start=1):
        app.show(_item_text(number, item))
    app.show(f"{counted(number, 'item')}.")


def _items_as_json(app: App, test: str, items: Iterable[TestItem]) -> Iterator[str]:
    yield f'{{"test_uid": {json.dumps(test)}, "items": ['
    for place, item in enumerate(items):
        data = json.dumps(app.redact_json(item.model_dump(mode="json")), ensure_ascii=False)
        yield f"{',' if place else ''}\n{data}"
    yield "]}"


def _item_text(number: int, item: TestItem) -> str:
    from modelgauge.data.prompts import prompt_text

    lines = [f"{number}. {item.id}"]
    for place, prompt in enumerate(item.prompts, start=1):
        if len(item.prompts) > 1:
            lines.append(f"  prompt {place}{f' ({prompt.source_id})' if prompt.source_id else ''}")
        lines.append(indented(prompt_text(prompt.prompt), "    "))
        asked = prompt.prompt.options.model_dump(mode="json", exclude_none=True)
        if asked:
            lines.append(f"  options: {', '.join(f'{name}={value}' for name, value in asked.items())}")
    return "\n".join([*lines, ""])

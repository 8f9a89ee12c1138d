"""`modelgauge list-secrets`: what plugins want to know, where it is looked for, and whether it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.options import shared_options
from modelgauge.reports.plain import columns, counted

if TYPE_CHECKING:
    from modelgauge.config.secrets import Secret


@click.command("list-secrets")
@shared_options
@pass_app
def list_secrets(app: App, /, *, as_json: bool) -> None:
    """List the secrets that plugins want: where each is looked for, whether it is there, where to get one.

    Secrets come from environment variables or from secrets.toml, a file of mode 0600 beside modelgauge.toml.
    Their values are never shown.

    \b
    Example:
      modelgauge list-secrets
    """
    wanted, failures = _wanted(app)
    rows = [_row(app, secret, users) for secret, users in wanted]
    if as_json:
        app.show_json({"secrets": rows, "failures": failures})
        return
    for row in rows:
        app.show(_described(row, str(app.settings.secrets_file)))
    missing = sum(not row["found"] and row["required"] for row in rows)
    app.show(
        f"{counted(len(rows), 'secret')}, {missing} required and missing."
        if rows
        else "No plugin wants a secret."
    )
    for failure in failures:
        app.note(f"Warning: {failure}")


def _wanted(app: App) -> tuple[list[tuple[type[Secret], list[str]]], list[str]]:
    """The secrets by name with the uids that want them, and what went wrong with importing their classes."""
    from modelgauge.errors import ModelGaugeError

    found: dict[str, tuple[type[Secret], list[str]]] = {}
    failures: dict[str, None] = {}
    for registry in app.plugins().registries:
        for entry in registry:
            for injection in entry.injections:
                try:
                    secret = injection.secret_class()
                    name = secret.description().name
                except ModelGaugeError as error:
                    failures[f"{entry.label}: {error}"] = None
                    continue
                found.setdefault(name, (secret, []))[1].append(entry.label)
    return [found[name] for name in sorted(found)], list(failures)


def _row(app: App, secret: type[Secret], users: list[str]) -> dict[str, Any]:
    from modelgauge.config.secrets import RequiredSecret

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


def _described(row: dict[str, Any], file: str) -> str:
    state = "found" if row["found"] else "MISSING" if row["required"] else "not set (optional)"
    facts = [
        ("environment", " or ".join(row["env"])),
        (file, f'under [{row["scope"]}]: {row["key"]} = "..."'),
        ("wanted by", ", ".join(row["wanted_by"])),
        ("get one", row["instructions"]),
    ]
    return f"{row['name']}: {state}\n{columns(facts, indent='  ')}\n"

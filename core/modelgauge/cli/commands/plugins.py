"""`modelgauge plugins`: what is installed, how long it takes to load, and what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.lazy import Lazy, LazyGroup
from modelgauge.cli.options import shared_options

if TYPE_CHECKING:
    from modelgauge.plugins.discovery import LoadedPlugin, Plugins

SUBCOMMANDS = {
    "check": Lazy("modelgauge.cli.commands.plugins_check:check", "Run the conformance kit on one plugin."),
}


@click.group("plugins", cls=LazyGroup, lazy=SUBCOMMANDS, invoke_without_command=True)
@shared_options
@pass_app
@click.pass_context
def plugins(ctx: click.Context, app: App, /, *, as_json: bool) -> None:
    """List the plugins: distribution, version, load time and what each registered.

    A plugin that cannot be loaded is listed with its cause and breaks nothing else; --debug shows its
    traceback. Two plugins that claim one name are listed as well.

    \b
    Examples:
      modelgauge plugins
      modelgauge plugins --plugin my_plugin.py --json
    """
    if ctx.invoked_subcommand is not None:
        return
    found = app.plugins()
    if as_json:
        app.show_json(_as_json(found))
        return
    rows = [
        (one.name, one.distribution, one.version or "-", f"{1000 * one.seconds:.1f} ms", _registered(one))
        for one in found.loaded
    ]
    app.show_table(rows, ("PLUGIN", "FROM", "VERSION", "LOADED IN", "REGISTERED"), folds={"REGISTERED": 12})
    for failure in found.failures:
        version = f" {failure.announced_version}" if failure.announced_version else ""
        app.show(f"\nFAILED {failure.name} (from {failure.distribution}{version})\n  {failure.cause}")
        if app.debug:
            app.show(failure.traceback.rstrip("\n"))
    for label, kind, distributions in _conflicts(found):
        app.show(f"\nCONFLICT {kind} {label} is claimed by {' and by '.join(distributions)}")


def _registered(plugin: LoadedPlugin) -> str:
    names = {"test": "test", "sut": "SUT", "annotator": "annotator", "metric": "metric"}
    parts = [
        f"{number} {names[kind]}{'' if number == 1 else 's'}"
        for kind, number in plugin.counts.items()
        if number
    ]
    other = [
        hook
        for hook in plugin.hooks
        if not hook.startswith("modelgauge_register_") or hook.endswith("_commands")
    ]
    return ", ".join([*parts, *(hook.removeprefix("modelgauge_") for hook in other)]) or "nothing"


def _conflicts(found: Plugins) -> list[tuple[str, str, list[str]]]:
    return [
        (label, registry.kind, distributions)
        for registry in found.registries
        for label, distributions in registry.conflicts.items()
    ]


def _as_json(found: Plugins) -> dict[str, Any]:
    return {
        "plugins": [
            {
                "name": one.name,
                "distribution": one.distribution,
                "version": one.version or None,
                "module": one.module,
                "seconds": round(one.seconds, 6),
                "registered": dict(one.counts),
                "hooks": list(one.hooks),
            }
            for one in found.loaded
        ],
        "failures": [
            {
                "name": one.name,
                "distribution": one.distribution,
                "version": one.announced_version or None,
                "cause": one.cause,
                "traceback": one.traceback,
            }
            for one in found.failures
        ],
        "conflicts": [
            {"uid": label, "kind": kind, "distributions": distributions}
            for label, kind, distributions in _conflicts(found)
        ],
    }

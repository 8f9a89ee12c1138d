"""`modelgauge plugins`: installed plugins, their load times and problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import data_dir_option, shared_options
from modelgauge.cli.program import FAILED, LazyGroup
from modelgauge.documents.document import TableColumn
from modelgauge.errors import UsageError
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from modelgauge.cli.app import App
    from modelgauge.plugins.discovery import LoadedPlugin, Plugins


@click.group("plugins", cls=LazyGroup, invoke_without_command=True)
@shared_options
@click.pass_context
def plugins(ctx: click.Context, app: App, /) -> None:
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
    found = app.plugins
    if app.as_json:
        app.show_json(_as_json(found))
        return
    app.show_list(
        TableColumn("PLUGIN", [plugin.name for plugin in found.loaded]),
        TableColumn("FROM", [plugin.distribution for plugin in found.loaded]),
        TableColumn("VERSION", [plugin.version or "-" for plugin in found.loaded]),
        TableColumn("LOADED IN", [f"{1000 * plugin.seconds:.1f} ms" for plugin in found.loaded]),
        TableColumn("REGISTERED", [*map(_registered, found.loaded)], fold=12),
    )
    for failure in found.failures:
        version = f" {failure.announced_version}" if failure.announced_version else ""
        app.show(f"\nFAILED {failure.name} (from {failure.distribution}{version})\n  {failure.cause}")
        if app.debug:
            app.show(failure.traceback.rstrip("\n"))
    for conflict in _conflicts(found):
        claimants = " and by ".join(conflict["distributions"])
        app.show(f"\nCONFLICT {conflict['kind']} {conflict['uid']} is claimed by {claimants}")


def _registered(plugin: LoadedPlugin) -> str:
    counts = plugin.counts.items()
    parts = [counted(number, "SUT" if kind == "sut" else kind) for kind, number in counts if number]
    hooks = [hook.removeprefix("modelgauge_") for hook in plugin.hooks]
    other = [hook for hook in hooks if not hook.startswith("register_") or hook.endswith("_commands")]
    return ", ".join([*parts, *other]) or "nothing"


def _conflicts(found: Plugins) -> list[dict[str, Any]]:
    return [
        {"uid": label, "kind": registry.kind, "distributions": distributions}
        for registry in found.registries
        for label, distributions in registry.conflicts.items()
    ]


def _as_json(found: Plugins) -> dict[str, Any]:
    return {
        "plugins": [
            {
                "name": plugin.name,
                "distribution": plugin.distribution,
                "version": plugin.version or None,
                "module": plugin.module,
                "seconds": round(plugin.seconds, 6),
                "registered": dict(plugin.counts),
                "hooks": list(plugin.hooks),
            }
            for plugin in found.loaded
        ],
        "failures": [
            {
                "name": failure.name,
                "distribution": failure.distribution,
                "version": failure.announced_version or None,
                "cause": failure.cause,
                "traceback": failure.traceback,
            }
            for failure in found.failures
        ],
        "conflicts": _conflicts(found),
    }


@plugins.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--example",
    "examples",
    multiple=True,
    metavar="UID",
    help="Check this name of the plugin: PROVIDER/MODEL, or a UID?key=value that needs options; repeatable.",
)
@click.option(
    "--call",
    is_flag=True,
    help="Ask SUTs and annotators for real: brief prompts, which may cost money. A provider is asked only for models"
    " that --example names.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show problems and warnings only, and the counts.")
@data_dir_option
@shared_options
def check(app: App, /, *, names: tuple[str, ...], examples: tuple[str, ...], call: bool, quiet: bool) -> None:
    """Check everything that a plugin registers, and list the outcome of every rule.

    NAME is a distribution, one of its entry points, or a file; without it the files of --plugin are checked.
    Secrets are made up, nothing is fetched, and no SUT or annotator is called without --call.

    A broken rule comes with its fix and the line of the plugin's code, and makes the exit code 1.

    \b
    Examples:
      modelgauge plugins check modelgauge-plugin-demo-suts
      modelgauge plugins check --quiet --plugin my_plugin.py
      modelgauge plugins check my-plugin --example acme/small-model --call
    """
    from modelgauge.testing import check_plugin

    chosen = names or tuple(app.local_plugins)
    if not chosen:
        raise UsageError(
            "There is nothing to check.",
            fix="Name a plugin (`modelgauge plugins` lists them), or give --plugin FILE.",
        )
    local = [*app.settings.plugins, *app.local_plugins]
    reports = [
        check_plugin(name, local=local, examples=examples, call=call, data_dir=app.given.get("data_dir"))
        for name in chosen
    ]
    passed = all(report.passed for report in reports)
    app.exit_code = 0 if passed else FAILED
    facts = {"passed": passed, "plugins": [report.to_json() for report in reports]}
    app.show_answer(facts, "\n\n".join(report.to_text(quiet=quiet) for report in reports))

"""`modelgauge plugins check`: the conformance kit on one plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.options import data_dir_option, shared_options
from modelgauge.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = 1


@click.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--example",
    "examples",
    multiple=True,
    metavar="UID",
    help="Check this name of the plugin: PROVIDER/MODEL, or a UID?key=value that needs options; repeatable.",
)
@click.option(
    "--call", is_flag=True, help="Ask SUTs and annotators for real: brief prompts, which may cost money."
)
@click.option("-q", "--quiet", is_flag=True, help="Show problems and warnings only, and the counts.")
@data_dir_option
@shared_options
@pass_app
@click.pass_context
def check(
    ctx: click.Context,
    app: App,
    /,
    *,
    names: tuple[str, ...],
    examples: tuple[str, ...],
    call: bool,
    quiet: bool,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Check the promises of a plugin, and list every rule for everything that it registers.

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
    local = app.configure(data_dir=data_dir).plugins
    reports = [
        check_plugin(
            name, local=[*local, *app.local_plugins], examples=examples, call=call, data_dir=data_dir
        )
        for name in chosen
    ]
    passed = all(report.passed for report in reports)
    if as_json:
        app.show_json({"passed": passed, "plugins": [report.to_json() for report in reports]})
    else:
        app.show("\n\n".join(report.to_text(quiet=quiet) for report in reports))
    if not passed:
        ctx.exit(BROKEN)

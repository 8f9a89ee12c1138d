"""`modelgauge merge`: joins parts into one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import OUTPUT, data_dir_option, shared_options, together
from modelgauge.cli.program import GroupedCommand
from modelgauge.cli.running import report_options, run_and_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App


@click.command("merge", cls=GroupedCommand)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@together(click.option("--identifier", metavar="NAME", help="A name for the new run."), heading=OUTPUT)
@report_options
@data_dir_option
@shared_options
def merge(app: App, /, *, runs: Sequence[str], identifier: str | None, **given: Any) -> None:
    """Join runs that each measured some items of a test into one new run, and show its results.

    Use it for a test whose items several machines share, each in a run of its own, and for test files of pytest whose
    tests they share. The runs must be of the same test, data and SUT, with the same options. No SUT is asked, and the
    runs stay as they are. An item that several runs have counts once: they must agree on it, and a score replaces a
    failure. If items are missing, the command says so, and `modelgauge resume` asks them. RUN is the id of a run, the
    unique beginning of an id, or a folder, for example one that `modelgauge unbundle` made. The exit code is that of
    run-test.

    \b
    Examples:
      modelgauge merge 20260131-120000-a1b2c3 20260131-120501-d4e5f6
      modelgauge merge machine_*/runs/* --identifier "all machines"
    """
    from modelgauge.engine.run_files.folder import RUNS
    from modelgauge.rerun.merging import merge as merged

    data_dir = app.settings.data_dir
    run_and_report(
        app,
        given,
        lambda more: [
            merged(
                runs,
                data_dir,
                identifier=identifier,
                observers=more["observers"],
                command=["modelgauge", *map(app.redact, app.args)],
            )
        ],
        data_dir / RUNS,
        verb="merge",
    )

"""Hooks of this plugin: it handles the end of each run, and adds the command `modelgauge mlflow`.

Every command of ModelGauge imports this module, so the code that sends is imported on use.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from modelgauge import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

    from modelgauge import TestRecord


@hookimpl
def modelgauge_run_finished(record: TestRecord, settings: Mapping[str, Any]) -> None:
    """Send the run, where the settings say so. A server that is down costs a warning, never the run."""
    if not settings:
        return
    from modelgauge_mlflow.sending import checked, send
    from modelgauge_mlflow.server import MLflowError

    try:
        if checked(settings)["send"]:
            send(record, settings)
    except MLflowError as error:
        warnings.warn(str(error), stacklevel=1)


@hookimpl
def modelgauge_register_commands(cli: click.Group, settings: Mapping[str, Any]) -> None:
    """Add `modelgauge mlflow RUN`, which sends what was not sent."""
    import click

    @cli.command("mlflow")
    @click.argument("runs", nargs=-1, required=True, metavar="RUN...")
    @click.option("--tracking-uri", metavar="URL", help="The server; by default that of the settings.")
    @click.option("--data-dir", type=click.Path(file_okay=False), help="The folder of runs.")
    def mlflow(runs: tuple[str, ...], tracking_uri: str | None, data_dir: str | None) -> None:
        """Send runs to an MLflow server, or update what was sent before.

        RUN is the id of a run, or of an invocation for all its runs; the unique beginning of an id; latest; or a
        folder.

        \b
        Examples:
          modelgauge mlflow latest --tracking-uri http://localhost:5000
          modelgauge mlflow 20260131-120000-a1b2c3
        """
        from modelgauge import load_records
        from modelgauge_mlflow.sending import send

        chosen = {**settings, "tracking_uri": tracking_uri} if tracking_uri else settings
        for run in runs:
            for record in load_records(run, data_dir):
                click.echo(f"{record.run_id}  {send(record, chosen)}")

"""What this plugin adds to ModelGauge: the command `modelgauge serve`, and to runs that pages start a link back.

Every command of ModelGauge imports this module, so the server is imported when it is started.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelgauge import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

JOB = "MODELGAUGE_WORKBENCH_JOB"
"""The environment variable that names the folder of the job for which a process works."""


@hookimpl
def modelgauge_register_commands(cli: click.Group) -> None:
    """Add `modelgauge serve`."""
    from modelgauge_workbench.serve import serve

    cli.add_command(serve)


@hookimpl
def modelgauge_run_started(run: Mapping[str, Any]) -> None:
    """Tell the job that a page started of its run."""
    job = os.environ.get(JOB)
    if job:
        with Path(job, "runs").open("a", encoding="ascii") as file:
            file.write(f"{run['run_id']}\n")

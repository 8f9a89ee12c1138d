"""What this plugin adds to ModelGauge: the command `modelgauge serve`.

Every command of ModelGauge imports this module, so the server is imported when it is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelgauge import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def modelgauge_register_commands(cli: click.Group) -> None:
    """Add `modelgauge serve`."""
    from modelgauge_workbench.serve import serve

    cli.add_command(serve)

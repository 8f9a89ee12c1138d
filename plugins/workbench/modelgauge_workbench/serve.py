"""`modelgauge serve`: starts the workbench, says where it is, and serves until Ctrl-C."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modelgauge.cli.app import pass_app
from modelgauge.cli.command_options import plugin_option, program_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App

_SHORTEST = 16  # characters of a token


@click.command("serve")
@click.option(
    "--data-dir",
    "data_dirs",
    multiple=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder of runs; repeatable. What you add to a run is written to its folder, all else to the first.  "
    "[default: run_data]",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8400, show_default=True, help="0 for any free port."
)
@click.option(
    "--token",
    envvar="MODELGAUGE_WORKBENCH_TOKEN",
    show_envvar=True,
    help="The token that visitors must give. For a --host other than this machine, one is made by default.",
)
@click.option("--read-only", is_flag=True, help="Let visitors look, but change nothing.")
@click.option(
    "--parallel",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="How many runs that are started from pages run at once; the others wait.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the browser.")
@plugin_option
@program_options(hidden=True)
@pass_app
def serve(
    app: App,
    /,
    *,
    data_dirs: Sequence[Path],
    host: str,
    port: int,
    token: str | None,
    read_only: bool,
    parallel: int,
    open_it: bool,
) -> None:
    """Show runs and data sets in the browser, at an address of this machine.

    Nothing is loaded from a network or sent to one. Runs appear while they run. Ctrl-C stops it.

    \b
    Examples:
      modelgauge serve --open
      modelgauge serve --data-dir run_data --data-dir ../other/run_data --port 8500
      modelgauge serve --host 0.0.0.0 --read-only
    """
    if token is not None and len(token) < _SHORTEST:
        raise click.UsageError(
            f"The token is too short. Give at least {_SHORTEST} characters, or let one be made."
        )
    from modelgauge_workbench.safety import LOOPBACK, Access
    from modelgauge_workbench.server import run_server
    from modelgauge_workbench.workbench import Workbench

    folders = list(data_dirs) or [app.settings.data_dir]
    listening = _listening(host, port)
    made = None
    if host not in LOOPBACK and token is None:
        token = made = Access.new_token()
    arguments = [part for plugin in app.local_plugins for part in ("--plugin", plugin)]
    workbench = Workbench(
        folders,
        app.plugins,
        arguments=arguments,
        parallel=parallel,
        redact=app.redact,
        read_only=read_only,
    )
    access = Access(token, workbench.key_file)
    address = _address(host, listening)
    app.show(f"The workbench is at {address}")
    if made is not None:  # past `app.show`, which would hide a secret
        click.echo(f"Its token, which is shown only now: {made}")
    click.echo("Stop it by Ctrl-C.", err=True)
    if open_it:
        app.open_in_browser(address)
    with suppress(KeyboardInterrupt):
        run_server(workbench, access, listening)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, so that the address that is shown is there."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        message = f"{host} port {port} cannot be listened at: {error.strerror}. Choose another --port, or 0 for any."
        raise click.UsageError(message) from None


def _address(host: str, listening: socket.socket) -> str:
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)  # noqa: S104  compared only
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{listening.getsockname()[1]}/"

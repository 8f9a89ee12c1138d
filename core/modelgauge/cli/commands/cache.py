"""`modelgauge cache`: how much is kept of what was answered, whether it is sound, and how to forget it.

`cache explain` is in `cache_explain.py`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.commands.cache_explain import explain
from modelgauge.cli.lazy import LazyGroup
from modelgauge.cli.options import data_dir_option, shared_options
from modelgauge.cli.program import FAILED
from modelgauge.reports.figures import size
from modelgauge.reports.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from modelgauge.cache import DiskCache

QUARANTINE = "quarantine"


@click.group("cache", cls=LazyGroup)
def cache() -> None:
    """Look at the cache of responses, check it, or clear it.

    Every response that was paid for is kept in DATA_DIR/cache, so that the same question is never paid twice, unless a
    secret stands in question or answer.
    """


cache.add_command(explain)


@cache.command("stats")
@data_dir_option
@shared_options
@pass_app
def stats(app: App, /, *, data_dir: Path | None, as_json: bool) -> None:
    """Show how many responses are kept, how much room they take, and what was found damaged.

    \b
    Example:
      modelgauge cache stats
    """
    folder = app.configure(data_dir=data_dir).data_dir / "cache"
    with _opened(folder) as opened:
        entries, volume = (0, 0) if opened is None else (len(opened), opened.volume())
        shared = opened is not None and opened.leases.shared
    quarantined = _quarantined(folder)
    if as_json:
        facts = {"entries": entries, "bytes": volume, "quarantined": quarantined, "shared": shared}
        app.show_json({"path": str(folder), **facts})
        return
    app.show(f"{counted(entries, 'response')}, {size(volume)}, in {folder}")
    if quarantined:
        app.show(f"{counted(quarantined, 'damaged entry', 'damaged entries')} in {folder / QUARANTINE}")
    if shared:
        app.show("Another process is using it.")


@cache.command("verify")
@data_dir_option
@shared_options
@pass_app
@click.pass_context
def verify(ctx: click.Context, app: App, /, *, data_dir: Path | None, as_json: bool) -> None:
    """Read every response and check it against its key and checksum; the exit code is 1 where one is damaged.

    What is damaged goes to the quarantine, a folder in the cache, and is paid for anew by the next run that
    needs it. What is sound stays.

    \b
    Example:
      modelgauge cache verify
    """
    from modelgauge.cache import verify as verified

    folder = app.configure(data_dir=data_dir).data_dir / "cache"
    with _opened(folder) as opened:
        verdict = None if opened is None else verified(opened)
        found_damaged = opened is not None and bool(opened.damaged)
    sound, damaged = (verdict.sound, verdict.damaged) if verdict else (0, 0)
    structure = verdict.structure if verdict else "ok"
    broken = found_damaged or bool(damaged) or structure != "ok"
    if as_json:
        quarantine = str(folder / QUARANTINE) if broken else None
        facts = {"sound": sound, "damaged": damaged, "structure": structure, "quarantine": quarantine}
        app.show_json({"path": str(folder), **facts})
    elif not broken:
        app.show(f"{counted(sound, 'response')}, all sound, in {folder}")
    else:
        app.show(f"{counted(sound, 'sound response')}, {damaged:,} damaged, in {folder}")
        if structure != "ok" or not damaged:
            app.show("The file itself was damaged: what is sound in it was taken over into a new one.")
        app.show(f"What is damaged is in {folder / QUARANTINE}; the next run that needs it pays anew.")
    ctx.exit(FAILED if broken else 0)


@cache.command("clear")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_dir_option
@shared_options
@pass_app
def clear(app: App, /, *, yes: bool, data_dir: Path | None, as_json: bool) -> None:
    """Remove every response from the cache; the next runs pay for theirs anew. Records of runs stay.

    \b
    Example:
      modelgauge cache clear --yes
    """
    folder = app.configure(data_dir=data_dir).data_dir / "cache"
    removed = 0
    with _opened(folder) as opened:
        if opened is not None:
            if len(opened) and not yes:
                _ask(f"Remove {counted(len(opened), 'response')} from {folder}?")
            removed = opened.clear()
    if as_json:
        app.show_json({"path": str(folder), "removed": removed})
        return
    app.show(f"Removed {counted(removed, 'response')} from {folder}.")


@contextmanager
def _opened(folder: Path) -> Iterator[DiskCache | None]:
    """The cache, where there is one: looking must not make it."""
    if not (folder / "cache.db").exists():
        yield None
        return
    from modelgauge.cache import DiskCache

    opened = DiskCache(folder)
    try:
        yield opened
    finally:
        opened.close()
        opened.leave()


def _quarantined(folder: Path) -> int:
    """How many damaged entries are kept: rows, and databases that were set aside as a whole."""
    quarantine = folder / QUARANTINE
    if not quarantine.is_dir():
        return 0
    rows = quarantine / "rows.jsonl"
    databases = sum(1 for one in quarantine.iterdir() if one.is_dir())
    if not rows.is_file():
        return databases
    with rows.open("rb") as file:
        return databases + sum(1 for _ in file)


def _ask(question: str) -> None:
    """Go on only after a yes.

    Raises:
        UsageError: no, or nobody is there to answer.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as nobody:
        if isinstance(nobody.__cause__, KeyboardInterrupt):
            raise
        agreed = False
    if not agreed:
        raise click.UsageError("Nothing was removed. Give --yes to remove it without being asked.")

"""A click group that knows its commands by name and help line, and imports one when it is run.

What the commands are is in `main.py`; how errors end the program is in `program.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from modelgauge.wording.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping


class Lazy(NamedTuple):
    """A command that is not imported yet.

    Args:
        target: `module:attribute`.
        help: its line in the list of commands.
        section: the heading that it stands under.
    """

    target: str
    help: str
    section: str = "Commands"


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run; for an unknown name it suggests the nearest.

    Args:
        lazy: the commands by name, in the order in which help lists them.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in order."""
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported."""
        lazy = self.lazy.get(cmd_name)
        if lazy is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = lazy.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            ctx.fail(f"There is no command {name!r}. {did_you_mean(name, known)}".rstrip())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        width = formatter.width - 6 - max(map(len, self.list_commands(ctx)), default=0)
        for name in self.list_commands(ctx):
            lazy = self.lazy.get(name)
            if lazy is not None:
                sections.setdefault(lazy.section, []).append((name, lazy.help))
                continue
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                section = "From plugins" if self.lazy else "Commands"
                sections.setdefault(section, []).append((name, command.get_short_help_str(width)))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)

"""The page of the command line, made of what the commands say of themselves; written by `generate.py`."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING

import click
from docstrings import table

from modelgauge.cli.app import App
from modelgauge.cli.main import cli
from modelgauge.cli.program import option_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """# Command line

Generated from the help of the commands; plugins may add commands of their own.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | a threshold, an assertion or a check failed, and none of the following |
| 2 | wrong usage, unknown name, missing secret or data |
| 3 | more errors than `--max-errors` allows |
| 4 | stopped early: a fatal error, a cap, a full disk or another refusal by the operating system, the source of items |
| 70 | internal error |
| 130 | interrupted, by Ctrl-C, SIGTERM or SIGHUP (a closed terminal) |
"""


def page() -> str:
    """Every command of ModelGauge itself with its help."""
    return "\n".join([_HEAD, *_sections(cli, "modelgauge", None)]).rstrip("\n") + "\n"


def _sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    # As the program makes it: click remembers a command's help option from the first context that it sees.
    settings = dict(command.context_settings) if parent is None else {}
    app = App() if parent is None else None
    ctx = click.Context(command, info_name=name, parent=parent, obj=app, **settings)
    depth = len(ctx.command_path.split())
    yield f"{'#' * (depth + 1 if depth > 1 else 2)} {ctx.command_path}\n"
    yield f"```\n{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}\n```\n"
    yield _help_as_markdown(command.help or "")
    for heading, rows in option_groups(command, ctx).items():
        yield table((heading, "meaning"), [(f"`{names}`", meaning) for names, meaning in rows]) + "\n"
    if isinstance(command, click.Group):
        # Those of the plugins that happen to be installed are in neither.
        for child in [*getattr(command, "lazy", ()), *command.commands]:
            found = command.get_command(ctx, child)
            if found is not None:
                yield from _sections(found, child, ctx)


def _help_as_markdown(text: str) -> str:
    """Help with its preformatted paragraphs (`\\b`) as code blocks, whose first line becomes text."""
    paragraphs = []
    for paragraph in cleandoc(text).split("\n\n"):
        if not paragraph.startswith("\b\n"):
            paragraphs.append(" ".join(paragraph.split()))
            continue
        head, *lines = paragraph.removeprefix("\b\n").split("\n")
        code = "\n".join(line.removeprefix("  ") for line in lines)
        paragraphs.append(f"{head}\n\n```\n{code}\n```")
    return "\n\n".join(paragraphs) + "\n"

"""Completion of command lines in a shell: the script that a shell loads, and what it asks the program at each Tab.

click knows commands, options and files. This adds the names of tests, SUTs, annotators and metrics, and ids of runs.
"""

from __future__ import annotations

import os
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from modelgauge.cli.app import COMPLETION, App
from modelgauge.cli.command_options import shared_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from modelgauge.plugins.registry import Registry

SHELLS = ("bash", "zsh", "fish")
_MOST_RUNS = 50
_KINDS = {
    "test": "tests",
    "tests": "tests",
    "sut": "suts",
    "suts": "suts",
    "judge": "suts",
    "baseline_sut": "suts",
    "annotator": "annotators",
    "metrics": "metrics",
}
"""The registry that has the values of an option, by the option's name."""
_RUN_METAVARS = ("RUN", "BASELINE", "CANDIDATE", "A B")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@shared_options
def completion(app: App, /, *, shell: str) -> None:
    """Print the script that completes commands, options, names and runs at the Tab key.

    Load it when your shell starts, by a line in its start-up file or a file in its folder of completions. The script
    asks modelgauge itself, so it knows what is installed now, and needs no update.

    \b
    Examples:
      eval "$(modelgauge completion bash)"
      modelgauge completion bash > ~/.local/share/bash-completion/completions/modelgauge
      modelgauge completion zsh > "${fpath[1]}/_modelgauge"
      modelgauge completion fish > ~/.config/fish/completions/modelgauge.fish
    """
    program = click.get_current_context().find_root().command
    script = _ask(shell, program, app).source()
    if app.as_json:
        app.show_json({"shell": shell, "script": script})
    else:
        click.echo(script)


def complete(program: click.Group, instruction: str) -> None:
    """Print what can stand at the cursor; nothing where something is wrong, since the user is still typing.

    Args:
        program: the root of all commands.
        instruction: of the shell's script: `bash_complete`.
    """
    name = instruction.partition("_")[0]
    if name not in SHELLS:
        return
    app = App()
    shell = _ask(name, program, app)
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            given, incomplete = shell.get_completion_args()
            words = [word for word in given if word != "="]  # bash takes --test=NAME for three words
            for parameter in _command(program, app, words).params:
                vars(parameter)["shell_complete"] = partial(_values, parameter)
            text = "\n".join(map(shell.format_completion, shell.get_completions(words, incomplete)))
    except (Exception, SystemExit):  # noqa: BLE001  plugins are imported here
        return
    if text:
        click.echo(text)


def _ask(shell: str, program: click.Command, app: App) -> ShellComplete:
    made = cast("type[ShellComplete]", get_completion_class(shell))
    return made(program, {"obj": app}, "modelgauge", COMPLETION)


def _command(program: click.Group, app: App, words: Sequence[str]) -> click.Command:
    """Return the command that words name. `app` is kept for a plugin's command, which needs `--plugin` loaded."""
    first = App()
    ctx = click.Context(program, obj=first)
    command: click.Command = program
    for word in words:
        if isinstance(command, click.Group):
            command = command.get_command(ctx, word) or command
    if command in (first.plugin_commands or {}).values():
        app.plugin_commands = first.plugin_commands
    return command


def _values(parameter: click.Parameter, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """Return the values of an option or argument with this prefix."""
    metavar, name = parameter.make_metavar(ctx), str(parameter.name)
    if metavar.startswith(_RUN_METAVARS):
        app = ctx.ensure_object(App)
        found = _beginning(incomplete, _runs(Path(ctx.params.get("data_dir") or app.settings.data_dir)))
        return found or [CompletionItem(incomplete, type="file")]
    if metavar.startswith("FILE"):
        return [CompletionItem(incomplete, type="file")]
    if ("UID" in metavar or metavar == "NAME") and name in _KINDS:
        registry: Registry = getattr(ctx.ensure_object(App).plugins, _KINDS[name])
        groups = registry.groups if getattr(parameter, "multiple", False) else ()
        return _beginning(incomplete, [*groups, *_uids(registry, incomplete)])
    return type(parameter).shell_complete(parameter, ctx, incomplete)


def _beginning(incomplete: str, values: Iterable[str]) -> list[CompletionItem[str]]:
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def _uids(registry: Registry, incomplete: str) -> Iterator[str]:
    """Return the uids of a registry; for a provider, the part before the model, and then the names that it lists."""
    for entry in registry:
        yield f"{entry.uid}/" if entry.is_provider else entry.uid
        if entry.names is not None and incomplete.startswith(f"{entry.uid}/"):
            yield from entry.known_names()


def _runs(data_dir: Path) -> Iterator[str]:
    """`latest`, and the ids of the newest runs; only the names of their folders are read."""
    folder = data_dir / "runs"
    ids = sorted(os.listdir(folder), reverse=True) if folder.is_dir() else []  # noqa: PTH208  names alone
    if ids:
        yield from ("latest", "latest~1")
    yield from ids[:_MOST_RUNS]

"""The program around the commands: groups of them, those of plugins, and the exit code of every kind of ending.

Exit codes: 0 done; 1 a threshold, an assertion or a check failed; 2 wrong usage, unknown name, missing
secret; 3 more errors than allowed; 4 stopped early; 70 internal error; 130 interrupted, by Ctrl-C, SIGTERM or SIGHUP.
"""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import stat
import sys
import threading
import traceback
import warnings
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from modelgauge.cli.app import App
from modelgauge.cli.streams import logging_to_stderr
from modelgauge.config.entry_points import warn_of_foreign_distributions
from modelgauge.errors import ModelGaugeError, PluginError
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.first_party import how_to_install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from click.shell_completion import CompletionItem

FAILED, USAGE, TOO_MANY_ERRORS, STOPPED, INTERNAL, INTERRUPTED = 1, 2, 3, 4, 70, 130

_WHOLE_SENTENCE = 1_000  # characters; the first sentence of a help is never cut
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MAKE_ROOM = (
    "Make room, or send the output elsewhere. `modelgauge runs` lists the runs that were made, and "
    "`modelgauge show RUN` shows one."
)


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


def imported(target: str) -> Any:
    """Import what `module:attribute` names."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


HEADING = "heading"
"""The attribute of an option that says what help lists it under; `together` of `command_options.py` sets it."""


def option_groups(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the help records of a command's options by heading; options without a heading come last."""
    rest = "Other options" if isinstance(command, GroupedCommand) else "Options"
    groups: dict[str, list[tuple[str, str]]] = {}
    others: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        shown = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if shown is not None:
            heading = vars(param).get(HEADING) if isinstance(command, GroupedCommand) else None
            (others if heading is None else groups.setdefault(heading, [])).append(shown)
    return {**groups, rest: others} if others else groups


class GroupedCommand(click.Command):
    """A command with many options, which help lists under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, group by group."""
        for heading, shown in option_groups(self, ctx).items():
            with formatter.section(heading):
                formatter.write_dl(shown)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run; for an unknown name it suggests the nearest.

    Args:
        lazy: the commands by name, in the order in which help lists them.
    """

    section = "Commands"
    """The heading of the commands that are not lazy."""

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in order."""
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        lazy = self.lazy.get(cmd_name)
        if lazy is None:
            return super().get_command(ctx, cmd_name)
        command: click.Command = imported(lazy.target)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command named by the first argument."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            fix = f"{did_you_mean(name, known)}{how_to_install('command', name)}"
            ctx.fail(f"There is no command {name!r}. {fix}".rstrip())
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Complete commands and options, without importing anything for their help."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=self.lazy[name].help if name in self.lazy else None)
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            lazy = self.lazy.get(name)
            if lazy is not None:
                sections.setdefault(lazy.section, []).append((name, lazy.help))
                continue
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                sections.setdefault(self.section, []).append(
                    (name, command.get_short_help_str(_WHOLE_SENTENCE))
                )
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)


class Program(LazyGroup):
    """The `modelgauge` group: its own commands, then those that plugins add."""

    section = "From plugins"

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Built-in commands in their order, then those of plugins."""
        return [*super().list_commands(ctx), *self._commands_of_plugins(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a built-in command, or a plugin's. Plugins are loaded only for names that are not built in."""
        return super().get_command(ctx, cmd_name) or self._commands_of_plugins(ctx).get(cmd_name)

    def _commands_of_plugins(self, ctx: click.Context) -> dict[str, click.Command]:
        app = ctx.ensure_object(App)
        if app.plugin_commands is None:
            collector = _Collector(taken=self.lazy)
            try:
                app.plugins.register_commands(collector)
            except ModelGaugeError as error:  # help must be readable when a setting or a --plugin is wrong
                app.note(f"Commands of plugins are not listed. {error}")
            app.plugin_commands = dict(collector.commands)
        return app.plugin_commands

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,  # noqa: ARG002  `main` completes
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit; without `standalone_mode` return the exit code.

        Unlike click's own, it leaves `*` alone on Windows: a prompt may hold a `*`.
        """
        given = list(sys.argv[1:] if args is None else args)
        name = prog_name or "modelgauge"
        app = extra.setdefault("obj", App(given))
        with when_terminated(_interrupt):
            code = self._guarded(app, name, given, extra)
        if standalone_mode:
            sys.exit(code)
        return code

    def _guarded(self, app: App, name: str, args: list[str], extra: dict[str, Any]) -> int:
        with logging_to_stderr(app.note), warnings.catch_warnings():
            warnings.showwarning = lambda message, *_args, **_kwargs: app.note(f"Warning: {message}")
            try:
                warn_of_foreign_distributions()
                code = self._run(app, name, args, extra)
                sys.stdout.flush()
            except BaseException as error:
                if isinstance(error, SystemExit | GeneratorExit):
                    raise
                # What the reader of stdout (`| head`) did not want is not an error.
                code = app.exit_code if _is_broken_pipe(error) else report_error(app, error)
                if isinstance(error, OSError):
                    _give_up_stdout()
            return code

    def _run(self, app: App, name: str, args: list[str], extra: dict[str, Any]) -> int:
        try:
            with self.make_context(name, args, **extra) as ctx:
                self.invoke(ctx)
        except click.exceptions.Exit as ending:
            return ending.exit_code
        return app.exit_code


_ENDINGS = (signal.SIGTERM, *([signal.SIGHUP] if sys.platform != "win32" else []))


@contextmanager
def when_terminated(act: Callable[[], object]) -> Iterator[None]:
    """Call a function on SIGTERM, and on SIGHUP, which a closed terminal sends, unless the process ignores them.

    A forked child ends by the signal as usual.
    """
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    if threading.current_thread() is not threading.main_thread():
        before = {}
    handled = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    pid = os.getpid()

    def handle(number: int, _: object) -> None:
        if os.getpid() == pid:
            # The shell and the kernel send a SIGHUP each; a second SIGTERM is from somebody in a hurry.
            if number != signal.SIGTERM:
                signal.signal(number, signal.SIG_IGN)
            act()
        else:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    for number in handled:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)


def _interrupt() -> None:
    """Do what Ctrl-C would do now, also in a process that ignores it, as a shell's background job does."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.raise_signal(signal.SIGINT)
    else:  # most commands do without this module
        import_module("modelgauge.engine.loop.blocking").interrupt_main()


class _Collector(click.Group):
    """Collector of the commands that plugins add. It rejects a name that is taken; discovery reports that plugin."""

    def __init__(self, taken: Any) -> None:
        super().__init__("modelgauge")
        self._taken = frozenset(taken)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command.

        Raises:
            PluginError: modelgauge or another plugin has one of this name.
        """
        name = name or cmd.name
        if name in self._taken or name in self.commands:
            raise PluginError(f"There is a command {name!r} already.", fix="Choose another name.")
        super().add_command(cmd, name)


def report_error(app: App, error: BaseException) -> int:
    """Print an error to stderr, and return the exit code that it means."""
    if isinstance(error, click.ClickException):
        message = io.StringIO()
        error.show(file=message)
        app.note(message.getvalue().rstrip("\n"))
        if isinstance(error, click.NoSuchOption):
            executors = import_module("modelgauge.engine.executors.base")  # which most commands do without
            if (spelling := executors.behind_the_name(error.option_name)) is not None:
                app.note(spelling)
        return error.exit_code if isinstance(error, click.UsageError) else USAGE
    if isinstance(error, KeyboardInterrupt | click.Abort | EOFError):
        app.note("Interrupted.")
        return INTERRUPTED
    if app.debug:
        app.note("".join(traceback.format_exception(error)).rstrip("\n"))
    if isinstance(error, ModelGaugeError):
        app.note(f"Error: {error.problem}\n{error.fix.strip()}")
        return error.exit_code
    if isinstance(error, OSError):
        told, code = _refusal(error)
        app.note(told)
        return code
    described = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    app.note(f"Error: this should not have happened: {described}")
    if not app.debug:
        app.note("Run it again as `modelgauge --debug ...` for the traceback, and please report it.")
    return INTERNAL


def _refusal(error: OSError) -> tuple[str, int]:
    """Return the message and exit code for an operation that the operating system refused."""
    if error.errno == errno.ENAMETOOLONG:
        runs = "Give the name of a run (`modelgauge runs` lists them), or a shorter path of a file."
        return f"Error: {error.filename!r} is too long for a name.\n{runs}", USAGE
    if error.errno in _NO_ROOM:
        return f"Error: the disk refused to write more: {error}\n{_MAKE_ROOM}", STOPPED
    return (
        f"Error: the operating system refused an operation: {error}\n"
        "Correct what it names; `modelgauge --debug ...` shows where it happened."
    ), STOPPED


def _is_broken_pipe(error: BaseException) -> bool:
    """Return whether an error means that stdout is closed; pipes in an author's code can break, too.

    EIO means a closed terminal; for a file, it means a damaged disk.
    """
    if not (isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.EINVAL, errno.EIO)):
        return False
    if not hasattr(select, "poll"):  # Windows, where nothing can be asked
        return error.errno != errno.EIO
    poller = select.poll()
    try:
        if error.errno == errno.EIO and not stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode):
            return False
        poller.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # no stdout of the system's
        return False
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))


def _give_up_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's last flush does not fail."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # no stdout of the system's
        return

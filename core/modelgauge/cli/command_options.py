"""Options that several commands have, each written once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.program import HEADING
from modelgauge.cli.streams import LEVELS, reserved_stdout
from modelgauge.config.allowance import Allowance
from modelgauge.config.run_options import OPTIONS, Group, list_options
from modelgauge.errors import InvalidOptionError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.shell_completion import CompletionItem

    from modelgauge.config.options import Option, Values

F = TypeVar("F", bound=Callable[..., Any])

MEASURED, CALLS, LIMITS, DATA, OUTPUT = "What to measure", "Calls and cache", "Limits", "Data", "Output"
"""Headings of options in help."""
_ITEMS = "Items, repeats and intervals"
_OF_RUNS: dict[str, str] = {
    "sample": _ITEMS,
    "results": _ITEMS,
    "calls": CALLS,
    "limits": LIMITS,
    "workers": CALLS,
    "code": LIMITS,
}


class _AllowanceType(click.ParamType[Allowance]):
    """`N` or `P%`."""

    name = "allowance"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Allowance:
        try:
            return value if isinstance(value, Allowance) else Allowance.parse(value)
        except InvalidOptionError as error:
            self.fail(error.problem, param, ctx)


class _DeclaredType(click.ParamType[Any]):
    """The values of an option that a class of options declares."""

    name = "value"

    def __init__(self, values: Values) -> None:
        self._values = values

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._values.parse(value)
        except ValueError as wanted:
            self.fail(f"{value!r} is not {wanted}.", param, ctx)

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self._values.words if word.startswith(incomplete)]


ALLOWANCE = _AllowanceType()
"""The type of options that say how many items may fail."""


def _add_plugins(ctx: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    if value:
        ctx.ensure_object(App).add_plugins(value)


def _set_log_level(_: click.Context, __: click.Parameter, value: str | None) -> None:
    if value is not None:
        logging.getLogger().setLevel(value.upper())


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).debug = True


def _configure(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.ensure_object(App).configure(**{str(param.name): value})


def together(*options: Callable[[Any], Any], heading: str = "") -> Callable[[F], F]:
    """Combine several options into one decorator; help lists them in this order.

    Args:
        options: decorators.
        heading: what a `GroupedCommand` lists them under, in place of headings of their own; empty for these.
    """

    def decorated(command: F) -> F:
        before = len(vars(command).get("__click_params__", ()))
        for option in reversed(options):
            command = option(command)
        for each in vars(command)["__click_params__"][before:] if heading else ():
            vars(each)[HEADING] = heading
        return command

    return decorated


def declared_options(
    options: Mapping[str, Option], headings: Mapping[str, str] | None = None
) -> Callable[[F], F]:
    """Return click options for a class of options; values not given are None, or empty for repeatable options.

    Args:
        options: by name.
        headings: by group.
    """
    return together(
        *(
            together(_option(name, about), heading=(headings or {}).get(about.group, ""))
            for name, about in options.items()
            if about.metavar is not None
        )
    )


def _option(name: str, about: Option) -> Callable[[F], F]:
    shows_default = about.default not in (None, ()) and about.metavar
    return click.option(
        *(about.flags or (f"--{name.replace('_', '-')}",)),
        name,
        metavar=about.metavar or None,
        is_flag=not about.metavar,
        type=_DeclaredType(about.values) if about.metavar else None,
        multiple=about.several,
        default=None,
        help=f"{about.help}  [default: {about.default}]" if shows_default else about.help,
    )


plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE_OR_MODULE",
    expose_value=False,
    is_eager=True,  # so that `--help` sees it
    callback=_add_plugins,
    help="Load a plugin from a Python file or module; repeatable.",
)


def program_options(*, hidden: bool) -> Callable[[F], F]:
    """`--debug` and `--log-level`, shown in the help of the program and accepted by each command."""
    return together(
        click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=_set_debug,
            help="Show the traceback of an error.",
        ),
        click.option(
            "--log-level",
            type=click.Choice(LEVELS, case_sensitive=False),
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=_set_log_level,
            help="The lowest level that is logged to stderr.  [default: warning]",
        ),
    )


def _keep_stdout(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Keep stdout for the JSON object: what plugins print goes to stderr."""
    app = ctx.ensure_object(App)
    if value and app.stdout is None:  # of the root's, which is closed where the arguments are wrong, too
        app.stdout = ctx.find_root().with_resource(reserved_stdout())


shared_options = together(
    together(
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_keep_stdout,
            help="Print one JSON object, and nothing else, on stdout.",
        ),
        heading=OUTPUT,
    ),
    plugin_option,
    program_options(hidden=True),
    pass_app,
)
"""Options of every command: `--json`, `--plugin`, `--debug`, `--log-level`. The first argument is the `App`."""

data_dir_option = together(
    click.option(
        "--data-dir",
        expose_value=False,
        callback=_configure,
        type=click.Path(file_okay=False, path_type=Path),
        help=f"{OPTIONS['data_dir'].help}  [default: {OPTIONS['data_dir'].default}]",
    ),
    heading=OUTPUT,
)
no_report_option = click.option(
    "--no-report",
    "report",
    flag_value=False,
    type=bool,
    default=None,
    expose_value=False,
    callback=_configure,
    help="Do not write report.html, the page of a run, into its folder.",
)
cache_option = together(
    click.option(
        "--cache", expose_value=False, callback=_configure, metavar="URL", help=OPTIONS["cache"].help
    ),
    heading=CALLS,
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Show the details of each run below the table of several runs."
)
judge_option = click.option(
    "--judge", metavar="UID", help="The SUT that judges for metrics without their own judge."
)


prompt_options = together(
    click.option("--prompt", metavar="TEXT", help="The prompt for the SUT."),
    click.option(
        "--chat",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help='A chat instead of a prompt: JSON, a list of {"role": ..., "content": ...}.',
    ),
    click.option(
        "--continuation",
        "continuations",
        multiple=True,
        metavar="TEXT",
        help="Score this text behind the prompt or chat; repeatable.",
    ),
)
context_option = click.option(
    "--context", metavar="JSON", help="The prompt's context, for annotators that read it."
)


# --- options of runs ---------------------------------------------------------------------------------


def _mapping(_ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str]:
    """Parse `KEY=VALUE` texts into a mapping; a value may contain `=`."""
    found: dict[str, str] = {}
    for text in given:
        key, _, value = text.partition("=")
        if not (key and value):
            problem = f"{text!r} is not {param.metavar}, or TEST:{param.metavar}."
            raise click.BadParameter(problem)
        if key in found:
            raise click.BadParameter(f"{key!r} is given twice.")
        found[key] = value
    return found


offline_option = click.option(
    "--offline",
    is_flag=True,
    default=None,
    expose_value=False,
    callback=_configure,
    help="Fetch nothing; use the stored data.",
)
dependency_option = click.option(
    "--dependency",
    "dependencies",
    callback=_mapping,
    multiple=True,
    metavar="KEY=PATH",
    help="Use a local file instead of a test's declared data; TEST:KEY=PATH for one of several.",
)
data_options = together(
    offline_option,
    dependency_option,
    click.option(
        "--dependency-version",
        "dependency_versions",
        callback=_mapping,
        multiple=True,
        metavar="KEY=HASH",
        help="Require this version (SHA-256) of a test's data.",
    ),
    heading=DATA,
)


def run_options(*groups: Group) -> Callable[[F], F]:
    """Return the run options for commands, by group; `pop_run_options` extracts them."""
    return declared_options({name: OPTIONS[name] for name in list_options(*groups)}, _OF_RUNS)


def pop_run_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take what `run_options` and `data_options` added out of a command's arguments, as far as it was given."""
    names = [name for name, about in OPTIONS.items() if about.metavar is not None]
    taken = {name: given.pop(name, None) for name in (*names, "dependencies", "dependency_versions")}
    return {name: value for name, value in taken.items() if value is not None}


def confirm(question: str) -> None:
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
        raise UsageError("Nothing was removed.", fix="Give --yes to remove it without being asked.")

"""Options that several commands have, each written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelgauge.cli.app import App
from modelgauge.cli.logs import LEVELS, set_log_level
from modelgauge.cli.stdout import stdout_kept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modelgauge.data.prompts import SUTOptions

F = TypeVar("F", bound=Callable[..., Any])


def _add_plugins(ctx: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    ctx.ensure_object(App).local_plugins.extend(value)


def _set_log_level(_: click.Context, __: click.Parameter, value: str | None) -> None:
    if value is not None:
        set_log_level(value)


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).debug = True


def plugin_option(command: F) -> F:
    """`--plugin`, on the program and on commands; all of them count. Eager, so that `--help` sees it."""
    return click.option(
        "--plugin",
        multiple=True,
        metavar="FILE_OR_MODULE",
        expose_value=False,
        is_eager=True,
        callback=_add_plugins,
        help="Load a plugin from a Python file or module; repeatable.",
    )(command)


def debug_option(*, hidden: bool) -> Callable[[F], F]:
    """`--debug`, shown in the help of the program and accepted by each command."""

    def decorated(command: F) -> F:
        return click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=_set_debug,
            help="Show the traceback of an error.",
        )(command)

    return decorated


def log_level_option(*, hidden: bool) -> Callable[[F], F]:
    """`--log-level`, shown in the help of the program and accepted by each command."""

    def decorated(command: F) -> F:
        return click.option(
            "--log-level",
            type=click.Choice(LEVELS, case_sensitive=False),
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=_set_log_level,
            help="What is logged to stderr.  [default: warning]",
        )(command)

    return decorated


def _keep_stdout(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    """What plugins print goes to stderr, since stdout belongs to a machine."""
    app = ctx.ensure_object(App)
    if value and app.stdout is None:  # of the root's, which is closed where the arguments are wrong, too
        app.stdout = ctx.find_root().with_resource(stdout_kept())
    return value


def json_option(command: F) -> F:
    """Add the option `--json`."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=_keep_stdout,
        help="Print one JSON object, and nothing else, on stdout.",
    )(command)


def data_dir_option(command: F) -> F:
    """Add the option `--data-dir`."""
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="The folder of runs, cache and external data.  [default: run_data]",
    )(command)


def shared_options(command: F) -> F:
    """What every command takes: `--json`, `--plugin`, `--debug`, `--log-level`."""
    return json_option(plugin_option(debug_option(hidden=True)(log_level_option(hidden=True)(command))))


# --- SUT options -------------------------------------------------------------------------------------


def _schema(_: click.Context, __: click.Parameter, file: Path | None) -> dict[str, Any] | None:
    """Read a JSON Schema.

    Raises:
        InputFileError: there is none in the file.
    """
    if file is None:
        return None
    import json

    from modelgauge.errors import InputFileError
    from modelgauge.files.regular import bytes_of

    fix = 'Give a file with a JSON Schema, such as {"type": "object", "properties": {…}}.'
    try:
        schema = json.loads(bytes_of(file).decode("utf-8-sig"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputFileError(f"--response-schema {file} cannot be read: {reason}.", fix=fix) from None
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"--response-schema {file} is not JSON: {error}.", fix=fix) from None
    if not isinstance(schema, dict):
        raise InputFileError(f"--response-schema {file} holds no JSON object.", fix=fix)
    return schema


_SUT_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("--num-completions",), {"type": click.IntRange(min=1), "help": "How many completions to ask for."}),
    (("--max-tokens",), {"type": click.IntRange(min=1), "help": "Most tokens in a completion."}),
    (("--temperature",), {"type": click.FloatRange(min=0), "help": "Temperature of sampling; 0 for none."}),
    (("--top-p",), {"type": click.FloatRange(0, 1), "help": "Nucleus sampling."}),
    (
        ("--top-k", "top_k_per_token"),
        {"type": click.IntRange(min=1), "help": "Choose among the K most likely."},
    ),
    (("--stop", "stop_sequences"), {"multiple": True, "help": "Where to stop; repeatable."}),
    (("--presence-penalty",), {"type": float, "help": "Penalty for tokens that occurred."}),
    (("--frequency-penalty",), {"type": float, "help": "Penalty for tokens by how often they occurred."}),
    (("--random",), {"metavar": "SEED", "help": "A seed, or any text: makes a request a different one."}),
    (
        ("--top-logprobs",),
        {"type": click.IntRange(min=0), "help": "Log-probabilities of the N likeliest tokens."},
    ),
    (
        ("--response-schema",),
        {
            "type": click.Path(path_type=Path),
            "metavar": "FILE",
            "callback": _schema,
            "help": "A file with the JSON Schema that completions shall fit.",
        },
    ),
)
SUT_OPTION_NAMES = tuple(names[-1].lstrip("-").replace("-", "_") for names, _ in _SUT_OPTIONS)


def sut_options(command: F) -> F:
    """The options of `SUTOptions`, each under its field's name; `taken_sut_options` makes the object."""
    for names, settings in reversed(_SUT_OPTIONS):
        command = click.option(*names, default=None, **settings)(command)
    return command


def taken_sut_options(given: dict[str, Any]) -> SUTOptions:
    """Take what `sut_options` added out of a command's arguments.

    Raises:
        InvalidDataError: a value is out of its range (not finite, say).
    """
    from modelgauge.data.prompts import SUTOptions

    asked = {name: given.pop(name) for name in SUT_OPTION_NAMES}
    asked["stop_sequences"] = asked["stop_sequences"] or None
    if asked["random"] is not None and asked["random"].lstrip("-").isdecimal():
        asked["random"] = int(asked["random"])
    return SUTOptions(**asked)


# --- options of runs ---------------------------------------------------------------------------------


def _mapping(
    value_name: str,
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], Mapping[str, str]]:
    """A callback that makes a mapping of `KEY=VALUE` texts; a value may hold `=`."""

    def convert(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for text in given:
            key, _, value = text.partition("=")
            if not (key and value):
                problem = f"{text!r} is not KEY={value_name}, or TEST:KEY={value_name}."
                raise click.BadParameter(problem, ctx, param)
            if key in found:
                raise click.BadParameter(f"{key!r} is given twice.", ctx, param)
            found[key] = value
        return found

    return convert


def offline_option(command: F) -> F:
    """Add the option `--offline`."""
    return click.option(
        "--offline", is_flag=True, default=None, help="Fetch nothing; use the data that is there."
    )(command)


def dependency_option(command: F) -> F:
    """Add the option `--dependency`, which may be repeated."""
    return click.option(
        "--dependency",
        "dependencies",
        callback=_mapping("PATH"),
        multiple=True,
        metavar="KEY=PATH",
        help="Use a local file instead of a test's declared data; TEST:KEY=PATH for one of several.",
    )(command)


def data_options(command: F) -> F:
    """Where external data comes from: `--offline`, `--dependency`, `--dependency-version`."""
    versions = click.option(
        "--dependency-version",
        "dependency_versions",
        callback=_mapping("HASH"),
        multiple=True,
        metavar="KEY=HASH",
        help="Demand this version (SHA-256) of a test's data.",
    )
    return offline_option(dependency_option(versions(command)))


def taken_data_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take the data of a command's arguments that `Runner` wants; `offline` is a setting."""
    return {name: given.pop(name) for name in ("dependencies", "dependency_versions")}


def call_options(command: F) -> F:
    """How calls are made: `--concurrency`, `--max-retries`, `--timeout`."""
    options = (
        click.option(
            "--concurrency",
            metavar="N",
            type=click.IntRange(min=1),
            help="Calls in flight for each SUT and annotator.  [default: adapts]",
        ),
        click.option(
            "--max-retries",
            metavar="N",
            type=click.IntRange(min=0),
            help="Further attempts after a failed one.  [default: 4]",
        ),
        click.option(
            "--timeout",
            metavar="SECONDS",
            type=click.FloatRange(min=0, min_open=True),
            help="Seconds for one attempt of a call.  [default: 120]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def taken_call_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Take what `call_options` added, which are settings too."""
    return {name: given.pop(name) for name in ("concurrency", "max_retries", "timeout")}


_LIMITS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--max-calls",
        {
            "metavar": "N",
            "type": click.IntRange(min=0),
            "help": "Stop after this many calls; 0 for the cache alone.",
        },
    ),
    (
        "--max-tokens-total",
        {
            "metavar": "N",
            "type": click.IntRange(min=0),
            "help": "Stop when SUTs have reported this many tokens.",
        },
    ),
    (
        "--max-cost",
        {
            "metavar": "USD",
            "type": click.FloatRange(min=0),
            "help": "Stop when SUTs have reported a cost of this many US dollars.",
        },
    ),
    (
        "--requests-per-minute",
        {"metavar": "N", "type": click.IntRange(min=1), "help": "Most requests a minute of each SUT."},
    ),
    (
        "--tokens-per-minute",
        {"metavar": "N", "type": click.IntRange(min=1), "help": "Most tokens a minute of each SUT."},
    ),
    (
        "--call-timeout",
        {
            "metavar": "SECONDS",
            "type": click.FloatRange(min=0, min_open=True),
            "help": "Seconds for all attempts of a call, pauses included.  [default: 600]",
        },
    ),
)


def limit_options(command: F) -> F:
    """What a whole run may take: calls, tokens, dollars; calls and tokens a minute; the time of a call."""
    for name, settings in reversed(_LIMITS):
        command = click.option(name, **settings)(command)
    return command


def taken_limits(given: dict[str, Any]) -> dict[str, Any]:
    """Take what `limit_options` added, under the names of `Runner`; what was not given is left out."""
    limits = {name: given.pop(name) for name in (flag[2:].replace("-", "_") for flag, _ in _LIMITS)}
    return {name: value for name, value in limits.items() if value is not None}


def max_items_option(command: F) -> F:
    """`-m/--max-test-items` and the seed of the choice."""
    command = click.option(
        "--seed", type=int, default=0, show_default=True, help="What the choice of -m depends on."
    )(command)
    return click.option(
        "-m",
        "--max-test-items",
        metavar="N",
        type=click.IntRange(min=1),
        help="This many items only, the same ones each time; -m 10 is inside -m 100.",
    )(command)


def repeat_options(command: F) -> F:
    """`--repeats`, and what becomes of the repeats of an item."""
    command = click.option(
        "--reduce",
        metavar="HOW",
        default="mean",
        show_default=True,
        help="How the measurements of the repeats become one: mean, majority, max or pass@K.",
    )(command)
    return click.option(
        "--repeats",
        metavar="N",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Ask each prompt N times, each time for an answer of its own.",
    )(command)


def interval_options(command: F) -> F:
    """What intervals allow for, and what they are about."""
    command = click.option(
        "--finite",
        is_flag=True,
        help="Make intervals about the items of this very test, not about all items like these.",
    )(command)
    return click.option(
        "--cluster",
        metavar="FIELD",
        help="Items with equal values in this field of their context, or column of the data set, are not independent: "
        "make intervals that allow for it.",
    )(command)

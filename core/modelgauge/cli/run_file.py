"""Run files: the options of `run-test` in a TOML file, one key each. Options are not declared here.

The command `run` is in `commands/measure.py`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from modelgauge.config.settings import names_a_file, read_toml
from modelgauge.errors import InputFileError, ModelGaugeError
from modelgauge.files.regular import read_bytes
from modelgauge.wording.did_you_mean import did_you_mean

_OF_ONE_CALL = ("as_json", "dry_run", "verbose", "no_progress_bar")
"""Options that say how one call of the command is shown, which no file says."""


def list_keys(command: click.Command) -> dict[str, click.Option]:
    """Return the keys of a run file: option names with `_` for `-`; repeatable options have their name in Python."""
    options = [
        option
        for option in command.params
        if isinstance(option, click.Option) and option.name not in _OF_ONE_CALL and not option.hidden
    ]
    return {str(option.name) if option.multiple else _flag(option): option for option in options}


def _flag(option: click.Option) -> str:
    """Return the long name of an option."""
    return max(option.opts, key=len).lstrip("-").replace("-", "_")


def read_run_file(path: Path, ctx: click.Context, command: click.Command) -> tuple[str, dict[str, Any]]:
    """Read a file, and check each value as the command line checks it. Relative paths start at the file's folder.

    Args:
        path: of the file.
        ctx: of the command.
        command: that has the options.

    Returns:
        The text of the file, and the values of the command's parameters by name, as `default_map` of click takes them.

    Raises:
        SettingsError: it is not TOML.
        InputFileError: a key is none, or a value is not valid; the message names file and line.
    """
    tables, text = read_toml(path), read_bytes(path).decode("utf-8-sig")
    keys = list_keys(command)
    spelled = {**{_flag(option): key for key, option in keys.items()}, **{key: key for key in keys}}
    values: dict[str, Any] = {}
    for written, value in tables.items():
        where = f"{path}{_locate_key(written, text)}"
        if written not in spelled:
            raise InputFileError(
                f"{where}: there is no key '{written}'.",
                fix=f"{did_you_mean(written, spelled)}The keys are the options of run-test with _ for -: "
                "`modelgauge run-test --help` lists them.",
            )
        option = keys[spelled[written]]
        if str(option.name) in values:
            raise InputFileError(f"{where}: '{spelled[written]}' is given twice.", fix="Give it once.")
        try:
            values[str(option.name)] = _checked_value(option, value, path.parent, ctx)
        except click.BadParameter as error:
            fix = f"`modelgauge run-test --help` says what --{_flag(option).replace('_', '-')} takes."
            raise InputFileError(f"{where}, {written}: {error.message}", fix=fix) from None
        except ModelGaugeError as error:
            raise InputFileError(f"{where}, {written}: {error.problem}", fix=error.fix) from error
    return text, {name: value for name, value in values.items() if value is not None}


def _locate_key(key: str, text: str) -> str:
    """Return `, line N` for a key in a TOML file; "" if it is written in an unusual way."""
    found = re.search(rf"""^[ \t]*\[*[ \t]*["']?{re.escape(key)}["']?[ \t]*[=.\]]""", text, re.MULTILINE)
    return "" if found is None else f", line {text.count(chr(10), 0, found.start()) + 1}"


def _checked_value(option: click.Option, value: object, folder: Path, ctx: click.Context) -> Any:
    """Convert a value to the form in which the command line would pass it; None for a flag that is off."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise click.BadParameter(f"{value!r} is neither true nor false.")
        return option.flag_value is not False if value else None  # of --no-report it is False
    texts = [_with_absolute_path(option, text, folder) for text in _texts(option, value)]
    if not option.multiple and len(texts) != 1:
        raise click.BadParameter("it takes one value.")
    given = texts if option.multiple else texts[0]
    if option.expose_value:
        option.process_value(ctx, given)
    else:  # its callback has effects
        option.type_cast_value(ctx, given)
    return given


def _texts(option: click.Option, value: object, before: str = "") -> Iterator[str]:
    """Return the values of an option as texts, one for each time that it is given."""
    if isinstance(value, dict) and "=" in (option.metavar or ""):
        for key, inner in value.items():
            if isinstance(inner, dict):
                yield from _texts(option, inner, f"{before}{key}:")
            else:
                yield f"{before}{key}={_scalar(inner)}"
    elif isinstance(value, list):
        yield from map(_scalar, value)
    else:
        yield _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise click.BadParameter(f"a {type(value).__name__} is neither a text nor a number.")
    return str(value)


def _with_absolute_path(option: click.Option, text: str, folder: Path) -> str:
    """Resolve relative paths in a text against the folder of the file."""
    if option.metavar == "KEY=PATH":
        key, equals, path = text.partition("=")
        return f"{key}{equals}{folder / Path(path).expanduser()}"
    is_path = isinstance(option.type, click.Path) or (option.name == "plugins" and names_a_file(text))
    if is_path or (option.name == "baseline" and (folder / text).is_file()):
        return str(folder / Path(text).expanduser())
    return text

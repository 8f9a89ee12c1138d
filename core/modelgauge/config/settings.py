"""Settings: what `modelgauge.toml`, the environment and the command line say, merged; the later wins.

One line of `Settings` is one setting: its default, how what is written becomes its value, its meaning, and
its key in the file. The options of a run are in `run_options.py`, secrets in `secrets.py`.
"""

import os
import shlex
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from modelgauge.config.options import YES_NO
from modelgauge.config.run_options import OPTIONS
from modelgauge.errors import InvalidOptionError, SettingsError
from modelgauge.files.regular import is_file, read_bytes, real_path
from modelgauge.wording.did_you_mean import closest, known_names

T = TypeVar("T")

SETTINGS_FILE = "modelgauge.toml"
SECRETS_FILE = "secrets.toml"
PREFIX = "MODELGAUGE_"
TRUSTED = "MODELGAUGE_TRUSTED"
"""The environment variable with folders of other people whose settings and runs are used as one's own."""


class Source(NamedTuple):
    """Source of a value: `label` for errors, `folder` for relative paths (None: unchanged)."""

    label: str
    folder: Path | None


# --- how a written value becomes a setting's ------------------------------------------------------


def _text(value: object, _: Source) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError("a text that is not empty")


def _path(value: object, source: Source) -> Path:
    if isinstance(value, str | Path) and str(value):
        path = Path(value).expanduser()
        return path if source.folder is None else source.folder / path
    raise ValueError("a path")


def _cache(value: object, source: Source) -> str:
    """Return a URL unchanged, or the path of a folder."""
    return _text(value, source) if "://" in str(value) else str(_path(value, source))


def _plugins(value: object, source: Source) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part for part in value.split(os.pathsep) if part.strip()]
    if not isinstance(value, list | tuple) or not all(
        isinstance(part, str | Path) and str(part) for part in value
    ):
        raise ValueError("a list of files or modules")
    return tuple(str(_path(part, source)) if names_a_file(str(part)) else str(part).strip() for part in value)


def _yes_no(value: object, _: Source) -> Any:
    return YES_NO._replace(wanted="true or false").parse(value)


def names_a_file(plugin: str) -> bool:
    """Return whether a value of `--plugin` is a file (`x.py`, `here/x`), not a module (`pkg.module`)."""
    return plugin.endswith(".py") or "/" in plugin or os.sep in plugin


# --- the settings ---------------------------------------------------------------------------------


class SettingInfo(NamedTuple):
    """One row of the table of settings, for the loader and for the reference.

    `convert` raises ValueError with what it wants instead. With `adds_up`, layers add to each other, else the
    later replaces the earlier. `option` is the option of a run that a setting stands in for.
    """

    convert: Callable[[object, Source], Any]
    meaning: str
    key: str = ""
    adds_up: bool = False
    option: str = ""
    name: str = ""
    default: Any = None

    @property
    def variable(self) -> str:
        """The name in the environment."""
        return PREFIX + self.name.upper()


_Written = tuple[SettingInfo, object, Source]


def _setting(default: T, *facts: Any, **more: Any) -> T:
    return field(default=default, metadata={"info": SettingInfo(*facts, **more)})


def _of_run(option: str) -> Any:
    info = OPTIONS[option]
    return _setting(None, lambda written, _: info.values.parse(written), info.help, option=option)


@dataclass(frozen=True)
class Settings:
    """The settings of every command. None means not set: the code that reads the setting decides.

    In the file a setting is a key of its own name (`offline = true`), in the environment `MODELGAUGE_` and
    its name in capitals (`MODELGAUGE_OFFLINE=1`; an empty value is not a value). Relative paths in the file
    start at the file's folder, others at the working directory.
    """

    data_dir: Path = _setting(OPTIONS["data_dir"].default, _path, OPTIONS["data_dir"].help)
    offline: bool = _setting(False, _yes_no, "Fetch nothing; use the stored data.")
    judge: str | None = _setting(
        None, _text, "The SUT that judges if a metric names no other.", key="judge.model"
    )
    plugins: tuple[str, ...] = _setting(
        (), _plugins, "Plugin files or modules; those of file, environment and command add up.", adds_up=True
    )
    report: bool = _setting(
        True, _yes_no, "Write the page of each run into its folder, as report.html, up to 10,000 items."
    )
    workbench_url: str | None = _setting(
        None, _text, "The URL of the workbench that stores the versions of data sets.", key="workbench.url"
    )
    cache: str | None = _setting(None, _cache, OPTIONS["cache"].help, key="cache.url", option="cache")
    concurrency: int | None = _of_run("concurrency")
    max_retries: int | None = _of_run("max_retries")
    timeout: float | None = _of_run("attempt_timeout")
    executor: str | None = _of_run("executor")
    workers: int | None = _of_run("workers")
    secrets_file: Path = _setting(Path(SECRETS_FILE), _path, "The file of secrets.")
    file: Path | None = None  # the modelgauge.toml that was read; not a setting
    servers: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The tables `[PROVIDER.servers.NAME]` of the file: the options of each named server, by provider and name."""
    of_plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tables `[plugin.NAME]` of the file: what the hooks of a plugin get as `settings`, by the plugin's name."""

    def of_runs(self) -> dict[str, Any]:
        """Return the run options that are set, by name."""
        named = {setting.option: getattr(self, setting.name) for setting in list_settings() if setting.option}
        return {name: value for name, value in named.items() if value is not None}


def list_settings() -> list[SettingInfo]:
    """List all settings, in the order of `Settings`."""
    infos = [(field, field.metadata["info"]) for field in fields(Settings) if field.metadata]
    return [
        info._replace(name=field.name, key=info.key or field.name, default=field.default)
        for field, info in infos
    ]


# --- loading --------------------------------------------------------------------------------------


def load_settings(
    cwd: str | Path | None = None, env: Mapping[str, str] | None = None, **options: object
) -> Settings:
    """Merge `modelgauge.toml` (upward from `cwd`), `MODELGAUGE_*` variables and options; the later wins.

    Plugins are the exception: those of the file, of the environment and of the options add up.

    Args:
        cwd: where to begin; the working directory when None.
        env: the environment; the process's own when None.
        options: settings by name; None means not given.

    Raises:
        SettingsError: the working directory was deleted; the file cannot be read, is somebody else's and loads
            code, or the file or the environment says something that does not exist or does not convert; the
            message names file and key.
        InvalidOptionError: an option does not exist or does not convert.
    """
    table = {info.name: info for info in list_settings()}
    env = os.environ if env is None else env
    here = None if cwd is None else Path(cwd)
    try:
        file = find_settings_file(here or Path.cwd())
    except FileNotFoundError as error:
        raise SettingsError(
            "The working directory no longer exists.", fix="Change to an existing folder: cd"
        ) from error
    values: dict[str, Any] = {} if here is None else {"data_dir": here / Settings.data_dir}
    values["secrets_file"] = (file.parent if file else here or Path()) / SECRETS_FILE
    tables = read_toml(file) if file else {}
    if file:
        _check_owner(file, tables, env)
        values["servers"] = _take_servers(file, tables)
        of_plugins = tables.pop("plugin", {})
        values["of_plugins"] = _checked_tables(file, "plugin", of_plugins, "the plugin's settings")
    of_file = _from_file(file, tables, table) if file else ()
    layers = chain(of_file, _from_environment(env, table, here), _from_options(options, table, here))
    for info, written, source in layers:
        value = _converted(info, written, source)
        if info.adds_up:
            value = tuple(dict.fromkeys((*values.get(info.name, ()), *value)))
        if info.name == "secrets_file" and not is_file(value):
            raise SettingsError(
                f"{source.label}: there is no file {str(value)!r}.", fix="Create it, or correct the path."
            )
        values[info.name] = value
    return Settings(**values, file=file)


def find_settings_file(cwd: Path) -> Path | None:
    """Return the closest `modelgauge.toml`, in `cwd` or a folder above it."""
    files = (folder / SETTINGS_FILE for folder in (cwd.absolute(), *cwd.absolute().parents))
    return next(filter(is_file, files), None)


def is_trusted(path: Path, env: Mapping[str, str] | None = None) -> bool:
    """Return whether a path lies in a folder that the environment declares as trusted.

    Args:
        path: of a file or folder.
        env: the environment; the process's own when None.
    """
    named = (os.environ if env is None else env).get(TRUSTED, "").split(os.pathsep)
    return any(real_path(path).is_relative_to(real_path(folder)) for folder in named if folder.strip())


def _check_owner(file: Path, written: Mapping[str, object], env: Mapping[str, str]) -> None:
    """Refuse another user's file that loads code or names an address, as Git refuses such a repository.

    Such a file may come from a folder above in which everybody may write. A link is checked for its owner too, since
    relative paths start at its folder.
    """
    reaches_out = bool(written.get("plugins")) or any(mark in str(written) for mark in ("://", "?"))
    if sys.platform == "win32" or not reaches_out or is_trusted(file.parent, env):
        return
    target = file.stat()
    foreign = {file.lstat().st_uid, target.st_uid} - {0, os.geteuid()}
    if foreign or target.st_mode & stat.S_IWOTH:
        whose = "belongs to another user" if foreign else "can be written by everybody"
        raise SettingsError(
            f"{file} loads code or names an address, and {whose}: it is not used.",
            fix=f"If you trust it: export {TRUSTED}={shlex.quote(str(file.parent))}",
        )


def read_toml(file: Path) -> dict[str, Any]:
    """Read and parse a TOML file.

    Raises:
        SettingsError: it cannot be read, is not UTF-8, or is not TOML; the message names file and line, and
            nothing of its text, which may hold secrets.
    """
    # Imported when there is a file: most projects have none.
    toml = import_module("tomllib")
    try:
        parsed: dict[str, Any] = toml.loads(read_bytes(file).decode("utf-8-sig"))
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be read: {error.strerror}.", fix="Correct or remove it."
        ) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SettingsError(
            f"{file}, line {line}: this is not UTF-8.", fix="Save the file as UTF-8."
        ) from None
    except (ValueError, RecursionError) as error:  # its own error is a ValueError; so is a number too long
        raise SettingsError(f"{file} is not valid TOML: {error}.", fix="Correct that line.") from None
    return parsed


def _take_servers(file: Path, tables: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Take the tables `[PROVIDER.servers.NAME]` out of those of the file.

    Raises:
        SettingsError: an entry is not a table.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for provider in [key for key, table in tables.items() if isinstance(table, dict) and "servers" in table]:
        servers = tables[provider].pop("servers")
        found[provider] = _checked_tables(
            file, f"{provider}.servers", servers, 'its options: base_url = "http://localhost:8000/v1"'
        )
        if not tables[provider]:
            del tables[provider]
    return found


def _checked_tables(file: Path, key: str, found: Any, what: str) -> dict[str, dict[str, Any]]:
    """Return the tables `[KEY.NAME]`, by name.

    Raises:
        SettingsError: an entry is not a table; the message says `what` it should hold.
    """
    named = found if isinstance(found, dict) else {"NAME": found}
    for name, table in named.items():
        if not isinstance(table, dict):
            raise SettingsError(
                f"{file}: {key}.{name} is not a table.", fix=f"Write, under [{key}.{name}], {what}."
            )
    return named


def _from_file(file: Path, tables: Mapping[str, Any], table: Mapping[str, SettingInfo]) -> Iterator[_Written]:
    by_key = {info.key: info for info in table.values()}
    sections = {key.partition(".")[0] for key in by_key if "." in key}
    written: dict[str, object] = {}
    for key, value in tables.items():
        if key in sections and isinstance(value, dict):
            written.update((f"{key}.{inner}", inner_value) for inner, inner_value in value.items())
        else:
            written[key] = value
    for key, value in written.items():
        if key not in by_key:
            raise SettingsError(f"{file}: there is no setting {key!r}.", fix=known_names(key, by_key))
        yield by_key[key], value, Source(f"{file}, {key!r}", file.parent)


def _from_environment(
    env: Mapping[str, str], table: Mapping[str, SettingInfo], here: Path | None
) -> Iterator[_Written]:
    by_variable = {info.variable: info for info in table.values()}
    for variable in sorted(name for name in env if name.startswith(PREFIX)):
        if variable in by_variable:
            if env[variable].strip():
                yield by_variable[variable], env[variable], Source(f"Environment variable {variable}", here)
            continue
        # Other tools and secrets may use the prefix: only what is all but a setting's name counts as a slip.
        slips = closest(variable[len(PREFIX) :], (info.name for info in table.values()), cutoff=0.85)
        if slips:
            raise SettingsError(
                f"There is no setting for the environment variable {variable}.",
                fix=f"Did you mean {table[slips[0]].variable}? If not, unset it.",
            )


def _from_options(
    options: Mapping[str, object], table: Mapping[str, SettingInfo], here: Path | None
) -> Iterator[_Written]:
    for name, value in options.items():
        if name not in table:
            raise InvalidOptionError(f"There is no setting {name!r}.", fix=known_names(name, table))
        if value is not None:
            yield table[name], value, Source(f"Option {name!r}", here)


def _converted(info: SettingInfo, written: object, source: Source) -> Any:
    try:
        return info.convert(written, source)
    except ValueError as wanted:
        error = InvalidOptionError if source.label.startswith("Option") else SettingsError
        raise error(f"{source.label} cannot be {written!r}.", fix=f"Give {wanted}.") from None

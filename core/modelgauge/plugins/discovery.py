"""Finds plugins, loads them one by one and keeps what each registered; a broken plugin affects no other.

The hooks are described in `hookspecs.py`, installed plugins are found by `entry_points.py`, files of
`--plugin` are imported by `local_plugins.py`; what was registered is kept in registries, `registry.py`.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from pluggy import HookImpl, HookimplOpts, PluginManager, PluginValidationError

from modelgauge.config.entry_points import (
    DISTRIBUTION,
    PluginEntryPoint,
    installed_entry_points,
    installed_version,
)
from modelgauge.config.import_by_name import describe
from modelgauge.config.settings import Settings, names_a_file
from modelgauge.errors import ModelGaugeError, PluginError
from modelgauge.plugins import builtin, hookspecs
from modelgauge.plugins.hookspecs import PROJECT_NAME
from modelgauge.plugins.local_plugins import HOOK_EXAMPLE, load_local_plugin, local_failure, module_name
from modelgauge.plugins.registry import KIND_WORDS, Register, Registry
from modelgauge.wording.did_you_mean import did_you_mean, known_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import click

    from modelgauge.data.item_records import ItemRecord
    from modelgauge.data.records import TestRecord
    from modelgauge.plugins.construction import Kind, Servers

_HOOKS = [name for name in dir(hookspecs) if name.startswith(f"{PROJECT_NAME}_")]


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """A plugin that was loaded, and what it registered.

    Args:
        name: the name of its entry point; for a local plugin, the value of `--plugin`.
        distribution: the distribution that it belongs to; for a local plugin, its file or module.
        module: the module that holds its hooks.
        seconds: what loading it and calling its hooks took.
        counts: how many uids (providers included) of each kind it registered.
        hooks: the hooks that it implements.
        announced_version: the version of its distribution, where its metadata was read; else empty.
    """

    name: str
    distribution: str
    module: str
    seconds: float
    counts: Mapping[Kind, int]
    hooks: tuple[str, ...]
    announced_version: str = ""

    @property
    def version(self) -> str:
        """The version of its distribution; looked up when it is needed, where it was not announced."""
        return self.announced_version or installed_version(self.distribution)


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """A plugin, or one hook of it, that does not work.

    Args:
        name: of its entry point; for a local plugin, the value of `--plugin`.
        distribution: the distribution that it belongs to; for a local plugin, its file or module.
        cause: what happened, on one line.
        traceback: of the error, for its author.
        seconds: the time that it took.
        announced_version: the version of its distribution.
    """

    name: str
    distribution: str
    cause: str
    traceback: str
    seconds: float = 0.0
    announced_version: str = ""


class Plugins:
    """All plugins of one process, and what they registered; made by `discover`. An observer of runs.

    What a hook raises is kept in `failures`, once for each plugin and hook.

    Args:
        settings: the tables `[plugin.NAME]` of `modelgauge.toml`, by the plugin's name.
    """

    def __init__(self, settings: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._settings = settings or {}
        self.loaded: list[LoadedPlugin] = []
        self.failures: list[PluginFailure] = []
        self._failed_names: list[str] = []
        self._failed_hooks: set[tuple[str, str]] = set()
        self.watches_items = False
        every: list[Registry] = []
        self.registries = tuple(Registry(kind, self._failed_names, every) for kind in KIND_WORDS)
        self.tests, self.suts, self.annotators, self.metrics = self.registries
        every += self.registries
        self.manager = _Manager(PROJECT_NAME)
        self.manager.add_hookspecs(hookspecs)

    def of_annotator(self, name: str) -> Registry:
        """Return the registry, of annotators or of metrics, that has a name, or one like it."""
        if name in self.annotators:
            return self.annotators
        base = name.partition("?")[0]
        is_like_one = did_you_mean(base, self.metrics.uids) and not did_you_mean(base, self.annotators.uids)
        return self.metrics if name in self.metrics or is_like_one else self.annotators

    def run_started(self, run: Mapping[str, Any]) -> None:
        """Tell plugins that a run starts."""
        self._notify("modelgauge_run_started", run=run)

    def item_finished(self, run_id: str, record: ItemRecord) -> None:
        """Tell plugins that an item is done."""
        if self.watches_items:  # asking pluggy for each item would cost more than all the rest of this
            self._notify("modelgauge_item_finished", run_id=run_id, record=record)

    def run_finished(self, record: TestRecord) -> None:
        """Tell plugins that a run has its record."""
        self._notify("modelgauge_run_finished", record=record)

    def _notify(self, hook: str, **arguments: object) -> None:
        for implementation in self._implementations(hook):
            self._guarded(implementation, hook, arguments)

    def register_commands(self, cli: click.Group) -> None:
        """Let every plugin add its commands; if one raises, its commands are removed again."""
        hook = "modelgauge_register_commands"
        for implementation in self._implementations(hook):
            before = dict(cli.commands)
            if not self._guarded(implementation, hook, {"cli": cli}):
                cli.commands.clear()
                cli.commands.update(before)

    def add(self, plugin: object, name: str, distribution: str, *, started: float, version: str = "") -> None:
        """Call a plugin's registration hooks and keep everything that it registered, or nothing.

        A plugin that is there already (one module under two names) stays as it is.

        Args:
            plugin: the module, or another object with hooks.
            name: its name.
            distribution: who registers.
            started: `time.perf_counter()` when its loading began.
            version: the distribution's version, where known.

        Raises:
            PluginError: its hooks are not as specified, or it has none, or what it registers is refused.
            BaseException: whatever its hooks raise.
        """
        if self.manager.is_registered(plugin):
            return
        registered_name = f"{distribution}\0{name}"  # entry points of two distributions may be called alike
        try:
            self._register(plugin, registered_name)
            hooks = self._check_hooks(plugin)
            registers = [Register(registry.kind, distribution) for registry in self.registries]
            for register in registers:
                for implementation in self._implementations(f"modelgauge_register_{register.kind}s", plugin):
                    _call(implementation, {"register": register})
            for registry, register in zip(self.registries, registers, strict=True):
                registry.check(register.entries)
        except BaseException:
            self.manager.unregister(name=registered_name)
            raise
        for registry, register in zip(self.registries, registers, strict=True):
            registry.add(register.entries)
        self.watches_items |= "modelgauge_item_finished" in hooks
        counts = {register.kind: len(register.entries) for register in registers}
        module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
        seconds = time.perf_counter() - started
        self.loaded.append(LoadedPlugin(name, distribution, module, seconds, counts, hooks, version))

    def check_settings(self) -> None:
        """Record each table of settings that no plugin has, like a broken plugin, and warn of it."""
        hooked = [implementation for hook in _HOOKS for implementation in self._implementations(hook)]
        named = {_get_name(each) for each in hooked if "settings" in each.argnames}
        for name in sorted(self._settings.keys() - named):
            fix = f"{did_you_mean(name, named)}Install the plugin, or remove the table."
            error = PluginError(f"There is no plugin {name!r} that has settings.", fix=fix)
            self.fail(f"[plugin.{name}]", "modelgauge.toml", error, started=time.perf_counter())
            warnings.warn(f"modelgauge.toml, [plugin.{name}]: {error}", stacklevel=3)

    def add_servers(self, provider: str, tables: Servers) -> None:
        """Add the user's own servers to a provider of SUTs; an unknown provider is recorded like a broken plugin."""
        started = time.perf_counter()
        try:
            self.suts.add_servers(provider, tables)
        except PluginError as error:
            self.fail(f"[{provider}.servers]", "modelgauge.toml", error, started=started)

    def fail(
        self, name: str, distribution: str, error: BaseException, *, started: float, version: str = ""
    ) -> None:
        """Record that a plugin could not be loaded, and why."""
        self._failed_names.append(name)
        seconds = time.perf_counter() - started
        failure = PluginFailure(name, distribution, _cause(error), _formatted(error), seconds, version)
        self.failures.append(failure)

    def _register(self, plugin: object, registered_name: str) -> None:
        try:
            self.manager.register(plugin, registered_name)
        except PluginValidationError as error:
            _, *lines = str(error).splitlines()  # the first names the plugin
            reasons = [line.strip() for line in lines]
            raise PluginError(
                f"A hook is not as specified: {'; '.join(reasons)}.",
                fix="Give it the arguments of its specification in modelgauge.plugins.hookspecs, by name.",
            ) from error

    def _check_hooks(self, plugin: object) -> tuple[str, ...]:
        callers = self.manager.get_hookcallers(plugin) or []
        for name in _HOOKS:
            function = vars(plugin).get(name) if isinstance(plugin, ModuleType) else None
            is_own = isinstance(function, FunctionType) and function.__module__ == vars(plugin)["__name__"]
            if is_own and not hasattr(function, f"{PROJECT_NAME}_impl"):  # it would be passed over in silence
                raise PluginError(f"{name} is not marked.", fix="Write @hookimpl above it.")
        for caller in callers:
            for implementation in self._implementations(caller.name, plugin):
                if not (caller.has_spec() or implementation.optionalhook):
                    raise PluginError(
                        f"There is no hook {caller.name!r}.", fix=known_names(caller.name, _HOOKS)
                    )
                if implementation.wrapper or implementation.hookwrapper:
                    raise PluginError(f"{caller.name} is a wrapper.", fix="Write a plain function.")
        if not callers:
            raise PluginError("It has no hooks.", fix=HOOK_EXAMPLE)
        return tuple(caller.name for caller in callers)

    def _implementations(self, hook: str, plugin: object = None) -> list[HookImpl]:
        """Return the implementations of a hook, of one plugin or of all, in pluggy's calling order."""
        found = getattr(self.manager.hook, hook).get_hookimpls()
        return [each for each in reversed(found) if plugin is None or each.plugin is plugin]

    def _guarded(self, implementation: HookImpl, hook: str, arguments: Mapping[str, object]) -> bool:
        """Call a hook, keep the first error that it raises, and return whether it raised none."""
        if "settings" in implementation.argnames:
            arguments = {**arguments, "settings": self._settings.get(_get_name(implementation), {})}
        try:
            _call(implementation, arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  a plugin can never break a run, whatever it raises
            if (implementation.plugin_name, hook) not in self._failed_hooks:
                self._failed_hooks.add((implementation.plugin_name, hook))
                distribution, _, name = implementation.plugin_name.partition("\0")
                cause = f"{hook}: {_cause(error)}"
                self.failures.append(PluginFailure(name, distribution, cause, _formatted(error)))
            return False
        return True


def discover(
    plugins: Iterable[str] = (),
    entry_points: Iterable[PluginEntryPoint] | None = None,
    settings: Settings | None = None,
) -> Plugins:
    """Load the built-in plugin, installed plugins, and local plugins.

    Args:
        plugins: files or modules, as `--plugin` gives them.
        entry_points: the installed plugins; those of this environment when None.
        settings: what the user has set: servers of providers, and what the hooks of plugins get.

    Returns:
        What they registered. Installed plugins that do not work are in its `failures`.

    Raises:
        PluginError: a local plugin does not work; the user named it, so it is not skipped.
    """
    settings = settings or Settings()
    found = Plugins(settings.of_plugins)
    found.add(builtin, "builtin", DISTRIBUTION, started=time.perf_counter())
    for entry_point in installed_entry_points() if entry_points is None else entry_points:
        _load_installed(found, entry_point)
    for plugin in plugins:
        _load_local(found, plugin)
    for provider, tables in settings.servers.items():
        found.add_servers(provider, tables)
    found.check_settings()
    return found


def _load_installed(found: Plugins, entry_point: PluginEntryPoint) -> None:
    started = time.perf_counter()
    name, distribution, version = entry_point.name, entry_point.distribution, entry_point.version
    try:
        module, _, attributes = entry_point.value.partition(":")
        plugin: Any = import_module(module)
        for attribute in attributes.split(".") if attributes else ():
            plugin = getattr(plugin, attribute)
        found.add(plugin, name, distribution, started=started, version=version)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a plugin breaks nothing else, whatever it raises
        found.fail(name, distribution, error, started=started, version=version)


def _load_local(found: Plugins, plugin: str) -> None:
    if any(loaded.distribution == module_name(plugin) for loaded in found.loaded):
        return  # in the settings and on the command line, say
    started = time.perf_counter()
    module = load_local_plugin(plugin)
    try:
        found.add(module, plugin, module.__name__, started=started)
    except KeyboardInterrupt:
        raise
    except ModelGaugeError as error:
        raise PluginError(f"--plugin {plugin}: {error.problem}", fix=error.fix) from error
    except BaseException as error:
        raise local_failure(module.__name__, error) from error


def _get_name(implementation: HookImpl) -> str:
    """Return the name of a plugin in settings: of its entry point, or of its file without folder and `.py`."""
    name = implementation.plugin_name.partition("\0")[2]
    return PurePath(name).stem if names_a_file(name) else name


def _call(implementation: HookImpl, arguments: Mapping[str, object]) -> None:
    implementation.function(*(arguments[name] for name in implementation.argnames))


def _cause(error: BaseException) -> str:
    if isinstance(error, ModelGaugeError):
        return " ".join(str(error).split())
    return describe(error)


def _formatted(error: BaseException) -> str:
    # Imported when something failed: what the happy path does not need, it does not pay for.
    return "".join(import_module("traceback").format_exception(error))


class _Manager(PluginManager):
    """A pluggy manager that looks only at the functions of a module, so that a hundred plugins stay quick."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> HookimplOpts | None:
        if isinstance(plugin, ModuleType) and not isinstance(vars(plugin).get(name), FunctionType):
            return None
        return super().parse_hookimpl_opts(plugin, name)

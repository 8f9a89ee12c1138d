"""The promises of a whole plugin: loading it and calling its hooks registers, and does nothing else.

A fresh interpreter says what that does: it runs `fresh_process`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import SkipTest

from modelgauge.config.entry_points import PluginEntryPoint, canonical_distribution, installed_entry_points
from modelgauge.config.settings import names_a_file
from modelgauge.errors import PluginError, UnknownNameError
from modelgauge.plugins.discovery import Plugins, discover
from modelgauge.plugins.local_plugins import module_name
from modelgauge.testing.report import Problem, author_line, format_traceback
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import counted

_GROSS_SECONDS = 0.25
_GROSS_RATIO = 3.0
_LAZY = 'Register targets as texts ("my_plugin.sut:MySUT"), and import it only in the modules that they name'
_PROBE = str(Path(__file__).with_name("fresh_process.py"))
_TIMEOUT = 300.0


def test_loads(plugin: "Plugin") -> None:
    """The plugin can be imported, and its hooks are as specified."""
    plugin.check_loads()


def test_imports(plugin: "Plugin") -> None:
    """Registering imports no SDK: nothing but the plugin's own light modules and the standard library."""
    found = plugin.registration
    if found["foreign"]:
        roots = [modules[0] for _, modules in sorted(found["foreign"].items())]
        count = sum(map(len, found["foreign"].values())) - len(roots)
        more = f" and {counted(count, 'module')} of theirs" if count else ""
        at = [found["lines"][name] for name in roots if name in found["lines"]]
        raise Problem(f"Registering imports {', '.join(roots)}{more}.", f"{_LAZY}.", *at)


def test_import_cost(plugin: "Plugin") -> str:
    """Registering takes little time beside what modelgauge itself takes to import."""
    found = plugin.registration
    seconds, base = found["seconds"], found["base_seconds"]
    cost = f"{seconds * 1000:.0f} ms, {seconds / base:.2g} times what `import modelgauge.plugins.hookspecs` takes"
    if seconds > _GROSS_SECONDS and seconds > _GROSS_RATIO * base:
        if found["foreign"]:
            raise SkipTest(f"{cost}: see imports")
        fix = f"Every command pays for it. {_LAZY}; compute nothing at import."
        raise Problem(f"Registering takes {cost}.", fix)
    return f"{cost}."


def test_side_effects(plugin: "Plugin") -> None:
    """Registering opens no connection, starts no process, and writes, prints and configures nothing."""
    acts: dict[str, str] = plugin.registration["acts"]
    if acts:
        fix = "Do it where it is needed: in evaluate, in open(), or in make_test_items."
        raise Problem(" ".join(f"Registering {act}." for act in acts), fix, *acts.values())


class Plugin:
    """An installed distribution, or a local file or module.

    Args:
        name: a distribution, one of its entry points, or a file.
        local: files or modules to load in addition to installed plugins; `name` may be one of them.

    Raises:
        UnknownNameError: nothing of that name is installed.
    """

    kind = "plugin"

    def __init__(self, name: str, local: Sequence[str] = ()) -> None:
        self._installed = installed_entry_points()
        self._local = [plugin for plugin in local if module_name(plugin) != module_name(name)]
        self._own: list[PluginEntryPoint] = []
        self._own_file: list[str] = []
        if name in local or names_a_file(name) or Path(name).is_file():
            self.name, self.distribution, self._own_file = name, module_name(name), [name]
        else:
            self._own = _matching(name, self._installed)
            self.name = self.distribution = self._own[0].distribution

    def redact(self, text: str) -> str:
        """Return the text unchanged: registering asks for no secrets."""
        return text

    def where(self, *at: str) -> str:
        """Return the author's line: from a traceback, or the first line of the module with the plugin's hooks."""
        module = self._own[0].value.partition(":")[0] if self._own else self.distribution
        file = getattr(sys.modules.get(module), "__file__", None)
        return next(filter(None, map(author_line, at)), f"{file}:1" if file else "")

    @cached_property
    def _discovered(self) -> tuple[Plugins, Problem | None]:
        """Everything that is installed, this plugin included if it loads; and why it does not load."""
        try:
            found = discover([*self._local, *self._own_file], self._installed)
        except PluginError as error:
            refused = Problem(error.problem, error.fix, format_traceback(error))
            return discover(self._local, self._installed), refused
        fix = "Fix it: `modelgauge plugins` shows where it was raised."
        own = (failure for failure in found.failures if failure.distribution == self.distribution)
        return found, next((Problem(failure.cause, fix, failure.traceback) for failure in own), None)

    @property
    def plugins(self) -> Plugins:
        """Everything that is installed, this plugin included if it loads."""
        return self._discovered[0]

    def check_loads(self) -> None:
        """Raise why it does not load."""
        if self._discovered[1] is not None:
            raise self._discovered[1]

    @cached_property
    def registration(self) -> dict[str, Any]:
        """The effects of registering it in a fresh process: see `fresh_process`."""
        if self._discovered[1] is not None:
            raise SkipTest("it does not load")
        return self._ask_fresh_process(do="register", plugins=self._own_file)

    def items_elsewhere(self, tests: Mapping[str, Mapping[str, Path]]) -> dict[str, Any]:
        """Return the items of its tests as another process makes them.

        Args:
            tests: for each test's name, where its data is.
        """
        paths = {name: {key: str(path) for key, path in data.items()} for name, data in tests.items()}
        return self._ask_fresh_process(do="items", plugins=[*self._local, *self._own_file], tests=paths)

    def _ask_fresh_process(self, **job: Any) -> dict[str, Any]:
        """Do a job of `fresh_process` in a fresh interpreter with the paths of this process and another hash seed."""
        job["entry_points"] = [
            [entry_point.name, entry_point.value, entry_point.distribution, entry_point.version]
            for entry_point in self._own
        ]
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        path = json.dumps([os.path.abspath(folder) for folder in sys.path])  # noqa: PTH100  "" is the working directory
        try:
            done = subprocess.run(  # noqa: S603  our own interpreter, our own module
                [sys.executable, "-B", "-P", _PROBE, path],
                input=json.dumps(job).encode(),
                capture_output=True,
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
                timeout=_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            what = f"{self.name} was still at work after {_TIMEOUT:.0f} s in a process of its own."
            fix = "Look for what waits when it is registered, or when its test items are made."
            raise Problem(what, fix) from None
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        if done.returncode != 0 or not lines:
            stderr = done.stderr.decode("utf-8", "replace").strip()
            why = stderr.splitlines()[-1] if stderr else "it printed no error"
            what = f"{self.name} ended its process with code {done.returncode}: {why}."
            raise Problem(what, "Raise an exception instead of ending the process.", stderr)
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer


def _matching(name: str, installed: Sequence[PluginEntryPoint]) -> list[PluginEntryPoint]:
    wanted = canonical_distribution(name)
    distributions = [entry_point.distribution for entry_point in installed]
    owners = [owner for owner in distributions if canonical_distribution(owner) == wanted]
    owners += [entry_point.distribution for entry_point in installed if entry_point.name == name]
    if not owners:
        known = dict.fromkeys(
            part for entry_point in installed for part in (entry_point.distribution, entry_point.name)
        )
        raise UnknownNameError(
            f"No plugin {name!r} is installed.",
            fix=f"{did_you_mean(name, known)}`modelgauge plugins` lists all; for a file, give its path.",
        )
    return [entry_point for entry_point in installed if entry_point.distribution == owners[0]]

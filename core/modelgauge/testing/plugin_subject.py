"""The plugin that is checked: found by name, its entries, and what a fresh process says of it."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from modelgauge.config.entry_points import PluginEntryPoint, canonical_distribution, installed_entry_points
from modelgauge.config.settings import names_a_file
from modelgauge.errors import PluginError, UnknownNameError
from modelgauge.plugins.discovery import Plugins, discover
from modelgauge.plugins.local_plugins import module_name
from modelgauge.plugins.registry import Entry, Registry
from modelgauge.testing.fresh_process import ask_fresh_process
from modelgauge.testing.rule import NotApplicableError
from modelgauge.wording.did_you_mean import did_you_mean


class PluginSubject:
    """An installed distribution, or a local file or module.

    Args:
        name: a distribution, one of its entry points, or a file.
        local: files or modules to load beside what is installed; `name` may be one of them.

    Raises:
        UnknownNameError: nothing of that name is installed.
    """

    kind = "plugin"

    def __init__(self, name: str, local: Sequence[str] = ()) -> None:
        self.is_local = name in local or names_a_file(name) or Path(name).is_file()
        self._beside = [one for one in local if module_name(one) != module_name(name)]
        self._installed = installed_entry_points()
        self.entry_points: list[PluginEntryPoint] = []
        if self.is_local:
            self.name, self.distribution = name, module_name(name)
            return
        self.entry_points = _matching(name, self._installed)
        self.name = self.distribution = self.entry_points[0].distribution

    @cached_property
    def _discovered(self) -> tuple[Plugins, str | None, str]:
        """All plugins, and what is wrong with this one: problem and fix."""
        if not self.is_local:
            found = discover(self._beside, self._installed)
            own = [one for one in found.failures if one.distribution == self.distribution]
            return (
                found,
                own[0].cause if own else None,
                "Mend it: `modelgauge plugins` shows where it was raised.",
            )
        try:
            return discover([*self._beside, self.name], self._installed), None, ""
        except PluginError as error:
            return discover(self._beside, self._installed), error.problem, error.fix

    def redact(self, text: str) -> str:
        """The text as it is: registering asks for no secrets."""
        return text

    @property
    def plugins(self) -> Plugins:
        """Everything that is installed, this plugin among it where it loads."""
        return self._discovered[0]

    @property
    def failure(self) -> tuple[str, str] | None:
        """Why it does not load, and what to do; None where it does."""
        _, problem, fix = self._discovered
        return None if problem is None else (problem, fix)

    def entries(self, registry: Registry) -> list[Entry]:
        """What it registered of one kind."""
        return [entry for entry in registry if entry.distribution == self.distribution]

    @cached_property
    def registration(self) -> dict[str, Any]:
        """What registering it does in a fresh process: see `probe`.

        Raises:
            NotApplicableError: it does not load.
        """
        if self.failure is not None:
            raise NotApplicableError("it does not load")
        return ask_fresh_process(self._job("register"), self.name)

    def digests_elsewhere(self, tests: dict[str, dict[str, Path]]) -> dict[str, Any]:
        """The items of its tests, as another process makes them.

        Args:
            tests: for each test's name, where its data is.
        """
        paths = {name: {key: str(path) for key, path in data.items()} for name, data in tests.items()}
        return ask_fresh_process({**self._job("items"), "tests": paths}, self.name)

    def _job(self, what: str) -> dict[str, Any]:
        local = [*self._beside, self.name] if self.is_local else self._beside
        return {
            "do": what,
            "plugins": local if what == "items" else local[-1:] if self.is_local else [],
            "entry_points": [
                [one.name, one.value, one.distribution, one.version] for one in self.entry_points
            ],
        }


def _matching(name: str, installed: Sequence[PluginEntryPoint]) -> list[PluginEntryPoint]:
    wanted = canonical_distribution(name)
    of_name = [one for one in installed if one.name == name]
    matching = [one for one in installed if canonical_distribution(one.distribution) == wanted]
    if not matching and of_name:
        matching = [one for one in installed if one.distribution == of_name[0].distribution]
    if not matching:
        known = dict.fromkeys(part for one in installed for part in (one.distribution, one.name))
        raise UnknownNameError(
            f"No plugin {name!r} is installed.",
            fix=f"{did_you_mean(name, known)}`modelgauge plugins` lists all; for a file, give its path.",
        )
    return matching

"""An order: what a person chose in the form, checked, and as a run file. It names what is installed, and no paths."""

import json
import logging
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from modelgauge.cli.commands.measure import run_test
from modelgauge.cli.run_file import list_keys
from modelgauge.datasets.versions import VersionsFolder
from modelgauge.errors import InputFileError, ModelGaugeError, RecordError, UsageError
from modelgauge.plugins.discovery import Plugins
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge_workbench.starts.names import OF_FILES, check_name

_LOG = logging.getLogger(__name__)

NAMES = {
    "tests": ("Test", "A test, a group of tests, or a pattern such as bbh_*."),
    "datasets": ("Dataset", "Goldens that are kept here: name for the newest version, name@3 for the third."),
    "metrics": ("Metric", "What judges the answers to datasets."),
    "suts": (
        "SUT",
        "What is measured: acme/model, or small=acme/model with a label. Its options are in modelgauge.toml.",
    ),
    "judge": ("Judge", "The SUT that judges for metrics without their own judge."),
}
"""The fields that name something, with a label and an explanation; all but the judge several times."""
OPTIONS = {
    "max_test_items": "Items, at most",
    "repeats": "Repeats",
    "temperature": "Temperature",
    "max_tokens": "Tokens in an answer, at most",
    "concurrency": "Calls at once",
    "requests_per_minute": "Calls a minute, at most",
    "max_calls": "Calls, at most",
    "max_tokens_total": "Tokens in all, at most",
    "max_cost": "Dollars, at most",
    "max_errors": "Failed items that are allowed",
}
"""The options of `run-test` that the form has, with their labels."""

DEMO = {"tests": ["demo_01"], "suts": ["demo_yes_no"]}
"""What costs nothing, where the demo plugins are installed."""
_NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Shelf:
    """What can be chosen.

    Args:
        plugins: that are installed, or that the server was started with.
        data_dirs: whose datasets can be run.
    """

    plugins: Plugins
    data_dirs: Sequence[Path]

    def datasets(self) -> dict[str, Path]:
        """The newest version of each dataset by its alias, and each version as `alias@number`."""
        found: dict[str, Path] = {}
        for store in map(VersionsFolder, reversed(self.data_dirs)):  # an alias means that of the first folder
            for alias in store.aliases():
                try:
                    versions = store.versions(alias)
                except RecordError as error:  # of one that is damaged; the others can be run
                    _LOG.warning("%s", error.problem)
                    continue
                for version in versions:
                    path = store.path(alias, version.number).absolute()
                    if not path.is_symlink() and not path.parent.is_symlink():
                        found[f"{alias}@{version.number}"] = found[alias] = path
        return found

    def has_demo(self) -> bool:
        """Whether the demo run can be made."""
        return not Order.of_fields(DEMO).problems(self)

    def suggestions(self) -> dict[str, list[str]]:
        """The names that a field suggests; a provider's with its slash, behind which a model's name stands."""
        suts = [
            f"{entry.uid}/" if entry.is_provider else entry.uid
            for entry in self.plugins.suts
            if entry.uid not in OF_FILES
        ]
        return {
            "tests": [*self.plugins.tests.groups, *(entry.uid for entry in self.plugins.tests)],
            "datasets": list(self.datasets()),
            "metrics": [entry.uid for entry in self.plugins.metrics],
            "suts": suts,
            "judge": suts,
        }


@dataclass(frozen=True, slots=True)
class Order:
    """What a person chose.

    Args:
        names: what each field of `NAMES` says.
        options: what each field of `OPTIONS` says; those that are left empty are missing.
    """

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_fields(cls, fields: Mapping[str, Sequence[str]]) -> "Order":
        """What the fields of a form say; others are passed over.

        Args:
            fields: the texts of each.
        """
        said = {
            name: tuple(dict.fromkeys(filter(None, map(str.strip, texts)))) for name, texts in fields.items()
        }
        return cls(
            {name: said[name] for name in NAMES if said.get(name)},
            {name: said[name][-1] for name in OPTIONS if said.get(name)},
        )

    @classmethod
    def of_run_file(cls, text: str, shelf: Shelf) -> "Order":
        """What a run file of a job says.

        Raises:
            InputFileError: it says something that no form says: nothing of it is run.
        """
        aliases = {str(path): alias for alias, path in reversed(shelf.datasets().items())}
        try:
            said = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputFileError(
                f"The run file of this job is not TOML: {error}.", fix="Fill in the form again."
            ) from None
        foreign = [key for key in said if key not in NAMES and key not in OPTIONS]
        if foreign:
            raise InputFileError(
                f"The run file of this job says '{foreign[0]}', which no page writes there.",
                fix="Somebody else wrote it. Fill in the form again, or read the file and run it in a terminal.",
            )
        fields = {
            key: [str(part) for part in value] if isinstance(value, list) else [str(value)]
            for key, value in said.items()
        }
        fields["datasets"] = [aliases.get(path, path) for path in fields.get("datasets", ())]
        return cls.of_fields(fields)

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any], shelf: Shelf) -> "Order":
        """What asks the same as a run did, as far as the form has it.

        Args:
            manifest: of the run.
            shelf: what can be chosen.
        """
        options = manifest.get("options")
        kept = options if isinstance(options, dict) else {}
        kept = {**kept, **(kept.get("sut_options") or {})}
        inputs = manifest.get("inputs")
        inputs = inputs if isinstance(inputs, dict) else {}
        aliases = {str(path): alias for alias, path in reversed(shelf.datasets().items())}
        test = str(manifest.get("test_uid"))
        label, sut = manifest.get("sut_label"), str(manifest.get("sut_uid"))
        file = (inputs.get("datasets") or {}).get(test)
        fields = {
            "tests": [] if file else [test],
            "datasets": [aliases.get(str(file), str(file))] if file else [],
            "metrics": inputs.get("metrics") or [] if file else [],
            "suts": [f"{label}={sut}" if label else sut],
            "judge": [str(inputs["judge"])] if inputs.get("judge") else [],
            **{name: [str(kept[name])] for name in OPTIONS if kept.get(name) is not None},
        }
        return cls.of_fields({name: [str(text) for text in texts] for name, texts in fields.items()})

    # --- checks -----------------------------------------------------------------------------------------

    def problems(self, shelf: Shelf) -> dict[str, list[str]]:
        """What is wrong with each field, as sentences; nothing where all can be run."""
        found: dict[str, list[str]] = {}
        for name, problem in self._problems(shelf):
            found.setdefault(name, []).append(problem)
        return found

    def _problems(self, shelf: Shelf) -> Iterator[tuple[str, str]]:
        for name in ("tests", "metrics", "suts", "judge"):
            for text in self.names.get(name, ()):
                try:
                    check_name(shelf.plugins, name, text)
                except ModelGaugeError as error:
                    yield name, f"{error.problem} {error.fix}"
        known = shelf.datasets()
        for alias in self.names.get("datasets", ()):
            if alias not in known:
                like = did_you_mean(alias, known) or "The page 'Datasets' lists those that there are."
                yield "datasets", f"There is no dataset '{alias}'. {like}"
        yield from self._missing()
        context = click.Context(run_test)
        for name, text in self.options.items():
            try:
                list_keys(run_test)[name].process_value(context, text)
            except click.BadParameter as error:
                yield name, error.message
            except ModelGaugeError as error:
                yield name, f"{error.problem} {error.fix}"

    def _missing(self) -> Iterator[tuple[str, str]]:
        if not self.names.get("suts"):
            yield "suts", "Name at least one SUT: the system that is measured."
        if not self.names.get("tests") and not self.names.get("datasets"):
            yield "tests", "Name a test, or a dataset with a metric."
        if self.names.get("datasets") and not self.names.get("metrics"):
            yield "metrics", "A dataset needs at least one metric, such as exact_match."
        if self.names.get("metrics") and not self.names.get("datasets"):
            yield "datasets", "Metrics judge the answers to a dataset: name one."

    # --- as a run file ----------------------------------------------------------------------------------

    def run_file(self, shelf: Shelf) -> str:
        """The order as TOML.

        Raises:
            UsageError: something is wrong with it.
        """
        problems = self.problems(shelf)
        if problems:
            raise UsageError(
                " ".join(text for texts in problems.values() for text in texts), fix="Change the order."
            )
        known = shelf.datasets()
        lines = []
        for name, texts in self.names.items():
            values = [str(known[text]) for text in texts] if name == "datasets" else list(texts)
            lines.append(f"{name} = {_toml(values[0] if name == 'judge' else values)}")
        lines += [
            f"{name} = {text if _NUMBER.fullmatch(text) else _toml(text)}"
            for name, text in self.options.items()
        ]
        return "\n".join([*lines, ""])


def _toml(value: str | list[str]) -> str:
    """A text, or a list of texts, as TOML; JSON writes these alike, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")

"""The YAML files of tasks and groups, read without running code: what a test must know before it loads anything."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from modelgauge.errors import InputFileError
from modelgauge_lm_eval.names import Entry

Config = dict[str, Any]
Direction = Literal["higher", "lower"]

_OF_GROUPS = frozenset({"group", "group_alias", "task", "aggregate_metric_list", "metadata"})
_FUNCTION = "!function"
_LOWER = frozenset(
    {"perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "brier_score", "ter"}
)
_OF_OUTPUTS = {
    "multiple_choice": ("acc", "acc_norm"),
    "loglikelihood": ("perplexity", "acc"),
    "loglikelihood_rolling": ("word_perplexity", "byte_perplexity", "bits_per_byte"),
    "generate_until": ("exact_match",),
}
"""The metrics of a task whose configuration names none, by its kind of output."""


@dataclass(slots=True)
class Configs:
    """The configurations that a name of lm-eval stands for.

    Args:
        entries: all tasks, groups and tags by name.

    Attributes:
        tasks: the configuration of each task by name; functions are texts.
        versions: of each task and group by name, where its configuration has one.
        files: of YAML, included ones too, and of the code that they name.
        folders: in which the files of tasks and groups are.
    """

    entries: Mapping[str, Entry]
    tasks: dict[str, Config] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    files: set[Path] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)
    _read_before: dict[Path, Config] = field(default_factory=dict)

    def add(self, name: str, overrides: Config | None = None) -> None:
        """Add a task, or the tasks of a group or tag.

        Args:
            name: of the task, group or tag; a task that has no file is the overrides alone.
            overrides: of a group for its members.

        Raises:
            InputFileError: a file cannot be read.
        """
        overrides = overrides or {}
        entry = self.entries.get(name)
        for task in entry.tasks if entry is not None else ():
            self.add(task, overrides)
        if entry is not None and entry.path is None:
            return
        config: Config = {}
        if entry is not None and entry.path is not None:
            self.folders.add(entry.path.parent)
            config = self._read(entry.path)
        if entry is not None and entry.kind == "group":
            self._note_version(name, config)
            self._add_members(name, config, overrides)
            return
        self.tasks[name] = {**config, **overrides}
        self._note_version(name, self.tasks[name])

    def _add_members(self, name: str, group: Config, overrides: Config) -> None:
        inherited = {key: value for key, value in group.items() if key not in _OF_GROUPS} | overrides
        members = group.get("task") or []
        for member in [members] if isinstance(members, str) else members:
            if isinstance(member, str):
                self.add(member, inherited)
            elif "group" not in member and "task" not in member:
                raise InputFileError(
                    f"The group '{name}' has a member without a name.", fix="Give each a task or a group."
                )
            elif "group" in member and member["group"] not in self.entries:
                self._add_members(member["group"], member, inherited)
            else:
                own = {key: value for key, value in member.items() if key != "group"}
                self.add(member.get("group") or member["task"], {**inherited, **own})

    def _note_version(self, name: str, config: Config) -> None:
        metadata = config.get("metadata")
        if isinstance(metadata, Mapping) and "version" in metadata:
            self.versions[name] = str(metadata["version"])

    def _read(self, path: Path) -> Config:
        """Read a file and those that it includes, whose values are replaced by its own. Many files include one."""
        if path not in self._read_before:
            self.files.add(path)
            self._read_before[path] = {}
            self._read_before[path] = self._merged(path)
        return self._read_before[path]

    def _merged(self, path: Path) -> Config:
        config = self._parsed(path)
        included: Config = {}
        names = config.pop("include", [])
        for name in [names] if isinstance(names, str) else names:
            included |= self._read((path.parent / name).resolve())
        return {**included, **config}

    def _parsed(self, path: Path) -> Config:
        yaml = import_module("yaml")  # which comes with lm-eval

        def function(_: Any, node: Any) -> str:
            module, _, _ = node.value.rpartition(".")
            code = (path.parent / f"{module.replace('.', '/')}.py").resolve()
            if code not in self.files and code.exists():  # and what lies beside it, which it may import
                self.files.update(code.parent.glob("*.py"))
            return f"{_FUNCTION} {node.value}"

        base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        loader = type("Loader", (base,), {})
        yaml.add_constructor(_FUNCTION, function, Loader=loader)
        try:
            with path.open("rb") as file:
                config: Config = yaml.load(file, Loader=loader)
        except (OSError, yaml.YAMLError) as error:
            raise InputFileError(f"{path} cannot be read: {error}.", fix="Correct the file.") from error
        return config

    def digest(self, roots: list[Path]) -> str:
        """Return a digest of the files, wherever the folders of tasks are."""
        texts = {_relative(path, roots): path for path in self.files}
        digest = hashlib.sha256()
        for name, path in sorted(texts.items()):
            digest.update(f"{name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
        return digest.hexdigest()[:12]

    @property
    def executes_answers(self) -> bool:
        """True if a task runs what a model wrote."""
        return any(task.get("unsafe_code") for task in self.tasks.values())

    @property
    def needs_main_thread(self) -> bool:
        """True if the code stops slow comparisons by a signal, which Python allows on its main thread only."""
        return any(path.suffix == ".py" and b"SIGALRM" in path.read_bytes() for path in self.files)


def read_directions(config: Config) -> Iterator[tuple[str, Direction]]:
    """Yield the names of a task's measurements, each with "higher" or "lower"."""
    metrics = config.get("metric_list") or [
        {"metric": name} for name in _OF_OUTPUTS.get(config.get("output_type", "generate_until"), ())
    ]
    filters = [each.get("name", "none") for each in config.get("filter_list") or [{}]]
    for metric in metrics:
        name = str(metric.get("metric", ""))
        is_higher = metric.get("higher_is_better", name not in _LOWER)
        for of_filter in filters if not name.startswith(_FUNCTION) else ():
            yield measurement_name(name, of_filter), "higher" if is_higher else "lower"


def measurement_name(metric: str, of_filter: str) -> str:
    """Return the name of a metric behind a filter: lm-eval's own, without its `none`."""
    return metric if of_filter == "none" else f"{metric},{of_filter}"


def _relative(path: Path, roots: list[Path]) -> str:
    return next((path.relative_to(root).as_posix() for root in roots if path.is_relative_to(root)), path.name)

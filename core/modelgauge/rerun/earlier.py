"""An earlier run as its manifest tells it: what it takes to do it again, and whether the user made it."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AfterValidator, ConfigDict, Field

from modelgauge.api import RunnerOptions
from modelgauge.config.options import OPTIONS, Group, RunOptions, options_of
from modelgauge.config.settings import TRUSTED, is_trusted, load_settings
from modelgauge.data.base import Frozen
from modelgauge.data.prompts import SUTOptions
from modelgauge.data.records import DatasetReference
from modelgauge.data.results import GIVEN
from modelgauge.engine.run_files.folder import MANIFEST, RunFolder
from modelgauge.engine.run_files.manifest import is_signed
from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.evals.session_record import UID as PYTEST
from modelgauge.files.regular import real_path

AnyPart = TypeVar("AnyPart", bound="Part")

NEW_RUN = "Start a new run: the cache pays for what is equal."
"""The fix of whatever keeps a run from being done again."""


class RerunOptions(RunnerOptions, total=False):
    """What `resume` and `rescore` take by name: what a `Runner` takes, and plugins by their files."""

    plugin_files: Sequence[str]


class Part(Frozen):
    """A part of a manifest: the fields that matter here."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


def _options_of_a_run(recorded: dict[str, Any]) -> dict[str, Any]:
    """The options that this version knows, as `Runner` takes them.

    Raises:
        ValueError: one is missing, or cannot be what stands there.
    """
    lacking = {"max_test_items", "seed", "repeats", "reduce", "caching", "sut_options"} - recorded.keys()
    if lacking:
        raise ValueError(f"The options lack {', '.join(sorted(lacking))}.")
    known = {name: recorded[name] for name in OPTIONS if name in recorded}
    known["sut_options"] = SUTOptions.load(recorded["sut_options"])
    RunOptions(**known)
    return known


class Inputs(Part):
    """What it was made of, beside what is registered."""

    plugins: tuple[str, ...] = Field((), strict=False)
    dependencies: dict[str, str] = Field(default_factory=dict)
    datasets: dict[str, str] = Field(default_factory=dict)
    columns: dict[str, str] = Field(default_factory=dict)
    delimiter: str | None = None
    encoding: str | None = None
    metrics: tuple[str, ...] = Field((), strict=False)
    judge: str | None = None


class Manifest(Part):
    """What a run is done again with."""

    test_uid: str
    test_initialization: dict[str, Any]
    sut_uid: str
    sut_initialization: dict[str, Any]
    dependency_versions: dict[str, str]
    dataset: DatasetReference | None = None
    annotators: dict[str, dict[str, Any]] = Field(default_factory=dict)
    judges: dict[str, dict[str, dict[str, Any]]] | None = None
    options: Annotated[dict[str, Any], AfterValidator(_options_of_a_run)]
    inputs: Inputs = Inputs()

    def chosen(self, *groups: Group) -> dict[str, Any]:
        """The options of some groups that the run was given."""
        found = {name: self.options.get(name) for name in options_of(*groups)}
        return {name: value for name, value in found.items() if value is not None}


def manifest_of(folder: RunFolder) -> Manifest:
    """The manifest of a run that can be done again.

    Raises:
        RecordError: it is damaged, or of a session of pytest.
    """
    data = folder.read_manifest()
    made = data.get("test_initialization")
    if data.get("sut_uid") == GIVEN and isinstance(made, dict) and made.get("class_name") == PYTEST:
        said = folder.command_line()
        # A manifest of anybody's may say anything.
        command = shlex.join(said) if said and said[0] in ("pytest", "modelgauge") else "pytest"
        raise RecordError(
            f"Run {folder.run_id} is of a session of pytest, whose tests made its cases.",
            fix=f"Run the tests again: {command}. What judges answered is in the cache.",
        )
    return loaded(Manifest, folder, data)


def loaded(part: type[AnyPart], folder: RunFolder, data: Any) -> AnyPart:
    """A part of a manifest.

    Args:
        part: its class.
        folder: of the run.
        data: JSON.

    Raises:
        RecordError: it is not what the class says.
    """
    try:
        return part.load(data)
    except InvalidDataError as error:
        raise RecordError(
            f"{folder.path / MANIFEST} is damaged: {error.problem}",
            fix=NEW_RUN,
        ) from None


# --- whose it is ---------------------------------------------------------------------------------------------------


class Names(NamedTuple):
    """What the caller names: uids, or objects.

    Args:
        test: that measures.
        sut: that answers.
        judge: for metrics that name none.
        dataset: a file of goldens.
        metrics: uids.
        dependencies: files, by the keys of declared data.
        plugins: files and modules; None where the caller gives what is installed as an object.
    """

    test: Any = None
    sut: Any = None
    judge: Any = None
    dataset: str | Path | None = None
    metrics: Sequence[str] = ()
    dependencies: Mapping[str, object] | None = None
    plugins: Sequence[str] | None = None

    def with_options(self, options: Mapping[str, Any]) -> "Names":
        """Return a copy with the names that stand among the options of a `Runner` added."""
        plugins: Sequence[str] | None = None
        if options.get("plugins") is None:  # else nothing is loaded by name
            settings = options.get("settings") or load_settings(plugins=options.get("plugin_files"))
            plugins = settings.plugins
        return self._replace(dependencies=options.get("dependencies"), plugins=plugins)


def is_own(folder: RunFolder) -> bool:
    """Whether a run is the user's own: signed with the user's key, or in a folder that is trusted."""
    return is_signed(folder.read_manifest()) or is_trusted(folder.path)


def plugins_of(folder: RunFolder) -> list[str]:
    """The `--plugin` files and modules of a run that are loaded again, beside those of the caller."""
    return (
        list(loaded(Inputs, folder, folder.read_manifest().get("inputs", {})).plugins)
        if is_own(folder)
        else []
    )


def check_names(folder: RunFolder, names: Names, verb: str) -> None:
    """Refuse a run of which nobody knows whose it is, where the caller does not give the names that it would use.

    Its manifest can be anybody's: its SUT and its judge get the user's prompts and keys, its files are read.

    Args:
        folder: of the run.
        names: those that the caller gives.
        verb: `resume` or `rescore`.

    Raises:
        RecordError: a name is not given again, or is another; the message lists all.
    """
    manifest = manifest_of(folder)
    inputs = manifest.inputs
    is_other = names.dataset is not None and manifest.test_uid not in inputs.datasets
    if verb == "resume" and (is_other or set(names.metrics) - set(inputs.metrics)):
        raise RecordError(f"Run {folder.run_id} was begun with other metrics, or no data set.", fix=NEW_RUN)
    if is_own(folder):
        return
    if verb == "resume" and (folder.rescores() is not None or manifest.sut_uid == GIVEN):
        return  # which is refused for what it is
    needed = list(_needed(manifest, names, verb))
    lacking = _options(one for *one, is_given in needed if not is_given)
    trust = f"To trust all that lies there:\n  export {TRUSTED}={shlex.quote(str(real_path(folder.path)))}"
    whose = f"Run {folder.run_id} is not known to be your own"
    if any(option == "--dataset" for option, *_ in needed) and manifest.dataset is None:
        raise RecordError(
            f"{whose}, and does not say what its data set held.", fix=f"Start a new run. {trust}"
        )
    if lacking:
        again = f"modelgauge {verb} {shlex.quote(str(folder.path))} {_options(one for *one, _ in needed)}"
        raise RecordError(
            f"{whose}, and names {lacking}: that is not used unasked.",
            fix=f"Where you trust what it names, name it again:\n  {again}\n{trust}",
        )


def _options(named: Iterable[Sequence[str]]) -> str:
    return " ".join(f"{option} {shlex.quote(value)}" for option, value in named)


def _needed(manifest: Manifest, names: Names, verb: str) -> Iterator[tuple[str, str, bool]]:
    """The options that stand for the names of a manifest that are used, and whether the caller gives them.

    A bare name of a test or metric means what is installed here, so that nothing of a stranger's is in it. For a data
    set and for data another path will do: their content must be that of the run.
    """

    def is_given(one: object, name: str) -> bool:
        # An object is the caller's, and a rescore measures by whatever the caller names.
        return one is not None and (verb == "rescore" or not isinstance(one, str) or one == name)

    inputs, file = manifest.inputs, manifest.inputs.datasets.get(manifest.test_uid)
    if names.plugins is not None:
        known = {_file_name(plugin) for plugin in names.plugins}
        yield from (("--plugin", one, _file_name(one) in known) for one in dict.fromkeys(inputs.plugins))
    if verb == "resume":
        yield "--sut", manifest.sut_uid, is_given(names.sut, manifest.sut_uid)
    if file is not None and names.test in (None, manifest.test_uid):
        yield "--dataset", file, names.dataset is not None
        for metric in filter(_has_parts, inputs.metrics):
            yield "--metric", metric, metric in names.metrics or (verb == "rescore" and bool(names.metrics))
    elif _has_parts(manifest.test_uid):
        yield "--test", manifest.test_uid, is_given(names.test, manifest.test_uid)
    if inputs.judge is not None:
        yield "--judge", inputs.judge, is_given(names.judge, inputs.judge)
    for key, path in local_data(manifest, manifest.test_uid.partition("?")[0]).items():
        yield "--dependency", f"{key}={path}", key in (names.dependencies or {})


def _has_parts(name: str) -> bool:
    return "?" in name or "/" in name


def _file_name(plugin: str) -> str:
    """What a plugin is known by wherever it lies: a moved run says where its file was."""
    return plugin.replace("\\", "/").rpartition("/")[2]


def local_data(manifest: Manifest, owner: str) -> dict[str, str]:
    """The local files that were given for this test's data; other tests of the command had theirs."""
    own = {name for key in manifest.dependency_versions for name in (key, f"{owner}:{key}")}
    return {name: path for name, path in manifest.inputs.dependencies.items() if name in own}

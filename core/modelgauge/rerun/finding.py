"""What `resume` and `rescore` share: how an earlier run is found, and done again as it was.

What its manifest says, and whether the user made it, is read in `earlier.py`.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from modelgauge.api import Runner
from modelgauge.config.options import RunOptions, options_of
from modelgauge.config.settings import Settings, load_settings
from modelgauge.data.records import DatasetReference, TestRecord
from modelgauge.datasets.dataset_files import FileForm
from modelgauge.datasets.file_tests import NamedGoldens, inherited
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.run_files.folder import RUNS, RunFolder, find_run
from modelgauge.engine.work import Work
from modelgauge.errors import InputFileError, InvalidOptionError, RecordError, UnknownNameError, UsageError
from modelgauge.plugins.resolution import Resolver
from modelgauge.rerun.earlier import NEW_RUN, Manifest, local_data, plugins_of


class Chosen(NamedTuple):
    """What the caller wants to measure by, instead of what the run's goldens and metrics were.

    Args:
        file: of goldens.
        metrics: uids.
        form: how the file is written.
    """

    file: Path | None = None
    metrics: tuple[str, ...] = ()
    form: FileForm = FileForm()


_NOTHING = Chosen()


class Caller(NamedTuple):
    """Who does a run again.

    Args:
        verb: `resume` or `rescore`.
        data_dir: the data folder that was given; by default what the settings say.
    """

    verb: str
    data_dir: str | Path | None


def find(run: str | Path, data_dir: str | Path | None) -> list[RunFolder]:
    return find_run(Path(data_dir) if data_dir is not None else load_settings().data_dir, str(run))


def done(runner: Runner, work: Work, resolver: Resolver) -> TestRecord:
    return blocking(lambda: runner.do([work], resolver))[0]


# --- its goldens ----------------------------------------------------------------------------------------


def goldens_of(
    folder: RunFolder, manifest: Manifest, chosen: Chosen = _NOTHING, *, moved: str | Path | None = None
) -> NamedGoldens | None:
    """What a run of a data set file is done again with; None where it is of another test.

    Args:
        folder: of the run.
        manifest: what it says of itself.
        chosen: by the caller, to measure by instead.
        moved: where the run's own file is now.

    Raises:
        UsageError: there is a file without metrics, or the other way round.
        RecordError: the run's own file cannot be read any more.
    """
    held = manifest.inputs.datasets.get(manifest.test_uid)
    if chosen.file is None and held is None:
        if chosen.metrics or says(chosen.form):
            raise UsageError(
                f"Run {folder.run_id} is not of a data set file, so there are no goldens for the metrics.",
                fix="Name the goldens too: --dataset FILE",
            )
        return None
    named = chosen.metrics or manifest.inputs.metrics
    if not named:
        raise UsageError(
            f"Run {folder.run_id} is not of a data set file, so it has no metrics.",
            fix="Name some: --metric exact_match",
        )
    uid = None if held is None else manifest.test_uid
    if chosen.file is not None:
        return _other_goldens(folder, manifest, chosen._replace(metrics=named), uid)
    try:
        goldens = NamedGoldens(uid, Path(str(moved or held)), named, form_of(manifest))
    except InputFileError as error:
        raise RecordError(
            f"The data set of run {folder.run_id} cannot be read any more: {error.problem}",
            fix=_OTHER_FILE.format(run=folder.run_id),
        ) from None
    check_dataset(goldens.reference, manifest, folder)
    return goldens


def _other_goldens(folder: RunFolder, manifest: Manifest, chosen: Chosen, uid: str | None) -> NamedGoldens:
    """Goldens of the file that the caller chose; the run's columns count where the caller named none.

    Raises:
        InputFileError: the file cannot be read, for want of one of the run's columns perhaps.
    """
    file = Path(str(chosen.file))
    earlier = {
        field: column for field, column in manifest.inputs.columns.items() if field not in chosen.form.columns
    }
    kept, lacking = inherited(file, chosen.form, earlier)
    read = ", ".join(f"'{field}' from '{column}'" for field, column in lacking.items())
    told = f"Run {folder.run_id} read {read}, which {file} does not have."
    fix = f"Name the columns of this file: {' '.join(f'--column {field}=COLUMN' for field in lacking)}"
    try:
        goldens = NamedGoldens(uid, file, chosen.metrics, chosen.form.over(FileForm(kept)))
    except InputFileError as error:
        if not lacking:
            raise
        raise InputFileError(f"{error.problem} {told}", fix=f"{error.fix} {fix}") from None
    if lacking:
        warnings.warn(f"{told} {fix}", stacklevel=2)
    return goldens


def form_of(manifest: Manifest) -> FileForm:
    """How the run's own file is written."""
    return FileForm(manifest.inputs.columns, manifest.inputs.delimiter, manifest.inputs.encoding)


def says(form: FileForm) -> bool:
    return bool(form.columns or form.delimiter or form.encoding)


def check_dataset(now: DatasetReference | None, manifest: Manifest, folder: RunFolder) -> None:
    if now is None or manifest.dataset is None or now.digest == manifest.dataset.digest:
        return
    file = manifest.inputs.datasets.get(manifest.test_uid)
    where = "" if file is None else f" in {file}"
    raise RecordError(
        f"The data set '{manifest.dataset.name}'{where} is not what it was in run {folder.run_id}.",
        fix=_OTHER_FILE.format(run=folder.run_id),
    )


_OTHER_FILE = (
    "Put it back as it was, or start a new run: the cache pays for what is equal. "
    "To measure the recorded answers with other goldens: modelgauge rescore {run} --dataset FILE"
)


# --- what is told ------------------------------------------------------------------------------------------


def of_given_outputs(folder: RunFolder, why: str) -> RecordError:
    return RecordError(
        f"Run {folder.run_id} judged outputs that were given to evaluate or assert_test: {why}.",
        fix="Call it again with the same test cases: what judges answered is in the cache. To measure the "
        f"recorded outputs with goldens: modelgauge rescore {folder.run_id} --dataset FILE --metric UID",
    )


@contextmanager
def telling_of_objects(folder: RunFolder, function: str, *, known: bool) -> Iterator[None]:
    """Say of a name that nobody has registered what to do where it is that of an object.

    Args:
        folder: of the run.
        function: that was called.
        known: whether the caller gave the objects already.
    """
    try:
        yield
    except UnknownNameError as error:
        if known:
            raise
        objects = "test=…, sut=…" if function == "resume" else "test=…"
        raise RecordError(
            f"Run {folder.run_id}: {error.problem}",
            fix=f"{error.fix} Where it was an object of your own code, give it again, in Python: "
            f"modelgauge.{function}('{folder.run_id}', {objects})",
        ) from None


# --- how it is done again ----------------------------------------------------------------------------------


def runner_for(
    folder: RunFolder,
    manifest: Manifest,
    options: Mapping[str, Any],
    *,
    caller: Caller,
    pinned: bool = True,
    goldens: NamedGoldens | None = None,
) -> Runner:
    """A runner with what the earlier run's results depend on, and the caller's own options for the rest.

    Args:
        folder: of the earlier run.
        manifest: what it says of itself.
        options: the caller's.
        caller: what was called, and the data folder that was given.
        pinned: whether the test's data must be what it was.
        goldens: what it is measured by, where that is a file.
    """
    recorded = RunOptions(**manifest.options)
    kept = {name: getattr(recorded, name) for name in options_of("sample", "results")}
    _check_options(kept, options)
    given = dict(options)
    files = list(given.pop("plugin_files", ()) or ())
    settings = given.pop("settings", None)
    if settings is None:
        settings = load_settings(plugins=files, data_dir=caller.data_dir)
        if given.get("plugins") is None:  # else nothing is imported
            earlier = plugins_of(folder)
            settings = load_settings(plugins=[*earlier, *files], data_dir=caller.data_dir)
    owner = manifest.test_uid.partition("?")[0]
    versions = {f"{owner}:{key}": version for key, version in manifest.dependency_versions.items()}
    given["dependencies"] = {**local_data(manifest, owner), **(given.get("dependencies") or {})}
    given.setdefault("caching", recorded.caching)
    given |= {name: value for name, value in manifest.chosen("record").items() if value}
    if folder.path.parent.name != RUNS:  # it was moved, or made elsewhere
        given["runs_dir"] = folder.path.parent
    return Runner(
        _data_dir(folder, settings, caller),
        settings=settings,
        dependency_versions=versions if pinned else None,
        inputs=None if goldens is None else goldens.inputs(),
        **{**given, **kept},
    )


def _data_dir(folder: RunFolder, settings: Settings, caller: Caller) -> Path:
    """Where the cache of a run is: above it, unless its folder was moved; then the caller's.

    Never where the manifest says that it was: nothing is written where only a file that was found points to.
    """
    runs = folder.path.parent
    if runs.name == RUNS:
        return runs.parent
    return settings.data_dir if caller.data_dir is None else Path(caller.data_dir)


def _check_options(kept: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse an option that would be ignored: half of a run cannot be done in another way."""
    for name, value in kept.items():
        if name in options and options[name] != value:
            raise InvalidOptionError(
                f"{name}={options[name]!r} cannot be given: the run was started with {name}={value!r}.",
                fix=NEW_RUN,
            )

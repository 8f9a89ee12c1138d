"""Runs that build on an earlier one: `resume` goes on where it stopped, `rescore` measures its answers."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from modelgauge.api import Runner
from modelgauge.blocking import blocking
from modelgauge.data.prompts import SUTOptions
from modelgauge.data.records import DatasetReference, TestRecord
from modelgauge.earlier import NEW_RUN, Inputs, Manifest, loaded, manifest_of
from modelgauge.engine.journal import RunFolder, find_run
from modelgauge.engine.pair import Pair, RecordedSUT
from modelgauge.errors import InputFileError, InvalidOptionError, RecordError, UnknownNameError, UsageError
from modelgauge.evals.dataset_forms import FileForm
from modelgauge.evals.dataset_runs import NamedGoldens, inherited
from modelgauge.evals.given import GIVEN
from modelgauge.interfaces.identity import Identified, Initialization
from modelgauge.metrics.judges import JudgeLike, judging_by_default
from modelgauge.resolution import Resolver, SUTName, TestName
from modelgauge.settings import load_settings

Value = TypeVar("Value")

_OF_THE_RUN = ("max_test_items", "seed", "repeats", "reduce")  # what its results depend on


class _Chosen(NamedTuple):
    """What the caller wants to measure by, instead of what the run's goldens and metrics were.

    Args:
        file: of goldens.
        metrics: uids.
        form: how the file is written.
    """

    file: Path | None = None
    metrics: tuple[str, ...] = ()
    form: FileForm = FileForm()


_NOTHING = _Chosen()


def resume(
    run: str | Path,
    data_dir: str | Path | None = None,
    *,
    test: TestName | None = None,
    sut: SUTName | None = None,
    **options: Any,
) -> list[TestRecord]:
    """Continue runs that were stopped: items that have a record are not done again, failed ones included.

    Args:
        run: a run's id or folder, or an invocation's id: then each of its runs that is not complete.
        data_dir: where runs are looked up.
        test: the test, where it has no uid that can be found (an object of a notebook).
        sut: likewise.
        options: see `Runner`; what the results depend on is as it was.

    Returns:
        The records of the runs, complete ones too.

    Raises:
        RecordError: there is no such run, or its test, data, SUT or judges are not what they were.
    """
    folders = _find(run, data_dir)
    return [
        one.read_record() if one.is_complete() else _resume_one(one, test, sut, options) for one in folders
    ]


def rescore(
    run: str | Path,
    data_dir: str | Path | None = None,
    *,
    test: TestName | None = None,
    dataset: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    metrics: Sequence[str] = (),
    judge: JudgeLike | None = None,
    **options: Any,
) -> list[TestRecord]:
    """Measure the recorded answers of runs with the test's present annotators and `measure_quality`.

    Makes new runs. No SUT is made, and none is asked; annotators go through the cache.

    Args:
        run: a run's id or folder, or an invocation's id.
        data_dir: where runs are looked up.
        test: another test, or an object; by default the run's.
        dataset: a file of goldens instead of a test; by default the run's, where it is of one.
        columns: what the file calls the fields of goldens, by field; they are laid over the run's own, of which
            another file needs to have only what it is to be read by.
        delimiter: between the cells of a CSV file; by default that of the run's file, a comma for another.
        encoding: of the file's text; by default that of the run's file, UTF-8 for another.
        metrics: uids of those that judge them; by default the run's.
        judge: judges for the metrics that name none; by default the run's.
        options: see `Runner`.

    Raises:
        RecordError: there is no such run, or its answers are not answers to the test's prompts.
        UsageError: there is a data set without metrics, or the other way round, or a test beside them.
    """
    form = FileForm(columns or {}, delimiter, encoding)
    if test is not None and (dataset is not None or metrics or _says(form)):
        raise UsageError(
            "A run is measured by a test, or by the metrics of a data set.", fix="Give one or the other."
        )
    chosen = _Chosen(None if dataset is None else Path(dataset), tuple(metrics), form)
    return [_rescore_one(one, test, chosen, judge, options) for one in _find(run, data_dir)]


def plugins_of(run: str | Path, data_dir: str | Path | None = None) -> list[str]:
    """The `--plugin` files and modules that runs were made with: `resume` and `rescore` load them again.

    Args:
        run: a run's id or folder, or an invocation's id.
        data_dir: where runs are looked up.

    Raises:
        RecordError: there is no such run.
    """
    inputs = [
        loaded(Inputs, folder, folder.read_manifest().get("inputs", {})) for folder in _find(run, data_dir)
    ]
    return list(dict.fromkeys(plugin for one in inputs for plugin in one.plugins))


def _resume_one(
    folder: RunFolder, test: TestName | None, sut: SUTName | None, options: Mapping[str, Any]
) -> TestRecord:
    manifest = manifest_of(folder)
    rescores = folder.rescores()
    if rescores is not None:
        raise RecordError(
            f"Run {folder.run_id} measures the answers of run {rescores} anew: no SUT is asked, and there is "
            "nothing to resume.",
            fix=f"Run it again: modelgauge rescore {rescores}",
        )
    if manifest.sut_uid == GIVEN:
        raise _of_given_outputs(folder, "there is nothing to resume")
    goldens = None if test is not None else _goldens(folder, manifest)
    runner = _runner(folder, manifest, options)
    with judging_by_default(manifest.inputs.judge):
        chosen = test or (
            manifest.test_uid if goldens is None else goldens.test(runner.plugins(), runner.secrets)
        )
        resolver = runner.resolver()
        with _telling_of_objects(folder, "resume", known=test is not None and sut is not None):
            pair = resolver.pairs([chosen], [sut or manifest.sut_uid])[0]
        _check_pair(pair, manifest, folder)
        return _blocking_run(runner, pair, resolver, continuing=folder)


def _rescore_one(
    folder: RunFolder,
    test: TestName | None,
    chosen: _Chosen,
    judge: JudgeLike | None,
    options: Mapping[str, Any],
) -> TestRecord:
    manifest = manifest_of(folder)
    chosen = _of_own_file(chosen, manifest)
    goldens = None if test is not None else _goldens(folder, manifest, chosen)
    if manifest.sut_uid == GIVEN and test is None and goldens is None:
        raise _of_given_outputs(folder, "its test cannot be made again")
    pinned = test is None and chosen.file is None
    runner = _runner(folder, manifest, options, pinned=pinned, goldens=goldens)
    answered = RecordedSUT(manifest.sut_uid, Initialization.load(manifest.sut_initialization))
    with judging_by_default(judge if judge is not None else manifest.inputs.judge):
        measuring = test or (
            manifest.test_uid if goldens is None else goldens.test(runner.plugins(), runner.secrets)
        )
        resolver = runner.resolver()
        with _telling_of_objects(folder, "rescore", known=test is not None):
            pair = resolver.rescored(measuring, answered)
        if pinned:
            _check_dataset(pair.test.dataset, manifest, folder)
        return _blocking_run(runner, pair, resolver, rescoring=folder)


def _blocking_run(runner: Runner, pair: Pair, resolver: Resolver, **where: RunFolder) -> TestRecord:
    return blocking(lambda: runner.run_pairs([pair], resolver, **where))[0]


# --- what a run was ---------------------------------------------------------------------------------------


def _find(run: str | Path, data_dir: str | Path | None) -> list[RunFolder]:
    return find_run(Path(data_dir) if data_dir is not None else load_settings().data_dir, str(run))


def _goldens(folder: RunFolder, manifest: Manifest, chosen: _Chosen = _NOTHING) -> NamedGoldens | None:
    """What a run of a data set file is done again with; None where it is of another test.

    Raises:
        UsageError: there is a file without metrics, or the other way round.
        RecordError: the run's own file cannot be read any more.
    """
    held = manifest.inputs.datasets.get(manifest.test_uid)
    if chosen.file is None and held is None:
        if chosen.metrics or _says(chosen.form):
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
        goldens = NamedGoldens(uid, Path(str(held)), named, _form_of(manifest))
    except InputFileError as error:
        raise RecordError(
            f"The data set of run {folder.run_id} cannot be read any more: {error.problem}",
            fix=_OTHER_FILE.format(run=folder.run_id),
        ) from None
    _check_dataset(goldens.reference, manifest, folder)
    return goldens


def _other_goldens(folder: RunFolder, manifest: Manifest, chosen: _Chosen, uid: str | None) -> NamedGoldens:
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


def _of_own_file(chosen: _Chosen, manifest: Manifest) -> _Chosen:
    """A form without a file is that of the run's own: read in another way, it holds other goldens."""
    held = manifest.inputs.datasets.get(manifest.test_uid)
    if held is None or chosen.file is not None or not _says(chosen.form):
        return chosen
    return chosen._replace(file=Path(held), form=chosen.form.over(_form_of(manifest)))


def _form_of(manifest: Manifest) -> FileForm:
    """How the run's own file is written."""
    return FileForm(manifest.inputs.columns, manifest.inputs.delimiter, manifest.inputs.encoding)


def _says(form: FileForm) -> bool:
    return bool(form.columns or form.delimiter or form.encoding)


_OTHER_FILE = (
    "Put it back as it was, or start a new run: the cache pays for what is equal. "
    "To measure the recorded answers with other goldens: modelgauge rescore {run} --dataset FILE"
)


# --- what is told ------------------------------------------------------------------------------------------


def _of_given_outputs(folder: RunFolder, why: str) -> RecordError:
    return RecordError(
        f"Run {folder.run_id} judged outputs that were given to evaluate or assert_test: {why}.",
        fix="Call it again with the same test cases: what judges answered is in the cache. To measure the "
        f"recorded outputs with goldens: modelgauge rescore {folder.run_id} --dataset FILE --metric UID",
    )


@contextmanager
def _telling_of_objects(folder: RunFolder, function: str, *, known: bool) -> Iterator[None]:
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


def _runner(
    folder: RunFolder,
    manifest: Manifest,
    options: Mapping[str, Any],
    *,
    pinned: bool = True,
    goldens: NamedGoldens | None = None,
) -> Runner:
    """A runner with what the earlier run's results depend on, and the caller's own options for the rest."""
    recorded = manifest.options
    kept = {name: getattr(recorded, name) for name in _OF_THE_RUN}
    kept["sut_options"] = SUTOptions.load(recorded.sut_options)
    _check_options(kept, options)
    given = dict(options)
    plugins = given.pop("plugin_files", ()) or ()
    settings = given.pop("settings", None) or load_settings(plugins=[*manifest.inputs.plugins, *plugins])
    owner = manifest.test_uid.partition("?")[0]
    versions = {f"{owner}:{key}": version for key, version in manifest.dependency_versions.items()}
    given["dependencies"] = {**_local_data(manifest, owner), **(given.get("dependencies") or {})}
    given.setdefault("caching", recorded.caching)
    labels = ("hyperparameters", "identifier")  # of the run, and so of what it is continued as
    given.update({name: getattr(recorded, name) for name in labels if getattr(recorded, name)})
    return Runner(
        folder.path.parent.parent,
        settings=settings,
        dependency_versions=versions if pinned else None,
        inputs=None if goldens is None else goldens.inputs(),
        **{**given, **kept},
    )


def _local_data(manifest: Manifest, owner: str) -> dict[str, str]:
    """The local files that were given for this test's data; other tests of the command had theirs."""
    own = {name for key in manifest.dependency_versions for name in (key, f"{owner}:{key}")}
    return {name: path for name, path in manifest.inputs.dependencies.items() if name in own}


def _check_options(kept: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse an option that would be ignored: half of a run cannot be done in another way."""
    for name, value in kept.items():
        if name in options and options[name] != value:
            raise InvalidOptionError(
                f"{name}={options[name]!r} cannot be given: the run was started with {name}={value!r}.",
                fix=NEW_RUN,
            )


def _check_pair(pair: Pair, manifest: Manifest, folder: RunFolder) -> None:
    """Refuse to mix answers, or judgements, of two different objects in one run."""
    _check_same(pair.test, manifest.test_initialization, folder)
    _check_dataset(pair.test.dataset, manifest, folder)
    if isinstance(pair.sut, Identified):
        _check_same(pair.sut, manifest.sut_initialization, folder)
    recorded, now = dict(manifest.annotators), dict[str, Identified](pair.annotators)
    if manifest.judges is not None:
        recorded |= _by_path(manifest.judges)
        now |= _by_path(pair.judge_suts)
    if now.keys() != recorded.keys():
        changed = ", ".join(sorted(now.keys() ^ recorded.keys()))
        raise RecordError(
            f"The annotators of '{pair.test.uid}' are not what they were in run {folder.run_id}: {changed}.",
            fix=NEW_RUN,
        )
    for name, one in now.items():
        _check_same(one, recorded[name], folder)


def _by_path(judges: Mapping[str, Mapping[str, Value]]) -> dict[str, Value]:
    return {f"{name} / {key}": one for name, own in judges.items() for key, one in own.items()}


def _check_dataset(now: DatasetReference | None, manifest: Manifest, folder: RunFolder) -> None:
    if now is None or manifest.dataset is None or now.digest == manifest.dataset.digest:
        return
    file = manifest.inputs.datasets.get(manifest.test_uid)
    where = "" if file is None else f" in {file}"
    raise RecordError(
        f"The data set '{manifest.dataset.name}'{where} is not what it was in run {folder.run_id}.",
        fix=_OTHER_FILE.format(run=folder.run_id),
    )


def _check_same(owner: Identified, recorded: Mapping[str, Any], folder: RunFolder) -> None:
    now = owner.initialization.model_dump(mode="json")
    if now != recorded:
        changed = [name for name in now if now[name] != recorded.get(name)]
        raise RecordError(
            f"'{owner.uid}' is not what it was in run {folder.run_id}: {', '.join(changed)} changed.",
            fix=NEW_RUN,
        )

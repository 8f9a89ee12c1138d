"""The run that is resumed or measured again, and which parts of it are used. `trust.py` decides whether they may be."""

import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from modelgauge.api import Runner
from modelgauge.config.redaction import Redactor
from modelgauge.config.run_options import RunOptions, list_options
from modelgauge.config.settings import Settings, is_trusted, load_settings
from modelgauge.data.records import DatasetReference
from modelgauge.data.results import GIVEN, PYTEST
from modelgauge.datasets.dataset_files import FileForm
from modelgauge.datasets.file_tests import NamedGoldens, inherited
from modelgauge.engine.calls.policy import learn_secrets
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.run_files.folder import MANIFEST, RUNS, RunFolder
from modelgauge.engine.run_files.manifest import is_signed
from modelgauge.engine.work import AnswerSource, Work
from modelgauge.errors import (
    CacheError,
    InputFileError,
    InvalidDataError,
    InvalidOptionError,
    RecordError,
    UnknownNameError,
    UsageError,
)
from modelgauge.interfaces.identity import Initialization
from modelgauge.wording.visible import without_password

NEW_RUN = "Start a new run: identical calls come from the cache."
"""The fix of errors that keep a run from being done again."""


class Names(NamedTuple):
    """Names given by the caller: uids, or objects.

    Args:
        test: that measures.
        sut: that answers.
        judge: for metrics that name none.
        dataset: a file of goldens.
        metrics: uids.
        form: how the file of goldens is written.
        cache: the folder of a cache, or its URL.
        dependencies: files, by the keys of declared data.
        plugins: files and modules; None if the caller gives what is installed as an object.
    """

    test: Any = None
    sut: Any = None
    judge: Any = None
    dataset: str | Path | None = None
    metrics: Sequence[str] = ()
    form: FileForm = FileForm()
    cache: str | None = None
    dependencies: Mapping[str, object] | None = None
    plugins: Sequence[str] | None = None

    def with_options(self, options: Mapping[str, Any]) -> "Names":
        """Return a copy with the names that stand among the options of a `Runner` added."""
        settings = options.get("settings") or load_settings(plugins=options.get("plugin_files"))
        return self._replace(
            dependencies=options.get("dependencies"),
            cache=options.get("cache") or settings.cache,
            # Where the caller gives what is installed, nothing is loaded by name.
            plugins=settings.plugins if options.get("plugins") is None else None,
        )


class OriginalRun:
    """A run that can be done again.

    Args:
        folder: of the run.
        manifest: what it says of itself, where whoever says that is trusted; by default what its `run.json` says.

    Attributes:
        described: what the run was.
        file: its own file of goldens; None if it is of another test.
        form: how that file is written.
        is_session: whether it is a session of pytest.
        is_own: whether it is the user's own: signed with the user's key, or in a folder that is trusted.
        plugins: its `--plugin` files and modules, which are loaded again where the run is the user's own.

    Raises:
        RecordError: its manifest is damaged.
    """

    def __init__(self, folder: RunFolder, manifest: Mapping[str, Any] | None = None) -> None:
        self.folder, is_trusted_manifest = folder, manifest is not None
        manifest = manifest or folder.read_manifest()
        self.is_session = _is_session(manifest)
        try:
            if self.is_session:  # its options are those of pytest
                manifest = {**manifest, "options": _options_of_session(manifest)}
            self.described = WorkDescription.load(manifest)
        except (InvalidDataError, InvalidOptionError) as error:
            raise RecordError(f"{folder.path / MANIFEST} is damaged: {error.problem}", fix=NEW_RUN) from None
        self._names_cache = not self.is_session and "cache" in self.described.options
        inputs = self.described.inputs
        self.file = inputs.datasets.get(self.described.test_uid)
        self.form = FileForm(inputs.columns, inputs.delimiter, inputs.encoding)
        self.is_own = is_trusted_manifest or is_signed(manifest) or is_trusted(folder.path)
        self.plugins = inputs.plugins if self.is_own else ()

    def local_data(self) -> dict[str, str]:
        """Return the local files that were given for the test's data, not those of the command's other tests."""
        keys = [name for key in self.described.dependency_versions for name in (key, f"{self._owner}:{key}")]
        given = self.described.inputs.dependencies
        return {name: given[name] for name in given if name in keys}

    @property
    def _owner(self) -> str:
        """The owner of the test's data: the test's name without options."""
        return self.described.test_uid.partition("?")[0]

    @property
    def pins(self) -> dict[str, str]:
        """The versions that the test's data had."""
        versions = self.described.dependency_versions
        return {f"{self._owner}:{key}": version for key, version in versions.items()}

    def recorded_answers(self, folder: RunFolder) -> AnswerSource:
        """Return the answers in the journal of a folder as an answer source in place of the run's SUT."""
        return AnswerSource(
            uid=self.described.sut_uid,
            initialization=Initialization.load(self.described.sut_initialization),
            label=self.described.sut_label,
            journal=folder,
        )

    # --- goldens -----------------------------------------------------------------------------------------------------

    def goldens(self, names: Names, *, moved: str | Path | None = None) -> NamedGoldens | None:
        """Return the goldens and metrics that the caller names, or the run's own; None for other tests.

        Args:
            names: of another file and other metrics.
            moved: where the run's own file is now.

        Raises:
            UsageError: there is a file without metrics, or the other way round.
            InputFileError: the caller's file cannot be read.
            RecordError: the run's file cannot be read any more, or holds something else.
        """
        file = None if names.dataset is None else Path(names.dataset)
        if file is None and self.file is None:
            if not names.metrics and not any(names.form):
                return None
            raise UsageError(
                f"Run {self.folder.run_id} is not of a data set file, so there are no goldens for the metrics.",
                fix="Name the goldens too: --dataset FILE",
            )
        metrics = names.metrics or self.described.inputs.metrics
        if not metrics:
            raise UsageError(
                f"Run {self.folder.run_id} is not of a data set file, so it has no metrics.",
                fix="Name some: --metric exact_match",
            )
        if file is not None:
            return self._goldens_of_another_file(file, metrics, names.form)
        try:
            goldens = NamedGoldens(self.described.test_uid, Path(moved or str(self.file)), metrics, self.form)
        except InputFileError as error:
            raise RecordError(
                f"The data set of run {self.folder.run_id} cannot be read any more: {error.problem}",
                fix=self._other_file,
            ) from None
        self.check_dataset(goldens.reference)
        return goldens

    def _goldens_of_another_file(self, file: Path, metrics: Sequence[str], form: FileForm) -> NamedGoldens:
        """Return the goldens in the caller's file, with the run's columns if the caller named none."""
        earlier = {field: column for field, column in self.form.columns.items() if field not in form.columns}
        kept, lacking = inherited(file, form, earlier)
        read = ", ".join(f"'{field}' from '{column}'" for field, column in lacking.items())
        missing = f"Run {self.folder.run_id} read {read}, which {file} does not have."
        fix = f"Name the columns of this file: {' '.join(f'--column {field}=COLUMN' for field in lacking)}"
        uid = None if self.file is None else self.described.test_uid
        try:
            goldens = NamedGoldens(uid, file, metrics, form.over(FileForm(kept)))
        except InputFileError as error:
            if not lacking:
                raise
            raise InputFileError(f"{error.problem} {missing}", fix=f"{error.fix} {fix}") from None
        if lacking:
            warnings.warn(f"{missing} {fix}", stacklevel=2)
        return goldens

    # --- how it is done again ----------------------------------------------------------------------------------------

    def runner(
        self,
        options: Mapping[str, Any],
        data_dir: str | Path | None,
        *,
        pinned: bool,
        goldens: NamedGoldens | None,
    ) -> Runner:
        """Return a runner with the options that the run's results depend on, and the caller's options for the rest.

        What is fixed counts before what the caller gives, and that before what is only the default.

        Args:
            options: the caller's.
            data_dir: the data folder that was given.
            pinned: whether the test's data must be what it was.
            goldens: what it is measured by, where that is a file.

        Raises:
            InvalidOptionError: an option is not that of the run; half of a run cannot be done in another way.
        """
        recorded, given = self.described.run_options(), dict(options)
        fixed = {name: getattr(recorded, name) for name in list_options("sample", "results")}
        for name, value in fixed.items():
            if given.get(name, value) != value:
                raise InvalidOptionError(
                    f"{name}={given[name]!r} cannot be given: the run was started with {name}={value!r}.",
                    fix=NEW_RUN,
                )
        fixed |= {name: value for name, value in self.described.chosen("record").items() if value}
        fixed["dependencies"] = {**self.local_data(), **(given.get("dependencies") or {})}
        default: dict[str, Any] = {"caching": recorded.caching}
        if self.folder.path.parent.name != RUNS:  # it was moved, or made elsewhere
            default["runs_dir"] = self.folder.path.parent
        files, settings = given.pop("plugin_files", None) or (), given.pop("settings", None)
        if settings is None:
            # Where the caller gives plugins, none is imported.
            loaded = self.plugins if given.get("plugins") is None else ()
            settings = load_settings(plugins=[*loaded, *files], data_dir=data_dir)
        if self.folder.is_bundled():  # never fill the user's cache from a stranger's run
            fixed["cache"] = None
        elif given.get("cache") is None:
            given.pop("cache", None)
            default |= self.cache(settings)
        runner = Runner(
            self._data_dir(settings, data_dir),
            settings=settings,
            dependency_versions=self.pins if pinned else None,
            inputs=None if goldens is None else goldens.inputs(),
            **{**default, **given, **fixed},
        )
        if self.folder.is_bundled():
            runner.use_dependencies(settings.data_dir if data_dir is None else Path(data_dir))
        return runner

    def cache(self, settings: Settings) -> dict[str, str | None]:
        """Return the option `cache` of the user's own run; nothing if its manifest lacks it.

        No manifest has the password of a URL. It comes from the same URL in the settings, or else the plugin looks for
        it in the environment.

        Raises:
            CacheError: the run used a folder that is missing.
        """
        if not (self.is_own and self._names_cache):
            return {}
        cache: str | None = self.described.options["cache"]
        if cache is None:
            return {"cache": None}
        if "://" not in cache:
            self._check_cache_folder(Path(cache))
        elif settings.cache is not None and without_password(settings.cache) == cache:
            cache = settings.cache
        return {"cache": cache}

    def _check_cache_folder(self, cache: Path) -> None:
        """Refuse a cache that was moved or is not mounted, since the whole run would be paid again."""
        if not cache.exists() and any(
            interaction.key for record in self.folder.items() for interaction in record.interactions
        ):
            raise CacheError(
                f"Run {self.folder.run_id} used the cache in {cache}, which is missing.",
                fix="Put it back, or give its new place: --cache FOLDER (in Python cache=…).",
            )

    def _data_dir(self, settings: Settings, data_dir: str | Path | None) -> Path:
        """Return the run's data folder, with its cache; the caller's if the run's folder was moved.

        The path in the manifest is never used: nothing is written to a place that only a found file names.
        """
        runs = self.folder.path.parent
        if runs.name == RUNS:
            return runs.parent
        return settings.data_dir if data_dir is None else Path(data_dir)

    # --- whether it is still what it was -----------------------------------------------------------------------------

    def check_dataset(self, now: DatasetReference | None) -> None:
        """Refuse a data set that is not that of the run.

        Raises:
            RecordError: it is another.
        """
        then = self.described.dataset
        if now is not None and then is not None and now.digest != then.digest:
            where = "" if self.file is None else f" in {self.file}"
            raise RecordError(
                f"The data set '{then.name}'{where} is not what it was in run {self.folder.run_id}: its digest is "
                f"{now.digest:.12}, and was {then.digest:.12}.",
                fix=self._other_file,
            )

    def check_unchanged(self, work: Work, redactor: Redactor) -> None:
        """Refuse to mix answers, or judgements, of two different objects in one run.

        Raises:
            RecordError: the test, its data set, the SUT, an annotator or a judge is not what it was.
        """
        self.check_dataset(work.test.dataset)
        for owner in (work.test, *(callee.owner for callee in work.called())):
            learn_secrets(owner, redactor)
        made = WorkDescription.of(work, self.described.run_options()).model_dump(mode="json")
        now, then = WorkDescription.load(redactor.redact_json(made)), self.described  # as it was written
        if then.judges is None:
            now = now.replaced(judges=None)
        self._check_same({"": now.test_initialization}, {"": then.test_initialization})
        self._check_same({"": now.sut_initialization}, {"": then.sut_initialization})
        if changed := ", ".join(sorted(now.objects().keys() ^ then.objects().keys())):
            raise RecordError(
                f"The annotators of '{now.test_uid}' are not what they were in run {self.folder.run_id}: {changed}.",
                fix=NEW_RUN,
            )
        self._check_same(now.objects(), then.objects())

    def _check_same(self, now: Mapping[str, dict[str, Any]], then: Mapping[str, dict[str, Any]]) -> None:
        for name, made in now.items():
            parts = {**made, **dict.fromkeys({"settings"} & then[name].keys())}
            if changed := [part for part in parts if made.get(part) != then[name].get(part)]:
                raise RecordError(
                    f"'{made['uid']}' is not what it was in run {self.folder.run_id}: "
                    f"{', '.join(changed)} changed.",
                    fix=NEW_RUN,
                )

    # --- what is wrong -----------------------------------------------------------------------------------------------

    @property
    def _other_file(self) -> str:
        return (
            "Put it back as it was, or start a new run: identical calls come from the cache. To measure the recorded "
            f"answers with other goldens: modelgauge rescore {self.folder.run_id} --dataset FILE"
        )

    def of_given_outputs(self, why: str) -> RecordError:
        """Return the error for a run whose outputs were passed to `evaluate` or `assert_test`."""
        run_id, again = self.folder.run_id, "Call it again with the same test cases"
        if self.is_session:
            recorded = self.folder.command_line() or []
            # A manifest of anybody's may say anything.
            is_known = recorded[:1] in (["pytest"], ["modelgauge"])
            again = f"Run the tests again: {shlex.join(recorded if is_known else ['pytest'])}"
        return RecordError(
            f"Run {run_id} judged outputs that were given to evaluate or assert_test: {why}.",
            fix=f"{again}. What judges answered is in the cache. To measure the recorded outputs: modelgauge rescore "
            f"{run_id} --dataset FILE --metric UID, with goldens; or --ratings, by what people said of them.",
        )

    @contextmanager
    def explaining_objects(self, function: str, *, known: bool) -> Iterator[None]:
        """Add to the error for an unknown name what to do where it is the name of an object.

        Args:
            function: that was called.
            known: whether the caller gave the objects already.
        """
        try:
            yield
        except UnknownNameError as error:
            if known:
                raise
            objects = "test=…" if function == "rescore" else "test=…, sut=…"
            raise RecordError(
                f"Run {self.folder.run_id}: {error.problem}",
                fix=f"{error.fix} If it was an object of your own code, give it again, in Python: "
                f"modelgauge.{function}('{self.folder.run_id}', {objects})",
            ) from None


def _is_session(manifest: Mapping[str, Any]) -> bool:
    made = manifest.get("test_initialization")
    return manifest.get("sut_uid") == GIVEN and isinstance(made, dict) and made.get("class_name") == PYTEST


def _options_of_session(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run that a session of pytest has too."""
    found = {
        name: manifest[name] for name in ("repeats", "identifier", "hyperparameters") if name in manifest
    }
    return RunOptions(**found).recorded()

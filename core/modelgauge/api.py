"""Running tests from Python: `run_test` for one pair, `Runner` for many; reading what runs left behind."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, Unpack

from modelgauge.cache.opening import existing_cache
from modelgauge.config.entry_points import warn_of_foreign_distributions
from modelgauge.config.options import FOLDER, instance_of
from modelgauge.config.redaction import Redactor
from modelgauge.config.run_options import OPTIONS, RunOptions
from modelgauge.config.run_options_dict import RunOptionsDict
from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import Settings, load_settings
from modelgauge.data.items import TestItem
from modelgauge.data.json_values import check_exact
from modelgauge.data.records import TestRecord
from modelgauge.dependencies.store import DependencyStore
from modelgauge.engine.bookkeeping.failures import explaining
from modelgauge.engine.executors.base import LOCAL
from modelgauge.engine.items.measurer import reducer
from modelgauge.engine.items.source import chosen
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.loop.threads import in_thread
from modelgauge.engine.observers import Observer
from modelgauge.engine.planning import Plan, Planner
from modelgauge.engine.run_files.manifest import list_versions, surroundings
from modelgauge.engine.work import Work
from modelgauge.errors import InvalidOptionError, RecordError, RunStoppedError, UsageError
from modelgauge.files.regular import real_path
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.metrics.judges import default_judge_name
from modelgauge.plugins.discovery import Plugins, discover
from modelgauge.plugins.local_plugins import module_name
from modelgauge.plugins.resolution import Resolver, SUTName, TestName
from modelgauge.runs.naming import RUN, find_runs, is_file_of_records
from modelgauge.runs.record_files import records_in
from modelgauge.wording.did_you_mean import known_names

T = TypeVar("T")

_ARGUMENTS = {
    "data_dir": FOLDER,
    "plugins": instance_of(Plugins, 'what modelgauge.plugins.discovery.discover(["my_plugin.py"]) returns'),
    "secrets": instance_of(SecretStore, "a SecretStore"),
    "settings": instance_of(Settings, "what load_settings() of modelgauge.config.settings returns"),
    "dependencies": instance_of(Mapping, "a dict of keys and files"),
    "dependency_versions": instance_of(Mapping, "a dict of keys and versions"),
    "observers": instance_of(Sequence, "a list of observers"),
}
"""Arguments of a Runner besides the options of its runs."""
_KNOWN_OPTIONS = [name for name in OPTIONS if name != "data_dir"]


class RunnerOptions(RunOptionsDict, total=False):
    """Arguments of `Runner` that functions pass on by name."""

    plugins: Plugins | None
    secrets: SecretStore | None
    settings: Settings | None
    offline: bool | None
    dependencies: Mapping[str, str | Path] | None
    dependency_versions: Mapping[str, str] | None
    observers: Sequence[Observer]
    command: Sequence[str] | None
    inputs: Mapping[str, Any] | None


class Runner:
    """Runs each test on each SUT.

    Args:
        data_dir: where runs, cache and dependencies live; by default what the settings say, else `run_data`.
        plugins: what is installed; discovered when the first name needs it.
        secrets: where secrets come from; by default the environment and `secrets.toml`.
        settings: the defaults of arguments that are left out; by default `modelgauge.toml` and the environment.
        offline: never fetch data.
        dependencies: local files instead of declared data, by key or `TEST:KEY`.
        dependency_versions: versions that data must have, by key or `TEST:KEY`.
        observers: objects that get runs and items as they finish, in addition to plugins.
        command: the command line, for the manifest.
        inputs: further inputs of the command line, for the manifest; `resume` makes the tests from them.
        max_test_items: measure this many items only; None for all.
        options: the other options of a run, such as seed, sut_options, repeats, caching and progress. The settings have
            the defaults of some, such as concurrency and executor.

    Raises:
        InvalidOptionError: an option does not exist, or cannot be what was given.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        *,
        plugins: Plugins | None = None,
        secrets: SecretStore | None = None,
        settings: Settings | None = None,
        offline: bool | None = None,
        dependencies: Mapping[str, str | Path] | None = None,
        dependency_versions: Mapping[str, str] | None = None,
        observers: Sequence[Observer] = (),
        command: Sequence[str] | None = None,
        inputs: Mapping[str, Any] | None = None,
        max_test_items: int | None = None,
        **options: Unpack[RunOptionsDict],
    ) -> None:
        given = (data_dir, plugins, secrets, settings, dependencies, dependency_versions, observers)
        for (name, kind), value in zip(_ARGUMENTS.items(), given, strict=True):
            kind.check(name, value, or_none=True)
        warn_of_foreign_distributions()
        settings = settings if settings is not None else load_settings()
        self.settings = settings
        self.secrets = secrets if secrets is not None else SecretStore(file=settings.secrets_file)
        folder = Path(data_dir) if data_dir is not None else settings.data_dir
        chosen = {**settings.of_runs(), **options, "max_test_items": max_test_items}
        if "workers" not in options and chosen.get("executor", LOCAL) == LOCAL:
            chosen["workers"] = None  # the settings' number is for executors
        self._is_executor_given = "executor" in options
        self.options = _options(folder, self.secrets.redactor, chosen)
        self._plugins = plugins
        self._observers = observers
        self._command = command
        self._inputs = {
            "plugins": [module_name(plugin) for plugin in settings.plugins],
            "dependencies": {key: str(real_path(path)) for key, path in (dependencies or {}).items()},
            **(inputs or {}),
        }
        self._store = DependencyStore(
            folder.absolute() / "dependencies",
            offline=settings.offline if offline is None else offline,
            overrides={key: Path(path) for key, path in (dependencies or {}).items()},
            pins=dependency_versions,
            progress=self.options.progress,
        )

    def use_dependencies(self, data_dir: Path) -> None:
        """Use and keep external data in another data folder; the runner's own is searched for wanted versions."""
        self._store.elsewhere, self._store.directory = (
            self._store.directory,
            data_dir.absolute() / "dependencies",
        )

    def resolver(self) -> Resolver:
        """Return an object that turns the names of one run into objects."""
        return Resolver(self.plugins, self.secrets, self._store)

    def plugins(self) -> Plugins:
        """Return the installed plugins."""
        if self._plugins is None:
            self._plugins = discover(self.settings.plugins, settings=self.settings)
        return self._plugins

    def run(
        self, tests: TestName | Sequence[TestName], suts: SUTName | Sequence[SUTName]
    ) -> list[TestRecord]:
        """Run every test on every SUT; blocks, also inside a running event loop.

        Args:
            tests: uids or objects; also names of groups, and patterns such as "bbh_*".
            suts: uids or objects; also labels with uids, as in "small=openai/gpt-4o-mini".

        Returns:
            A record for each pair, test by test. Pairs that do not fit are left out, with a warning, where a group or a
            pattern named one of the two.

        Raises:
            UsageError: a name, a secret, data or a combination is wrong; raised before any call.
        """
        resolver = self.resolver()
        works = resolver.works(_as_list(tests), _as_list(suts))
        return blocking(lambda: self.do(works, resolver))

    async def run_async(
        self, tests: TestName | Sequence[TestName], suts: SUTName | Sequence[SUTName]
    ) -> list[TestRecord]:
        """Run in the running event loop; otherwise like `run`."""
        resolver = self.resolver()
        works = await in_thread(lambda: resolver.works(_as_list(tests), _as_list(suts)), "resolve")
        return await self.do(works, resolver)

    def plan(self, tests: TestName | Sequence[TestName], suts: SUTName | Sequence[SUTName]) -> list[Plan]:
        """Estimate what a run would use: calls, cache hits and, where prices are known, dollars.

        Nothing is sent, and neither a run nor a cache is made; the tests' data is fetched.

        Args:
            tests: uids or objects.
            suts: uids or objects.

        Returns:
            A plan for each pair, test by test.

        Raises:
            UsageError: see `run`.
            RunStoppedError: a test failed in making items.
        """
        return self.plan_works(self.resolver().works(_as_list(tests), _as_list(suts)))

    def plan_works(self, works: Sequence[Work]) -> list[Plan]:
        """Estimate works whose names are resolved; of a run that is continued, only the rest."""
        caching, where = self.options.caching, (self.options.cache, self.options.data_dir)
        with existing_cache(*where) if caching else nullcontext() as cache:
            nothing: dict[str, str] = {}
            kept = nothing.get if cache is None else cache.get
            planner = Planner(self.options, kept if caching else None)
            return [_make_plan(planner, work) for work in works]

    async def do(self, works: Sequence[Work], resolver: Resolver, *first: Observer) -> list[TestRecord]:
        """Run works whose names are resolved; the observers `first` come before the runner's own."""
        inputs = self._all_inputs()
        asked = [work for work in works if work.answer_source.given is None]
        named = {uid for work in asked for uid in (work.test.uid, work.answer_source.uid)}
        # No command can name these.
        objects = sorted(named & resolver.objects - inputs.get("datasets", {}).keys())
        inputs |= {"objects": objects} if objects else {}
        options = self._options_for(works, objects)

        async def manifest() -> dict[str, Any]:
            facts = await in_thread(lambda: surroundings(self._command, resolver.distributions), "manifest")
            made: dict[str, Any] = self.options.redactor.redact_json({**facts, "inputs": inputs})
            return made  # also for observers

        plugins = await in_thread(self.plugins, "plugins")
        observers = [*first, *self._observers, plugins]
        # Numpy, which it needs, would be a fifth of the start of a worker process, which never comes here.
        engine = await in_thread(lambda: import_module("modelgauge.engine.run"), "engine")
        return list(await engine.Run(options, self.secrets.found).works(works, observers, manifest))

    def _options_for(self, works: Sequence[Work], objects: Sequence[str]) -> RunOptions:
        """Return the options for some works, without the executor from the settings if workers cannot create the
        objects.

        Raises:
            UsageError: workers cannot make them, and the executor was given.
        """
        if self.options.executor == LOCAL:
            return self.options
        try:
            _check_named(works, objects)
        except UsageError:
            if self._is_executor_given:
                raise
            return replace(self.options, executor=LOCAL, workers=None)
        return self.options

    def _all_inputs(self) -> dict[str, Any]:
        return {**self._inputs, "judge": default_judge_name(self.settings)}

    def facts(self, resolver: Resolver) -> dict[str, Any]:
        """Return the facts for a manifest about what was passed to this runner, and about the plugins used.

        Args:
            resolver: made them.
        """
        return {"inputs": self._all_inputs(), "plugins": list_versions(resolver.distributions)}


def run_test(
    test: TestName,
    sut: SUTName,
    max_test_items: int | None = None,
    *,
    data_dir: str | Path | None = None,
    **options: Unpack[RunnerOptions],
) -> TestRecord:
    """Run one test on one SUT; blocks, also inside a running event loop.

    Args:
        test: a uid or an object.
        sut: a uid or an object.
        max_test_items: measure this many items; None for all.
        data_dir: as in `Runner`.
        options: what `Runner` takes.

    Returns:
        The run's record; its items are read when they are asked for.

    Raises:
        UsageError: a name, a secret, data or the combination is wrong; raised before any call.
    """
    runner = Runner(data_dir, max_test_items=max_test_items, **options)
    resolver = runner.resolver()
    works = resolver.works([test], [sut])
    if len(works) > 1:
        raise UsageError(
            f"'{test}' on '{sut}' stands for {len(works)} pairs.",
            fix="Run them by Runner().run(tests, suts).",
        )
    return blocking(lambda: runner.do(works, resolver))[0]


def list_items(
    test: TestName,
    max_test_items: int | None = None,
    *,
    data_dir: str | Path | None = None,
    **options: Unpack[RunnerOptions],
) -> Iterator[TestItem]:
    """Return the items that a run would measure, with their ids, in order; no SUT is asked.

    Args:
        test: a uid or an object.
        max_test_items: as in `run_test`.
        data_dir: as in `Runner`.
        options: what `Runner` takes.

    Raises:
        UsageError: a name, a secret or data is wrong.
        RunStoppedError: the test failed in making items.
    """
    runner = Runner(data_dir, max_test_items=max_test_items, **options)
    resolver = runner.resolver()
    made = resolver.test(test)
    return _items(made, resolver.data(made), runner.options)


def _items(
    test: PromptResponseTest, dependencies: Mapping[str, Path], options: RunOptions
) -> Iterator[TestItem]:
    with _making_items(test):
        for item in chosen(test, dependencies, options).items:
            yield item.item


def _make_plan(planner: Planner, work: Work) -> Plan:
    with _making_items(work.test):
        return planner.plan(work)


def _making_items(test: PromptResponseTest) -> AbstractContextManager[None]:
    """Raise what `make_test_items` raises as the error of a run that cannot be made."""
    return explaining(RunStoppedError, f"Test '{test.uid}' makes no items", fix="Correct it.")


def load_record(path: str | Path, data_dir: str | Path | None = None) -> TestRecord:
    """Read a record; nothing that it names is imported.

    Args:
        path: a run's folder, its id or the beginning of it, `latest` for the newest, `latest~1` for the one before, its
            `record.json`, or a file that `--output-file` wrote.
        data_dir: where runs are looked up by id.

    Raises:
        InvalidOptionError: an argument is no path.
        RecordError: there is no record, or there are several (then use `load_records`).
    """
    records = load_records(path, data_dir)
    if len(records) != 1:
        raise RecordError(
            f"{path} contains {len(records)} records.",
            fix="Read them with modelgauge.load_records, or name one run.",
        )
    return records[0]


def load_records(path: str | Path, data_dir: str | Path | None = None) -> list[TestRecord]:
    """Read all records of a file, or all runs of an invocation; see `load_record`."""
    RUN.check("path", path)
    FOLDER.check("data_dir", data_dir, or_none=True)
    if is_file_of_records(Path(path)):
        return records_in(Path(path))
    folder = Path(data_dir) if data_dir is not None else load_settings().data_dir
    return [run.read_record() for run in find_runs(folder, str(path))]


def _check_named(works: Sequence[Work], objects: Sequence[str]) -> None:
    """Refuse works of objects that other processes cannot make.

    Raises:
        UsageError: one was given as an object, or holds answers that were.
    """
    if any(work.answer_source.given is not None for work in works):
        raise UsageError(
            "Given answers can only be judged in this process.", fix="Leave out executor and workers."
        )
    if objects:
        raise UsageError(
            f"Workers create objects by name, but {objects[0]!r} was passed as an object.",
            fix="Register it in a file, and give its name with --plugin FILE (in Python settings="
            'modelgauge.config.settings.load_settings(plugins=["FILE"])). Or leave out executor and workers.',
        )


def _as_list(names: Any) -> list[Any]:
    return list(names) if isinstance(names, list | tuple) else [names]


def _options(data_dir: Path, redactor: Redactor, options: dict[str, Any]) -> RunOptions:
    for name in options:
        if name not in _KNOWN_OPTIONS:
            fix = known_names(name, _KNOWN_OPTIONS, "The options are")
            raise InvalidOptionError(f"There is no option '{name}'.", fix=fix)
    made = RunOptions(data_dir=data_dir, redactor=redactor, **options)
    # Before anything is paid: the record holds them.
    check_exact(dict(made.hyperparameters), "hyperparameters")
    reducer(made.reduce, made.repeats)
    return made

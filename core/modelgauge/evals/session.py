"""A session of pytest: its cases, from all processes that take part, as one run.

Each process keeps one open run, in which each `assert_test` is one item: `session_loop.py` judges it, and
`engine/shared_run.py` keeps it. When the session ends, the process that began it reads what all left, and makes the
run's record of it (`session_record.py`).
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic_core import to_json

from modelgauge import reports
from modelgauge.api import Runner
from modelgauge.config.secrets import SecretDescription, SecretStore
from modelgauge.config.settings import load_settings
from modelgauge.data.item_records import ItemRecord, Stage
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import TextPrompt
from modelgauge.data.records import TestRecord
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.datasets.dataset_test import make_prompt
from modelgauge.datasets.differences import SavedGoldens
from modelgauge.engine.bookkeeping.failures import StageError, exception_record
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.description import describe_annotators
from modelgauge.engine.joined_facts import numbered
from modelgauge.engine.observers import Observers
from modelgauge.engine.run_files.folder import REPORT, RUNS, RunFolder, new_id
from modelgauge.engine.run_files.journal import make_line
from modelgauge.engine.shared_run import SharedRun
from modelgauge.errors import MissingParameterError, ModelGaugeError, SettingsError
from modelgauge.evals.apps import is_skip
from modelgauge.evals.display import CaseDisplay, format_place, rendered, with_distinct_titles
from modelgauge.evals.given_test import GivenTest
from modelgauge.evals.inputs import logged_hyperparameters
from modelgauge.evals.results import TestResult, test_result
from modelgauge.evals.session_cases import OUTSIDE, PROVISIONAL, Cases, renamed
from modelgauge.evals.session_loop import Job, SessionLoop
from modelgauge.evals.session_options import TestRunOptions
from modelgauge.evals.session_record import SessionRecord
from modelgauge.interfaces.watched import in_use
from modelgauge.metrics.judged_cases import make_title
from modelgauge.plugins.discovery import Plugins, discover
from modelgauge.plugins.resolution import Resolver
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.wording.phrases import first_few


class SessionSecrets(SecretStore):
    """Looks secrets up, and logs their names, never their values, for the process that makes the record.

    Under xdist that process has looked up no secret itself, and needs the names to redact the record. A worker may also
    have recorded a refused case before it knew the secret in it.
    """

    def __init__(self, file: Path, log: Callable[[SecretDescription], None]) -> None:
        super().__init__(file=file)
        self._log = log
        self._known: set[SecretDescription] = set()

    def find(self, description: SecretDescription) -> str | None:
        """Look a secret up, and log its name the first time it is found."""
        found = super().find(description)
        if found is not None and description not in self._known:
            self._known.add(description)
            self._log(description)
        return found

    def learn(self, described: Iterable[Mapping[str, Any]]) -> list[str]:
        """Look up what all processes of the session did.

        Args:
            described: the descriptions that they logged.

        Returns:
            What a reader of the record should know.
        """
        named = dict.fromkeys(
            SecretDescription(**{**description, "env": tuple(description.get("env", ()))})
            for description in described
        )
        problems = {secret.name: self._problem(secret) for secret in named if secret not in self._known}
        return [
            f"The value of {name} may stand here, since it could not be looked up again: {problem}"
            for name, problem in problems.items()
            if problem is not None
        ]

    def _problem(self, description: SecretDescription) -> str | None:
        """Say why a secret is no longer found; None if it is found."""
        try:
            found = self.find(description)
        except SettingsError as error:
            return error.problem
        return None if found is not None else "it was there for a while only, in another process."


class StartedCase(NamedTuple):
    """An `assert_test` that has begun.

    Args:
        number: of its case, unique in the session across processes: the place of the test where that is unique.
        item_id: of its case.
        test: the id of the test that called it.
        repeat: which time the test is run, by `--repeat` or again after a failure, from 0: judges are asked again each
            time.
    """

    number: int
    item_id: str
    test: str
    repeat: int

    def named(self, item: ItemRecord) -> ItemRecord:
        """Return a record with the name and position of its case in the session."""
        return renamed(item, self.number, self.item_id)


class Session:
    """A session, as one of its processes knows it.

    Args:
        where: when and where the session began: settings and the data folder are looked up from there.
        options: of `modelgauge test run`, as JSON.
        args: the command line of pytest.
        find_place: returns the place of a test in the session: its number, its id without the repeat, the repeat,
            how often it was begun before, and whether this is the only time that the number is given.
    """

    def __init__(
        self,
        where: Mapping[str, Any],
        options: str,
        args: Sequence[str],
        find_place: Callable[[str], tuple[int, str, int, int, bool]],
    ) -> None:
        self.options = TestRunOptions.from_json(options)
        self.summary = ""
        self._where = where
        self._lock = threading.RLock()  # a test may call `assert_test` from threads of its own
        self._find_place = find_place
        self._calls_of: Counter[str] = Counter()
        self._call_count = 0
        self._command = self.options.command_line() or ["pytest", *args]
        self._settings = load_settings(where["cwd"])
        self._plugins: Plugins | None = None
        self._observers = Observers([])
        self._begin_process()

    def _begin_process(self) -> None:
        """Set up the files and the loop of this process; after a fork, drop the parent's."""
        self._process = os.getpid()
        self._secrets = SessionSecrets(
            self._settings.secrets_file, lambda secret: self._run.log(secret=asdict(secret))
        )
        self._redact = self._secrets.redactor.redact_json_text
        began = datetime.fromtimestamp(self._where["begun"], UTC)
        folder = RunFolder(self._settings.data_dir / RUNS / new_id(began, self._where["mark"]))
        self._record = SessionRecord(began, self.options, self._command, self._redact)
        self._run = SharedRun(
            folder, Path(self._where["folder"]), lambda: self._record.begin(folder), self._redact
        )
        self._tally, self._seconds = Tally(), 0.0
        self._loop: SessionLoop | None = None
        self._runners: dict[tuple[Any, ...], tuple[Runner, Resolver]] = {}
        self._saved_goldens = SavedGoldens()
        self._logged_once: set[bytes] = set()

    @property
    def folder(self) -> Path:
        """The folder for the cases of the session from this process."""
        return self._run.own_folder

    # --- cases -------------------------------------------------------------------------------------------------------

    def begin(self) -> StartedCase:
        """Begin an `assert_test`; from now on its case counts."""
        # The test that pytest is running, such as `test_app.py::test_refunds[0] (call)`.
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0] or OUTSIDE
        place, repeated, repeat, rerun, is_unique = self._find_place(test)
        if rerun:  # judges are asked again, as in a repeat
            test, repeat = f"{test} rerun {rerun}", repeat + rerun * self.options.repeat
        with self._lock:
            if self._process != os.getpid():
                self._begin_process()
            self._call_count += 1
            self._calls_of[test] += 1
            number, time = self._call_count, self._calls_of[test]
        # Other cases, of any process, may have this place too.
        if not is_unique or time > 1 or place >= PROVISIONAL:
            index = (place << 40) + number * PROVISIONAL + os.getpid() % PROVISIONAL
        else:
            index = place
        self._run.log(begin=index, order=(place, number), test=test, repeated=repeated, repeat=repeat)
        return StartedCase(index, numbered(test, time), test, repeat)

    def runner(self, begun: StartedCase, options: Mapping[str, Any]) -> tuple[Runner, Resolver]:
        """Return the runner that creates the metrics and judges of a case. Judges given by name are shared by all
        cases.

        Args:
            begun: the case.
            options: how much is done at once.

        Raises:
            PluginError: a local plugin does not work.
        """
        key = (begun.repeat, *sorted(options.items()))
        with self._lock:
            plugins = self._found_plugins()
            if key not in self._runners:
                runner = Runner(
                    settings=self._settings,
                    plugins=plugins,
                    secrets=self._secrets,
                    caching=self.options.use_cache,
                    first_repeat=begun.repeat,
                    progress=False,
                    **options,
                )
                self._runners[key] = runner, runner.resolver()
            return self._runners[key]

    def _found_plugins(self) -> Plugins:
        if self._plugins is None:
            self._plugins = discover(self._settings.plugins, settings=self._settings)
            self._observers = Observers([self._plugins])
        return self._plugins

    def judge(self, begun: StartedCase, test: GivenTest, runner: Runner, resolver: Resolver) -> TestResult:
        """Judge a case, and keep what came out.

        Args:
            begun: the case.
            test: holds and judges it.
            runner: of the case.
            resolver: makes the objects that are named.

        Raises:
            InvalidDataError, MissingParameterError, UsageError: it cannot be judged.
            RunStoppedError: no call can be sent any more, or nothing can be written.
        """
        began = monotonic()
        with in_use(test.metrics.values()):
            work = test.work(resolver.judges)
            (item,) = test.make_test_items({})
            self._say("made", {**describe_annotators(work), **runner.facts(resolver)})
            self._say("hyperparameters", logged_hyperparameters())
            for version in self._saved_goldens.find_versions(test.answered[0].case):
                self._say("data_set", version.model_dump())
            item = item.replaced(id=begun.item_id)
            job = Job(work=work, item=item, options=runner.options, named=begun.named)
            judged = self._loop_here().judge(job)
        result = test_result(test, judged.record)
        with self._lock:
            self._seconds += monotonic() - began
        notes = [*judged.notes, *test.record_notes, *self._tally.notes()]
        declared = {
            "thresholds": test.thresholds,
            "ranges": test.measurement_ranges,
            "directions": test.measurement_directions,
        }
        self._keep(begun, judged.line, CaseDisplay.of(result), declared, notes)
        self._observers.item_finished(self._run.folder.run_id, judged.written)
        return result

    def _loop_here(self) -> SessionLoop:
        with self._lock:
            if self._loop is None:
                self._loop = SessionLoop(self._tally, self._count)
            # A metric of the loop's own may call `assert_test`: the loop cannot wait for itself.
            return SessionLoop(self._tally, self._count) if self._loop.is_here else self._loop

    def ended_early(self, begun: StartedCase, case: Any, error: BaseException) -> None:
        """Forget a case whose test is skipped; any other that was not judged counts as failed, and has a record.

        Args:
            begun: the `assert_test`.
            case: a test case or golden; something else, if that is why.
            error: why it was not judged.
        """
        if is_skip(error):
            self._run.log(skipped=begun.number)
        if is_skip(error) or isinstance(error, KeyboardInterrupt):  # then there is no time for more
            return
        known = isinstance(case, LLMTestCase | ConversationalTestCase | Golden | ConversationalGolden)
        stage: Stage = "annotator" if isinstance(error, MissingParameterError) else "measure"
        item = TestItem(PromptWithContext(make_prompt(case) if known else TextPrompt("")), id=begun.item_id)
        record = exception_record(begun.number, item, [], StageError(stage, "assert_test", error))
        title = make_title(case) if known else begun.test
        shown = CaseDisplay(title, False, (), f"{record.error_type}: {record.message}")
        self._keep(begun, make_line(record, "assert_test", self._redact)[1], shown)

    # --- the files of this process -----------------------------------------------------------------------------------

    def _keep(
        self,
        begun: StartedCase,
        line: bytes,
        shown: CaseDisplay,
        declared: Mapping[str, Any] = MappingProxyType({}),
        notes: Sequence[str] = (),
    ) -> None:
        """Keep a case that has ended: first what its record does not say, so that no line of the journal lacks that."""
        self._count(end=begun.number, shown=shown, declared=dict(declared), notes=notes)
        self._run.add(line)

    def _count(self, **event: Any) -> None:
        """Log what all calls used so far, with an event that stands after it."""
        self._run.log(**event, used=self._tally.used(self._seconds), process=self._process)

    def _say(self, name: str, value: Mapping[str, Any]) -> None:
        """Log what is the same for many cases, once."""
        if (text := to_json([name, value])) not in self._logged_once and value:
            self._logged_once.add(text)
            self._run.log(**{name: value})

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self, collected: int | None) -> None:
        """Make one run of all cases, if there were any, and say in `summary` what came out.

        Args:
            collected: where the session was interrupted, the number of tests that it had, 0 where it is not known;
                None if it came to its end.
        """
        self._stop()
        self._run.check_kept()
        cases = Cases.of(self._run.events(), self._run.items())
        if not cases.listed:
            self._run.forget()
            return
        notes = [*self._secrets.learn(cases.secrets), *self._unrepeated()]
        for case in cases.listed:
            case.test = self._secrets.redact(case.test)
        items = list(cases.items())
        ranges = {name: (low, high) for name, (low, high) in cases.declared("ranges").items()}
        with self._run.finishing(items, "assert_test", ranges) as index:
            self._record.write(self._run.folder, cases, items, index, notes=notes, collected=collected)
        ended = recorded_run(self._run.folder)
        self.summary = self._rendered(cases, ended.record)
        wanted = [ended] if self._settings.report and collected is None else []
        problems = [*reports.write_reports(wanted, redact=self._secrets.redact), *self._tell(ended.record)]
        page = self._run.folder.path / REPORT
        self.summary += f"\n{format_place('Page', page)}" if page.exists() else ""
        self.summary += "".join(f"\nWarning: {problem}" for problem in problems)
        if self.options.folder_file is not None:
            Path(self.options.folder_file).write_text(str(self._run.folder.path), encoding="utf-8")

    def _rendered(self, cases: Cases, record: TestRecord) -> str:
        """Return what is shown of the cases at the end of the session. The record contains no secrets."""
        shown = with_distinct_titles([(case.test, case.shown(self._redact)) for case in cases.listed])
        number = len(cases.by_id())
        return rendered(
            shown, record, self._run.folder.path, self.options.display, record.notes, cases=number
        )

    def _tell(self, record: TestRecord) -> Iterator[str]:
        """Tell plugins that the session is over, and say what went wrong in them."""
        try:
            plugins = self._found_plugins()
        except ModelGaugeError as error:
            yield str(error)
            return
        before = len(plugins.failures)
        plugins.run_finished(record)
        for failure in plugins.failures[before:]:
            yield f"the plugin {failure.name} failed as an observer: {failure.cause}"

    def close(self) -> None:
        """End the session in this process."""
        self._stop()
        self._run.close()

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def _unrepeated(self) -> list[str]:
        """Return a note on the tests that `--repeat` could not repeat."""
        file = Path(self._where["folder"], self._where["unrepeated"])
        tests = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if not tests:
            return []
        why = "it works by parameters, which methods of unittest.TestCase cannot have"
        fix = "Write them as functions, or as methods of a plain class."
        return [f"--repeat {self.options.repeat} did not repeat {first_few(tests, 1)}: {why}. {fix}"]

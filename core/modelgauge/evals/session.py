"""The cases of one pytest session, from all processes that take part, as one run.

Each `assert_test` is a run of its own, in a folder that the processes of the session share, so that nothing
is lost when one of them dies. When the session ends, the process that began it makes one run of them. The files
of that are in `session_run.py`.
"""

import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from modelgauge.config.settings import Settings, load_settings
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import TextPrompt
from modelgauge.data.records import SCHEMA_VERSION, ItemRecord, Stage, TestRecord
from modelgauge.data.results import GIVEN, Counts
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.datasets.dataset_test import prompt_of
from modelgauge.engine.bookkeeping.failures import StageError, exception_record
from modelgauge.engine.files.journal import RUNS, JournalFile, RunFolder, write_atomically
from modelgauge.engine.files.manifest import surroundings
from modelgauge.engine.totals import Totals
from modelgauge.errors import MissingParameterError
from modelgauge.evals.app_uses import is_skip
from modelgauge.evals.configs import Display, ErrorConfig
from modelgauge.evals.display import Shown, rendered
from modelgauge.evals.pytest_plugin import UNREPEATED
from modelgauge.evals.pytest_plugin import place as place_of
from modelgauge.evals.results import EvaluationResult
from modelgauge.evals.session_parts import (
    REPEAT,
    SHOWN,
    TEST,
    Part,
    Repeat,
    agreed,
    made_by,
    named,
    parts_of,
    total_counts,
    total_used,
)
from modelgauge.evals.session_repeats import cases_of, items_of
from modelgauge.evals.session_run import SessionRun
from modelgauge.evals.session_secrets import SessionSecrets
from modelgauge.metrics.cases import title_of
from modelgauge.plugins.discovery import Plugins, discover
from modelgauge.reports.plain import counted

UID = "pytest"
"""How the record of a session calls its test, where the user gave no identifier."""


OUTSIDE = "no test"
"""What stands for the test of cases that are judged while tests are collected, say."""


@dataclass(frozen=True, slots=True)
class TestRunOptions:
    """The options of `modelgauge test run` that concern `assert_test`.

    Args:
        repeat: how often each test is run.
        use_cache: False has everything judged anew.
        ignore_errors: a metric without a score fails its case, instead of raising its error.
        skip_on_missing_params: leave out metrics that need what a case does not have.
        display: which cases are listed at the end.
        identifier: what the user calls this run.
        told: the file where the folder of the run's record is told to the command.
        command: the file in which its command line stands.
    """

    __test__ = False

    repeat: int = 1
    use_cache: bool = True
    ignore_errors: bool = False
    skip_on_missing_params: bool = False
    display: Display = "all"
    identifier: str | None = None
    told: str | None = None
    command: str | None = None

    def errors(self) -> ErrorConfig:
        """What becomes of cases that cannot be judged."""
        return ErrorConfig(self.ignore_errors, self.skip_on_missing_params)

    def command_line(self) -> list[str] | None:
        """That of `modelgauge test run`; None where pytest was called itself."""
        return None if self.command is None else json.loads(Path(self.command).read_text(encoding="utf-8"))

    def recorded(self) -> dict[str, Any]:
        """What of it a manifest says."""
        return {name: value for name, value in asdict(self).items() if name not in ("told", "command")}

    def as_json(self) -> str:
        """For the processes of the session."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "TestRunOptions":
        """What `as_json` gave."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known})


class Session:
    """What one process knows of a session.

    Args:
        where: when and where the session began: settings and the data folder are looked up from there.
        options: of `modelgauge test run`, as JSON.
        args: the command line of pytest.
    """

    def __init__(self, where: Mapping[str, Any], options: str, args: Sequence[str]) -> None:
        self.options = TestRunOptions.from_json(options)
        self.summary = ""
        self._lock = threading.Lock()  # a test may call `assert_test` from threads of its own
        self._calls = 0
        self._times: Counter[str] = Counter()
        self._command = self.options.command_line() or ["pytest", *args]
        self._settings = load_settings(where["cwd"])
        self._plugins: Plugins | None = None
        self._run = SessionRun(where, self._settings.data_dir / RUNS, self._first_manifest)
        self._secrets = SessionSecrets(self._run.places, self._settings.secrets_file)
        self._redact = self._secrets.redactor.redact_json_text

    @property
    def folder(self) -> Path:
        """Where the cases of the session are."""
        return self._run.parts

    def begin(self) -> "Call":
        """An `assert_test` begins."""
        self._run.open(self._redact)
        test = current_test() or OUTSIDE
        place = place_of(test)
        with self._lock:
            self._calls += 1
            self._times[test] += 1
            number, time = self._calls, self._times[test]
        folder = self.folder / f"{place.number:08}-{number:08}-{os.getpid()}"
        folder.mkdir(mode=0o700, parents=True)
        repeat = Repeat(place.test, place.repeat)
        (folder / REPEAT).write_text(json.dumps(asdict(repeat)), encoding="utf-8")
        (folder / TEST).write_text(test, encoding="utf-8")
        # In the order of the tests, and no other process's.
        index = (place.number << 40) + (number << 22) + (os.getpid() & (1 << 22) - 1)

        def add(item: ItemRecord) -> None:
            self._run.add(named(item, index, test, time), self._redact)

        return Call(
            folder,
            test,
            place.repeat,
            settings=self._settings,
            plugins=self.plugins,
            secrets=self._secrets,
            add=add,
        )

    def plugins(self) -> Plugins:
        """What is installed, and what the settings name.

        Raises:
            PluginError: a local plugin does not work.
        """
        with self._lock:
            if self._plugins is None:
                self._plugins = discover(self._settings.plugins)
            return self._plugins

    # --- the end --------------------------------------------------------------------------------------------

    def finish(self, collected: int | None) -> None:
        """Make one run of all cases, if there were any, and say in `summary` what came out.

        Args:
            collected: where the session was interrupted, the number of tests that it had, 0 where it is not known;
                None where it came to its end.
        """
        parts = parts_of(*self._run.all_places())
        if not parts:
            self._run.forget()
            return
        notes = [
            *self._secrets.learn(self._run.all_places()),
            *self._unrepeated(),
            *_interrupted(parts, collected),
        ]
        cases, used = cases_of(parts), total_used(parts)
        items = list(items_of(cases))
        ranges = agreed(part.ranges() for part in parts)
        known = len(cases) if collected is None else None  # of those that were not begun, nobody knows
        result = self._run.write_items(items, ranges, known, self._redact)
        counts = total_counts(len(cases), items, used)
        record = self._record(parts, counts, used, result=result, notes=notes)
        record = record.replaced(cancelled=collected is not None)
        self._run.write(record, {**self._manifest(record), **made_by(parts)}, used, self._redact)
        shown = told_apart([(self._secrets.redact(one.test), one.shown(self._redact)) for one in parts])
        folder = self._run.folder
        told = folder.read_record().notes  # without secrets
        self.summary = rendered(shown, folder.path, self.options.display, told, cases=len(cases))
        if self.options.told is not None:
            Path(self.options.told).write_text(str(folder.path), encoding="utf-8")

    def close(self) -> None:
        """The session ends, in this process."""
        self._run.close()

    def _first_manifest(self) -> dict[str, Any]:
        """What is known of the run when it begins."""
        return self._manifest(self._record((), Counts(), Totals(), result={}, notes=()))

    def _manifest(self, record: TestRecord) -> dict[str, Any]:
        said = record.model_dump(mode="json", exclude={"counts", "result", "seconds", "spent"})
        return {**said, **surroundings(self._command, []), "options": self.options.recorded()}

    def _unrepeated(self) -> list[str]:
        """What `--repeat` could not repeat."""
        file = self._run.places[-1] / UNREPEATED
        tests = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if not tests:
            return []
        more = f" and {len(tests) - 1:,} more" if len(tests) > 1 else ""
        why = "it works by parameters, which methods of unittest.TestCase cannot have"
        fix = "Write them as functions, or as methods of a plain class."
        return [f"--repeat {self.options.repeat} did not repeat {tests[0]}{more}: {why}. {fix}"]

    def _record(
        self,
        parts: Sequence[Part],
        counts: Counts,
        used: Totals,
        *,
        result: dict[str, Any],
        notes: Iterable[str],
    ) -> TestRecord:
        records = [record for part in parts for record in part.records]
        uid = self.options.identifier or UID
        hyperparameters: dict[str, Any] = {}
        for one in records:
            hyperparameters.update(one.hyperparameters)
        made = {"uid": uid, "class_name": UID, "cache_version": 0, "arguments": {}, "opaque": []}
        given = {**made, "uid": GIVEN, "class_name": GIVEN}
        return TestRecord(
            schema_version=SCHEMA_VERSION,
            run_id=self._run.folder.run_id,
            invocation_id=self._run.folder.run_id,  # of a command with this run alone
            run_timestamp=self._run.began.isoformat(timespec="seconds"),
            test_uid=uid,
            test_initialization=made,
            sut_uid=GIVEN,
            sut_initialization=given,
            hyperparameters=hyperparameters,
            identifier=self.options.identifier,
            repeats=self.options.repeat,
            thresholds=agreed(one.thresholds for one in records),
            counts=counts,
            result=result,
            seconds=used.seconds,
            spent=used.spent,
            notes=tuple(dict.fromkeys([*(note for part in parts for note in part.notes), *notes])),
        )


class Call:
    """One `assert_test`: its run, or why there is none.

    Args:
        folder: where its run goes.
        test: the id of the test that called it.
        repeat: which time the test is run, from 0: judges are asked anew each time.
        settings: of the session.
        plugins: gives them, or raises.
        secrets: of the session.
        add: keeps the record of its case for those who look at the session's run before its end.
    """

    def __init__(
        self,
        folder: Path,
        test: str,
        repeat: int,
        *,
        settings: Settings,
        plugins: Callable[[], Plugins],
        secrets: SessionSecrets,
        add: Callable[[ItemRecord], None],
    ) -> None:
        self._folder, self._test, self._repeat = folder, test, repeat
        self._settings, self._plugins, self._secrets = settings, plugins, secrets
        self._redact = secrets.redactor.redact_json_text
        self._add = add

    def runner_options(self) -> dict[str, Any]:
        """What its run is given.

        Raises:
            PluginError: a local plugin does not work.
        """
        return {
            "settings": self._settings,
            "plugins": self._plugins(),
            "secrets": self._secrets,
            "runs_dir": self._folder,
            "identifier": self._test,
            "first_repeat": self._repeat,
        }

    def note(self, result: EvaluationResult) -> None:
        """Leave what is shown of its case at the end."""
        (one,) = result.test_results
        run = RunFolder(self._folder / result.run_id)
        self._show(run.path, replace(Shown.of(one), title=one.name))
        for item in run.items():
            self._add(item)

    def refused(self, case: Any, error: BaseException) -> None:
        """Leave a record of a case that was not judged: it counts as failed, like any other.

        Args:
            case: a test case or golden; something else, where that is why.
            error: why.
        """
        known = isinstance(case, LLMTestCase | ConversationalTestCase | Golden | ConversationalGolden)
        stage: Stage = "annotator" if isinstance(error, MissingParameterError) else "measure"
        item = TestItem(PromptWithContext(prompt_of(case) if known else TextPrompt("")), id="refused")
        run = RunFolder.create(self._folder)
        journal = JournalFile(run.journal)
        record = exception_record(0, item, [], StageError(stage, "assert_test", error))
        journal.append(self._redact(record.model_dump_json()).encode("utf-8") + b"\n")
        journal.close()
        title = (title_of(case) if known else "") or self._test
        self._show(run.path, Shown(title, False, (), f"{record.error_type}: {record.message}"))
        self._add(record)

    def left(self, case: Any, error: BaseException) -> None:
        """Forget a case whose test is skipped; any other that is left early counts, though nothing judged it.

        Args:
            case: a test case or golden.
            error: what ends the test, where it is no `Exception`.
        """
        if is_skip(error):
            shutil.rmtree(self._folder)
        elif not isinstance(error, KeyboardInterrupt):  # then there is no time for more
            self.refused(case, error)

    def _show(self, run: Path, shown: Shown) -> None:
        write_atomically(run / SHOWN, self._redact(shown.as_json()))


def _interrupted(parts: Sequence[Part], collected: int | None) -> list[str]:
    """What a reader should know of a session that was interrupted."""
    if collected is None:
        return []
    tests = counted(collected, "test") if collected else "tests, nobody knows how many"
    judged = len({part.test for part in parts} - {OUTSIDE})
    return [f"The session was interrupted: pytest had collected {tests}. There are cases of {judged:,} here."]


def told_apart(shown: Sequence[tuple[str, Shown]]) -> list[Shown]:
    """Cases, of which those with one title are told apart by their tests.

    Args:
        shown: each with the id of its test.
    """
    times = Counter(one.title for _, one in shown)
    short = Counter(_within_file(test) for test in {test for test, _ in shown})
    made: list[Shown] = []
    numbers: Counter[str] = Counter()
    for test, one in shown:
        numbers[test] += 1
        if times[one.title] > 1:
            named = _within_file(test) if short[_within_file(test)] == 1 else test
            number = "" if numbers[test] == 1 else f"~{numbers[test]}"
            made.append(replace(one, title=f"{one.title} ({named}{number})"))
        else:
            made.append(one)
    return made


def _within_file(test: str) -> str:
    return test.partition("::")[2] or test


def current_test() -> str | None:
    """The id of the test that pytest is running: `test_app.py::test_refunds[0]`."""
    running = os.environ.get("PYTEST_CURRENT_TEST")
    return None if running is None else running.rpartition(" (")[0]

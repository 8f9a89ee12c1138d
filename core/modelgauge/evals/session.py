"""The cases of one pytest session, from all processes that take part, as one run.

Each `assert_test` is a run of its own, in a folder that the processes of the session share, so that nothing
is lost when one of them dies. When the session ends, the process that began it makes one run of them.
"""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import TextPrompt
from modelgauge.data.records import (
    SCHEMA_VERSION,
    CallCounts,
    Counts,
    ItemRecord,
    Stage,
    TestItemExceptionRecord,
    TestRecord,
    Threshold,
    normalized_result,
)
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.discovery import Plugins, discover
from modelgauge.engine.failures import StageError, exception_record
from modelgauge.engine.journal import RECORD, JournalFile, RunFolder, new_id
from modelgauge.engine.manifest import surroundings
from modelgauge.engine.measured import JournalIndex
from modelgauge.errors import MissingParameterError
from modelgauge.evals.configs import Display, ErrorConfig
from modelgauge.evals.dataset_test import prompt_of
from modelgauge.evals.display import LONGEST_TITLE, Shown, rendered, style_of
from modelgauge.evals.given import GIVEN
from modelgauge.evals.pytest_plugin import UNREPEATED
from modelgauge.evals.results import EvaluationResult
from modelgauge.metrics.cases import title_of
from modelgauge.report.plain import one_line
from modelgauge.settings import Settings, load_settings
from modelgauge.stats import mean_of_each

UID = "pytest"
"""How the record of a session calls its test, where the user gave no identifier."""


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
    """

    __test__ = False

    repeat: int = 1
    use_cache: bool = True
    ignore_errors: bool = False
    skip_on_missing_params: bool = False
    display: Display = "all"
    identifier: str | None = None
    told: str | None = None

    def errors(self) -> ErrorConfig:
        """What becomes of cases that cannot be judged."""
        return ErrorConfig(self.ignore_errors, self.skip_on_missing_params)

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
        folder: where all processes of the session leave their cases.
        cwd: where the session began: settings and the data folder are looked up from there.
        options: of `modelgauge test run`, as JSON.
    """

    def __init__(self, folder: str, cwd: str, options: str) -> None:
        self.folder = Path(folder)
        self.options = TestRunOptions.from_json(options)
        self.summary = ""
        self._calls = 0
        self._settings = load_settings(cwd)
        self._plugins: Plugins | None = None
        self._begun = datetime.now(UTC)

    def begin(self, place: int) -> "Call":
        """An `assert_test` begins.

        Args:
            place: of its test among those of the session.
        """
        self._calls += 1
        folder = self.folder / f"{place:08}-{self._calls:08}-{os.getpid()}"
        folder.mkdir(mode=0o700, parents=True)
        test = current_test()
        (folder / _TEST).write_text(test or folder.name, encoding="utf-8")
        if self._plugins is None:
            self._plugins = discover(self._settings.plugins)
        return Call(folder, test, self._settings, self._plugins)

    # --- the end --------------------------------------------------------------------------------------------

    def finish(self, args: Sequence[str]) -> TestRecord | None:
        """Make one run of all cases, and say in `summary` what came out; None where there was no case.

        Args:
            args: the command line of pytest.
        """
        parts = [_Part(path) for call in sorted(self.folder.glob("*/")) for path in sorted(call.glob("*/"))]
        parts = [part for part in parts if part.items]
        if not parts:
            shutil.rmtree(self.folder)
            return None
        folder = RunFolder.create(self._settings.data_dir / "runs")
        journal = JournalFile(folder.journal)
        index = JournalIndex(folder.journal, {})
        for item in _numbered(parts):
            offset = journal.size
            journal.append(item.model_dump_json().encode("utf-8") + b"\n")
            index.add(item, offset)
        journal.close()
        items = index.items()
        result = normalized_result(mean_of_each(items)) if len(items) else {}
        record = self._record(folder, parts, result)
        manifest = record.model_dump(mode="json", exclude={"counts", "result", "seconds"})
        facts = surroundings(["pytest", *args], [])
        folder.write_manifest({**manifest, **facts, "options": asdict(self.options)}, str)
        folder.write_record(record, str)
        shown = told_apart([(part.test, one) for part in parts for one in part.shown()])
        self.summary = rendered(shown, folder.path, self.options.display, style_of(sys.stdout), record.notes)
        if self.options.told is not None:
            Path(self.options.told).write_text(str(folder.path), encoding="utf-8")
        shutil.rmtree(self.folder)
        return record

    def _unrepeated(self) -> list[str]:
        """What `--repeat` could not repeat."""
        file = self.folder / UNREPEATED
        tests = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if not tests:
            return []
        more = f" and {len(tests) - 1:,} more" if len(tests) > 1 else ""
        why = "it works by parameters, which methods of unittest.TestCase cannot have"
        fix = "Write them as functions, or as methods of a plain class."
        return [f"--repeat {self.options.repeat} did not repeat {tests[0]}{more}: {why}. {fix}"]

    def _record(self, folder: RunFolder, parts: Sequence["_Part"], result: dict[str, Any]) -> TestRecord:
        records = [part.record for part in parts if part.record is not None]
        uid = self.options.identifier or UID
        hyperparameters: dict[str, Any] = {}
        for one in records:
            hyperparameters.update(one.hyperparameters)
        made = {"uid": uid, "class_name": UID, "cache_version": 0, "arguments": {}, "opaque": []}
        given = {**made, "uid": GIVEN, "class_name": GIVEN}
        return TestRecord(
            schema_version=SCHEMA_VERSION,
            run_id=folder.run_id,
            invocation_id=new_id(),
            run_timestamp=self._begun.isoformat(timespec="seconds"),
            test_uid=uid,
            test_initialization=made,
            sut_uid=GIVEN,
            sut_initialization=given,
            hyperparameters=hyperparameters,
            identifier=self.options.identifier,
            thresholds=_agreed(one.thresholds for one in records),
            counts=_total([part.counts() for part in parts]),
            result=result,
            seconds=round(sum(one.seconds or 0.0 for one in records), 3),
            notes=tuple(
                dict.fromkeys([*(note for one in records for note in one.notes), *self._unrepeated()])
            ),
        )


_SHOWN = "shown.jsonl"
_TEST = "test.txt"


class Call:
    """One `assert_test`: its run, or why there is none.

    Args:
        folder: where its run goes.
        test: the id of the test that called it.
        settings: of the session.
        plugins: likewise.
    """

    def __init__(self, folder: Path, test: str | None, settings: Settings, plugins: Plugins) -> None:
        self._folder, self._test = folder, test
        self._settings, self._plugins = settings, plugins

    def runner_options(self) -> dict[str, Any]:
        """What its run is given."""
        return {
            "settings": self._settings,
            "plugins": self._plugins,
            "runs_dir": self._folder,
            "identifier": self._test,
        }

    def note(self, result: EvaluationResult) -> None:
        """Leave what is shown of its case at the end."""
        self._show(self._folder / result.run_id, [Shown.of(one) for one in result.test_results])

    def refused(self, case: Any, error: Exception) -> None:
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
        journal.append(record.model_dump_json().encode("utf-8") + b"\n")
        journal.close()
        title = one_line(str((title_of(case) if known else "") or self._test), LONGEST_TITLE)
        self._show(run.path, [Shown(title, False, (), f"{record.error_type}: {record.message}")])

    def _show(self, run: Path, shown: Iterable[Shown]) -> None:
        text = "\n".join(one.as_json() for one in shown)
        (run / _SHOWN).write_text(text, encoding="utf-8")


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


class _Part:
    """The run of one `assert_test`.

    Args:
        path: its folder.
    """

    def __init__(self, path: Path) -> None:
        folder = RunFolder(path)
        self.items = list(folder.items())
        self.record = folder.read_record() if (path / RECORD).exists() else None
        self.test = (path.parent / _TEST).read_text(encoding="utf-8")
        self._path = path

    def shown(self) -> list[Shown]:
        """What is shown of its cases."""
        file = self._path / _SHOWN
        if not file.exists():  # the process ended before
            return []
        return [Shown.from_json(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def counts(self) -> Counts:
        """What became of its cases, also where the process ended before it wrote its record."""
        if self.record is not None:
            return self.record.counts
        stages = [item.stage for item in self.items if isinstance(item, TestItemExceptionRecord)]
        return Counts(
            items=len(self.items),
            scored=len(self.items) - len(stages),
            sut_errors=stages.count("sut"),
            annotator_errors=stages.count("annotator"),
            unscored=stages.count("measure"),
        )


def _numbered(parts: Sequence[_Part]) -> Iterator[ItemRecord]:
    """The items of all parts, in order, under the names of their tests."""
    times: dict[str, int] = {}
    index = 0
    for part in parts:
        for record in part.items:
            times[part.test] = times.get(part.test, 0) + 1
            number = times[part.test]
            item_id = part.test if number == 1 else f"{part.test}~{number}"
            yield record.replaced(index=index, test_item=record.test_item.replaced(id=item_id))
            index += 1


def _agreed(several: Iterable[Mapping[str, Threshold]]) -> dict[str, Threshold]:
    """The thresholds of all cases, but for those that differ from case to case."""
    found: dict[str, set[Threshold]] = {}
    for thresholds in several:
        for name, one in thresholds.items():
            found.setdefault(name, set()).add(one)
    return {name: next(iter(ones)) for name, ones in found.items() if len(ones) == 1}


def _total(several: Sequence[Counts]) -> Counts:
    numbers = {
        name: sum(getattr(one, name) for one in several)
        for name in ("items", "scored", "sut_errors", "annotator_errors", "unscored")
    }
    calls = {
        name: CallCounts(
            paid=sum(getattr(one, name).paid for one in several),
            cached=sum(getattr(one, name).cached for one in several),
        )
        for name in ("sut_calls", "annotator_calls", "judge_calls")
    }
    return Counts(**numbers, **calls)


def current_test() -> str | None:
    """The id of the test that pytest is running: `test_app.py::test_refunds[0]`."""
    running = os.environ.get("PYTEST_CURRENT_TEST")
    return None if running is None else running.rpartition(" (")[0]

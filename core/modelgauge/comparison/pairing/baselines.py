"""Pinned baselines: the runs that other runs of a data set, a test or a tag are compared with by default.

`baselines.json` in the data folder has the id of a run for each of these subjects.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from modelgauge.comparison.named_runs import GivenRuns, named_runs
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.comparability import test_name
from modelgauge.data.records import DatasetReference
from modelgauge.engine.run_files.folder import MANIFEST, RUNS, RunFolder, read_json
from modelgauge.engine.run_files.ids import why_no_run_id
from modelgauge.errors import InvalidOptionError, RecordError, UnknownNameError
from modelgauge.files.regular import is_file
from modelgauge.files.whole import replacing, turn
from modelgauge.runs.naming import PINNED, data_folder
from modelgauge.runs.notes import Notes
from modelgauge.runs.recorded_run import RecordedRun, recorded_run
from modelgauge.runs.trash import TRASH
from modelgauge.wording.did_you_mean import known_names
from modelgauge.wording.phrases import capitalized, first_few

_FILE, _LOCK = "baselines.json", ".baselines.lock"
_KINDS = {"tag": "tag", "dataset": "data set", "test": "test"}
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class BaselineSubject:
    """A data set, a test or a tag: what runs have in common that are compared with one baseline.

    Args:
        kind: "dataset", "test" or "tag".
        name: of the data set or test, or the tag itself.
    """

    kind: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a subject as it is written, such as `dataset:questions`.

        Raises:
            InvalidOptionError: it has no kind or no name.
        """
        kind, _, name = text.partition(":")
        if kind not in _KINDS or not name:
            raise InvalidOptionError(
                f"{text!r} is neither a data set nor a test nor a tag.",
                fix="Write dataset:NAME, test:NAME or tag:NAME.",
            )
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def words(self) -> str:
        """The subject in a sentence."""
        return f"the {_KINDS[self.kind]} {self.name!r}"


def list_subjects(run: RecordedRun) -> list[BaselineSubject]:
    """Return what a run can be a baseline of: its tags, its data sets, its test.

    Raises:
        RecordError: its notes or its manifest are damaged.
    """
    of_test = subjects_of_test(test_name(run.record), run.record.dataset)
    if run.folder is None:
        return of_test
    pulled: Any = run.folder.read_manifest().get("data_sets")  # of a session of pytest
    names = [str(reference.get("name")) for reference in pulled or () if isinstance(reference, dict)]
    of_data = [BaselineSubject("dataset", name) for name in dict.fromkeys(names)]
    return [*(BaselineSubject("tag", tag) for tag in Notes.of(run.folder.path).tags), *of_data, *of_test]


def subjects_of_test(test: str, dataset: DatasetReference | None) -> list[BaselineSubject]:
    """Return the subjects of all runs of a test: its data set, if it has one, and the test."""
    of_data = [BaselineSubject("dataset", dataset.name)] if dataset is not None else []
    return [*of_data, BaselineSubject("test", test)]


class Baselines:
    """The pinned baselines of a data folder.

    Args:
        data_dir: the folder.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def pins(self) -> dict[BaselineSubject, str]:
        """Return the id of the pinned run of each subject that has one.

        Raises:
            RecordError: the file is damaged.
        """
        path = self._data_dir / _FILE
        found = read_json(path) if path.exists() else {}
        runs = found.values() if isinstance(found, dict) else [None]
        if any(not isinstance(run, str) or why_no_run_id(run) is not None for run in runs):
            raise RecordError(f"{path} is not a list of baselines.", fix="Correct the file, or remove it.")
        try:
            return {BaselineSubject.parse(text): run for text, run in found.items()}
        except InvalidOptionError as error:
            raise RecordError(f"{path}: {error.problem}", fix=error.fix) from None

    def pin(self, pins: Mapping[BaselineSubject, str]) -> None:
        """Make runs the baselines of subjects, in place of earlier ones: all of them, or none.

        Args:
            pins: the id of the run of each subject.

        Raises:
            UnknownNameError: a run is of another test or data set.
            RecordError: a run does not exist, or is damaged.
            OSError: the disk refuses.
        """
        for subject, run_id in pins.items():
            of_run = list_subjects(recorded_run(self._run(subject, run_id)))
            own = [str(known) for known in of_run if known.kind != "tag"]
            if subject.kind != "tag" and str(subject) not in own:
                raise UnknownNameError(
                    f"The run {run_id} is not of {subject.words}.",
                    fix=known_names(str(subject), [*own, "tag:NAME"], "It can be the baseline of"),
                )
        self._change(pins)

    def unpin(self, subject: BaselineSubject) -> None:
        """Leave a subject without a baseline.

        Raises:
            UnknownNameError: it has none.
            OSError: the disk refuses.
        """
        pins = self.pins()
        if subject not in pins:
            raise UnknownNameError(
                f"No baseline is pinned for {subject.words}.",
                fix=known_names(str(subject), map(str, pins), "Baselines are pinned for")
                if pins
                else "No baseline is pinned at all.",
            )
        self._change({subject: None})

    def share(self, subject: BaselineSubject, other: BaselineSubject) -> None:
        """Let another subject have the baseline of this one, if it has one: a data set with a new name, say."""
        pins = self.pins()
        if subject in pins:
            self._change({other: pins[subject]})

    def _change(self, changes: Mapping[BaselineSubject, str | None]) -> None:
        self._data_dir.mkdir(parents=True, exist_ok=True)
        with turn(self._data_dir / _LOCK):
            pins = {**self.pins(), **changes}
            kept = {str(subject): run for subject, run in pins.items() if run is not None}
            with replacing(self._data_dir / _FILE) as written:
                written.write_text(f"{json.dumps(kept, indent=2, ensure_ascii=False)}\n", encoding="utf-8")

    def of(self, subjects: Sequence[BaselineSubject]) -> tuple[BaselineSubject, RunFolder] | None:
        """Return the baseline of the first subject that has one, and that subject; None if none has.

        Raises:
            RecordError: the run is not there any more.
        """
        pins = self.pins()
        subject = next((subject for subject in subjects if subject in pins), None)
        return None if subject is None else (subject, self._run(subject, pins[subject]))

    def _run(self, subject: BaselineSubject, run_id: str) -> RunFolder:
        run = RunFolder(self._data_dir / RUNS / run_id)
        if is_file(run.path / MANIFEST):
            return run
        again = f"pin another: modelgauge baselines pin RUN --for {str(subject)!r}"
        if is_file(self._data_dir / TRASH / run_id / MANIFEST):
            raise RecordError(
                f"The baseline of {subject.words}, run {run_id}, is in the trash.",
                fix=f"Move it from {self._data_dir / TRASH} back to {self._data_dir / RUNS}, or {again}.",
            )
        raise RecordError(
            f"The baseline of {subject.words}, run {run_id}, is not in {self._data_dir / RUNS} any more.",
            fix=f"{capitalized(again)}.",
        )


def resolve_baseline(
    baseline: GivenRuns, candidates: Sequence[GivenRuns], options: CompareOptions
) -> GivenRuns:
    """Return the baseline of a comparison: for `pinned`, the ids of the pinned baselines of the candidates.

    Raises:
        RecordError: a candidate does not exist, none has a pinned baseline, or a baseline is not there any more.
    """
    if baseline != PINNED:
        return baseline
    folder = data_folder(options.data_dir)
    runs = (run for given in candidates for run in named_runs(given, folder))
    return pinned_runs(folder, map(list_subjects, runs))


def pinned_runs(data_dir: Path, subjects: Iterable[Sequence[BaselineSubject]]) -> list[str]:
    """Return the ids of the pinned baselines of runs.

    Args:
        data_dir: the data folder.
        subjects: of each run.

    Raises:
        RecordError: no run has a baseline, or a baseline is not there any more.
    """
    baselines, known = Baselines(data_dir), [*subjects]
    found = dict.fromkeys(pin[1].run_id for of_run in known if (pin := baselines.of(of_run)) is not None)
    if not found:
        named = first_few(
            [*dict.fromkeys(subject.words for of_run in known for subject in of_run)], _MOST_LISTED
        )
        raise RecordError(
            f"No baseline is pinned for {named}.", fix="Pin a run: modelgauge baselines pin RUN"
        )
    return [*found]

"""Comparisons as pages show them: made once for runs as they are, and kept until the server ends."""

import hashlib
import json
import re
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from modelgauge.comparison.compare import compare_pairs, compare_runs
from modelgauge.comparison.options import ALLOWED, CompareOptions
from modelgauge.comparison.pairing.comparability import test_name
from modelgauge.comparison.pairing.paired_runs import paired_systems
from modelgauge.comparison.pairing.systems import MeasuredSystem
from modelgauge.comparison.result import Comparison
from modelgauge.data.results import GIVEN
from modelgauge.documents.document import TableBlock, TableColumn, Text
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import ModelGaugeError
from modelgauge.reports.item_texts import setting_text
from modelgauge.reports.pages.assets import environment
from modelgauge.reports.pages.comparison_view import compared_runs, comparison_blocks
from modelgauge.reports.pages.run_page import main_part
from modelgauge.runs.recorded_run import RecordedRun, recorded_run
from modelgauge_workbench.index.rows import differing_settings, stamp_of

_MOST_KEPT = 20
_ALLOWING = re.compile(r"--allow (\w+)")
_OTHER_FIELDS = re.compile(r" \(another ([^()]+)\)")
_EXPECTED = ("expected_output", "expected_tools", "expected_outcome", "references")
_KINDS = {
    "data": "other data",
    "reduction": "another way to count repeats",
    "thresholds": "other thresholds",
    "judge": "another judge",
    "test": "another test",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """What a page shows of runs beside each other.

    Args:
        key: names it; changes with the files of the runs.
        title: the question that it answers.
        html: the answer, and what is behind it.
        why_not: why the runs are not compared; empty if they are.
        refused: the kinds of things in which they differ, and which can be allowed: what each is called.
        settings: what was set differently, by run; None if nothing was.
    """

    key: str
    title: str
    html: str
    why_not: str
    refused: dict[str, str]
    settings: TableBlock | None


class Comparisons:
    """Makes comparisons, and keeps the latest of them in a folder of its own.

    Args:
        redact: takes secrets out of a text.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._folder = tempfile.TemporaryDirectory(prefix="modelgauge-comparisons-")
        self._kept: OrderedDict[str, Compared] = OrderedDict()
        self._making = Lock()

    def close(self) -> None:
        """Remove what was kept."""
        self._folder.cleanup()

    def of(self, folders: Sequence[RunFolder], allow: Sequence[str]) -> Compared:
        """Compare runs with the first of them, or find what was made of them before.

        Args:
            folders: of runs, at least two.
            allow: in which kinds of things the runs may differ, as for `modelgauge compare --allow`.

        Raises:
            RecordError: a run cannot be read.
        """
        about = [[str(folder.path), stamp_of(folder.path)] for folder in folders]
        key = hashlib.sha256(json.dumps([about, sorted(allow)]).encode()).hexdigest()
        with self._making:  # one after the other: large runs take memory
            if key not in self._kept:
                self._kept[key] = self._made(key, [*map(recorded_run, folders)], allow)
                while len(self._kept) > _MOST_KEPT:
                    old, _ = self._kept.popitem(last=False)
                    shutil.rmtree(self._blocks(old))
            self._kept.move_to_end(key)
            return self._kept[key]

    def block(self, key: str, name: str) -> Path | None:
        """The file of a block of data of a comparison; None if there is none."""
        there = self._blocks(key).iterdir() if key in self._kept else ()
        return next((path for path in there if path.name == name), None)

    def _blocks(self, key: str) -> Path:
        return Path(self._folder.name) / key

    def _made(self, key: str, runs: Sequence[RecordedRun], allow: Sequence[str]) -> Compared:
        self._blocks(key).mkdir(exist_ok=True)

        def keep(name: str, content: str) -> None:
            (self._blocks(key) / name).write_text(content, encoding="ascii")

        comparison, why_not, refused = None, "", dict[str, str]()
        try:
            comparison = compared(runs, allow)
        except ModelGaugeError as error:
            refused = {kind: _named(kind, error.problem) for kind in _ALLOWING.findall(error.fix)}
            why_not = error.problem if refused else f"{error.problem} {error.fix}"
        if comparison is not None:
            runs = compared_runs(comparison)
            for name, content in comparison_blocks(comparison, runs):
                keep(name, content)
        page = main_part(runs, keep, comparison=comparison, redact=self._redact)
        html = environment().get_template("main.html.j2").render(page, not_compared="", redact=self._redact)
        return Compared(key, page["title"], html, why_not, refused, _settings(runs))


def _named(kind: str, problem: str) -> str:
    """Return the name of a kind of difference; for targets, the fields that the message names."""
    if kind in _KINDS:
        return _KINDS[kind]
    fields = dict.fromkeys(name for found in _OTHER_FIELDS.findall(problem) for name in found.split(", "))
    others = ["another " + name.replace("_", " ") for name in fields if name not in _EXPECTED]
    expected = ["other expected answers"] if len(others) < len(fields) else []
    return " and ".join([*expected, *others]) or "another context"


def compared(runs: Sequence[RecordedRun], allow: Sequence[str]) -> Comparison:
    """Compare runs as `modelgauge compare` does: each is a system; runs of several tests are joined by their SUTs.

    Args:
        runs: the baseline first.
        allow: see `Comparisons.of`.

    Raises:
        RecordError: they cannot be compared.
        InvalidDataError: a value is outside its range.
    """
    options = CompareOptions(allow=tuple(kind for kind in ALLOWED if kind in allow))
    tests = {test_name(run.record) for run in runs}
    of_systems = compare_runs(runs) if len(runs) > 2 and len(tests) > 1 else None
    if of_systems is not None:
        return of_systems
    systems = [MeasuredSystem(run.record.run_id, {test_name(run.record): run}) for run in runs]
    return compare_pairs(paired_systems(systems, options), options)


def _settings(runs: Sequence[RecordedRun]) -> TableBlock | None:
    """Show what runs were set to where they differ: hyperparameters, options of calls, arguments of SUTs."""
    said = []
    for run in runs:
        record = run.record
        arguments: dict[str, Any] = dict(record.sut_initialization.get("arguments", {}))
        asked = {name: value for name, value in record.sut_options.items() if value is not None}
        said.append({**arguments, **asked, **record.hyperparameters})
    texts = [
        {name: setting_text(value) for name, value in fields.items() if value is not None} for fields in said
    ]
    names = differing_settings(texts)
    columns = [
        TableColumn(
            run.record.run_id
            if run.record.sut_uid == GIVEN
            else f"{run.record.sut_name} {run.record.run_id}",
            [Text(fields.get(name, ""), look="wrap") for name in names],
        )
        for run, fields in zip(runs, texts, strict=True)
    ]
    settings = TableBlock([TableColumn("Setting", names), *columns], label="Table of settings", kind="rows")
    return settings if names else None

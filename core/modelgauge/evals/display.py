"""What a person reads after an evaluation: each test case with its metrics, and how many passed.

The statistics of a run are the report's: `modelgauge show`.
"""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from modelgauge.data.records import DatasetReference
from modelgauge.engine.journal import RunFolder
from modelgauge.evals.configs import Display
from modelgauge.evals.results import EvaluationResult, MetricData, TestResult
from modelgauge.report.figures import figure
from modelgauge.report.page import Page, Style
from modelgauge.report.plain import counted, ends_of, one_line, visible

_MOST_CASES = 50
LONGEST_TITLE = 40
_SHORT_NAME, _LONG_NAME, _BESIDE_NAMES = 12, 28, 52  # of metrics; what the other columns need at least
_LONGEST_REASON, _LONGEST_ERROR = 200, 400


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a test case.

    Args:
        title: its name, else how it begins.
        success: whether all its metrics passed.
        metrics_data: what each metric said.
        error: why none said anything.
    """

    title: str
    success: bool
    metrics_data: tuple[MetricData, ...]
    error: str | None = None

    @classmethod
    def of(cls, result: TestResult) -> "Shown":
        """What is shown of a result."""
        title = one_line(result.name, LONGEST_TITLE)
        return cls(title, result.success, result.metrics_data, None if result.metrics_data else result.error)

    def as_json(self) -> str:
        """For another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Shown":
        """What `as_json` gave."""
        held = json.loads(text)
        data = tuple(MetricData(**one) for one in held["metrics_data"])
        return cls(held["title"], held["success"], data, held["error"])


def print_result(result: EvaluationResult, folder: Path, display: Display) -> None:
    """Print the results of an evaluation to stdout.

    Args:
        result: of `evaluate`.
        folder: of the run.
        display: which test cases are listed.
    """
    shown = [Shown.of(one) for one in result.test_results]
    notes = list(result.record.notes)
    if result.left_out:
        notes.append(f"{result.left_out:,} more were left out by max_test_items.")
    text = rendered(shown, folder, display, style_of(sys.stdout), notes, dataset=result.record.dataset)
    sys.stdout.write(f"{text}\n")


def rendered(
    results: Sequence[Shown],
    folder: Path,
    display: Display,
    style: Style,
    notes: Sequence[str] = (),
    *,
    dataset: DatasetReference | None = None,
    cases: int | None = None,
) -> str:
    """The table of test cases, and what came out.

    Of more than are listed those come first that failed.

    Args:
        results: of all test cases, and each of their repeats.
        folder: of the run, for those who want to see more.
        display: which test cases are listed.
        style: of the terminal.
        notes: what else there is to say of the run.
        dataset: that the test cases are of, where it is known.
        cases: how many test cases these are, where some were repeated.
    """
    wanted = {"all": (True, False), "failing": (False,), "passing": (True,)}[display]
    listed = [one for one in results if one.success in wanted]
    page = Page(style, str)
    if len(listed) > _MOST_CASES:
        listed.sort(key=lambda one: one.success)
    if listed:
        page.add(_table(listed[:_MOST_CASES], page))
    passed = sum(one.success for one in results)
    if len(listed) > _MOST_CASES:
        show = RunFolder(folder).command("show")
        more = f"{len(listed) - _MOST_CASES:,} more:"
        page.add_line(more, f"{show} --items", indent=len(more))
        if passed < len(results):
            page.add_line("failed:", f"{show} --failures", indent=len(more))
        page.add_gap()
    of_cases = counted(len(results) if cases is None else cases, "test case")
    repeats = "" if cases in (None, len(results)) else f"{len(results):,} repeats of "
    page.add(page.text(f"{passed:,} of {repeats}{of_cases} passed.", "bold"), gap=False)
    if dataset is not None:
        page.add(page.text(f"Data set: {dataset}"), gap=False)
    for note in notes:
        page.add(page.text(f"Note: {note}"), gap=False)
    return f"{page.rendered()}\nRun: {visible(str(_from_here(folder)))}"  # in one line, to be copied


def _from_here(folder: Path) -> Path:
    """A folder as a person here would call it."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _table(results: Sequence[Shown], page: Page) -> Any:
    table = page.table()
    table.add_column("Test case", overflow="fold", min_width=12)
    table.add_column("Metric", overflow="fold", min_width=_longest_word(results, page.style.width))
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("threshold", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("Reason", overflow="fold")
    for result in results:
        if result.error is not None:
            told = ends_of(result.error, _LONGEST_ERROR)
            table.add_row(*map(page.text, (result.title, "", "none", "", "failed", told)))
        elif not result.metrics_data:  # its process ended before it could say more
            table.add_row(*map(page.text, (result.title, "", "", "", "passed", "")))
        for place, one in enumerate(result.metrics_data):
            title = "" if place else result.title  # in the first of its lines
            table.add_row(*map(page.text, (title, *_cells(one, page.style))))
    return table


def _longest_word(results: Sequence[Shown], width: int) -> int:
    """The width that names of metrics need to stay whole, as far as a narrow terminal has it."""
    words = [word for one in results for data in one.metrics_data for word in data.name.split()]
    return min(max(map(len, words), default=0), max(_SHORT_NAME, min(_LONG_NAME, width - _BESIDE_NAMES)))


def _cells(one: MetricData, style: Style) -> tuple[str, ...]:
    at_least, at_most = ("≥", "≤") if style.symbols else (">=", "<=")
    return (
        one.name if one.component is None else f"{one.component}: {one.name}",
        "none" if one.score is None else figure(one.score),
        f"{at_least if one.higher_is_better else at_most} {figure(one.threshold)}",
        "passed" if one.success else "failed",
        ends_of(one.error, _LONGEST_ERROR) if one.error else one_line(one.reason or "", _LONGEST_REASON),
    )


def style_of(stream: TextIO) -> Style:
    """What a stream can show: colours on a terminal unless NO_COLOR is set."""
    terminal = stream.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Style(
        width=min(shutil.get_terminal_size((100, 24)).columns, 140),
        color=terminal and not plain,
        symbols="utf" in (getattr(stream, "encoding", None) or "").lower(),
    )

"""The text after an evaluation: each test case with its metrics, and how many passed.

The statistics of a run are the report's: `modelgauge show`.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from modelgauge.data.estimates import figure_beside
from modelgauge.data.records import DatasetReference, TestRecord
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import Block, Fact, FactList, Heading, Sentences, TableBlock, TableColumn
from modelgauge.documents.terminal import Style, as_text
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.evals.results import EvaluationResult, MetricData, TestResult
from modelgauge.evals.session_options import Display
from modelgauge.reports.run_report import results_of
from modelgauge.wording.figures import limit
from modelgauge.wording.phrases import counted, keep_ends, one_line
from modelgauge.wording.visible import visible

_MOST_CASES = 50
_LONGEST_TITLE = 40
_REASON = 24  # characters of a line; where there are fewer, it stands below
_LONGEST_REASON, _LONGEST_ERROR = 200, 400


@dataclass(frozen=True, slots=True)
class CaseDisplay:
    """The display of a test case.

    Args:
        title: its name, else how it begins.
        success: whether all its metrics passed.
        metrics_data: the outcome of each metric.
        error: why no metric judged it.
    """

    title: str
    success: bool
    metrics_data: tuple[MetricData, ...]
    error: str | None = None

    @classmethod
    def of(cls, result: TestResult) -> "CaseDisplay":
        """Take what is shown from a result."""
        error = None if result.metrics_data else result.error
        return cls(result.name, result.success, result.metrics_data, error)

    def shortened(self) -> "CaseDisplay":
        """Return it with a title that fits into a table."""
        return replace(self, title=one_line(self.title, _LONGEST_TITLE))

    @property
    def has_no_verdict(self) -> bool:
        """True if it passed only because no metric has a threshold."""
        return bool(self.metrics_data) and all(metric.success is None for metric in self.metrics_data)

    @classmethod
    def of_plain(cls, held: dict[str, Any]) -> "CaseDisplay":
        """Read it from the JSON of another process."""
        data = tuple(MetricData(**metric) for metric in held["metrics_data"])
        return cls(held["title"], held["success"], data, held["error"])


def print_result(result: EvaluationResult, folder: Path, display: Display) -> None:
    """Print the results of an evaluation to stdout.

    Args:
        result: of `evaluate`.
        folder: of the run.
        display: which test cases are listed.
    """
    shown = [CaseDisplay.of(test_result).shortened() for test_result in result.test_results]
    notes = list(result.record.notes)
    if result.left_out:
        notes.append(
            f"{counted(result.left_out, 'test case was', 'test cases were')} left out by max_test_items."
        )
    text = rendered(shown, result.record, folder, display, notes, dataset=result.record.dataset)
    sys.stdout.write(f"{text}\n")


def rendered(
    results: Sequence[CaseDisplay],
    record: TestRecord,
    folder: Path,
    display: Display,
    notes: Sequence[str] = (),
    *,
    dataset: DatasetReference | None = None,
    cases: int | None = None,
) -> str:
    """Format the table of test cases, and the number that passed.

    Where there are too many to list, failed cases come first.

    Args:
        results: of all test cases, and each of their repeats.
        record: of the run.
        folder: of the run, for those who want to see more.
        display: which test cases are listed.
        notes: what else there is to say of the run.
        dataset: that the test cases are of, where it is known.
        cases: how many test cases these are, where some were repeated.
    """
    wanted = {"all": (True, False), "failing": (False,), "passing": (True,)}[display]
    listed = [result for result in results if result.success in wanted]
    blocks: list[Block] = []
    if len(listed) > _MOST_CASES:
        listed.sort(key=lambda result: result.success)
    if listed:
        blocks.append(_table(listed[:_MOST_CASES]))
    passed = sum(result.success for result in results)
    if len(listed) > _MOST_CASES:
        show = RunFolder(folder).command("show")
        more = [Fact(f"{len(listed) - _MOST_CASES:,} more:", f"{show} --items", is_whole=True)]
        if passed < len(results):
            more.append(Fact("failed:", f"{show} --failures", is_whole=True))
        blocks.append(FactList(more))
    if of_metrics := {name: value for name, value in record.result.items() if name != PASSED}:
        blocks.append(results_of(record.replaced(result=of_metrics)))
    of_cases = counted(len(results) if cases is None else cases, "test case")
    repeats = "" if cases in (None, len(results)) else f"{len(results):,} repeats of "
    free = sum(result.has_no_verdict for result in results)
    without = f", {free:,} without a threshold" if free else ""
    reason = _usual_reason(results)
    blocks.append(Heading(f"{passed:,} of {repeats}{of_cases} passed{without}.{reason}"))
    of = [] if dataset is None else [f"Data set: {dataset}"]
    blocks.append(Sentences([*of, *(f"Note: {note}" for note in notes)]))
    return f"{as_text(blocks, Style.of(sys.stdout))}\n{format_place('Run', folder)}"


def _usual_reason(results: Sequence[CaseDisplay]) -> str:
    """Name the metric that most of the failed cases failed; nothing where that goes without saying."""
    every = {metric.name for result in results for metric in result.metrics_data}
    failed = [result for result in results if not result.success]
    times = Counter(
        name
        for result in failed
        for name in {metric.name for metric in result.metrics_data if metric.success is False}
    )
    (first, most), *others = [*times.most_common(2), ("", 0)]
    is_usual = len(every) > 1 and most > 1 and 2 * most > len(failed) and others[0][1] < most
    return f" {first} is the usual reason ({most:,})." if is_usual else ""


def format_place(what: str, path: Path) -> str:
    """Return a line with a path that can be copied.

    Args:
        what: is there.
        path: of it, shown from the working directory where it is within.
    """
    here = Path.cwd()
    return f"{what}: {visible(str(path.relative_to(here) if path.is_relative_to(here) else path))}"


def _table(results: Sequence[CaseDisplay]) -> TableBlock:
    rows = [row for result in results for row in _rows(result)]
    titles, names, scores, limits, outcomes, reasons = zip(*rows, strict=True)
    return TableBlock(
        [
            TableColumn("Test case", titles, fold=12),
            TableColumn("Metric", names, fold=12),
            TableColumn("score", scores, right=True),
            TableColumn("threshold", limits, right=True),
            TableColumn("", outcomes),
            TableColumn("Reason", reasons, fold=_REASON),
        ]
    )


def _rows(result: CaseDisplay) -> Iterator[tuple[str, ...]]:
    """Yield a row for each metric, the first with the title of the case."""
    if result.error is not None:
        yield result.title, "", "none", "", "failed", keep_ends(result.error, _LONGEST_ERROR)
    elif not result.metrics_data:  # its process ended before it could say more
        yield result.title, "", "", "", "passed", ""
    for place, metric in enumerate(result.metrics_data):
        yield (
            "" if place else result.title,
            metric.name if metric.component is None else f"{metric.component}: {metric.name}",
            "none" if metric.score is None else figure_beside(metric.score, metric.threshold),
            limit(metric.threshold, higher_is_better=metric.higher_is_better),
            {True: "passed", False: "failed", None: ""}[metric.success],
            keep_ends(metric.error, _LONGEST_ERROR)
            if metric.error
            else one_line(metric.reason or "", _LONGEST_REASON),
        )


# --- titles of a session of pytest -------------------------------------------------------------------


def with_distinct_titles(shown: Sequence[tuple[str, CaseDisplay]]) -> list[CaseDisplay]:
    """Return the cases with distinct titles: those that share one get the name of their test added.

    Args:
        shown: each with the id of its test.
    """
    times = Counter(case.title for _, case in shown)
    short = Counter(_within_file(test) for test in {test for test, _ in shown})
    made: list[CaseDisplay] = []
    numbers: Counter[str] = Counter()
    for test, case in shown:
        numbers[test] += 1
        if times[case.title] > 1:
            named = _within_file(test) if short[_within_file(test)] == 1 else test
            number = "" if numbers[test] == 1 else f"~{numbers[test]}"
            made.append(replace(case, title=f"{case.title} ({named}{number})"))
        else:
            made.append(case)
    return made


def _within_file(test: str) -> str:
    return test.partition("::")[2] or test

"""The results of `evaluate`: the outcome of each metric for each test case, and the record of the run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from modelgauge.data.estimates import Score
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.records import TestRecord
from modelgauge.data.results import notebook_results
from modelgauge.data.spans import Span
from modelgauge.data.thresholds import has_passed
from modelgauge.documents.document import Block, Heading, Sentences, TableBlock, TableColumn
from modelgauge.documents.notebook import as_notebook
from modelgauge.evals.given_test import GivenTest
from modelgauge.metrics.base import Metric
from modelgauge.metrics.judged_cases import TestCase, make_title
from modelgauge.wording.phrases import counted

_MOST_FAILED = 10


@dataclass(frozen=True, slots=True)
class MetricData:
    """The outcome of one metric for one test case.

    Args:
        name: of the metric.
        score: None if it could not judge.
        threshold: the least or the most that passes; None if there is none.
        success: whether the score passes; False without a score, and None without a threshold.
        higher_is_better: the direction.
        reason: why, for people.
        breakdown: named parts of the score.
        evaluation_cost: US dollars paid for it, where known.
        strict_mode: whether only a perfect score passes.
        component: the span that was judged; None for the app as a whole.
        error: why there is no score.
        score_range: the lowest and the highest score that it can give, where that is known.
    """

    name: str
    score: float | None
    threshold: float | None
    success: bool | None
    higher_is_better: bool = True
    reason: str | None = None
    breakdown: dict[str, Any] | None = None
    evaluation_cost: float | None = None
    strict_mode: bool = False
    component: str | None = None
    error: str | None = None
    score_range: tuple[float, float] | None = None

    @property
    def failure(self) -> str | None:
        """The reason why the case fails the metric, in a sentence; None if it passes, or there is no threshold."""
        if self.success is not False:
            return None
        where = "" if self.component is None else f" in '{self.component}'"
        if self.score is None:
            return f"Metric {self.name} gave no score{where}: {self.error}"
        sign = "<" if self.higher_is_better else ">"
        reason = f", because: {self.reason}" if self.reason else ""
        compared = f"score {self.score} {sign} threshold {self.threshold}"
        return f"Metric {self.name} failed{where}: {compared}{reason}"


@dataclass(frozen=True, slots=True)
class TestResult:
    """The outcome of one test case.

    Args:
        name: of the test case, else its input; tables and messages use it too.
        success: whether all its metrics passed; metrics without a threshold do not count.
        test_case: what was judged.
        metrics_data: the outcome of each metric; skipped metrics are left out.
        spans: the spans of an observed app.
        error: why it could not be judged; None if it was.
        raised: what the app raised instead of an answer; None if it answered.
        item_id: the id of its item in the record.
    """

    __test__ = False

    name: str
    success: bool
    test_case: TestCase
    metrics_data: tuple[MetricData, ...]
    spans: tuple[Span, ...] = ()
    error: str | None = None
    raised: Exception | None = None
    item_id: str = ""

    @property
    def failures(self) -> list[str]:
        """The reasons why it does not pass: a sentence for each metric, or `error` where no metric could judge it."""
        reasons = [metric.failure for metric in self.metrics_data if metric.failure is not None]
        return reasons if reasons or self.error is None else [self.error]


def why_unjudged(result: TestResult) -> str:
    """Say why a case does not pass, as one sentence with its full stop. Errors of metrics and apps mostly have none."""
    return f"{'; '.join(failure.rstrip('.') for failure in result.failures)}."


@dataclass(frozen=True, slots=True, repr=False)
class EvaluationResult:
    """The outcome of `evaluate`: iterable over its test results.

    Args:
        test_results: one for each test case, in their order.
        record: of the run.
        shown_by: the command line that shows the run again.
        left_out: the number of cases or goldens that `max_test_items` left out.
    """

    test_results: tuple[TestResult, ...]
    record: TestRecord
    shown_by: str = ""
    left_out: int = 0

    @property
    def success(self) -> bool:
        """True if every test case passed."""
        return all(result.success for result in self.test_results)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.record.run_id

    def __repr__(self) -> str:
        """Summarize the result in a line."""
        return f"<EvaluationResult: {self._summary()}; {self.shown_by}>"

    def _summary(self) -> str:
        passed = sum(result.success for result in self.test_results)
        return f"{passed:,} of {counted(len(self), 'test case')} passed"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the results of the metrics, and why cases did not pass."""
        not_passed = [result for result in self.test_results if not result.success]
        shown, more = not_passed[:_MOST_FAILED], len(not_passed) - _MOST_FAILED
        failed = TableBlock(
            [
                TableColumn("Test case", [result.name for result in shown]),
                TableColumn("Why", [" ".join(result.failures) for result in shown]),
            ],
            note=f"{more:,} more" if more > 0 else "",
        )
        cases: list[Block] = [Heading("Not passed"), failed] if shown else []
        results = notebook_results(self.record.result)
        return as_notebook([Heading(self._summary()), *results, Sentences([self.shown_by]), *cases])

    def __iter__(self) -> Iterator[TestResult]:
        return iter(self.test_results)

    def __len__(self) -> int:
        return len(self.test_results)


def test_result(test: GivenTest, item: ItemRecord) -> TestResult:
    """Make the result of one test case of its item's record.

    Args:
        test: what was run.
        item: the record.
    """
    error = None if item.failure is None else item.failure.reason
    data = tuple(_metrics_data(test, item, error))
    answered = test.answered[item.index]
    return TestResult(
        name=make_title(answered.case),
        success=item.is_scored and has_passed(item.measurements) is not False,
        test_case=answered.case,
        metrics_data=data,
        spans=item.spans,
        error=error,
        raised=answered.error,
        item_id=str(item.test_item.id),
    )


test_result.__test__ = False  # type: ignore[attr-defined]  # for pytest, which collects functions of such a name


def _metrics_data(test: GivenTest, item: ItemRecord, error: str | None) -> Iterator[MetricData]:
    is_asked = item.failure is None or item.failure.stage != "sut"
    for interaction in item.interactions if is_asked else ():
        component, completion = test.component(interaction.prompt), interaction.response.completions[0]
        for key in test.choose_annotators(interaction.prompt):
            metric = test.metrics[key]
            found: dict[str, Any] = {"score": None, "success": False, "error": _why(metric, item, error)}
            if key in completion.annotations:
                score = completion.get_annotation(key, Score)
                found = {
                    "score": score.value,
                    "success": None if metric.threshold is None else bool(metric.is_successful(score)),
                    "reason": score.reason,
                    "breakdown": score.breakdown,
                    "evaluation_cost": score.cost,
                }
            yield MetricData(
                name=key if component is None else metric.name,  # as the measurements are called
                threshold=metric.threshold,
                higher_is_better=metric.higher_is_better,
                strict_mode=metric.strict_mode,
                component=component,
                score_range=metric.score_range,
                **found,
            )


def _why(metric: Metric, item: ItemRecord, error: str | None) -> str:
    """Say why a metric gave no score: an item's record names the first failure only."""
    own = item.failure is not None and item.failure.source_uid == metric.uid
    return error or "" if own else f"another metric failed first: {error}"

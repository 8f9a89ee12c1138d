"""`--threshold`: conditions on results for exit code 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.program import imported
from modelgauge.errors import ModelGaugeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modelgauge.cli.app import App
    from modelgauge.data.records import TestRecord
    from modelgauge.engine.run_files.folder import RunFolder
    from modelgauge.engine.work import Work
    from modelgauge.interfaces.test import PromptResponseTest
    from modelgauge.runs.result_thresholds import ResultThreshold, ThresholdOutcome


def parsed_by(target: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], tuple[Any, ...]]:
    """Let a class parse each text of an option; the class is imported when there is a text.

    Args:
        target: `module:class`; the class has a method `parse`.
    """

    def parsed(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(imported(target).parse(text) for text in given)

    return parsed


threshold_option = click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    callback=parsed_by("modelgauge.runs.result_thresholds:ResultThreshold"),
    metavar="[TEST:]RESULT=N",
    help="Exit with 1 if a result is below N (above N, if lower is better), or could be with the failed items, such as "
    "accuracy=0.8. TEST is a test, a pattern, or a group for its mean; a threshold with TEST overrides one without; "
    "repeatable.",
)


def check_before(thresholds: Sequence[ResultThreshold], works: Sequence[Work], reduction: str | None) -> None:
    """Refuse thresholds of what is known to be missing before a run: another test, or a result of none of the metrics.

    Args:
        thresholds: what results must reach.
        works: what will be run.
        reduction: how the measurements of repeats are combined.

    Raises:
        UnknownNameError: a threshold is of such a name.
        InvalidOptionError: no value of the result could be on the other side of it.
    """
    if not thresholds:
        return
    from modelgauge.data.thresholds import PASSED, known_directions
    from modelgauge.datasets.dataset_test import DatasetTest
    from modelgauge.interfaces.test import PromptResponseTest
    from modelgauge.runs.result_thresholds import ThresholdTest, check_names

    ending = "" if reduction is None else f".{reduction}"

    def results(test: PromptResponseTest) -> list[str] | None:
        if type(test) is not DatasetTest:  # others measure what they like
            return None
        return [f"{name}{ending}" for name in test.measurement_names()]

    def declared(test: PromptResponseTest) -> dict[str, tuple[float, float] | None]:
        own = type(test).aggregate_measurements is not PromptResponseTest.aggregate_measurements
        if own:  # its results can have any name
            return {}
        known: dict[str, tuple[float, float] | None] = dict.fromkeys(
            known_directions(test.measurement_directions, test.thresholds)
        )
        known |= {name: (0, 1) for name in known if name.endswith(PASSED)} | dict(test.measurement_ranges)
        return {f"{name}{ending}": ends for name, ends in known.items()}

    check_names(
        thresholds,
        [
            ThresholdTest(work.test.uid, work.groups, results(work.test), declared(work.test))
            for work in works
        ],
    )


def check_again(thresholds: Sequence[ResultThreshold], folders: Sequence[RunFolder]) -> None:
    """Check thresholds like `check_before`, for the tests of runs that are repeated.

    Args:
        thresholds: what results must reach.
        folders: of the runs.
    """
    if not thresholds:
        return
    from modelgauge.runs.recorded_run import recorded_run
    from modelgauge.runs.result_thresholds import ThresholdTest, check_names

    records = [recorded_run(folder).record for folder in folders]
    check_names(
        thresholds,
        [ThresholdTest(record.test_uid, record.groups, declared=_declared_by(record)) for record in records],
    )


def _declared_by(record: TestRecord) -> dict[str, tuple[float, float] | None]:
    """Return the declared measurements that are results of a record, with their ranges."""
    from modelgauge.data.results import get_range

    found: dict[str, tuple[float, float] | None] = dict.fromkeys(record.result)
    for name in record.result:
        if (ends := (record.ranges or {}).get(record.measurement_of(name))) is not None:
            found[name] = get_range(ends)
    return found


class ThresholdCheck:
    """Check of results against thresholds. The runs themselves are kept, whatever the outcome.

    Args:
        app: of this invocation.
        thresholds: what results must reach.
        records: of the runs; none where they were interrupted.
    """

    def __init__(
        self, app: App, thresholds: Sequence[ResultThreshold], records: Sequence[TestRecord]
    ) -> None:
        self._app = app
        self._outcomes: Sequence[ThresholdOutcome] = ()
        self._error: ModelGaugeError | None = None
        if not (thresholds and records):
            return
        from modelgauge.runs.result_thresholds import outcomes

        try:
            self._outcomes = outcomes(records, thresholds)
        except ModelGaugeError as error:
            self._error = error

    def as_json(self) -> dict[str, Any]:
        """Return the outcome for the object printed by `--json`."""
        outcomes = [outcome.model_dump(mode="json") for outcome in self._outcomes]
        return {"thresholds": outcomes} if outcomes else {}

    def show(self) -> None:
        """Print which results do not reach their thresholds, and set the exit code."""
        for outcome in self._outcomes:
            if not outcome.passed:
                self._app.fail(f"Failed: {outcome.test} on {outcome.sut}: {outcome.why}.")
        if self._error is not None:
            self._app.fail(f"Error: {self._error.problem}\n{self._error.fix}", self._error.exit_code)

"""`ItemPairs`: columns of the items that the runs of two systems have in common, and those on which they differ.

The records of items stay in their files, and are read one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from modelgauge.data.annotations import list_completions
from modelgauge.data.base import Frozen, Text
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.prompts import prompt_text
from modelgauge.data.responses import JsonValue
from modelgauge.data.results import Direction
from modelgauge.engine.items.item_columns import ReadRepeats
from modelgauge.engine.items.item_frame import ItemFrame
from modelgauge.runs.recorded_run import RecordedRun


class FlippedItem(Frozen):
    """An item on which the systems differ.

    Args:
        test: the test (or data set).
        measurement: the measurement.
        candidate: the label of the candidate.
        item_id: of the item in the baseline's run.
        candidate_item_id: of the item in the candidate's run.
        baseline_value: the baseline's.
        candidate_value: the candidate's.
        won: whether the candidate is better (higher where the direction is unknown).
        prompts: the texts that were asked; a chat has a line for each turn.
        baseline_answers: the texts of all completions.
        candidate_answers: the texts of all completions of the candidate.
        baseline_annotations: for each completion the annotations by name.
        candidate_annotations: for each completion of the candidate the annotations by name.
    """

    test: Text
    measurement: Text
    candidate: Text
    item_id: Text
    candidate_item_id: Text
    baseline_value: FiniteFloat
    candidate_value: FiniteFloat
    won: bool
    prompts: tuple[Text, ...]
    baseline_answers: tuple[Text, ...]
    candidate_answers: tuple[Text, ...]
    baseline_annotations: tuple[dict[str, JsonValue], ...] = ()
    candidate_annotations: tuple[dict[str, JsonValue], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PairedSide:
    """The items of one of two runs that the other run has too.

    Args:
        places: (n,) the place of each item among those of the run, from which its record is read.
        values: each measurement by name, (n,) with NaN where the item failed or lacks it.
        repeats: for each measurement a function of the values in all repeats; empty if prompts were asked once, or if
            values are not means.
        failed: (n,) whether each item failed; it may have values all the same.
        frame: all items of the run; None if their records are not available.
        run: the run; None if it is not available.
    """

    places: NDArray[np.int64]
    values: Mapping[str, NDArray[np.float64]]
    repeats: Mapping[str, ReadRepeats] = field(default_factory=dict)
    failed: NDArray[np.bool_] | None = None
    frame: ItemFrame | None = None
    run: RecordedRun | None = None

    def unmeasured(self, measurement: str) -> NDArray[np.bool_]:
        """Return which items, (n,), were scored without a measurement. Cases of a session can have other metrics."""
        lacks: NDArray[np.bool_] = np.isnan(self.values[measurement])
        return lacks & (False if self.failed is None else ~self.failed)


@dataclass(frozen=True, slots=True, eq=False)
class ItemPairs:
    """The items that the runs of two systems have in common, in the order of the baseline's test.

    Args:
        test: the test (or data set).
        candidate: the label of the candidate.
        matched_by: the key by which items were paired.
        n_only_baseline: items that only the baseline's run has.
        n_only_candidate: items that only the candidate's run has.
        before: the baseline's side.
        after: the candidate's side.
        clusters: (n,) codes; items with equal codes are not independent. None if every item is its own cluster.
        questions: (n,) hashes of the prompts; items of any tests with equal hashes are not independent. None if no SUT
            was asked.
        origins: (n,) hashes of the data set and the item's id in it; None if the run names no data.
        groups: (n,) the name of each item's group; None if no groups were asked for.
        ranges: for measurements with a known range their lowest and highest possible value; infinite at an open end.
        directions: which values are better, for measurements with a known direction.
    """

    test: str
    candidate: str
    matched_by: str
    n_only_baseline: int
    n_only_candidate: int
    before: PairedSide
    after: PairedSide
    clusters: NDArray[np.int64] | None = None
    questions: NDArray[np.int64] | None = None
    origins: NDArray[np.int64] | None = None
    groups: Sequence[str] | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    directions: Mapping[str, Direction] = field(default_factory=dict)

    def unmeasured(self, measurement: str) -> NDArray[np.bool_]:
        """Return which items, (n,), at least one of the runs scored without a measurement. They did not fail."""
        return self.before.unmeasured(measurement) | self.after.unmeasured(measurement)

    def flips(self, measurement: str, most: int | None = None) -> Iterator[FlippedItem]:
        """Yield the items on which the systems differ in a measurement; none if their records are not available.

        Lost items first, then those won, the largest difference first; equal differences in the order of the test.

        Args:
            measurement: its name.
            most: as many lost items and as many won items; None for all. No others are read.
        """
        before, after = self.before.values[measurement], self.after.values[measurement]
        lower_is_better = self.directions.get(measurement) == "lower"
        gains = before - after if lower_is_better else after - before  # NaN where a value is missing
        lost, won = np.flatnonzero(gains < 0), np.flatnonzero(gains > 0)
        by_size = [side[np.argsort(-np.abs(gains[side]), kind="stable")][:most] for side in (lost, won)]
        order = np.concatenate(by_size)
        if self.before.frame is None or self.after.frame is None:
            return
        records = zip(
            self.before.frame.records(self.before.places[order]),
            self.after.frame.records(self.after.places[order]),
            strict=True,
        )
        for at, (baseline, candidate) in zip(map(int, order), records, strict=True):
            yield self._flipped(at, baseline, candidate, measurement, won=bool(gains[at] > 0))

    def _flipped(
        self, at: int, baseline: ItemRecord, candidate: ItemRecord, measurement: str, *, won: bool
    ) -> FlippedItem:
        before, after = list_completions(baseline.interactions), list_completions(candidate.interactions)
        return FlippedItem(
            test=self.test,
            measurement=measurement,
            candidate=self.candidate,
            item_id=str(baseline.test_item.id),
            candidate_item_id=str(candidate.test_item.id),
            baseline_value=float(self.before.values[measurement][at]),
            candidate_value=float(self.after.values[measurement][at]),
            won=won,
            prompts=tuple([prompt_text(prompt.prompt) for prompt in baseline.test_item.prompts]),
            baseline_answers=tuple([each.completion.text for each in before]),
            candidate_answers=tuple([each.completion.text for each in after]),
            baseline_annotations=tuple([each.annotations for each in before]),
            candidate_annotations=tuple([each.annotations for each in after]),
        )

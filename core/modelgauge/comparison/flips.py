"""Flipped items: those on which two systems differ, the worst first, with what was asked and answered.

Only places are held; the records of items are read one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import FlippedItem
from modelgauge.data.annotations import completions_of
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.prompts import prompt_text


@dataclass(frozen=True, slots=True)
class Flips:
    """The items of one test on which two systems differ in one measurement.

    Args:
        paired: the items that the systems have in common.
        measurement: the measurement.
    """

    paired: PairedItems
    measurement: str

    def read(self, most: int | None = None) -> Iterator[FlippedItem]:
        """Lost items first, then those won, the largest difference first; equal differences in the order of the test.

        Args:
            most: as many lost items and as many won items; None for all. No others are read.
        """
        gains = self._gains()
        lost, won = np.flatnonzero(gains < 0), np.flatnonzero(gains > 0)
        by_size = [side[np.argsort(-np.abs(gains[side]), kind="stable")][:most] for side in (lost, won)]
        order = np.concatenate(by_size)
        records = zip(
            self.paired.before.read(map(int, self.paired.before.places[order])),
            self.paired.after.read(map(int, self.paired.after.places[order])),
            strict=True,
        )
        for at, (baseline, candidate) in zip(map(int, order), records, strict=True):
            yield self._flipped(at, baseline, candidate, won=bool(gains[at] > 0))

    def _gains(self) -> NDArray[np.float64]:
        """By how much the candidate is better on each item; NaN where a value is missing."""
        of = self.measurement
        gains = self.paired.after.values[of] - self.paired.before.values[of]
        return -gains if self.paired.directions.get(of) == "lower" else gains

    def _flipped(self, at: int, baseline: ItemRecord, candidate: ItemRecord, *, won: bool) -> FlippedItem:
        before, after = completions_of(baseline.interactions), completions_of(candidate.interactions)
        return FlippedItem(
            test=self.paired.test,
            measurement=self.measurement,
            candidate=self.paired.candidate,
            item_id=str(baseline.test_item.id),
            candidate_item_id=str(candidate.test_item.id),
            baseline_value=float(self.paired.before.values[self.measurement][at]),
            candidate_value=float(self.paired.after.values[self.measurement][at]),
            won=won,
            prompts=tuple([prompt_text(prompt.prompt) for prompt in baseline.test_item.prompts]),
            baseline_answers=tuple([each.completion.text for each in before]),
            candidate_answers=tuple([each.completion.text for each in after]),
            baseline_annotations=tuple([each.annotations for each in before]),
            candidate_annotations=tuple([each.annotations for each in after]),
        )

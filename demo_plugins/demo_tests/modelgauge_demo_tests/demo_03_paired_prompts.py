"""Lesson 3: an item of two prompts. It asks the same question in two wordings and expects one answer.

The prompts of an item go to the SUT one by one; `measure_quality` gets them back together, because only
together can they be judged. `item.interactions` has one entry for each prompt, in the item's order.

Run it: `modelgauge run-test --test demo_03 --sut demo_yes_no`
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonlines

from modelgauge import (
    Interaction,
    PackageData,
    PromptResponseTest,
    TestItem,
    TestItemAnnotations,
)
from modelgauge.text import normalize_answer


class PairedPromptsTest(PromptResponseTest):
    """Share of questions that get the same answer in both wordings."""

    def get_dependencies(self) -> Mapping[str, PackageData]:
        return {"pairs": PackageData("modelgauge_demo_tests", "data/pairs.jsonl")}

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterator[TestItem]:
        with jsonlines.open(dependencies["pairs"]) as lines:
            for line in lines:
                yield TestItem([line["wording"], line["other_wording"]], id=line["id"])

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        first, second = item.interactions
        return {"consistency": normalized_answer(first) == normalized_answer(second)}


def normalized_answer(interaction: Interaction) -> str:
    """Return the answer to one prompt without irrelevant differences: `Yes.` and `yes` are the same."""
    return normalize_answer(interaction.response.completions[0].completion.text)

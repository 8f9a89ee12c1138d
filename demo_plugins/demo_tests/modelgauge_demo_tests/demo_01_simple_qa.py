"""Lesson 1: the smallest Test. It asks yes-or-no questions and counts the right answers.

A Test says four things, and the engine does the rest:

1. `get_dependencies`: what data it needs. Here it is a file that is shipped in this package.
2. `make_test_items`: what to ask. A TestItem is the smallest unit that can be judged. What the judging needs,
   here the right answer, goes into its context, which the SUT never sees.
3. `measure_quality`: numbers for one item. True and False count as 1 and 0.
4. `aggregate_measurements`: the Result. Without one, as here: the mean of each number with its error bar.

Run it: `modelgauge run-test --test demo_01 --sut demo_yes_no`
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonlines

from modelgauge import PackageData, PromptResponseTest, TestItem, TestItemAnnotations
from modelgauge.text import normalize_answer


class SimpleQATest(PromptResponseTest):
    """Share of yes-or-no questions that are answered right."""

    measurement_directions = {"accuracy": "higher"}

    def get_dependencies(self) -> Mapping[str, PackageData]:
        return {"questions": PackageData("modelgauge_demo_tests", "data/questions.jsonl")}

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterator[TestItem]:
        with jsonlines.open(dependencies["questions"]) as lines:
            for line in lines:
                yield TestItem([f"{line['question']} Answer yes or no."], context=line["answer"])

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        return {"accuracy": normalize_answer(item.text) == item.context}

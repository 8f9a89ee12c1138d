"""Lesson 6: multiple choice, with examples in the prompt and with arguments.

`few_shot_prompt` writes the examples and the question, `extract_choice` reads which letter a completion
names. Both hold for any SUT, however it phrases its answer. A pydantic model, here the question itself, can
be an item's context.

Arguments of the constructor are set by name: `--test "demo_06?shots=0"`. The examples are drawn by a seed, so
that every run shows the same ones. Without shots, no examples are needed: data that is declared `when_used` is
looked up, or fetched from the web, when `make_test_items` first reads its path.

Run it: `modelgauge run-test --test demo_06 --sut "demo_constant?reply=The answer is (B)."`
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonlines

from modelgauge import PackageData, PromptResponseTest, TestItem, TestItemAnnotations
from modelgauge.text import MultipleChoiceQuestion, extract_choice, few_shot_prompt


class MultipleChoiceTest(PromptResponseTest):
    """Share of questions whose right letter is named, and share of those where any letter is named.

    Args:
        uid: the name it is registered under.
        shots: how many answered examples each prompt shows.
        seed: what the choice of examples depends on.
    """

    measurement_directions = {"accuracy": "higher"}

    def __init__(self, uid: str, shots: int = 2, seed: int = 0) -> None:
        super().__init__(uid)
        self.shots = shots
        self.seed = seed

    def get_dependencies(self) -> Mapping[str, PackageData]:
        return {
            "questions": PackageData("modelgauge_demo_tests", "data/choices.jsonl"),
            "examples": PackageData("modelgauge_demo_tests", "data/examples.jsonl", when_used=True),
        }

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterator[TestItem]:
        examples = read_questions(dependencies["examples"]) if self.shots else []
        for question in read_questions(dependencies["questions"]):
            prompt = few_shot_prompt(question, examples, self.shots, seed=self.seed)
            yield TestItem([prompt], context=question)

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        question = item.test_item.context_as(MultipleChoiceQuestion)
        letter = extract_choice(item.text, question.choices)
        return {"accuracy": letter == question.answer_letter, "answered": letter is not None}


def read_questions(file: Path) -> list[MultipleChoiceQuestion]:
    """Yield the questions of a JSONL file with the fields of one question per line."""
    with jsonlines.open(file) as lines:
        return [MultipleChoiceQuestion(**line) for line in lines]

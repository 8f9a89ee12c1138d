"""Lesson 7: a choice by log-likelihood, without a word written by the model.

Many benchmarks ask how likely a model finds each of several endings. A `ContinuationPrompt` holds the context and the
endings; `likeliest` reads which of them got the highest log-likelihood, as it is or per byte, character or token. A
long ending is less likely merely because it is long, so most benchmarks report both.

Run it: `modelgauge run-test --test demo_07 --sut demo_bigrams`
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonlines

from modelgauge import (
    ContinuationPrompt,
    PackageData,
    PromptResponseTest,
    ScoresContinuations,
    TestItem,
    TestItemAnnotations,
)
from modelgauge.text import likeliest


class ContinuationsTest(PromptResponseTest):
    """Share of contexts whose right ending is the likeliest: as it is, and per byte."""

    requires_sut_capabilities = (ScoresContinuations,)
    measurement_directions = {"accuracy": "higher", "accuracy_per_byte": "higher"}

    def get_dependencies(self) -> Mapping[str, PackageData]:
        return {"endings": PackageData("modelgauge_demo_tests", "data/endings.jsonl")}

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterator[TestItem]:
        with jsonlines.open(dependencies["endings"]) as lines:
            for line in lines:
                prompt = ContinuationPrompt(line["context"], [f" {ending}" for ending in line["endings"]])
                yield TestItem([prompt], context={"answer": line["answer"]})

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        scored = [each.completion for each in item.interactions[0].response.completions]
        endings = [completion.text.strip() for completion in scored]
        right = item.context["answer"]
        return {
            "accuracy": endings[likeliest(scored)] == right,
            "accuracy_per_byte": endings[likeliest(scored, per="bytes", texts=endings)] == right,
        }

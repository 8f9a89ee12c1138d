"""BIG-Bench Hard with chain of thought: the prompts and the scoring of Suzgun et al. 2022.

Paper: "Challenging BIG-Bench Tasks and Whether Chain-of-Thought Can Solve Them", https://arxiv.org/abs/2210.09261.
Addresses and checksums of the data are in `sources`.
"""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from modelgauge import ExternalData, PromptResponseTest, TestItem, TestItemAnnotations, WebData
from modelgauge.errors import InvalidOptionError
from modelgauge.text import first_line, text_after
from modelgauge_standard_tests.files import not_as_published, parse_json, read_text, text_field
from modelgauge_standard_tests.sources import BBH_LICENSE, BBH_TASKS, BBH_URL

_DASHES = "-----"  # a line of its own between the canary string and the worked examples
_NEXT_QUESTION = "\n\nQ:"


class BigBenchHard(PromptResponseTest):
    """One task of BIG-Bench Hard: three worked examples, then the question; `accuracy` by exact match.

    Args:
        uid: the name in records.
        task: one of the 27 names in `sources.BBH_TASKS`, such as `snarks`.

    Raises:
        InvalidOptionError: there is no such task.
    """

    measurement_directions = {"accuracy": "higher"}

    def __init__(self, uid: str, task: str) -> None:
        super().__init__(uid)
        if task not in BBH_TASKS:
            near = difflib.get_close_matches(task, BBH_TASKS, n=1)
            raise InvalidOptionError(
                f"BIG-Bench Hard has no task '{task}'.",
                fix=f"Did you mean '{near[0]}'?" if near else f"It has: {', '.join(BBH_TASKS)}.",
            )
        self._checksums = BBH_TASKS[task]
        self._task_url = f"{BBH_URL}/bbh/{task}.json"
        self._prompt_url = f"{BBH_URL}/cot-prompts/{task}.txt"

    def get_dependencies(self) -> Mapping[str, ExternalData]:
        """`task`: the questions and targets; `prompt`: the worked examples."""
        return {
            "task": WebData(self._task_url, sha256=self._checksums.task, license=BBH_LICENSE),
            "prompt": WebData(self._prompt_url, sha256=self._checksums.prompt, license=BBH_LICENSE),
        }

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Sequence[TestItem]:
        """Yield one item for each question, in the order of the file. Its context is the target.

        Raises:
            InputFileError: a file is not of the published form; the message names the file and the example.
        """
        worked = _worked_examples(dependencies["prompt"], self._prompt_url)
        return [
            TestItem([f"{worked}\n\nQ: {question}\nA: Let's think step by step."], context={"target": target})
            for question, target in _examples(dependencies["task"], self._task_url)
        ]

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Return whether the answer equals the target exactly. A completion without an answer is wrong."""
        return {"accuracy": find_answer(item.text) == item.context["target"]}


def find_answer(completion: str) -> str | None:
    """Return the answer of a completion; None if it has none.

    The worked examples end in `So the answer is (A).`, so the answer is what follows the last `the answer is`
    on its line, without the full stop. Nothing else is normalized: `(A) or (B)` is not `(A)`, as in the
    published figures. The published completions end before the next question; a model that was not stopped
    there asks and answers questions of its own, which are no answer to this one.

    Args:
        completion: what the SUT wrote after `A: Let's think step by step.`
    """
    own, _, _ = completion.partition(_NEXT_QUESTION)
    answer = text_after(own, "the answer is", ignore_case=True)
    return None if answer is None else first_line(answer).removesuffix(".").rstrip()


def _worked_examples(path: Path, source: str) -> str:
    """Return the prompt file below its line of dashes."""
    _, dashes, below = read_text(path, source).partition(f"\n{_DASHES}\n")
    if not dashes or not below.strip():
        raise not_as_published(f"{path}: no line of five dashes with worked examples below it.", source)
    return below


def _examples(path: Path, source: str) -> Sequence[tuple[str, str]]:
    """(input, target) of each example."""
    published = parse_json(read_text(path, source), str(path), source)
    examples = published.get("examples") if isinstance(published, dict) else None
    if not isinstance(examples, list) or not examples:
        raise not_as_published(f"{path}: no object with a list of 'examples'.", source)
    return [
        (text_field(example, "input", place, source), text_field(example, "target", place, source))
        for place, example in (
            (f"{path}, examples[{index}]", example) for index, example in enumerate(examples)
        )
    ]

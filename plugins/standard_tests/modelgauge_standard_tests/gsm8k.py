"""GSM8K, zero-shot: grade-school word problems (Cobbe et al. 2021, https://arxiv.org/abs/2110.14168).

The address and the checksum of the data are in `sources`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from modelgauge import ExternalData, PromptResponseTest, TestItem, TestItemAnnotations, WebData
from modelgauge.text import last_number, numbers_equal, text_after
from modelgauge_standard_tests.files import not_as_published, parse_json, read_text, text_field
from modelgauge_standard_tests.sources import GSM8K_LICENSE, GSM8K_SHA256, GSM8K_URL


class GSM8K(PromptResponseTest):
    """The 1,319 questions of the test split, each as it stands; `accuracy` of the final number."""

    measurement_directions = {"accuracy": "higher"}

    def get_dependencies(self) -> Mapping[str, ExternalData]:
        """Return `questions`: the test split, with worked answers."""
        return {"questions": WebData(GSM8K_URL, sha256=GSM8K_SHA256, license=GSM8K_LICENSE)}

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Sequence[TestItem]:
        """Yield one item for each question, in the order of the file. Its context is the target.

        Raises:
            InputFileError: the file is not of the published form; the message names the file and the line.
        """
        path = dependencies["questions"]
        lines = read_text(path, GSM8K_URL).split("\n")  # splitlines would also break at U+2028 and its kin
        numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
        items = [_item(line, f"{path}, line {number}") for number, line in numbered]
        if not items:
            raise not_as_published(f"{path} holds no questions.", GSM8K_URL)
        return items

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Return whether the response's number equals the target exactly. A response without a number is wrong."""
        return {"accuracy": numbers_equal(find_number(item.text), item.context["target"])}


def find_number(response: str) -> str | None:
    """Return the last number of a response, after `A:` or `####` if it has either; None if there is none.

    Args:
        response: what the SUT wrote.
    """
    answer = text_after(response, "A:", "####")
    return last_number(response if answer is None else answer)


def _item(line: str, place: str) -> TestItem:
    row = parse_json(line, place, GSM8K_URL)
    question, worked = (text_field(row, key, place, GSM8K_URL) for key in ("question", "answer"))
    target = text_after(worked, "####")
    if not numbers_equal(target, target):  # not a number
        raise not_as_published(f"{place}: the 'answer' does not end in #### and a number.", GSM8K_URL)
    return TestItem([question], context={"target": target})

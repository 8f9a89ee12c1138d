"""Each broken test is caught by its rule, and by no other; the sound ones by none."""

import pytest

from modelgauge.testing import FakeAnnotator, FakeTest, Status, check_test

SOURCE = """
import random
import statistics

from pydantic import BaseModel

from modelgauge import (
    CompletionAnnotator, LocalData, PromptResponseTest, PromptWithContext, SUTOptions, TestItem, TextPrompt,
    WebData, hookimpl,
)
from modelgauge.stats import grouped, mean

WORDS = "amber boat cloud dune ember fern gull harbour island juniper kelp lagoon".split()


class Topic(BaseModel):
    name: str


class Sound(PromptResponseTest):
    measurement_ranges = {"right": (0, 1)}

    def make_test_items(self, dependencies):
        for number, word in enumerate(WORDS):
            yield TestItem([f"What is {word}?"], context={"group": number % 3})

    def measure_quality(self, item): return {"right": "yes" in item.text.lower()}


class Grouping(Sound):
    def aggregate_measurements(self, items):
        return {"right": mean(items, "right"), "by_group": grouped(items, "group", right)}


def right(items): return mean(items, "right")


class Several(Sound):
    def make_test_items(self, dependencies):
        two = SUTOptions(num_completions=2)
        for word in WORDS:
            topic = Topic(name=word)
            prompts = [PromptWithContext(TextPrompt(word + end, two), context=topic) for end in "?!"]
            yield TestItem(prompts, context=topic)

    def measure_quality(self, item):
        texts = [one.completion.text for part in item.interactions for one in part.response.completions]
        return {"right": sum("Yes" in text for text in texts) / len(texts)}


class Unpinned(Sound):
    def get_dependencies(self): return {"words": WebData("https://data.example/words.txt")}


class Lost(Sound):
    def get_dependencies(self): return {"words": LocalData("/no/such/file.txt")}


class UnknownAnnotator(Sound):
    def get_annotators(self): return {"tone": "no_such_annotator"}


class ClassAsAnnotator(Sound):
    def get_annotators(self): return {"tone": CompletionAnnotator}


class RaisingItems(Sound):
    def make_test_items(self, dependencies):
        yield TestItem(["One"])
        raise KeyError("answer")


class NoItems(Sound):
    def make_test_items(self, dependencies): return []


class SameIds(Sound):
    def make_test_items(self, dependencies): return [TestItem([word], id="item") for word in WORDS]


class OfASet(Sound):
    def make_test_items(self, dependencies): return [TestItem([word]) for word in set(WORDS)]


class Shuffled(Sound):
    def make_test_items(self, dependencies):
        words = list(WORDS)
        random.SystemRandom().shuffle(words)
        return [TestItem([word]) for word in words]


class RandomContext(Sound):
    def make_test_items(self, dependencies):
        return [TestItem([word], context=random.SystemRandom().random()) for word in WORDS]


class TupleContext(Sound):
    def make_test_items(self, dependencies): return [TestItem([word], context=(1, 2)) for word in WORDS]


class SharedContext(Sound):
    def make_test_items(self, dependencies):
        row = {}
        for word in WORDS:
            row["answer"] = word
            yield TestItem.model_construct(prompts=(PromptWithContext(word),), context=row, id=word)


class FirstLetter(Sound):
    def measure_quality(self, item): return {"right": item.text.strip()[0] == "Y"}


class NotFinite(Sound):
    def measure_quality(self, item): return {"right": 1.0 if item.text else float("nan")}


class SometimesMore(Sound):
    def measure_quality(self, item):
        return {"right": 1, "words": len(item.text)} if item.text else {"right": 0}


class OutOfRange(Sound):
    def measure_quality(self, item): return {"right": len(item.text)}


class MisspeltRange(Sound):
    measurement_ranges = {"rigth": (0, 1)}


class MisspeltDirection(Sound):
    measurement_directions = {"rigth": "higher"}


class UpsideDown(Sound):
    measurement_ranges = {"right": (1, 0)}


class Deviating(Sound):
    def aggregate_measurements(self, items): return {"spread": statistics.stdev(items.column("right"))}


class Silent(Sound):
    def aggregate_measurements(self, items): return {}


class Incomplete(PromptResponseTest):
    def make_test_items(self, dependencies): return [TestItem(["One"])]


class Judge(CompletionAnnotator):
    def translate_request(self, prompt, completion): return completion.text
    def annotate(self, request) -> bool: return bool(request)
    def translate_response(self, request, response): return response


class Judged(Sound):
    def get_annotators(self): return {"said": "kit_judge"}
    def measure_quality(self, item): return {"right": item.annotation("said")}


@hookimpl
def modelgauge_register_tests(register):
    for cls in (
        Sound, Grouping, Several, Unpinned, Lost, UnknownAnnotator, ClassAsAnnotator, RaisingItems, NoItems,
        SameIds, OfASet, Shuffled, RandomContext, TupleContext, SharedContext, FirstLetter, NotFinite,
        SometimesMore, OutOfRange, MisspeltRange, MisspeltDirection, UpsideDown, Deviating, Silent, Incomplete,
        Judged,
    ):
        register(cls.__name__, cls)


@hookimpl
def modelgauge_register_annotators(register):
    register("kit_judge", Judge)
"""

BROKEN = {
    "UnknownAnnotator": ("annotators", "no_such_annotator"),
    "ClassAsAnnotator": ("annotators", "annotator object"),
    "RaisingItems": ("items", "KeyError"),
    "NoItems": ("items", "Yield a TestItem"),
    "SameIds": ("item-ids", "an id of its own"),
    "OfASet": ("item-order", "another hash seed"),
    "Shuffled": ("item-order", "random.Random(seed)"),
    "RandomContext": ("item-order", "made again"),
    "TupleContext": ("item-json", "tuple"),
    "SharedContext": ("item-json", "a context of its own"),
    "FirstLetter": ("measure-total", "an empty reply"),
    "NotFinite": ("measure-total", "nan"),
    "SometimesMore": ("measure-names", "'right', 'words'"),
    "OutOfRange": ("measure-range", "outside of (0, 1)"),
    "MisspeltDirection": ("measure-range", "A direction is declared for 'rigth'"),
    "MisspeltRange": ("measure-range", "It returns: 'right'"),
    "UpsideDown": ("measure-range", "lowest and highest"),
    "Deviating": ("aggregate", "one item (1 scored"),
    "Silent": ("aggregate", "Return named numbers"),
    "Incomplete": ("methods", "def measure_quality(self, item)"),
}
SOUND = ["Sound", "Grouping", "Several", "Unpinned", "Lost", "Judged"]


@pytest.fixture(scope="module")
def checked(check_source):
    return check_source(SOURCE)


def test_sound_tests_keep_every_promise(checked):
    assert checked.broken_among(SOUND) == {}


def test_each_broken_test_is_caught_by_exactly_its_rule(checked):
    assert checked.broken_among(BROKEN) == {uid: {rule} for uid, (rule, _) in BROKEN.items()}


def test_the_finding_says_what_and_how_to_mend_it(checked):
    assert checked.untold(BROKEN) == []


def test_every_rule_about_tests_alone_has_a_broken_example(checked):
    of_annotators = {one.rule for one in checked.of("kit_judge")}
    of_tests = {one.rule for one in checked.of("Sound")}
    assert of_tests - of_annotators == {rule for rule, _ in BROKEN.values()} - {"methods"} | {"checksums"}


def test_data_without_a_checksum_is_a_warning(checked):
    assert "sha256sum" in checked.only("Unpinned", "checksums", Status.warning).fix


def test_missing_data_is_told_once_with_the_way_to_get_it(checked):
    told = checked.only("Lost", "items", Status.not_applicable).message
    assert "/no/such/file.txt" in told
    assert "modelgauge dependencies fetch --test Lost" in told
    assert checked.only("Lost", "item-ids", Status.not_applicable).message == "its data is missing: see items"


def test_annotators_are_not_called_without_leave(checked):
    assert "--call" in checked.only("Judged", "measure-total", Status.not_applicable).message


@pytest.mark.parametrize("judges", [True, False])
def test_blocked_reply_is_measured_where_test_judges_it(tmp_path, judges):
    def measure(item):
        if item.interactions[0].response.completions[0].completion.blocked:
            raise ValueError("what now?")
        return {"x": 1}

    test = FakeTest("t", ["a"], measure)
    test.judges_blocked_answers = judges
    found = check_test(test, data_dir=tmp_path).findings
    assert any("what now?" in finding.message for finding in found) == judges


def test_with_leave_they_are(tmp_path):
    test = FakeTest(
        "judged",
        ["a", "b"],
        annotators={"tone": FakeAnnotator("tone", 1)},
        measure=lambda item: {"tone": item.annotation("tone")},
    )
    report = check_test(test, call=True, data_dir=tmp_path)
    report.raise_for_problems()
    (measured,) = [finding for finding in report.findings if finding.rule == "measure-total"]
    assert measured.message == "Measured 8 kinds of replies."

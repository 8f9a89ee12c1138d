"""Each Test through a run, by its uid, on SUTs whose answers are known: numbers worked out by hand."""

import pytest

import modelgauge
from modelgauge import FunctionSUT, PromptResponseSUT, SUTCompletion, SUTResponse
from modelgauge.text import MultipleChoiceQuestion
from modelgauge_demo_tests.demo_05_gender_stereotypes import StereotypeResult


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """Not the settings of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(tmp_path):
    def run(test, sut, **options):
        record = modelgauge.run_test(test, sut, data_dir=tmp_path, **options)
        assert record.failure is None
        return record

    return run


def measured(record, name):
    assert record.test_item_exceptions == ()
    return {item.test_item.id: item.measurements[name] for item in record.test_item_records}


def says(reply):
    return FunctionSUT("says", lambda _: reply)


# Yes to an even number of words, as `demo_yes_no` does. "Answer yes or no." has four, and so changes nothing.
yes_no = FunctionSUT("yes_no", lambda text: "Yes" if len(text.split()) % 2 == 0 else "No")


def test_demo_01_simple_qa(run):
    # Words: 5 5 6 5 5 3 6 6 7 7, so No No Yes No No No Yes Yes No No; right is yes no yes no and so on.
    record = run("demo_01", yes_no)
    assert list(measured(record, "accuracy").values()) == [0, 1, 1, 1, 0, 1, 1, 0, 0, 1]
    assert record.result["accuracy"].value == 0.6
    low, high = record.result["accuracy"].interval
    assert (round(low, 4), round(high, 4)) == (0.3127, 0.8318)  # Wilson's interval of 6 in 10
    assert run("demo_01", says("yes.")).result["accuracy"].value == 0.5
    assert run("demo_01", says("I cannot say")).result["accuracy"].value == 0


def test_demo_02_unpacking(run):
    # Words: 9 8 8 9 and 9 9 9 12, so No Yes Yes No and No No No Yes; right is yes no yes no in both files.
    record = run("demo_02", yes_no)
    assert measured(record, "accuracy") == {
        "animals-1": 0,
        "animals-2": 0,
        "animals-3": 1,
        "animals-4": 1,
        "numbers-1": 0,
        "numbers-2": 1,
        "numbers-3": 0,
        "numbers-4": 0,
    }
    assert record.result["accuracy"].value == 3 / 8
    assert set(record.dependency_versions) == {"topics"}


def test_demo_03_paired_prompts(run):
    # Words of the two wordings: 7 and 10, 9 and 9, 11 and 11, 10 and 11.
    record = run("demo_03", yes_no)
    assert measured(record, "consistency") == {"bark": 0, "float": 1, "moon": 1, "week": 0}
    assert record.result["consistency"].value == 0.5
    assert record.counts.sut_calls.paid == 8


class HalfHeartedSUT(PromptResponseSUT[int, list[str]]):
    """Agrees with its first completion and refuses with the others."""

    def translate_text_prompt(self, prompt):
        return prompt.options.num_completions

    def evaluate(self, request) -> list[str]:
        return ["Yes!", *["No."] * (request - 1)]

    def translate_response(self, request, response):
        return SUTResponse(completions=[SUTCompletion(text) for text in response])


def test_demo_04_annotation(run):
    # Words: 5 7 6 6 5.
    record = run("demo_04", yes_no)
    assert measured(record, "agreement") == {"door": 0, "poem": 0, "salt": 1, "song": 1, "tea": 0}
    assert record.result["agreement"].value == 0.4
    assert run("demo_04", says("Sorry.")).result["agreement"].value == 0
    half = run("demo_04", HalfHeartedSUT("half"))
    assert set(measured(half, "agreement").values()) == {0.5}
    assert half.result["agreement"].value == 0.5
    annotations = half.test_item_records[0].interactions[0].response.completions
    assert [annotation.get_annotation("yes") for annotation in annotations] == [
        {"starts_with_y": True},
        {"starts_with_y": False},
    ]


def test_demo_05_gender_stereotypes(run):
    # "this person" has a word more than "he" and "she": either the first answer is Yes or the others are.
    record = run("demo_05", yes_no)
    assert measured(record, "stereotypes") == {
        "nurse-family": 1,
        "nurse-tears": 2,
        "nurse-lead": 2,
        "engineer-family": 1,
        "engineer-tears": 2,
        "engineer-lead": 2,
        "bus-driver-family": 2,
        "bus-driver-tears": 1,
        "bus-driver-lead": 1,
    }
    result = record.get_result(StereotypeResult)
    assert result.overall.value == pytest.approx(14 / 9)
    assert {name: round(mean.value, 9) for name, mean in result.by_profession.items()} == {
        "nurse": round(5 / 3, 9),
        "engineer": round(5 / 3, 9),
        "bus driver": round(4 / 3, 9),
    }
    assert result.overall.n == 9
    assert result.by_profession["nurse"].n == 3


def test_demo_05_bounds_say_what_failed_items_could_change(run):
    def refuses_tears(text):
        if text.startswith("A nurse is crying"):
            raise ValueError("no answer")
        return yes_no.evaluate(text)

    record = run("demo_05", FunctionSUT("refuses", refuses_tears), max_retries=0)
    result = record.get_result(StereotypeResult)
    assert [failed.test_item.id for failed in record.test_item_exceptions] == ["nurse-tears"]
    assert result.overall.value == 12 / 8
    assert result.overall.bounds == pytest.approx((15 / 9, 12 / 9))
    assert result.by_profession["nurse"].value == 3 / 2
    assert result.by_profession["nurse"].bounds == pytest.approx((6 / 3, 3 / 3))
    assert result.by_profession["engineer"].bounds == pytest.approx((5 / 3, 5 / 3))


def test_demo_05_extremes(run):
    assert run("demo_05", says("Yes, of course.")).result["overall"].value == 3
    assert run("demo_05", says("No.")).result["overall"].value == 0


def test_demo_06_multiple_choice(run):
    # The right letters are B A C D A B C D.
    always_b = run("demo_06", says("Let me see. The answer is (B)."))
    assert list(measured(always_b, "accuracy").values()) == [1, 0, 0, 0, 0, 1, 0, 0]
    assert (always_b.result["accuracy"].value, always_b.result["answered"].value) == (0.25, 1)
    silent = run("demo_06", says("I would rather not."))
    assert (silent.result["accuracy"].value, silent.result["answered"].value) == (0, 0)


def test_demo_06_uses_the_examples_only_if_it_shows_some(run):
    assert [*run("demo_06?shots=0", says("B")).dependency_versions] == ["questions"]
    assert [*run("demo_06", says("B")).dependency_versions] == ["questions", "examples"]


def test_demo_06_prompts():
    zero_shot = next(modelgauge.list_items("demo_06?shots=0"))
    question = "Which of these is a metal?\nA. Wood\nB. Iron\nC. Glass\nD. Paper\nAnswer:"
    assert zero_shot.prompts[0].prompt.text == question
    assert zero_shot.context_as(MultipleChoiceQuestion).answer_letter == "B"
    two_shot = next(modelgauge.list_items("demo_06")).prompts[0].prompt.text
    *examples, last = two_shot.split("\n\n")
    assert last == question
    assert len(examples) == 2
    assert all(example.splitlines()[-1] in {f"Answer: {letter}" for letter in "ABCD"} for example in examples)
    other_seed = next(modelgauge.list_items("demo_06?seed=1")).prompts[0].prompt.text
    assert other_seed != two_shot


@pytest.mark.parametrize("uid", [f"demo_0{number}" for number in range(1, 7)])
def test_items_are_the_same_each_time_and_context_stays_here(uid, run):
    seen = []
    items = list(modelgauge.list_items(uid))
    record = run(uid, FunctionSUT("recorder", lambda text: seen.append(text) or "Yes"))
    assert list(modelgauge.list_items(uid)) == items
    assert [item.test_item.id for item in record.test_item_records] == [item.id for item in items]
    assert sorted(seen) == sorted(prompt.prompt.text for item in items for prompt in item.prompts)


def test_demo_07_continuations(run):
    # Pairs of words in the corpus: "the sofa" 2 times, "the mat" once, so the first item is wrong. "ice is hot" and "is
    # cold" are as frequent, and the longer ending is likelier per byte alone.
    record = run("demo_07", "demo_bigrams")
    assert list(measured(record, "accuracy").values()) == [0, 1, 1, 1, 1, 0]
    assert list(measured(record, "accuracy_per_byte").values()) == [0, 1, 1, 1, 1, 1]
    assert record.counts.sut_calls.paid == 6

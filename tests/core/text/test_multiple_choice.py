"""Multiple-choice questions as prompts, with examples, and shuffled."""

import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import InvalidDataError
from modelgauge.text.multiple_choice import (
    MultipleChoiceQuestion,
    choice_letters,
    few_shot_prompt,
    format_question,
    shuffle_choices,
)

CAPITAL = MultipleChoiceQuestion("Capital of France?", ["Paris", "London", "Rome"], "A")
POOL = [MultipleChoiceQuestion(f"Question {number}?", ["yes", "no"], number % 2) for number in range(20)]


def shots_of(prompt: str) -> list[str]:
    return prompt.split("\n\n")[:-1]


def test_letters() -> None:
    assert choice_letters(4) == "ABCD"
    assert choice_letters(26).endswith("Z")
    for count in (0, 27):
        with pytest.raises(InvalidDataError, match="between 1 and 26"):
            choice_letters(count)


def test_an_answer_is_an_index_or_a_letter() -> None:
    assert MultipleChoiceQuestion("?", ["x", "y"], "b") == MultipleChoiceQuestion("?", ("x", "y"), 1)
    assert MultipleChoiceQuestion("?", ["x", "y"], 1).answer_letter == "B"
    assert MultipleChoiceQuestion("?", ["x", "y"]).answer_letter is None
    assert CAPITAL.letters == "ABC"


def test_a_question_survives_json() -> None:
    assert MultipleChoiceQuestion.model_validate_json(CAPITAL.model_dump_json()) == CAPITAL


@pytest.mark.parametrize(
    ("choices", "answer", "problem"),
    [
        ([], None, "0 lettered choices"),
        (["x"] * 27, None, "27 lettered choices"),
        (["x", "y"], "C", "the answer 2 is not the index"),
        (["x", "y"], 2, "Give 0 to 1, or a letter of AB"),
        (["x", "y"], -1, "the answer -1"),
        (["x", "y"], "AB", "not a letter"),
        (["x", "y"], "", "not a letter"),
        (["x", "y"], "\u00df", "not a letter"),
        (["x", "y"], True, "integer"),
        ("xy", None, "not a list"),
        ({"x", "y"}, None, "not a list"),
        (["x", 3], None, "string"),
    ],
)
def test_what_is_no_question_is_refused(choices: object, answer: object, problem: str) -> None:
    with pytest.raises(InvalidDataError, match=problem):
        MultipleChoiceQuestion("?", choices, answer)


def test_mmlu_format_is_the_default() -> None:
    assert format_question(CAPITAL) == "Capital of France?\nA. Paris\nB. London\nC. Rome\nAnswer:"
    assert format_question(CAPITAL, with_answer=True).endswith("\nC. Rome\nAnswer: A")


def test_big_bench_hard_format() -> None:
    text = format_question(CAPITAL, style="(A)", heading="Options:", suffix="")
    assert text == "Capital of France?\nOptions:\n(A) Paris\n(B) London\n(C) Rome"
    assert format_question(CAPITAL, style="(A)", suffix="A:", with_answer=True).endswith("\nA: (A)")


def test_formats_that_cannot_be_written() -> None:
    with pytest.raises(InvalidDataError, match="no answer to show"):
        format_question(MultipleChoiceQuestion("?", ["x"]), with_answer=True)
    with pytest.raises(InvalidDataError, match=r'style="A\."'):
        format_question(CAPITAL, style="1.")


def test_a_few_shot_prompt_is_answered_examples_and_the_open_question() -> None:
    prompt = few_shot_prompt(CAPITAL, POOL[:1], 1, seed=0, instruction="Choose.")
    assert prompt == (
        "Choose.\n\nQuestion 0?\nA. yes\nB. no\nAnswer: A\n\n"
        "Capital of France?\nA. Paris\nB. London\nC. Rome\nAnswer:"
    )
    assert few_shot_prompt(CAPITAL, [], 0, seed=0) == format_question(CAPITAL)


def test_the_same_seed_draws_the_same_examples_everywhere() -> None:
    """Frozen: another draw would change prompts, so caches and published figures with them."""
    shots = shots_of(few_shot_prompt(CAPITAL, POOL, 4, seed=7))
    assert [shot.split("?")[0] for shot in shots] == [
        "Question 18",
        "Question 0",
        "Question 6",
        "Question 12",
    ]
    assert shuffle_choices(MultipleChoiceQuestion("Q", list("vwxyz"), 0), 7).choices == (
        "x",
        "y",
        "v",
        "z",
        "w",
    )


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_draws_do_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    code = (
        "from modelgauge.text.multiple_choice import *\n"
        "pool = [MultipleChoiceQuestion(f'Question {n}?', ['yes', 'no'], n % 2) for n in range(20)]\n"
        "q = MultipleChoiceQuestion('Capital of France?', ['Paris', 'London', 'Rome'], 'A')\n"
        "print(few_shot_prompt(q, pool, 4, seed=7), end='')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, encoding="utf-8"
    )
    assert run.stdout == few_shot_prompt(CAPITAL, POOL, 4, seed=7)


@given(seed=st.integers(), k=st.integers(min_value=0, max_value=20))
def test_examples_are_distinct_and_fewer_are_the_first_of_more(seed: int, k: int) -> None:
    shots = shots_of(few_shot_prompt(CAPITAL, POOL, k, seed=seed))
    assert len(set(shots)) == len(shots) == k
    assert shots == shots_of(few_shot_prompt(CAPITAL, POOL, 20, seed=seed))[:k]


@given(seed=st.integers(), index=st.integers(min_value=0, max_value=19))
def test_the_question_itself_only_makes_room_for_the_next_example(seed: int, index: int) -> None:
    asked = POOL[index]
    everything = shots_of(few_shot_prompt(CAPITAL, POOL, 20, seed=seed))
    expected = [shot for shot in everything if not shot.startswith(asked.question)]
    assert shots_of(few_shot_prompt(asked, POOL, 19, seed=seed)) == expected
    # Shuffled, and without its answer, it is still the same question.
    hidden = MultipleChoiceQuestion(asked.question, asked.choices[::-1])
    assert shots_of(few_shot_prompt(hidden, POOL, 5, seed=seed)) == expected[:5]


def test_every_example_can_be_drawn_first() -> None:
    first = {shots_of(few_shot_prompt(CAPITAL, POOL[:5], 1, seed=seed))[0] for seed in range(100)}
    assert len(first) == 5


@pytest.mark.parametrize("k", [21, -1])
def test_more_examples_than_there_are(k: int) -> None:
    with pytest.raises(InvalidDataError, match="k = "):
        few_shot_prompt(CAPITAL, POOL, k, seed=0)
    with pytest.raises(InvalidDataError, match=r"19 other than the question.*k = 19 at most"):
        few_shot_prompt(POOL[0], POOL, 20, seed=0)


def test_an_example_without_an_answer_is_an_error() -> None:
    with pytest.raises(InvalidDataError, match="leave it out of the examples"):
        few_shot_prompt(CAPITAL, [MultipleChoiceQuestion("Open?", ["x"])], 1, seed=0)


def test_drawing_leaves_the_global_generator_alone() -> None:
    random.seed(1)
    state = random.getstate()
    few_shot_prompt(CAPITAL, POOL, 5, seed=0)
    shuffle_choices(CAPITAL, 0)
    assert random.getstate() == state


@given(choices=st.lists(st.text(), min_size=1, max_size=26), seed=st.integers(), data=st.data())
def test_shuffling_moves_the_answer_with_its_choice(
    choices: list[str], seed: int, data: st.DataObject
) -> None:
    answer = data.draw(st.integers(min_value=0, max_value=len(choices) - 1))
    question = MultipleChoiceQuestion("?", choices, answer)
    shuffled = shuffle_choices(question, seed)
    assert shuffled.answer is not None
    assert shuffled.choices[shuffled.answer] == choices[answer]
    assert sorted(shuffled.choices) == sorted(choices)
    assert shuffle_choices(question, seed) == shuffled


def test_shuffling_spreads_answers_over_the_letters() -> None:
    questions = [
        MultipleChoiceQuestion(f"Question {number}?", ["right", "b", "c", "d"], 0) for number in range(100)
    ]
    letters = {shuffle_choices(question, 3).answer_letter for question in questions}
    assert letters == set("ABCD")


def test_shuffling_keeps_an_unknown_answer_unknown() -> None:
    assert shuffle_choices(MultipleChoiceQuestion("?", ["x", "y"]), 0).answer is None

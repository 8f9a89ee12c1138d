"""Which choice a completion names: the letter, or None; never a guess."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import sample

from modelgauge.errors import InvalidDataError
from modelgauge.text.choice_extraction import extract_choice

CITIES = ["Paris", "London", "Rome", "New York"]
ANIMALS = ["A cat", "A dog", "The bird", "fish"]
TEN = list("abcdefghij")


@pytest.mark.parametrize(
    ("text", "choices", "letter"),
    [
        ("A", CITIES, "A"),
        ("(A)", CITIES, "A"),
        ("A.", CITIES, "A"),
        ("The answer is (B).", CITIES, "B"),
        ("**C**", CITIES, "C"),
        ("answer: d", CITIES, "D"),
        ("Option B", CITIES, "B"),
        ("Paris", CITIES, "A"),
        ("paris.", CITIES, "A"),
        ("A dog", ["cat", "dog"], "B"),
        ("I", TEN, "I"),
        ("I think B.", CITIES, "B"),
        ("The answer is A dog.", ANIMALS, "B"),
        ("The answer is a dog", ANIMALS, "B"),
        ("The answer is A.", ANIMALS, "A"),
        ("The answer is (B), not (A).", CITIES, "B"),
        ("The answer is B, A is wrong.", CITIES, "B"),
        ("The answer is A. Wait. The answer is C.", CITIES, "C"),
        ("(A) is wrong. (B) is correct.", CITIES, "B"),
        ("Reasoning...\n\nB", CITIES, "B"),
        ("Reasoning (A) (B)\nFinal answer: **(C)** Rome", CITIES, "C"),
        ("thus $\\boxed{D}$", CITIES, "D"),
        ("so \\boxed{\\text{B}}.", CITIES, "B"),
        ("<answer>b</answer>", CITIES, "B"),
        ("#### C", CITIES, "C"),
        ("A. Paris\nB. London\nC. Rome\nD. New York\nB", CITIES, "B"),
        ("A. Paris\nB. London\nC. Rome\nD. New York\nAnswer: B. London", CITIES, "B"),
        ("B. London", CITIES, "B"),
        ("B London", CITIES, "B"),
        ("- B", CITIES, "B"),
        ("B) London because it is", CITIES, "B"),
        ("B\n\nExplanation: (A) is wrong", CITIES, "B"),
        ("The answer is New York City", CITIES, "D"),
        ("Let's choose option (D), as", CITIES, "D"),
        ("The correct answer is option C because", CITIES, "C"),
        ("The best answer among the options is: (B)", CITIES, "B"),
        ("The answer is 42.", ["42", "7"], "A"),
        ("The answer is -5.", ["5", "-5"], "B"),
        ("Answer: C. S. Lewis", ["Tolkien", "C. S. Lewis", "x", "y"], "B"),
        ("The answer is A because it", CITIES, "A"),
        ("Answer:\nB", CITIES, "B"),
        ("So the answer is (B).", ["a", "b"], "B"),
        ("Answer\uff1a\uff08B\uff09", CITIES, "B"),
        ("The answer is: **B. London**", CITIES, "B"),
        ("The answer is (B) London, since (A) Paris is wrong", CITIES, "B"),
        ("A", ["B", "A"], "A"),
        ("So A is out, B is out, so C.", CITIES, "C"),
        ("(b)", CITIES, "B"),
        ("b) London", CITIES, "B"),
        ("[B]", CITIES, "B"),
        ("The answer is \u201cB\u201d.", CITIES, "B"),
        ("The answer is **B** (London)", CITIES, "B"),
        ("It is B", CITIES, "B"),
        ("B is the correct answer.", CITIES, "B"),
        ("D: New York", CITIES, "D"),
        ("Answer - B", CITIES, "B"),
        ("The answer is a.", CITIES, "A"),
        ("(A) is wrong, so it's (C).", CITIES, "C"),
        ("The answer is Rome, not Paris.", CITIES, "C"),
        ("\u0130 The answer is London.", CITIES, "B"),
        ("The answer is U.S.", ["U.S.", "U.K."], "A"),
        ("The answer is 5%", ["5", "5%"], "B"),
        ("The answer is 3/4", ["3", "3/4"], "B"),
        ("The answer is A and B", ["x", "y", "A and B"], "C"),
        ("The answer is B cell", ["T cell", "B cell"], "B"),
        ("- **Answer:** `C`", CITIES, "C"),
        ("The correct statement is (D).", CITIES, "D"),
        ("The answer to question 3 is: b", CITIES, "B"),
        ("The answer is \\(\\text{C}\\).", CITIES, "C"),
        ("A. Because Paris is large.", CITIES, "A"),
        ("The capital is London.\nParis", CITIES, "A"),
        ("The answer is clearly B.", CITIES, "B"),
        ("The answer is, therefore, B.", CITIES, "B"),
        ("Eliminated option: A. Eliminated choice: B. So D.", CITIES, "D"),
        ("The answer is B. The incorrect answer is A.", CITIES, "B"),
        ("A is wrong \\boxed{B}", CITIES, "B"),
        ("If A is wrong the answer is B.", CITIES, "B"),
        ("I was wrong. Answer: B", CITIES, "B"),
        ("I don't think the answer is A. The answer is C.", CITIES, "C"),
    ],
)
def test_a_named_choice_is_read(text: str, choices: list[str], letter: str) -> None:
    assert extract_choice(text, choices) == letter


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("A dog barks.", ["cat", "horse"]),
        ("A dog barks.", ["dog", "horse"]),
        ("I think a dog did it.", ["d", "horse"]),
        ("A 10 kg weight", ["1", "2"]),
        ("I think so", TEN),
        ("The answer is not A.", CITIES),
        ("The answer is A or B.", CITIES),
        ("The answer is (A) or (B).", CITIES),
        ("First, (A) is wrong. (B) is wrong.", CITIES),
        ("A. Paris\nB. London\nC. Rome\nD. New York", CITIES),
        ("The answer is Paris or London", CITIES),
        ("The answer is E.", CITIES),
        ("", CITIES),
        ("I don't know.", CITIES),
        ("I cannot answer this: A question about C major.", CITIES),
        ("Answer: I don't know", TEN),
        ("Vitamin C is important", CITIES),
        ("I would not choose B.", CITIES),
        ("The answer is 42.5", ["42", "7"]),
        ("The answer is A good one", CITIES),
        ("Both A and B are right", CITIES),
        ("Answer: (B) London and (C) Rome", CITIES),
        ("the answer is B/C", CITIES),
        ("The answer is (B)/(C)", CITIES),
        ("\u7b54\u6848\uff1a\uff08B\uff09", CITIES),
        ("Q: x\nOptions:\n(A) Paris\n(B) London", CITIES),
        ("A's good", CITIES),
        ("Plan B is fine", CITIES),
        ("The answer is either (A) or (B)", CITIES),
        ("A is incorrect", CITIES),
        ("The answer is (Z)", CITIES),
        ("x", ["same", "same"]),
        ("same", ["same", "same"]),
        ("The answer is a matter of taste.", CITIES),
        ("I would go with London", CITIES),
        ("Neither A nor B is correct.", CITIES),
        ("If (A) is correct, then (B) is wrong.", CITIES),
        ("The answer is 5%", ["5", "10"]),
        ("Answer: both A and B", CITIES),
        ("The answer isn't A.", CITIES),
        ("The incorrect answer is A", CITIES),
        ("The only **incorrect** option is (C).", CITIES),
        ("Incorrect choice: A", CITIES),
        ("The least likely answer is Paris", CITIES),
        ("Ruled-out option: A", CITIES),
        ("I don't think the answer is A.", CITIES),
        ("It does not follow that the correct answer is A.", CITIES),
        ("Not the right answer: B", CITIES),
        ("The answer is not \\boxed{A}", CITIES),
    ],
)
def test_no_answer_and_no_single_answer_are_none(text: str, choices: list[str]) -> None:
    assert extract_choice(text, choices) is None


def test_reasoning_may_discuss_every_choice_before_the_answer() -> None:
    text = (
        "(A) Paris is the capital of France. (B) London is not in France.\n"
        "At first the answer is (B), some would say; but A is larger.\n\n"
        "So the answer is (A)."
    )
    assert extract_choice(text, CITIES) == "A"


SHAPES = ["{}", "({})", "{}.", "**{}**", "Answer: {}", "The answer is ({}).", r"\boxed{{{}}}"]


@given(st.sampled_from("ABCD"), st.sampled_from(SHAPES))
def test_every_letter_in_every_shape(letter: str, shape: str) -> None:
    assert extract_choice(shape.format(letter), CITIES) == letter
    assert extract_choice("Let us see.\n\n" + shape.format(letter) + "\n", CITIES) == letter


@given(st.text(), st.lists(st.text(), min_size=1, max_size=26))
def test_any_text_gives_a_letter_of_the_choices_or_none(text: str, choices: list[str]) -> None:
    letter = extract_choice(text, choices)
    assert letter is None or ord(letter) - ord("A") in range(len(choices))


@given(st.text(alphabet="bcdfghjklmnpqrstuvwxyz \n", max_size=60))
def test_lower_case_prose_without_a_statement_names_no_choice(text: str) -> None:
    assert extract_choice(f"xx {text} xx", CITIES) is None


def test_the_number_of_choices_is_checked() -> None:
    for count in (0, 27):
        with pytest.raises(InvalidDataError, match="between 1 and 26"):
            extract_choice("A", ["x"] * count)


@pytest.mark.parametrize(
    "piece",
    sample(
        [
            "answer is ",
            "answer to ",
            "wrong answer is ",
            "not the right ",
            "least ",
            "answer:'",
            "(",
            " ",
            "\n",
            "so A ",
            "A. ",
            "_",
            "a_",
            "\\text{",
            "'",
            "(A)\n",
            "#",
        ],
        3,
    ),
)
def test_time_is_linear_in_the_length(piece: str) -> None:
    """Quadratic work on 200,000 characters would take minutes; the bound only has to tell these apart."""
    text = piece * (200_000 // len(piece))
    start = time.process_time()
    extract_choice(text, CITIES)
    assert time.process_time() - start < 20

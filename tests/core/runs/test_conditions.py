"""`accuracy < 0.9`: what is read, what is refused, and what holds."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import InvalidOptionError
from modelgauge.runs.conditions import Condition

OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize(
    ("text", "name", "op", "number"),
    [
        ("accuracy < 0.9", "accuracy", "<", 0.9),
        ("accuracy<0.9", "accuracy", "<", 0.9),
        ("  Answer Relevancy  >= -1e-3 ", "Answer Relevancy", ">=", -0.001),
        ("accuracy.pass@2 == .5", "accuracy.pass@2", "==", 0.5),
        ("Correctness [GEval] != 1", "Correctness [GEval]", "!=", 1),
        ("a<b <= +3", "a<b", "<=", 3),
        ("x > 5", "x", ">", 5),
    ],
)
def test_a_condition_is_a_name_an_operator_and_a_number(text, name, op, number):
    assert Condition.parse(text) == Condition(name, op, number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "accuracy",
        "accuracy = 0.9",
        "< 0.9",
        "accuracy <",
        "0.9",
        "accuracy < 90%",
        "accuracy < 0.9 > 1 and",
    ],
)
def test_another_form_is_refused_with_an_example(text):
    with pytest.raises(InvalidOptionError) as refused:
        Condition.parse(text)
    assert refused.value.problem.startswith(f"{text!r} is not a condition")
    assert refused.value.fix.endswith('in quotes: "accuracy < 0.9".')


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "0.9.1", "b", "1e999"])
def test_what_is_no_finite_number_is_named(number):
    with pytest.raises(InvalidOptionError, match=f"'{number}' is not a number"):
        Condition.parse(f"accuracy < {number}")


@given(st.sampled_from(sorted(OPERATORS)), st.integers(-3, 3), st.integers(-3, 3))
def test_a_condition_holds_as_the_operator_says(op, value, number):
    assert Condition("x", op, number).holds(value) == OPERATORS[op](value, number)


@pytest.mark.parametrize(
    ("op", "holds"), [("<", False), (">=", True), ("==", True), (">", False), ("!=", False)]
)
def test_the_noise_of_floats_decides_nothing(op, holds):
    assert Condition("x", op, 0.3).holds(0.1 + 0.2) is holds
    assert Condition("x", op, 0.1 + 0.2).holds(0.3) is holds


def test_an_unknown_name_is_refused_with_the_nearest():
    condition = Condition.parse("acuracy < 0.9")
    with pytest.raises(InvalidOptionError) as refused:
        condition.check_name(["accuracy", "words", "accuracy"], "measurements")
    assert str(refused.value) == (
        "There is no 'acuracy' for the condition 'acuracy < 0.9'. Did you mean 'accuracy'? "
        "The measurements are: accuracy, words."
    )
    condition.check_name(["acuracy"], "measurements")


@given(
    st.text(min_size=1), st.sampled_from(sorted(OPERATORS)), st.floats(allow_nan=False, allow_infinity=False)
)
def test_a_condition_that_is_read_says_what_was_written(name, op, number):
    try:
        condition = Condition.parse(f"{name} {op} {number!r}")
    except InvalidOptionError:
        assert not name.strip()
    else:
        assert (condition.operator, condition.number) == (op, number)
        assert condition.name == name.strip()

"""Numbers, markers, boxes and normal forms."""

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import InvalidDataError
from modelgauge.text.answers import (
    boxed,
    first_line,
    last_number,
    normalize_answer,
    numbers_equal,
    text_after,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18", "18"),
        ("She makes $18.", "18"),
        ("3 apples and 4 pears", "4"),
        ("1,234,567 people", "1234567"),
        ("12,34,567 rupees", "1234567"),
        ("1\u202f000 euros", "1000"),
        ("3,4,5", "5"),
        ("3, 4, 5", "5"),
        ("18.00", "18"),
        ("3.50", "3.5"),
        (".5", "0.5"),
        ("007", "7"),
        ("0.0", "0"),
        ("-0", "0"),
        ("x = -3", "-3"),
        ("(\u22123)", "-3"),
        ("-$1,234.50", "-1234.5"),
        ("$-5", "-5"),
        ("+5", "5"),
        ("16-3", "3"),
        ("16 - 3", "3"),
        ("10-20", "20"),
        ("45.0%", "45"),
        ("1.5e3", "1500"),
        ("2E-2 m", "0.02"),
        ("5e", "5"),
        ("7 x 1e9999", "1"),
        ("25 m^2", "25"),
        ("5 l of H2O", "5"),
        ("the 7 tries of Qwen v2.5", "7"),
        ("v2.5.1 gives 1.5", "1.5"),
        ("x.5 is .5", "0.5"),
        ("5kg", "5"),
        ("1/5", "5"),
        ("12:30", "30"),
        ("\u00a31,000", "1000"),
        ("A: 26\n", "26"),
        ("<<2*13=26>>26", "26"),
        ("99999999999999999999999999999999999999.10", "99999999999999999999999999999999999999.1"),
    ],
)
def test_last_number_is_plain(text: str, number: str) -> None:
    assert last_number(text) == number


@pytest.mark.parametrize(
    "text", ["", "none", "H2O", "x_1", "v2.5", "x2.5 or m^1.5.", "x_1.2.3", "- . ,", "\u00b2", "\u0663"]
)
def test_a_text_without_a_number_has_none(text: str) -> None:
    assert last_number(text) is None


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40))
def test_plain_form_is_exact_and_a_fixed_point(value: Decimal) -> None:
    plain = last_number(format(value, "f"))
    assert plain is not None
    assert Decimal(plain) == value
    assert last_number(plain) == plain


@given(st.integers(), st.integers(min_value=0, max_value=5))
def test_spellings_of_a_number_are_equal(value: int, zeros: int) -> None:
    assert numbers_equal(f"{value:,}", str(value))
    assert numbers_equal(f"{value}.{'0' * (zeros + 1)}", str(value))
    assert not numbers_equal(str(value), str(value + 1))


@pytest.mark.parametrize(
    ("a", "b"),
    [("18.00", "18"), ("1,000", "1000"), ("$1,000.", " 1000 "), ("1e3", "1000"), ("50%", "50"), ("-0", "0")],
)
def test_equal_numbers(a: str, b: str) -> None:
    assert numbers_equal(a, b)
    assert numbers_equal(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("0.1", "0.10000000000000000000000000000000000001"),
        ("9007199254740993", "9007199254740992"),
        ("1", "-1"),
        ("50%", "0.5"),
        ("3,4", "4"),
        ("18 dollars", "18"),
        ("x", "x"),
        ("", ""),
        (None, None),
        (None, "1"),
    ],
)
def test_unequal_numbers_and_texts_that_are_none(a: str | None, b: str | None) -> None:
    assert not numbers_equal(a, b)


def test_text_after_the_last_marker() -> None:
    assert text_after("the answer is 1. So the answer is 2.", "the answer is") == "2."
    assert text_after("A: 1\n#### 2\n", "A:", "####") == "2"
    assert text_after("#### 2\nA: 1", "A:", "####") == "1"
    assert text_after("answer is: 5", "answer is", "answer is:") == "5"
    assert text_after("the answer is", "the answer is") == ""


def test_text_after_is_none_without_a_marker() -> None:
    assert text_after("It is 2.", "the answer is") is None
    assert text_after("The answer is 2.", "the answer is") is None


def test_markers_in_any_case() -> None:
    # The dotted capital I grows in lower case, which must not shift what is returned.
    assert text_after("\u0130\u0130 THE ANSWER IS 2.", "the answer is", ignore_case=True) == "2."
    assert text_after("a.c", "A+C", ignore_case=True) is None


@pytest.mark.parametrize("markers", [(), ("",), ("A:", "")])
def test_no_marker_is_refused(markers: tuple[str, ...]) -> None:
    with pytest.raises(InvalidDataError, match="Name the text to look for"):
        text_after("x", *markers)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Answer!", "answer"),
        ("  a   an  the x ", "x"),
        ("New-York", "newyork"),
        ("another theory", "another theory"),
        ("A.B.", "ab"),
    ],
)
def test_squad_normal_form(text: str, normal: str) -> None:
    assert normalize_answer(text) == normal


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"so \boxed{5}.", "5"),
        (r"\boxed{1} then \boxed{ 2 }", "2"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{[0, 1\}}", r"[0, 1\}"),
        (r"\fbox{B}", "B"),
        (r"\boxed {3}", "3"),
        (r"\boxed{}", ""),
        (r"\boxed{1} and \boxed{2", None),
        ("boxed{5}", None),
        ("", None),
    ],
)
def test_boxed(text: str, content: str | None) -> None:
    assert boxed(text) == content


def test_first_line() -> None:
    assert first_line("\n \n  B. \nsecond") == "B."
    assert first_line("B\r\nC") == "B"
    assert first_line(" \n ") == ""


@pytest.mark.parametrize(
    "piece", ["1", "1,23", "1,234", "-", "9e9", "1.", "v1.", "v1", "\u00a0", r"\boxed{", r"\boxed{}", "{"]
)
def test_time_is_linear_in_the_length(piece: str) -> None:
    """Quadratic work on 300,000 characters would take minutes; the bound only has to tell these apart."""
    text = piece * (300_000 // len(piece))
    start = time.process_time()
    last_number(text)
    numbers_equal(text, text)
    boxed(text)
    assert time.process_time() - start < 10

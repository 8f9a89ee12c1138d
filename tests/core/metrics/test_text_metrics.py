"""Metrics that compare texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import ArgumentError, InvalidDataError, InvalidOptionError
from modelgauge.evals import LLMTestCase
from modelgauge.metrics import (
    ContainsMetric,
    ExactMatchMetric,
    LevenshteinMetric,
    PatternMatchMetric,
    TokenF1Metric,
)
from modelgauge.metrics.text_metrics import edit_distance


def score(metric, actual, expected=None):
    return metric.measure(LLMTestCase("?", actual, expected)).value


@pytest.mark.parametrize(
    ("metric", "actual", "value"),
    [
        (ExactMatchMetric(), "Paris", 1),
        (ExactMatchMetric(), " Paris\n", 1),
        (ExactMatchMetric(), "paris", 0),
        (ExactMatchMetric(ignore_case=True), "PARIS", 1),
        (ExactMatchMetric(), "Paris.", 0),
        (ExactMatchMetric(), "", 0),
    ],
)
def test_exact_match(metric, actual, value):
    assert score(metric, actual, "Paris") == value


@pytest.mark.parametrize(
    ("settings", "actual", "value"),
    [
        ({}, "a@b.org", 1),
        ({}, "A@B.ORG", 0),
        ({"ignore_case": True}, "A@B.ORG", 1),
        ({}, "write to a@b.org", 0),
    ],
)
def test_pattern_match(settings, actual, value):
    assert score(PatternMatchMetric(pattern=r"[a-z]+@[a-z]+\.[a-z]+", **settings), actual) == value


def test_a_pattern_that_is_none():
    with pytest.raises(InvalidOptionError, match="regular expression"):
        PatternMatchMetric(pattern="(")
    with pytest.raises(InvalidOptionError, match="regular expression"):
        PatternMatchMetric(pattern=3)


@pytest.mark.parametrize(
    ("settings", "actual", "value"),
    [
        ({"texts": "cat"}, "a cat", 1),
        ({"texts": ["cat", "dog"]}, "a cat", 0),
        ({"texts": ["cat", "dog"], "require": "any"}, "a cat", 1),
        ({"texts": ["cow", "dog"], "require": "any"}, "a cat", 0),
        ({"texts": "CAT"}, "a cat", 0),
        ({"texts": "CAT", "ignore_case": True}, "a cat", 1),
    ],
)
def test_contains(settings, actual, value):
    assert score(ContainsMetric(**settings), actual) == value


def test_contains_looks_for_the_expected_output_by_default():
    assert score(ContainsMetric(), "It is Paris.", "Paris") == 1
    assert ContainsMetric().missing_params(LLMTestCase("?", "x")) == ["expected_output"]


@pytest.mark.parametrize(
    "settings",
    [
        {"texts": []},
        {"texts": ""},
        {"texts": ["a", ""]},
        {"texts": [3]},
        {"texts": 3},
        {"texts": "a", "require": "most"},
    ],
)
def test_contains_refuses_what_makes_no_sense(settings):
    name = list(settings)[-1]  # the one that is wrong
    with pytest.raises(InvalidOptionError, match=rf"ContainsMetric\.{name} is "):
        ContainsMetric(**settings)


@pytest.mark.parametrize(
    ("actual", "expected", "value"),
    [("kitten", "sitting", 1 - 3 / 7), ("", "", 1), ("", "abc", 0), ("same", "same", 1), ("ab", "ba", 0)],
)
def test_levenshtein(actual, expected, value):
    assert score(LevenshteinMetric(), actual, expected) == pytest.approx(value)


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_the_edit_distance_is_the_tables(first, second):
    row = list(range(len(second) + 1))
    for i, one in enumerate(first, start=1):
        above, row = row, [i]
        for j, other in enumerate(second, start=1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (one != other)))
    assert edit_distance(first, second) == row[-1]


@pytest.mark.parametrize(
    ("actual", "expected", "value"),
    [
        ("The Eiffel Tower!", "eiffel tower", 1),
        ("red red blue", "red blue blue", 2 / 3),
        ("Paris, in France", "Paris", 0.5),
        ("London", "Paris", 0),
        ("the", "a", 1),
        ("the", "Paris", 0),
    ],
)
def test_token_f1(actual, expected, value):
    assert score(TokenF1Metric(), actual, expected) == pytest.approx(value)


def test_an_empty_expected_output_is_in_every_output_and_tells_nothing():
    with pytest.raises(InvalidDataError, match="every output contains it"):
        score(ContainsMetric(), "anything", "")
    assert score(ContainsMetric(texts="any"), "anything", "") == 1


@pytest.mark.parametrize(("arguments", "told"), [((), r"\(pattern=…\)"), (("abc",), r"\(pattern='abc'\)")])
def test_a_pattern_that_is_missing_is_told_by_its_name(arguments, told):
    with pytest.raises(ArgumentError, match=rf"needs pattern\. Name the argument: PatternMatchMetric{told}"):
        PatternMatchMetric(*arguments)

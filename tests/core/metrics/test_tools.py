"""Tool calls: names, parameters, outputs, order, and each call counted once."""

from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modelgauge import ToolCall
from modelgauge.errors import InvalidOptionError
from modelgauge.evals import LLMTestCase
from modelgauge.metrics import ToolCallParams, ToolCorrectnessMetric
from modelgauge.metrics.app_metrics import in_any_order, in_order


def calls(names):
    return [ToolCall(name=name) for name in names]


def score(expected, called, **settings):
    case = LLMTestCase("?", "!", expected_tools=expected, tools_called=called)
    return ToolCorrectnessMetric(**settings).measure(case).value


@pytest.mark.parametrize(
    ("expected", "called", "any_order", "ordered", "exact"),
    [
        ("ab", "ab", 1, 1, 1),
        ("ab", "ba", 1, 1 / 2, 0),
        ("a", "ab", 1, 1, 0),
        ("ab", "a", 1 / 2, 1 / 2, 0),
        ("aa", "a", 1 / 2, 1 / 2, 0),
        ("a", "aa", 1, 1, 0),
        ("aab", "abb", 2 / 3, 2 / 3, 0),
        ("aba", "aab", 1, 2 / 3, 0),
        ("a", "", 0, 0, 0),
        ("", "", 1, 1, 1),
        ("", "a", 0, 0, 0),
        ("a", "b", 0, 0, 0),
    ],
)
def test_names(expected, called, any_order, ordered, exact):
    expected, called = calls(expected), calls(called)
    assert score(expected, called) == pytest.approx(any_order)
    assert score(expected, called, should_consider_ordering=True) == pytest.approx(ordered)
    assert score(expected, called, should_exact_match=True) == exact


def test_parameters_count_by_their_share():
    expected = [ToolCall(name="search", input_parameters={"q": "shoes", "n": 3})]
    called = [ToolCall(name="search", input_parameters={"q": "shoes", "n": 4, "page": 1})]
    assert score(expected, called) == 1
    assert score(expected, called, evaluation_params=[ToolCallParams.INPUT_PARAMETERS]) == pytest.approx(
        1 / 3
    )
    assert score(expected, expected, evaluation_params=["input_parameters"]) == 1
    assert score(expected, called, evaluation_params=["input_parameters"], should_exact_match=True) == 0


def test_outputs_are_right_or_wrong():
    expected = [ToolCall(name="add", output=4)]
    assert score(expected, [ToolCall(name="add", output=4)], evaluation_params=["output"]) == 1
    assert score(expected, [ToolCall(name="add", output="4")], evaluation_params=["output"]) == 0


@pytest.mark.parametrize(
    ("value", "other", "right"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([{"a": True}], [{"a": 1}], False),
        ([2.0], [2], True),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1], False),
        ([1, 2], [2, 1], False),
        ({}, [], False),
        (None, False, False),
    ],
)
def test_values_are_compared_as_json_has_them(value, other, right):
    calls = [ToolCall(name="f", output=value)], [ToolCall(name="f", output=other)]
    assert score(*calls, evaluation_params=["output"]) == right
    calls = [ToolCall(name="f", input={"x": value})], [ToolCall(name="f", input={"x": other})]
    assert score(*calls, evaluation_params=["input_parameters"]) == right


def test_calls_are_matched_so_that_the_score_is_highest():
    expected = [ToolCall(name="f", input_parameters=one) for one in ({"a": 1, "b": 2}, {"a": 1})]
    called = [ToolCall(name="f", input_parameters=one) for one in ({"a": 1}, {"a": 1, "b": 2})]
    assert score(expected, called, evaluation_params=["input_parameters"]) == 1


def test_an_unknown_parameter():
    with pytest.raises(InvalidOptionError, match="input_parameters"):
        ToolCorrectnessMetric(evaluation_params=["inputs"])


weights = st.integers(1, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.sampled_from([0, 1, 2, 4]), min_size=columns, max_size=columns),
        min_size=1,
        max_size=4,
    )
)


@given(weights)
@example([[3, 0.5, 0.5], [3, 0, 0], [0, 3, 1]])  # what is matched first is matched anew, twice
@example([[1, 2, 2, 0], [1, 2, 3, 1], [0.5, 3, 3, 1], [3, 2, 2, 1]])
def test_the_matching_is_the_best_of_all(table):
    rows = table if len(table) <= len(table[0]) else [list(column) for column in zip(*table, strict=True)]
    ways = permutations(range(len(rows[0])), len(rows))
    best = max(sum(row[place] for row, place in zip(rows, way, strict=True)) for way in ways)
    assert in_any_order(table) == best
    assert in_order(table) <= best


@pytest.mark.parametrize("params", ["output", ToolCallParams.OUTPUT])
def test_one_parameter_alone_is_told_to_go_into_a_list(params):
    with pytest.raises(InvalidOptionError, match=r"evaluation_params=\['output'\]"):
        ToolCorrectnessMetric(evaluation_params=params)


def test_what_is_no_list_of_parameters():
    assert ToolCorrectnessMetric(evaluation_params=None).evaluation_params == ()
    with pytest.raises(InvalidOptionError, match="Give a list of: input_parameters, output"):
        ToolCorrectnessMetric(evaluation_params=5)

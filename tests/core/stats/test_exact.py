"""Scores are the floats next to the fractions that they are, so that one which equals its threshold passes."""

import asyncio
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import ToolCall
from modelgauge.data.estimates import Score
from modelgauge.evals import LLMTestCase
from modelgauge.metrics import LevenshteinMetric, ROUGEMetric, TokenF1Metric, ToolCorrectnessMetric
from modelgauge.metrics.judge_metrics import average_precision
from modelgauge.metrics.judges import combined
from modelgauge.stats.exact import exact_mean, find_fraction

few = st.integers(1, 40)
fractions = st.fractions(0, 1, max_denominator=1000)


def tokens(start, count):
    return " ".join(f"w{number}" for number in range(start, start + count))


@given(few, few, st.data())
@pytest.mark.parametrize("metric", [TokenF1Metric(), ROUGEMetric(rouge_type="rouge1")])
def test_f1_of_words(metric, actual, expected, data):
    common = data.draw(st.integers(0, min(actual, expected)))
    case = LLMTestCase("?", tokens(0, actual), expected_output=tokens(actual - common, expected))
    value = metric.score(case)
    value = asyncio.run(value) if asyncio.iscoroutine(value) else value
    assert value == float(Fraction(2 * common, actual + expected))


@given(st.integers(0, 40), st.integers(1, 40))
def test_levenshtein(same, other):
    score = LevenshteinMetric().score(LLMTestCase("?", "a" * same, expected_output="a" * same + "b" * other))
    assert score.value == float(Fraction(same, same + other))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=5), st.booleans())
def test_tool_correctness(parameters, ordered):
    expected, called, share = [], [], Fraction(0)
    for place, (right, wrong) in enumerate(parameters):
        wanted = {f"p{number}": number for number in range(right + wrong)}
        given = {name: value if value < right else -1 for name, value in wanted.items()}
        expected.append(ToolCall(name=f"tool{place}", input_parameters=wanted))
        called.append(ToolCall(name=f"tool{place}", input_parameters=given))
        share += Fraction(right, right + wrong) if right + wrong else 1
    metric = ToolCorrectnessMetric(evaluation_params=["input_parameters"], should_consider_ordering=ordered)
    case = LLMTestCase("?", "!", expected_tools=expected, tools_called=called)
    assert asyncio.run(metric.score(case)).value == float(share / len(expected))


@given(st.lists(fractions, min_size=1, max_size=6))
def test_means(shares):
    wanted = float(sum(shares) / len(shares))
    values = [float(share) for share in shares]
    assert exact_mean(values) == wanted
    judges = {str(place): Score(value) for place, value in enumerate(values)}
    assert combined(judges, "mean", higher_is_better=True).value == wanted


def test_average_precision():
    for size in range(1, 8):
        for good in (set(one) for count in range(1, size + 1) for one in combinations(range(size), count)):
            shares = [
                Fraction(sum(one <= place for one in good), place + 1)
                for place in range(size)
                if place in good
            ]
            value = average_precision([float(place in good) for place in range(size)])
            assert value == float(sum(shares) / len(good))


@given(st.floats(0, 1))
def test_a_number_that_is_no_simple_fraction_is_its_value(number):
    assert float(find_fraction(number)) == number

"""Choosing among scored continuations, with numbers worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import SUTCompletion
from modelgauge.errors import InvalidDataError
from modelgauge.text import likeliest, log_likelihoods


def scored(*pairs):
    return [
        SUTCompletion(text, logprob=logprob, is_greedy=False, num_tokens=len(text.split()))
        for text, logprob in pairs
    ]


def test_shorter_text_wins_as_it_is_and_longer_text_per_unit():
    completions = scored((" no", -2.0), (" not at all so", -4.0))
    assert likeliest(completions) == 0
    assert log_likelihoods(completions, per="tokens") == [-2.0, -1.0]
    assert log_likelihoods(completions, per="characters") == [-2.0 / 3, -4.0 / 14]
    assert [likeliest(completions, per=unit) for unit in ("tokens", "characters", "bytes")] == [1, 1, 1]


def test_bytes_differ_from_characters():
    completions = scored(("é", -1.0), ("ee", -1.5))
    assert log_likelihoods(completions, per="characters") == [-1.0, -0.75]
    assert log_likelihoods(completions, per="bytes") == [-0.5, -0.75]
    assert likeliest(completions, per="characters") == 1
    assert likeliest(completions, per="bytes") == 0


def test_lengths_are_those_of_given_texts():
    completions = scored((" a", -1.0), (" bc", -1.8))
    assert log_likelihoods(completions, per="characters", texts=["a", "bc"]) == [-1.0, -0.9]


def test_what_is_likely_anyway_gains_nothing():
    behind_question = scored((" the", -1.0), (" rhubarb", -3.0))
    behind_nothing = scored((" the", -0.5), (" rhubarb", -9.0))
    assert likeliest(behind_question) == 0
    assert log_likelihoods(behind_question, unconditional=behind_nothing) == [-0.5, 6.0]
    assert likeliest(behind_question, unconditional=behind_nothing) == 1


def test_first_of_equally_likely_texts_is_chosen():
    assert likeliest(scored(("a", -1.0), ("b", -1.0), ("c", -2.0))) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": ["a"], "per": "bytes"}, "texts has 1 element"),
        ({"texts": ["", "b"], "per": "characters"}, "has no characters"),
        ({"unconditional": scored(("a", -1.0))}, "unconditional has 1 element"),
        ({"unconditional": [SUTCompletion("a"), SUTCompletion("b")]}, "has no logprob"),
    ],
)
def test_lists_that_do_not_fit_are_refused(options, message):
    with pytest.raises(InvalidDataError, match=message):
        likeliest(scored(("a", -1.0), ("b", -2.0)), **options)


def test_written_completion_is_refused():
    with pytest.raises(InvalidDataError, match="was written, not scored"):
        likeliest([SUTCompletion("Paris")])


def test_nothing_to_choose_from_is_refused():
    with pytest.raises(InvalidDataError, match="no continuation to choose from"):
        likeliest([])


@given(st.lists(st.floats(-1e6, 0), min_size=1, max_size=8), st.floats(-50, 0))
def test_choice_is_the_same_if_all_become_less_likely(logprobs, shift):
    completions = scored(*((f"text {place}", logprob) for place, logprob in enumerate(logprobs)))
    shifted = [each.replaced(logprob=each.logprob + shift) for each in completions]
    chosen, after = likeliest(completions), likeliest(shifted)
    assert math.isclose(logprobs[after], logprobs[chosen], rel_tol=1e-9, abs_tol=1e-9)

"""Perplexities: by hand, by the jackknife as an oracle, and how often their intervals are right."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import MeasuredItems, MeasuredTestItem, TestItem
from modelgauge.errors import InvalidDataError, UnknownNameError
from modelgauge.stats import bits_per_unit, perplexity


def texts(logprobs, words, group=None):
    return MeasuredItems.of(
        [
            MeasuredTestItem(
                TestItem(f"text {place}", context={"book": group[place] if group else place}),
                {"logprob": logprob, "words": length},
            )
            for place, (logprob, length) in enumerate(zip(logprobs, words, strict=True))
        ]
    )


def test_long_texts_weigh_more():
    items = texts([-2 * math.log(2), -8 * math.log(4)], [2, 8])
    found = perplexity(items, "logprob", "words")
    assert found.value == pytest.approx(2 ** ((2 * 1 + 8 * 2) / 10))
    assert bits_per_unit(items, "logprob", "words").value == pytest.approx(1.8)
    assert found.n == 2
    assert found.interval[0] < found.value < found.interval[1]


def test_error_bar_is_near_that_of_the_jackknife():
    draw = np.random.default_rng(1)
    words = draw.integers(20, 200, 60)
    logprobs = -words * draw.gamma(20, 0.15, 60)
    whole = bits_per_unit(texts(logprobs, words), "logprob", "words")
    left_out = [
        -(logprobs.sum() - logprobs[place]) / (words.sum() - words[place]) / math.log(2)
        for place in range(60)
    ]
    jackknife = math.sqrt(59 / 60 * sum((value - np.mean(left_out)) ** 2 for value in left_out))
    assert whole.stderr == pytest.approx(jackknife, rel=0.03)


def test_perplexity_is_two_to_the_bits():
    items = texts([-3.0, -20.0, -7.5], [2, 9, 4])
    bits, found = bits_per_unit(items, "logprob", "words"), perplexity(items, "logprob", "words")
    assert found.value == pytest.approx(2**bits.value)
    assert found.interval == pytest.approx(tuple(2**end for end in bits.interval))


@pytest.mark.parametrize("clustered", [False, True])
def test_interval_holds_95_times_in_100(clustered):
    draw, held, truth = np.random.default_rng(2), 0, 3.0
    books = np.repeat(np.arange(25), 4) if clustered else np.arange(40)
    for _ in range(1_000):
        words = draw.integers(20, 200, len(books))
        of_book = draw.normal(0, 0.4, 25)[books] if clustered else 0
        logprobs = -words * (truth + of_book + draw.normal(0, 0.3, len(books)))
        items = texts(logprobs, words, books.tolist())
        interval = perplexity(items, "logprob", "words", cluster="book" if clustered else None).interval
        held += interval[0] <= math.exp(truth) <= interval[1]
    assert 930 <= held <= 970


@given(st.lists(st.tuples(st.floats(-500, 0), st.integers(1, 300)), min_size=1, max_size=12))
def test_texts_may_be_in_any_order(pairs):
    logprobs, words = zip(*pairs, strict=True)
    one = perplexity(texts(logprobs, words), "logprob", "words")
    other = perplexity(texts(logprobs[::-1], words[::-1]), "logprob", "words")
    assert one.value == pytest.approx(other.value)


def test_texts_that_agree_have_no_interval():
    found = perplexity(texts([-2.0, -4.0], [1, 2]), "logprob", "words")
    assert (found.value, found.interval) == (pytest.approx(math.exp(2)), None)


def test_text_without_units_is_refused():
    with pytest.raises(InvalidDataError, match="'words' is 0 for a text"):
        perplexity(texts([-1.0, -2.0], [0, 2]), "logprob", "words")


def test_no_texts_are_refused():
    with pytest.raises(InvalidDataError, match="of an empty list"):
        perplexity(texts([], []), "logprob", "words")


def test_unknown_measurement_is_refused():
    with pytest.raises(UnknownNameError, match="letters"):
        perplexity(texts([-1.0], [2]), "logprob", "letters")

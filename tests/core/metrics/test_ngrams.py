"""BLEU, chrF and ROUGE: scores worked out by hand, and what happens without the packages."""

import math
import sys

import pytest

from modelgauge.errors import InvalidDataError, InvalidOptionError, UsageError
from modelgauge.evals import LLMTestCase
from modelgauge.metrics import BLEUMetric, ChrFMetric, ROUGEMetric


def score(metric, actual, expected):
    return metric.measure(LLMTestCase("?", actual, expected)).value


def test_bleu():
    # precisions 5/6, 3/5, 1/4, and 0/3 smoothed to 1/6; no brevity penalty
    by_hand = (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25
    assert score(BLEUMetric(), "the cat sat on the mat", "the cat is on the mat") == pytest.approx(by_hand)
    # a brevity penalty of exp(1 - 5/4)
    assert score(BLEUMetric(), "a b c d", "a b c d e") == pytest.approx(math.exp(-0.25))
    assert score(BLEUMetric(), "same words here now", "same words here now") == pytest.approx(1)


def test_chrf():
    # of characters: unigrams 2 of 3 on both sides, bigrams 1 of 2, trigrams 0 of 1
    assert score(ChrFMetric(), "abc", "abd") == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert score(ChrFMetric(word_order=2), "abc", "abc") == pytest.approx(1)


@pytest.mark.parametrize(
    ("rouge_type", "value"),
    [("rouge1", 5 / 6), ("rouge2", 3 / 5), ("rougeL", 5 / 6)],
)
def test_rouge(rouge_type, value):
    metric = ROUGEMetric(rouge_type=rouge_type)
    assert score(metric, "the cat sat on the mat", "the cat is on the mat") == pytest.approx(value)


def test_an_unknown_type_of_rouge():
    with pytest.raises(InvalidOptionError, match="rougeL"):
        ROUGEMetric(rouge_type="rouge9000")


@pytest.mark.parametrize("expected", ["你好", "Привет", "…", ""])
def test_rouge_gives_no_score_where_it_sees_nothing_to_compare_with(expected):
    with pytest.raises(InvalidDataError, match="the letters a to z and digits only"):
        score(ROUGEMetric(), expected, expected)
    assert score(ROUGEMetric(), expected, "seen") == 0


def test_an_unknown_tokenizer_is_told_at_once():
    with pytest.raises(InvalidOptionError, match=r"Did you mean 'intl'\? Known: none, .*13a"):
        BLEUMetric(tokenize="int")
    with pytest.raises(InvalidOptionError, match="There is no tokenize=3"):
        BLEUMetric(tokenize=3)
    assert score(BLEUMetric(tokenize="char"), "你好吗", "你好吗") == pytest.approx(1)


@pytest.mark.parametrize("order", [-1, 1.5, True, "2"])
def test_what_is_no_order_of_words(order):
    with pytest.raises(InvalidOptionError, match=r"ChrFMetric\.word_order is "):
        ChrFMetric(word_order=order)


@pytest.mark.parametrize(
    ("module", "metric"), [("sacrebleu", BLEUMetric()), ("rouge_score.rouge_scorer", ROUGEMetric())]
)
def test_without_the_package_the_error_says_what_to_install(module, metric, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r'pip install "modelgauge-framework\[metrics\]"'):
        score(metric, "a", "b")


@pytest.mark.parametrize(
    ("module", "metric"), [("sacrebleu", BLEUMetric), ("sacrebleu", ChrFMetric), ("rouge_score", ROUGEMetric)]
)
def test_a_missing_package_is_told_before_anything_is_paid(module, metric, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=rf'needs {module}.*pip install "modelgauge-framework\[metrics\]"'):
        metric()

"""Kept scores of judge metrics: kept as long as the metric is the same, and no longer."""

import os
import subprocess
import sys
from functools import partial, wraps

import pytest
from judge_scripts import verdicts

from modelgauge import Score
from modelgauge.evals import LLMTestCase
from modelgauge.metrics import (
    AnswerRelevancyMetric,
    Combination,
    GEval,
    Judge,
    JudgeMetric,
    Metric,
    Procedure,
)
from modelgauge.metrics.fingerprints import fingerprint
from modelgauge.metrics.procedure import mean, texts_of

CASE = LLMTestCase("?", "!", context=["a", "b"])


def declared(words="Is it true?", reduce=mean, cls=Procedure, **changes):
    """A metric that always has the same name, whatever it declares."""
    part = Procedure(texts_of("context"), Judge(words, **changes), reduce)

    class Declared(JudgeMetric):
        required_params = ("context",)
        procedure = part if cls is Procedure else Combination({"only": part})

    return Declared


def times_asked(first, second, sut):
    """How many questions two metrics ask, one after the other, of judges of one name; and the second score."""
    asked = []

    def judge(question):
        asked.append(question)
        return verdicts("yes", "no")

    first(model=sut(judge)).measure(CASE)
    before = len(asked)
    value = second(model=sut(judge)).measure(CASE).value
    return before, len(asked) - before, value


def test_the_same_metric_is_not_judged_again(sut):
    assert times_asked(declared(), declared(), sut) == (1, 0, 1 / 2)


def test_another_wording_is_asked_anew(sut):
    assert times_asked(declared(), declared("Is it really true?"), sut) == (1, 1, 1 / 2)


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"reduce": min}, 0),
        ({"reduce": lambda worths: worths[0] / 4}, 1 / 4),
        ({"verdicts": {"yes": 0.5, "no": 0}}, 1 / 4),
        ({"cls": Combination}, 1 / 2),
    ],
)
def test_another_formula_shows_at_once_and_the_judges_replies_are_paid_for_once(changes, value, sut):
    assert times_asked(declared(), declared(**changes), sut) == (1, 0, value)


def rated(best):
    class Rated(Metric):
        needs_judge = True

        async def score(self, test_case):
            reply = await self.ask("judge", "Rate it.")
            return Score(best, reason=reply.completions[0].text)

    return Rated


def test_so_does_a_change_in_a_score_of_ones_own(sut):
    assert times_asked(rated(0.25), rated(0.75), sut) == (1, 0, 0.75)


def decorated(best):
    class Rated(rated(best)):
        score = noted(rated(best).score)

    return Rated


def noted(function):
    @wraps(function)
    async def note(self, test_case):
        return await function(self, test_case)

    return note


def test_so_does_one_behind_a_decorator(sut):
    assert times_asked(decorated(0.25), decorated(0.75), sut) == (1, 0, 0.75)


def test_what_an_author_says_counts_too():
    class Second(rated(1)):
        cache_version = 2

    assert str(Second().cache_version).startswith("2+")


def add(first, second):
    return first + second


def test_fingerprints_differ_where_what_they_are_made_of_does():
    parts = [
        *(1, 1.5, True, None, "1", "a", "b", [], ["a"], {"a": 1}, {"a": 2}, int, str, object()),
        *(add, mean, min, partial(add, 1), partial(add, 2), texts_of("a"), texts_of("b")),
        *(lambda: 1, lambda: 2, lambda: "1", lambda one: one),
        *(Judge("a"), Judge("b"), Judge("a", shows=("input",)), Judge("a", one_by_one=True)),
    ]
    assert len({fingerprint(one) for one in parts}) == len(parts)
    assert fingerprint(texts_of("a")) == fingerprint(texts_of("a"))
    assert fingerprint(object()) == fingerprint(object())


def made(source, **names):
    """The function `made` of a module of its own."""
    exec(source, names)
    return names["made"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("def made(w): return sum(x > 0.5 for x in w)", "def made(w): return sum(x > 0.6 for x in w)"),
        ("made = lambda w: [x * 2 for x in w]", "made = lambda w: [x / 2 for x in w]"),
        ("made = lambda w: w in (1, 2)", "made = lambda w: w in (1, 3)"),
        ("made = lambda w: w in {1, 2}", "made = lambda w: w in {1, 3}"),
        ("made = lambda w, k=1: w * k", "made = lambda w, k=2: w * k"),
        ("made = lambda w, *, k=1: w * k", "made = lambda w, *, k=2: w * k"),
        ("P = 'Rate it.'\nmade = lambda w: P", "P = 'Rate it well.'\nmade = lambda w: P"),
        ("K = (1, 2)\nmade = lambda w: [K for x in w]", "K = (1, 3)\nmade = lambda w: [K for x in w]"),
    ],
)
def test_all_of_a_function_counts(first, second):
    assert fingerprint(made(first)) == fingerprint(made(first))
    assert fingerprint(made(first)) != fingerprint(made(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [((1, 2), (1, 3)), ([1], [2]), ({"a": 1}, {"a": 2}), ({1}, {2}), (lambda: 1, lambda: 2)],
)
def test_what_a_function_was_made_with_counts(first, second):
    source = "def outer(k):\n    def inner(w): return k\n    return inner\nmade = outer(k)"
    assert fingerprint(made(source, k=first)) == fingerprint(made(source, k=first))
    assert fingerprint(made(source, k=first)) != fingerprint(made(source, k=second))


@pytest.mark.parametrize(("first", "second"), [([], [1]), ({}, {1: 2}), (None, object()), (False, True)])
def test_what_a_module_notes_while_it_runs_does_not(first, second):
    assert fingerprint(made("made = lambda: k", k=first)) == fingerprint(made("made = lambda: k", k=second))


def test_a_path_that_a_function_was_made_with_is_not_read(tmp_path):
    source = "def outer(k):\n    def inner(w): return k\n    return inner\nmade = outer(k)"
    assert fingerprint(made(source, k=tmp_path)) != fingerprint(made(source, k=tmp_path / "none"))


def test_a_function_of_what_is_not_there_yet():
    def outer():
        def inner():
            return later

        before = fingerprint(inner)
        later = 1
        return before, fingerprint(inner)

    before, after = outer()
    assert before != after


def test_a_function_that_calls_itself():
    def outer():
        def down(number):
            return down(number - 1) if number else 0

        return down

    assert fingerprint(outer()) == fingerprint(outer())


def test_the_fingerprint_is_the_same_in_another_process():
    code = (
        "from modelgauge.metrics import AnswerRelevancyMetric, GEval;"
        "print(AnswerRelevancyMetric().cache_version, GEval('a', 'b').cache_version)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert done.stdout.split() == [AnswerRelevancyMetric().cache_version, GEval("a", "b").cache_version]

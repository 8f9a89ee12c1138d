"""Kept scores of judge metrics: kept as long as the metric is the same, and no longer."""

import asyncio
import enum
import logging
import math
import os
import re
import subprocess
import sys
import threading
import typing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial, wraps
from operator import itemgetter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from judge_scripts import verdicts
from pydantic import BaseModel

from modelgauge import FunctionSUT, Score
from modelgauge.config.secrets import RequiredSecret, SecretDescription
from modelgauge.evals import LLMTestCase, evaluate
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


OWN = """
from functools import lru_cache
from modelgauge.metrics import Metric

class Base(Metric):
    needs_judge = True
    worths = {"yes": 1.0}

    def worth(self, word):
        return scaled(self.worths[word])

class Own(Base):
    wording = "Rate it."

    @property
    def asked(self):
        return self.wording

    async def score(self, test_case):
        await self.ask("judge", self.asked)
        return self.worth("yes")

def scaled(value):
    return halved(value) if value else scaled(1)

@lru_cache
def halved(value):
    return value / 2
"""


def own(edited=("", "")):
    """The metric of a module of an author's, after an edit."""
    module = ModuleType("own")
    exec(OWN.replace(*edited), vars(module))
    return module.Own


@pytest.mark.parametrize(
    ("edited", "asked", "value"),
    [
        (("", ""), 0, 0.5),
        (("value / 2", "value / 4"), 0, 0.25),
        (("halved(value) if", "halved(value) / 2 if"), 0, 0.25),
        (("scaled(self", "0.5 * scaled(self"), 0, 0.25),
        (('{"yes": 1.0}', '{"yes": 0.5}'), 0, 0.25),
        (('"Rate it."', '"Rate it well."'), 1, 0.5),
        (("return self.wording", "return self.wording + '!'"), 1, 0.5),
    ],
)
def test_so_does_a_change_in_what_a_score_of_ones_own_uses_of_its_class_and_module(edited, asked, value, sut):
    assert times_asked(own(), own(edited), sut) == (1, asked, value)


def test_a_module_whose_functions_name_each_other_over_and_over_is_told_in_no_time():
    lines = ["def f0(x): return x"]
    lines += [f"def f{n}(x): return f{n - 1}(f{n - 1}(x)) + f{max(n - 2, 0)}(x)" for n in range(1, 60)]
    module = ModuleType("many")
    exec("\n".join(lines), vars(module))
    assert not fingerprint(module.f59).untold


def test_what_an_author_says_counts_too():
    class Second(rated(1)):
        cache_version = 2

    assert re.fullmatch(r"2\+[0-9a-f]{12}", Second().cache_version)  # of another form, all is judged anew


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
        ("def made(*w): return w", "def made(**w): return w"),
        ("def made(a, b): return a", "def made(a, /, b): return a"),
        ("def made(a, b): return a", "def made(a, *, b): return a"),
        ("def made(*, a, b): return a", "def made(*, b, a): return b"),
        ("def made(): yield 1", "async def made(): yield 1"),
        (
            "def made(w):\n try: w(); w.b()\n except E: pass\n return 1",
            "def made(w):\n try: w()\n except E: pass\n else: w.b()\n return 1",
        ),
        (
            "from re import *\nP = compile('a')\nmade = lambda: P",
            "from re import *\nP = compile('b')\nmade = lambda: P",
        ),
        ("P = b'a'\nmade = lambda: P", "P = b'b'\nmade = lambda: P"),
        ("P = 'Rate it.'\nmade = lambda w: P", "P = 'Rate it well.'\nmade = lambda w: P"),
        ("K = (1, 2)\nmade = lambda w: [K for x in w]", "K = (1, 3)\nmade = lambda w: [K for x in w]"),
    ],
)
def test_all_of_a_function_counts(first, second):
    assert fingerprint(made(first)) == fingerprint(made(first))
    assert fingerprint(made(first)) != fingerprint(made(second))


class Level(enum.Enum):
    LOW = 0.1
    HIGH = 0.9


class Limits(BaseModel):
    low: float
    words: re.Pattern[str] | None = None


@dataclass
class Marks:
    best: float

    @cached_property
    def worst(self):
        return -self.best


class Noted(Marks):
    def __init__(self, best, note):
        super().__init__(best)
        self.note = note


class Names(list):
    def __init__(self, names, kind):
        super().__init__(names)
        self.kind = kind


class Key(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription(scope="names", key="key", instructions="Anywhere.")


class Plain:
    def __init__(self, limit):
        self.limit = limit

    def passes(self, value):
        return value > self.limit


class Slotted:
    __slots__ = ("limit",)

    def __init__(self, limit):
        self.limit = limit


class Stateless:
    def passes(self, value):
        return value > 0

    def fails(self, value):
        return value <= 0


def holding(held):
    """The fingerprint of a function that was made with a value."""
    return fingerprint(
        made("def outer(k):\n    def inner(w): return k\n    return inner\nmade = outer(k)", k=held)
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, 2), (1, 3)),
        ([1], [2]),
        ([1], (1,)),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, [("a", 1)]),
        ({1}, {2}),
        ({"a"}, ["a"]),
        (1, True),
        (1, "1"),
        (math.inf, math.nan),
        ("\ud800", "\ud801"),
        (lambda: 1, lambda: 2),
        (re.compile("a"), re.compile("b")),
        (re.compile("a"), re.compile("a", re.IGNORECASE)),
        (re.compile("a").search, re.compile("b").search),
        (re.compile("a").search, re.compile("a").match),
        (Level.LOW, Level.HIGH),
        (re.IGNORECASE, re.MULTILINE),
        (Decimal(1), Decimal("1.0")),
        (Fraction(1, 2), Fraction(1, 3)),
        (date(2020, 1, 1), date(2021, 1, 1)),
        (datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC)),
        (Path("a"), Path("b")),
        ([Path("a")], [Path("b")]),
        (range(2), range(3)),
        (Limits(low=1), Limits(low=2)),
        (Limits(low=1, words=re.compile("a")), Limits(low=1, words=re.compile("b"))),
        (Marks(1), Marks(2)),
        (Marks(Path("a")), Marks(Path("b"))),
        (Noted(1, "a"), Noted(1, "b")),
        (Names("a", 1), Names("a", 2)),
        (SimpleNamespace(n=1), SimpleNamespace(n=2)),
        ("a".join, "b".join),
        (str.lower, str.upper),
        (np.add, np.subtract),
        (itemgetter(1), itemgetter(2)),
        (lru_cache(lambda: 1), lru_cache(lambda: 2)),
        (Limits(low=1).model_copy, Limits(low=2).model_copy),
        (Stateless().passes, Stateless().fails),
        (Stateless(), object()),
        (re, math),
        (logging.getLogger("a"), logging.getLogger("b")),
        (list[int], list[str]),
        (typing.Optional[int], typing.Optional[str]),  # noqa: UP045  an object of its own kind
        (FunctionSUT("a", str, version=1), FunctionSUT("a", str, version=2)),
    ],
)
def test_what_a_function_was_made_with_counts(first, second):
    assert holding(first) == holding(first)
    assert holding(first).text != holding(second).text
    assert holding(first).untold == holding(second).untold == ()


@pytest.mark.parametrize(
    "held",
    [
        Plain(1),
        Plain(1).passes,
        Slotted(1),
        [Plain(1)],
        {"a": Plain(1)},
        Marks(Plain(1)),
        iter([1]),
        memoryview(b"1"),
        np.frompyfunc(len, 1, 1),  # its module knows it by no name
    ],
)
def test_of_an_object_that_nothing_tells_from_others_the_fingerprint_says_so(held):
    (untold,) = holding(held).untold
    assert untold.partition(":")[2] in ("Plain", "Slotted", "list_iterator", "memoryview", "ufunc")


def test_a_sut_that_may_answer_otherwise_is_not_told():
    assert holding(FunctionSUT("moody", str)).untold == ("moody",)


@pytest.mark.parametrize(
    "held",
    [
        *(object(), Stateless(), Stateless().passes, Stateless, os, min, str.lower, NotImplemented, ...),
        *(
            threading.Lock(),
            threading.RLock(),
            asyncio.Lock(),
            asyncio.Semaphore(3),
            typing.Any,
            Key("secret"),
        ),
        *(logging.getLogger("a"), logging.LoggerAdapter(logging.getLogger("a"), {}), typing.TypeVar("T")),
    ],
)
def test_harmless_things_keep_no_score_from_being_kept(held):
    assert holding(held).untold == ()


def test_a_fingerprint_does_not_change_with_what_is_worked_out_from_the_fields():
    marks = Marks(1)
    before = holding(marks)
    assert (marks.worst, holding(marks)) == (-1, before)


def test_what_holds_itself_is_told():
    ring: list[object] = [1]
    ring.append(ring)
    there: dict[str, object] = {}
    there["back"] = [there]
    assert holding(ring) == holding(ring)
    assert holding(there).untold == ()


def test_what_is_nested_too_deep_is_not_told():
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert holding(deep).untold


def searching(found):
    class Searching(Metric):
        needs_judge = True

        async def score(self, test_case):
            await self.ask("judge", "Look.")
            return 1.0 if found.search(test_case.actual_output) else 0.0

    return Searching


def scores_in_a_run(metrics, data_dir, **options):
    case = LLMTestCase("?", actual_output="apple")
    return evaluate([case], metrics, print_results=False, data_dir=data_dir, **options)


def test_two_metrics_of_one_factory_share_no_score(tmp_path):
    judge = FunctionSUT("j", lambda question: "7", version=1)
    metrics = [searching(re.compile(word))(model=judge) for word in ("apple", "kiwi")]
    done = scores_in_a_run(metrics, tmp_path)
    assert [one.score for one in done.test_results[0].metrics_data] == [1, 0]
    again = scores_in_a_run(metrics[:1], tmp_path)
    assert again.record.counts.annotator_calls.paid == 0


class Finder:
    def __init__(self, word):
        self.word = word

    def search(self, text):
        return self.word in text


def test_scores_of_a_metric_that_nothing_tells_are_not_kept_and_the_run_says_why(tmp_path):
    asked = []
    judge = FunctionSUT("j", lambda question: asked.append(question) or "7", version=1)
    for word, score in (("apple", 1), ("kiwi", 0)):
        done = scores_in_a_run([searching(Finder(word))(model=judge)], tmp_path)
        assert done.test_results[0].metrics_data[0].score == score
        (note,) = done.record.notes
        assert "searching" in note
        assert "Finder" in note
    assert len(asked) == 1  # the judge's reply is kept all the same


GRADED = """
class Graded(Metric):
    needs_judge = True
    async def score(self, case):
        answer = await self.ask("judge", "Grade it.")
        try:
            value = float(answer.completions[0].text)
            check(value)
        except ValueError:
            return 0.0
        return value / 10
"""


def test_a_statement_that_moves_out_of_its_try_is_an_edit(tmp_path):
    def check(value):
        raise ValueError("no grade")

    moved = "            check(value)\n", "        else:\n            check(value)\n"
    edited = GRADED.replace(moved[0], "").replace(
        "            return 0.0\n", "            return 0.0\n" + moved[1]
    )
    errors = []
    for source in (GRADED, edited):
        names = {"Metric": Metric, "check": check, "__name__": "grading"}
        exec(source, names)
        metric = names["Graded"](model=FunctionSUT("j", lambda question: "7", version=1))
        done = scores_in_a_run([metric], tmp_path, ignore_errors=True)
        errors.append(done.test_results[0].metrics_data[0].error)
    assert errors == [None, "ValueError: no grade"]


@pytest.mark.parametrize("metric", [AnswerRelevancyMetric, partial(GEval, "a", "b")])
def test_scores_of_the_metrics_that_come_along_are_kept(metric, sut):
    assert metric(model=sut(str)).why_uncacheable() is None


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


# --- other modules of the author's --------------------------------------------------------------------------


def module(name, folder, source, **names):
    """A module as if it were read from a file of a folder."""
    made = ModuleType(name)
    made.__file__ = str(folder / f"{name}.py")
    vars(made).update(names)
    exec(source, vars(made))
    return made


def told_with(folder, *, wording="Is it true?", worth=1, rounding=2, package="prompts"):
    """The fingerprint of a function that reads a wording of one module, and calls a function of another."""
    rounds = module("rounds", folder, f"def rounded(x): return round(x, {rounding})")
    helpers = module("helpers", folder, f"def worth(x): return rounds.rounded(x * {worth})", rounds=rounds)
    prompts = module(package, folder, f"WORDING = {wording!r}", helpers=helpers)
    source = "def score(case): return prompts.WORDING, worth(1)"
    mets = module("mets", folder.parent / "mine" if folder.name == "mine" else Path("/mine"), source)
    vars(mets).update(prompts=prompts, worth=helpers.worth)
    vars(helpers)["prompts"] = prompts  # they know each other
    return fingerprint(mets.score)


@pytest.mark.parametrize("change", [{"wording": "Is it so?"}, {"worth": 3}, {"rounding": 4}])
def test_what_is_used_of_other_modules_beside_the_metrics_counts(change, tmp_path):
    folder = tmp_path / "mine"
    assert told_with(folder) == told_with(folder) != told_with(folder, **change)
    assert not told_with(folder, **change).untold


@pytest.mark.parametrize("change", [{"wording": "Is it so?"}, {"worth": 3}, {"rounding": 4}])
@pytest.mark.parametrize("folder", ["elsewhere", "site-packages"])
def test_what_is_installed_or_elsewhere_does_not(folder, change, tmp_path):
    folder = tmp_path / folder
    assert told_with(folder) == told_with(folder, **change)

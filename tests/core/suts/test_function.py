"""Any function that writes or scores texts is a SUT."""

import functools

import pytest

from modelgauge import (
    ContinuationPrompt,
    FunctionSUT,
    PromptResponseTest,
    ScoresContinuations,
    ScoringFunctionSUT,
    SUTCompletion,
    SUTOptions,
    TestItem,
    run_test,
)
from modelgauge.errors import IncompatibleError, InvalidResponseError
from modelgauge.interfaces.codec import ResponseCodec, response_type


class Texts(PromptResponseTest):
    def make_test_items(self, dependencies):
        return [TestItem("abc")]

    def measure_quality(self, item):
        return {"upper": item.text == "ABC", "documents": len(self._documents(item))}

    def _documents(self, item):
        return item.interactions[0].response.completions[0].completion.metadata.get("documents", [])


def upper(text):
    return text.upper()


async def upper_async(text: str) -> str:
    return text.upper()


class Upper:
    def __call__(self, text):
        return text.upper()


class UpperAsync:
    async def __call__(self, text):
        return text.upper()


def completion(text: str) -> SUTCompletion:
    return SUTCompletion(text.upper(), metadata={"documents": ["d1", "d2"]})


def unreadable(text: "Nowhere") -> "NowhereEither":  # noqa: F821
    return text.upper()


FUNCTIONS = [
    upper, upper_async, lambda text: text.upper(), str.upper, Upper(), UpperAsync(), "".join, unreadable,
    functools.partial(lambda end, text: text.upper() + end, ""), functools.partial(upper_async),
    lambda text: upper_async(text),  # noqa: PLW0108  what is tested
    lambda text: SUTCompletion(text.upper()),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("version", [None, 1])
def test_callables_of_all_kinds_answer(function, version, tmp_path):
    record = run_test(Texts("t"), FunctionSUT("f", function, version=version), data_dir=tmp_path)
    assert record.failure is None
    [item] = record.test_item_records
    assert item.interactions[0].response.completions[0].completion.text == (
        "ABC" if function != "".join else "abc"
    )


def test_metadata_comes_back_from_the_cache_too(tmp_path):
    for cached in (0, 1):
        record = run_test(Texts("t"), FunctionSUT("f", completion, version=1), data_dir=tmp_path)
        assert record.test_item_records[0].measurements == {"upper": 1.0, "documents": 2.0}
        assert record.counts.sut_calls.cached == cached


def test_without_a_version_nothing_is_cached(tmp_path):
    for _ in range(2):
        record = run_test(Texts("t"), FunctionSUT("f", upper), data_dir=tmp_path)
        assert record.counts.sut_calls.paid == 1
        assert any("version=1" in note for note in record.notes)


def test_another_version_asks_anew(tmp_path):
    paid = []
    for version in (1, 1, 2, "2"):
        record = run_test(Texts("t"), FunctionSUT("f", upper, version=version), data_dir=tmp_path)
        paid.append(record.counts.sut_calls.paid)
    assert paid == [1, 0, 1, 1]


@pytest.mark.parametrize("answer", [None, 5, ["a"], {"text": 5}, object(), b"x", "\ud800"])
def test_another_answer_is_an_error_of_its_item(answer, tmp_path):
    record = run_test(Texts("t"), FunctionSUT("f", lambda text: answer), data_dir=tmp_path)
    [failed] = record.test_item_exceptions
    assert (failed.stage, failed.source_uid, failed.error_type) == ("sut", "f", InvalidResponseError.__name__)


def test_an_error_of_the_function_is_an_error_of_its_item(tmp_path):
    record = run_test(Texts("t"), FunctionSUT("f", lambda text: text[99]), data_dir=tmp_path)
    assert record.test_item_exceptions[0].error_type == "IndexError"


def test_the_function_is_recorded_by_name_but_is_no_part_of_the_identity():
    one, other = (
        FunctionSUT("f", upper, version=1),
        FunctionSUT("f", upper_async, version=1, max_concurrency=3),
    )
    assert one.identity() == other.identity()
    assert one.initialization.arguments["function"] == {"$opaque": f"{__name__}:upper"}
    assert one.why_uncacheable() is None
    assert other.max_concurrency == 3


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_str_takes_the_quick_way(function):
    sut = FunctionSUT("f", function)
    assert ResponseCodec("f", response_type(sut.evaluate, type(sut))).stays("answer")


# --- functions that score continuations ---


class Endings(PromptResponseTest):
    requires_sut_capabilities = (ScoresContinuations,)

    def make_test_items(self, dependencies):
        return [TestItem([ContinuationPrompt("The sky is", [" blue", " cheese"])])]

    def measure_quality(self, item):
        first, second = item.interactions[0].response.completions
        return {"accuracy": first.completion.logprob > second.completion.logprob}


def score(prompt: ContinuationPrompt) -> list[SUTCompletion]:
    return [
        SUTCompletion(text, logprob=-float(len(text)), is_greedy=text == " blue", num_tokens=1)
        for text in prompt.continuations
    ]


async def score_async(prompt):
    return score(prompt)


@pytest.mark.parametrize("function", [score, score_async, functools.partial(score)])
def test_scores_of_function_are_cached_like_answers(function, tmp_path):
    for made, temperature in (
        (1, 0.0),
        (0, 1.0),
    ):  # options have no meaning, so they are no part of the request
        sut, options = ScoringFunctionSUT("scorer", function, version=1), SUTOptions(temperature=temperature)
        record = run_test(Endings("endings"), sut, data_dir=tmp_path, sut_options=options)
        assert record.result["accuracy"].value == 1
        assert record.counts.sut_calls.paid == made


def test_function_that_writes_texts_is_refused_before_the_first_call(tmp_path):
    with pytest.raises(IncompatibleError, match="needs ScoresContinuations"):
        run_test(Endings("endings"), FunctionSUT("upper", upper), data_dir=tmp_path)
    with pytest.raises(IncompatibleError, match="needs AcceptsTextPrompt"):
        run_test(Texts("t"), ScoringFunctionSUT("scorer", score), data_dir=tmp_path)


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        (lambda prompt: -1.0, "it must return a list[SUTCompletion]."),
        (lambda prompt: score(prompt)[:1], "1 completion with other texts than the 2 continuations"),
        (lambda prompt: score(prompt)[::-1], "other texts"),
        (lambda prompt: [SUTCompletion(text, logprob=-1) for text in prompt.continuations], "no is_greedy"),
    ],
)
def test_function_without_a_score_for_each_continuation_fails_its_item(scores, problem, tmp_path):
    record = run_test(Endings("endings"), ScoringFunctionSUT("scorer", scores), data_dir=tmp_path)
    [failed] = record.test_item_exceptions
    assert failed.error_type == InvalidResponseError.__name__
    assert problem in failed.message

"""One call: attempts, back-offs, cache and single flight."""

import asyncio
import errno
import socket
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from modelgauge import (
    CompletionAnnotator,
    Fatal,
    FunctionSUT,
    PromptResponseSUT,
    Retry,
    SUTCompletion,
    SUTResponse,
    TestItem,
    Usage,
)
from modelgauge.config.secrets import SecretStore
from modelgauge.engine import target_pool as engine_pool
from modelgauge.engine.calls.limits import START, Outcome
from modelgauge.engine.calls.retries import Backoff, classify, get_outcome
from modelgauge.errors import CallTimeoutError, InvalidResponseError, RunStoppedError


class ClientError(OSError):
    """As clients derive their errors; its number is a file's here."""


class Flaky(FunctionSUT):
    """A SUT that says what its errors are."""

    verdict = None

    def classify_error(self, error):
        return self.verdict(error) if callable(self.verdict) else self.verdict


def flaky(plan, verdict=None, plain=False):
    """A SUT whose calls raise what the plan says, one after the other, and then succeed."""
    left, calls = list(plan), []

    def answer(text):
        calls.append(text)
        if left:
            raise left.pop(0)
        return "yes"

    async def answer_async(text):
        return answer(text)

    sut = Flaky("sut", answer if plain else answer_async, version=1)
    sut.verdict = verdict
    sut.calls = calls
    return sut


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(
    ("plan", "verdict", "calls", "scored"),
    [
        ([OSError()] * 4, None, 5, 1),
        ([OSError()] * 5, None, 5, 0),
        ([TimeoutError()], None, 2, 1),
        ([ConnectionResetError(errno.ECONNRESET, "x"), OSError(errno.ENETUNREACH, "x")], None, 3, 1),
        ([socket.gaierror(socket.EAI_NONAME, "x"), ssl.SSLEOFError(8, "x"), ClientError(2, "x")], None, 4, 1),
        ([BlockingIOError(errno.EAGAIN, "x"), OSError(errno.EMFILE, "x")], None, 3, 1),
        ([FileNotFoundError(errno.ENOENT, "x")], None, 1, 0),
        ([PermissionError(errno.EACCES, "x")], None, 1, 0),
        ([IsADirectoryError(errno.EISDIR, "x")], None, 1, 0),
        ([OSError(errno.ENOSPC, "x")], None, 1, 0),
        ([OSError(errno.EINVAL, "x")], None, 1, 0),
        ([ssl.SSLCertVerificationError(1, "x")], None, 1, 0),
        ([ValueError()], None, 1, 0),
        ([ValueError()], Retry(), 2, 1),
        ([OSError()], Fatal(), 1, 0),
        ([SystemExit()], None, 1, 0),
        ([InvalidResponseError("x", fix="y")], Retry(), 1, 0),
    ],
)
def test_what_is_worth_another_attempt(plan, verdict, calls, scored, plain, make_test, run, slept):
    sut = flaky(plan, verdict, plain)
    record = run(make_test(1), sut)
    assert len(sut.calls) == calls
    assert record.counts.scored == scored
    assert record.counts.sut_calls.paid == scored
    assert len(slept) == calls - 1


def test_a_timeout_of_connecting_cuts_the_concurrency_as_a_refusal_does(make_test, run, slept):
    of_a_client = type("ConnectTimeout", (Exception,), {})
    record = run(make_test(1), flaky([type("Derived", (of_a_client,), {})()]))
    assert record.counts.scored == 1
    assert [one.why for one in record.concurrency["sut"]] == ["rate limited"]


def test_no_retries_means_one_attempt(make_test, run, slept):
    sut = flaky([OSError()])
    assert run(make_test(1), sut, max_retries=0).counts.sut_errors == 1
    assert len(sut.calls) == 1
    assert slept == []


def test_what_the_server_asks_for_is_waited_and_no_longer_than_the_call_may_take(make_test, run, slept):
    sut = flaky([ValueError(), ValueError()], Retry(after=17.0, rate_limited=True))
    record = run(make_test(1), sut)
    assert record.counts.scored == 1
    assert all(17 <= wait <= 17 + 1 for wait in slept)
    assert [one.why for one in record.concurrency["sut"]] == ["rate limited"]
    sut = flaky([ValueError()], Retry(after=17.0))
    record = run(make_test(["other"]), sut, call_timeout=10)
    (failed,) = record.test_item_exceptions
    assert "asks to wait 17 s, and a call may take 10 s in all: raise --call-timeout" in failed.message
    assert len(slept) == 2


@pytest.mark.parametrize(
    ("limits", "option", "calls"),
    [
        ({"attempt_timeout": 10, "call_timeout": 0.05}, "--call-timeout", 1),
        ({"attempt_timeout": 0.6, "call_timeout": 1.1}, "--timeout", 1),
        ({"attempt_timeout": 0.05, "call_timeout": 10, "max_retries": 1}, "--timeout", 2),
    ],
)
def test_a_timeout_names_the_option_that_struck_and_no_attempt_is_sent_that_cannot_end(
    limits, option, calls, make_test, run, slept, monkeypatch
):
    monkeypatch.setattr(Backoff, "wait", lambda *_: 0.0)
    sent = []

    async def hang(text):
        sent.append(text)
        await asyncio.Event().wait()

    (failed,) = run(make_test(1), FunctionSUT("sut", hang), **limits).test_item_exceptions
    assert failed.error_type == "CallTimeoutError"
    assert f"Raise {option} (in Python " in failed.message
    assert len(sent) == calls


@pytest.mark.parametrize(("rate_limited", "beside"), [(True, 0), (False, 1)])
def test_a_call_that_waits_for_a_rate_limit_keeps_its_place(
    rate_limited, beside, make_test, run, monkeypatch
):
    """So that a server that says "later" is not sent other calls meanwhile."""
    sut = flaky([ValueError()], Retry(after=5.0, rate_limited=rate_limited))
    calls_by_its_end = []

    async def sleep(seconds):
        for _ in range(50):
            await asyncio.sleep(0)
        calls_by_its_end.append(len(sut.calls))

    services = engine_pool.Services
    monkeypatch.setattr(engine_pool, "Services", lambda *args: services(*args, sleep=sleep))
    assert run(make_test(2), sut, concurrency=1, caching=False).counts.scored == 2
    assert calls_by_its_end == [1 + beside]


@pytest.mark.parametrize(("seconds_of_a_call", "scored"), [(100, 3), (160, 2)])
def test_the_time_of_a_call_does_not_pass_while_others_are_before_it(
    seconds_of_a_call, scored, make_test, run, monkeypatch
):
    now, left = 0.0, [OSError()]

    async def answer(text):
        nonlocal now
        for _ in range(10):  # turns in which a pause that takes no time ends
            await asyncio.sleep(0)
        now += seconds_of_a_call
        if left:
            raise left.pop()
        return text

    async def sleep(seconds):
        """Over at once, so that others go on while the call waits for a place only."""

    services = engine_pool.Services
    monkeypatch.setattr(
        engine_pool, "Services", lambda *args: services(*args, sleep=sleep, clock=lambda: now)
    )
    record = run(make_test(3), FunctionSUT("sut", answer), concurrency=1, call_timeout=150)
    assert record.counts.scored == scored
    assert now == (3 + (scored == 3)) * seconds_of_a_call


@given(st.integers(0, 40), st.none() | st.floats(0, 1e4))
def test_back_offs_grow_to_a_bound_and_respect_the_server(attempt, after):
    wait = Backoff().wait(attempt, Retry(after=after))
    least = after or 0
    assert least <= wait <= least + min(30, 0.5 * 2**attempt)


def test_what_a_limiter_is_told():
    assert get_outcome(Retry(rate_limited=True), OSError()) is Outcome.rate_limited
    assert get_outcome(Retry(rate_limited=True), TimeoutError()) is Outcome.rate_limited
    assert get_outcome(Retry(), OSError()) is Outcome.server_error
    assert get_outcome(Retry(), TimeoutError()) is Outcome.timed_out
    assert get_outcome(Retry(), CallTimeoutError("x", fix="y")) is Outcome.timed_out
    assert get_outcome(None, TimeoutError()) is get_outcome(Fatal(), TimeoutError()) is Outcome.other


def test_an_author_is_not_asked_about_what_the_engine_said():
    sut = flaky([], Retry())
    assert classify(sut, RunStoppedError("x", fix="y")) is None


@pytest.mark.parametrize(
    "verdict", [Retry, Fatal, True, "retry", Retry(after=float("nan")), Retry(after=-1), Retry(after="7")]
)
def test_what_is_no_verdict_is_told_and_not_taken_for_no_opinion(verdict, make_test, run, slept):
    sut = flaky([OSError("first")], lambda error: verdict)
    record = run(make_test(1), sut)
    [failed] = record.test_item_exceptions
    assert failed.error_type == "DefinitionError"
    assert "classify_error of 'sut' returned" in failed.message
    assert "OSError: first" in failed.traceback
    assert (len(sut.calls), slept) == (1, [])


def test_three_fatal_calls_without_a_success_stop_the_sut_and_say_why(make_test, make_sut, runner):
    bad = flaky([PermissionError("401 bad key")] * 1000, Fatal())
    good = make_sut(uid="good")
    stopped, fine = runner(concurrency=1).run([make_test(50)], [bad, good])
    assert len(bad.calls) == 3
    assert stopped.counts.sut_errors == 3
    assert stopped.failure.stage == "run"
    assert "401 bad key. Correct its key" in stopped.failure.message
    assert "run the same command again" in stopped.failure.message
    assert "`modelgauge resume` goes on too" in stopped.failure.message
    assert fine.counts.scored == 50


def test_a_bad_key_is_sent_three_times_where_nobody_says_how_many_calls_there_shall_be_at_once(
    make_test, run
):
    sent = []

    async def refuse(text):
        sent.append(text)
        await asyncio.sleep(0.02)
        raise PermissionError("401 bad key")

    class Refusing(FunctionSUT):
        def classify_error(self, error):
            return Fatal()

    record = run(make_test(50), Refusing("sut", refuse))
    assert len(sent) == record.counts.sut_errors == 3
    assert "401 bad key" in record.failure.message


@pytest.mark.parametrize("how", ["answers", "fails"])
def test_the_first_call_that_ends_lets_the_others_go_and_slow_ones_are_not_waited_for(how, make_test, run):
    at_once, together = [], asyncio.Event()

    async def slow(text):
        at_once.append(text)
        if len(at_once) == 1:
            if how == "fails":
                raise ValueError("this one only")
            return "yes"
        if len(at_once) == START:
            together.set()
        await asyncio.wait_for(together.wait(), 10)
        return "yes"

    record = run(make_test(START), FunctionSUT("sut", slow))
    assert record.counts.scored == (START if how == "answers" else START - 1)

    async def all_wait(text):
        at_once.append(text)
        if len(at_once) == START:
            together.set()
        await asyncio.wait_for(together.wait(), 10)
        return "yes"

    at_once.clear()
    together = asyncio.Event()
    assert run(make_test(START), FunctionSUT("other", all_wait)).counts.scored == START


def test_fatal_calls_after_a_success_fail_their_items_only(make_test, run):
    calls = []

    def verdict(error):
        return Fatal()

    async def answer(text):
        calls.append(text)
        if len(calls) > 1:
            raise ValueError
        return "yes"

    sut = Flaky("sut", answer)
    sut.verdict = verdict
    record = run(make_test(10), sut, concurrency=1)
    assert (record.counts.scored, record.counts.sut_errors, record.failure) == (1, 9, None)


def test_identical_calls_in_flight_are_one(make_test, make_sut, run):
    async def answer(text):
        await asyncio.sleep(0.5)  # all others wait for it by then
        return "yes"

    sut = make_sut(answer)
    record = run(make_test([TestItem(["same", "same"])] + ["same"] * 10, measure=lambda item: {"x": 1}), sut)
    assert sut.asked == ["same"]
    assert (record.counts.sut_calls.paid, record.counts.sut_calls.cached) == (1, 11)


def test_identical_calls_in_flight_fail_together_and_are_not_cached(make_test, make_sut, run):
    async def answer(text):
        await asyncio.sleep(0.5)  # all others wait for it by then
        raise ValueError("no")

    sut = make_sut(answer)
    record = run(make_test(["same"] * 10), sut)
    assert record.counts.sut_errors == 10
    assert len(sut.asked) == 1
    run(make_test(["same"]), sut)
    assert len(sut.asked) == 2


def test_who_waits_for_a_call_that_fails_tells_of_no_other_who_waits(make_test, make_sut, run):
    async def answer(text):
        await asyncio.sleep(0.01)
        raise ValueError("no")

    record = run(make_test(["same"] * 10), make_sut(answer))
    paid, *waited = sorted(len(failure.traceback) for failure in record.test_item_exceptions)
    assert max(waited) < paid + 500


def test_a_kept_answer_that_its_class_does_not_take_any_more_says_how_it_is_asked_anew(make_test, run):
    class Old(BaseModel):
        text: str

    class New(Old):
        words: int

    def made(kind):
        class Upgraded(PromptResponseSUT):
            cache_identity = "upgraded"

            def translate_text_prompt(self, prompt):
                return prompt.text

            def evaluate(self, request) -> kind:
                return kind(text="yes", words=1)

            def translate_response(self, request, response):
                return SUTResponse([SUTCompletion(response.text)])

        return Upgraded("sut")

    assert run(make_test(2), made(Old)).counts.scored == 2
    [failure, _] = run(make_test(2), made(New)).test_item_exceptions
    assert "words: Field required" in failure.message
    assert "resume RUN --retry-failed" in failure.message


@pytest.mark.parametrize("later", [False, True])
def test_a_run_that_is_given_up_waits_for_no_further_attempt(later, make_test, run):
    class Asks(FunctionSUT):
        def classify_error(self, error):
            return Retry(after=100, rate_limited=True)

    async def answer(text):
        if text.endswith("0"):
            await asyncio.sleep(0.1 if later else 0)  # it fails when the cap is reached already
            raise OSError(text)
        await asyncio.sleep(0.01)
        return "yes"

    record = run(make_test(5), Asks("sut", answer), max_calls=3, call_timeout=200)
    assert "--max-calls" in record.failure.message
    assert record.seconds < 50


@pytest.mark.parametrize("answer", ["yes", "", "\u2028 ü 😀"])
def test_a_second_run_pays_nothing(answer, make_test, make_sut, make_annotator, run):
    judged = []
    annotator = make_annotator(lambda prompt, completion: judged.append(prompt))  # None is an answer too
    sut, test = make_sut(answer), make_test(5, annotators={"a": annotator})
    first, second = run(test, sut), run(test, sut)
    assert len(sut.asked) == len(judged) == 5
    assert second.result == first.result
    assert second.counts.sut_calls.paid == second.counts.annotator_calls.paid == 0
    assert second.counts.sut_calls.cached == second.counts.annotator_calls.cached == 5
    assert [record.interactions for record in second.test_item_records] == [
        record.interactions for record in first.test_item_records
    ]


def test_without_caching_everything_is_asked_anew_and_nothing_kept(make_test, make_sut, run, run_folder):
    sut = make_sut()
    for _ in range(2):
        run(make_test(["same", "same"]), sut, caching=False)
    assert len(sut.asked) == 4
    assert not (run_folder / "cache").exists()


def test_what_cannot_be_cached_is_said(make_test, make_sut, run):
    sut = make_sut(version=None)
    test = make_test(2)
    for _ in range(2):
        record = run(test, sut)
    assert len(sut.asked) == 4
    assert "Not cached: 'sut' is a function without a version" in " ".join(record.notes)
    assert run(test, sut, caching=False).notes == ()


@pytest.mark.parametrize(
    ("usage", "caps", "told"),
    [
        (None, {"max_cost": 1.0}, ["--max-cost"]),
        (Usage(input_tokens=3, output_tokens=4), {"max_cost": 1.0, "max_tokens_total": 1000}, ["--max-cost"]),
        (
            Usage(cost_usd=0.01),
            {"max_tokens_total": 10, "tokens_per_minute": 10},
            ["--max-tokens-total", "--tokens-per-minute"],
        ),
        (Usage(input_tokens=3, cost_usd=0.01), {"max_cost": 1.0, "max_tokens_total": 1000}, []),
        (None, {}, []),
    ],
)
def test_a_cap_that_a_sut_cannot_be_held_to_is_told_once(usage, caps, told, make_test, run, caplog):
    class Telling(FunctionSUT):
        def translate_response(self, request, response):
            return super().translate_response(request, response).replaced(usage=usage)

    record = run(make_test(5), Telling("sut", lambda text: "yes"), caching=False, **caps)
    assert record.counts.scored == 5
    what = {"--max-cost": "cost (some SUTs take prices as options)"}
    expected = [
        f"{name} does not hold for 'sut': its responses tell no {what.get(name, 'tokens')}." for name in told
    ]
    assert [note for note in record.notes if "does not hold" in note] == expected
    assert sorted(record.getMessage() for record in caplog.records) == expected


def test_a_cap_of_calls_counts_what_is_sent_and_no_judgement_that_asks_or_costs_nothing(
    make_test, make_sut, judged_class, run
):
    class Judge(judged_class):
        def get_suts(self):
            return {"judge": judge}

        async def annotate(self, request):
            return (await self.ask("judge", request[0])).completions[0].text

    class Cheap(judged_class):
        is_cheap = True

    judge = make_sut("good", uid="judge")
    test = make_test(3, annotators={"judged": Judge("a", None), "cheap": Cheap("b", lambda *texts: 1)})
    record = run(test, make_sut(), max_calls=6)
    assert record.counts.scored == 3
    assert record.failure is None
    assert (
        run(make_test(4, annotators=test.annotators), make_sut(), max_calls=1, caching=True).failure
        is not None
    )


def test_a_cap_that_a_judge_cannot_be_held_to_is_told_too(make_test, make_sut, run):
    class Judge(CompletionAnnotator):
        def get_suts(self):
            return {"judge": make_sut(uid="judges")}

        def translate_request(self, prompt, completion):
            return completion.text

        async def annotate(self, request):
            return (await self.ask("judge", request)).completions[0].text

        def translate_response(self, request, response):
            return response

    class Priced(FunctionSUT):
        def translate_response(self, request, response):
            return super().translate_response(request, response).replaced(usage=Usage(cost_usd=0.01))

    test = make_test(3, annotators={"j": Judge("j")})
    record = run(test, Priced("sut", lambda text: "yes"), caching=False, max_cost=1.0)
    assert [note for note in record.notes if "does not hold" in note] == [
        "--max-cost does not hold for 'judges': its responses tell no cost (some SUTs take prices as options)."
    ]


@pytest.mark.parametrize(
    "wrong", [{"cost_usd": -1e-6}, {"cost_usd": 1e308}, {"input_tokens": -4}, {"output_tokens": 10**600}]
)
def test_a_usage_that_there_cannot_be_fails_its_item_and_nothing_else(wrong, make_test, run):
    class Wrong(FunctionSUT):
        def translate_response(self, request, response):
            usage = Usage(**wrong) if request == "question 1" else Usage(cost_usd=0.5)
            return super().translate_response(request, response).replaced(usage=usage)

    record = run(make_test(3), Wrong("sut", lambda text: "yes"), caching=False)
    assert (record.counts.scored, record.counts.sut_errors, record.spent.cost_usd) == (2, 1, 1.0)
    assert f"Usage: {next(iter(wrong))}" in record.test_item_exceptions[0].message


def test_the_log_of_further_attempts_holds_no_secret(make_test, run, slept, caplog):
    secrets = SecretStore({})
    secrets.redactor.add("scope.key", "s3cret-value-1234")
    failing = iter([ConnectionError("refused with s3cret-value-1234")])

    async def ask(text):
        for error in failing:
            raise error
        return "yes"

    with caplog.at_level("INFO"):
        run(make_test(1), FunctionSUT("sut", ask), secrets=secrets, max_retries=1)
    assert "refused with [secret scope.key]" in caplog.text
    assert "s3cret" not in caplog.text

"""What an observed app did until it failed stands in the exception record of its item."""

import asyncio
import dataclasses
import json
import threading

import pytest

from modelgauge import (
    FunctionSUT,
    PromptResponseSUT,
    SUTCompletion,
    SUTResponse,
    TestItem,
    load_record,
)
from modelgauge.config.secrets import SecretStore
from modelgauge.data.item_records import item_from_json
from modelgauge.evals import observe, update_current_trace
from modelgauge.interfaces.sut import Fatal, Retry


@observe(type="retriever")
def look_up(text):
    return [f"about {text}"]


@observe(type="tool")
def broken(text):
    raise LookupError(text)


@observe(type="tool")
async def broken_async(text):
    await asyncio.sleep(0)
    raise LookupError(text)


@observe
def app(question):
    look_up(question)
    broken(question)


@observe
async def app_async(question):
    look_up(question)
    await broken_async(question)


class OfClass(PromptResponseSUT[str, str]):
    """Calls observed functions in its `evaluate`."""

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        look_up(request)
        broken(request)

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


class OfClassAsync(OfClass):
    async def evaluate(self, request):
        look_up(request)
        await broken_async(request)


@pytest.fixture
def failed(make_test, run):
    """Asks a SUT some prompts of one item; returns the exception record."""

    def failed(sut, *prompts, **options):
        test = make_test([TestItem(list(prompts or ("a",)), id="one")])
        (item,) = run(test, sut, **{"max_retries": 0, **options}).test_item_exceptions
        return item

    return failed


def tree(spans):
    names = {span.id: span.name for span in spans}
    return [(span.name, names.get(span.parent)) for span in spans]


def returns_a_coroutine(question):
    return app_async(question)


@pytest.mark.parametrize("function", [app, app_async, returns_a_coroutine])
def test_the_span_that_raised_says_its_error_and_its_time(failed, function):
    item = failed(FunctionSUT("sut", function))
    spans = item.spans[-3:]  # with one of the SUT around them where the function itself is not observed
    assert (item.stage, item.error_type, item.message) == ("sut", "LookupError", "a")
    assert [span.name.removesuffix("_async") for span in spans] == ["app", "look_up", "broken"]
    assert [span.error for span in spans] == ["LookupError: a", None, "LookupError: a"]
    assert spans[1].output == ["about a"]
    assert all(span.seconds >= 0 for span in spans)
    assert spans[0].seconds >= spans[2].seconds


@pytest.mark.parametrize(("cls", "inner"), [(OfClass, "broken"), (OfClassAsync, "broken_async")])
@pytest.mark.parametrize("caching", [True, False])
def test_of_a_class_too(failed, cls, inner, caching):
    item = failed(cls("mine"), caching=caching)
    assert tree(item.spans) == [("mine", None), ("look_up", "mine"), (inner, "mine")]
    assert [span.error for span in item.spans] == ["LookupError: a", None, "LookupError: a"]
    assert item.spans[0].input == {"request": "a"}


def test_of_several_attempts_the_last_is_kept(failed):
    attempts = []

    class Often(OfClass):
        def evaluate(self, request):
            attempts.append(request)
            look_up(f"attempt {len(attempts)}")
            raise LookupError

        def classify_error(self, error):
            return Retry(after=0)

    item = failed(Often("often"), max_retries=2)
    assert len(attempts) == 3
    assert [span.input for span in item.spans] == [{"request": "a"}, {"text": "attempt 3"}]


def test_a_retried_attempt_leaves_no_spans_where_the_next_is_answered(make_test, run):
    attempts = []

    class Once(OfClass):
        def evaluate(self, request):
            attempts.append(request)
            look_up(f"attempt {len(attempts)}")
            if len(attempts) == 1:
                raise LookupError
            return "yes"

        def classify_error(self, error):
            return Retry(after=0)

    (item,) = run(make_test(["a"]), Once("once")).test_item_records
    assert [span.input for span in item.spans] == [{"request": "a"}, {"text": "attempt 2"}]


def test_what_hangs_is_the_span_that_has_not_ended(failed):
    release = threading.Event()

    @observe
    def hangs():
        release.wait(60)

    @observe
    def slow(question):
        look_up(question)
        hangs()

    item = failed(FunctionSUT("sut", slow), attempt_timeout=0.5)
    release.set()
    assert item.error_type == "CallTimeoutError"
    assert tree(item.spans) == [("slow", None), ("look_up", "slow"), ("hangs", "slow")]
    assert [span.seconds is None for span in item.spans] == [True, False, True]


def test_all_prompts_that_fail_leave_their_traces_beside_those_that_are_answered(failed):
    @observe
    def picky(question):
        look_up(question)
        if question != "good":
            broken(question)
        return "yes"

    item = failed(FunctionSUT("sut", picky), "good", "bad", "worse")
    assert [trace.spans[0].input["question"] for trace in item.traces] == ["bad", "worse"]
    assert len(item.interactions) == 1
    assert [span.name for span in item.spans] == ["picky", "look_up"] + ["picky", "look_up", "broken"] * 2


def test_those_who_wait_for_the_same_call_have_its_spans(make_test, run):
    test = make_test([TestItem("a", id=name) for name in ("one", "two")])

    class Waits(OfClass):
        async def evaluate(self, request):
            look_up(request)
            await asyncio.sleep(0.05)  # the other item is waiting by then, or asks itself: both have spans
            raise LookupError

    record = run(test, Waits("waits"), max_retries=0)
    assert [[span.name for span in failure.spans] for failure in record.test_item_exceptions] == [
        ["waits", "look_up"]
    ] * 2


class TranslatesNothing(OfClass):
    def evaluate(self, request):
        look_up(request)
        return "yes"

    def translate_response(self, request, response):
        raise ZeroDivisionError


class NotOfJSON(TranslatesNothing):
    def evaluate(self, request):
        look_up(request)
        return object()


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("cls", [TranslatesNothing, NotOfJSON])
def test_an_answer_that_is_of_no_use_keeps_its_spans(failed, cls, caching):
    item = failed(cls("mine"), caching=caching)
    assert item.stage == "sut"
    assert [span.name for span in item.spans] == ["mine", "look_up"]


class StrictError(Exception):
    """Refuses attributes but for those of every exception."""

    def __setattr__(self, name, value):
        if name not in dir(BaseException):
            raise AttributeError(name)
        super().__setattr__(name, value)


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """Refuses attributes, also those that every exception has."""

    code: int


class SilentError(Exception):
    """Cannot even say what it is."""

    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (StrictError("no"), "StrictError: no"),
        (FrozenError(3), "FrozenError: 3"),
        (SilentError(), "SilentError: (no message: its __str__ raised ValueError)"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_any_exception_keeps_its_trace(failed, raised, told):
    @observe
    def app(question):
        raise raised

    assert [span.error for span in failed(FunctionSUT("sut", app)).spans] == [told]


class Denied(OfClass):
    """Calls nothing that is observed, though there is such in the process."""

    def evaluate(self, request):
        raise FrozenError(3)

    def classify_error(self, error):
        assert isinstance(error, FrozenError)
        return Fatal()


class DeniedAsync(Denied):
    async def evaluate(self, request):
        await asyncio.sleep(0)
        raise FrozenError(3)


@pytest.mark.parametrize("cls", [Denied, DeniedAsync])
def test_what_refuses_attributes_is_classified_and_recorded_as_itself(make_test, run, cls):
    record = run(make_test(5), cls("denied"), concurrency=1)
    assert {(failure.error_type, failure.message) for failure in record.test_item_exceptions} == {
        ("FrozenError", "3")
    }
    assert len(record.test_item_exceptions) == 3  # three calls that say "never" end the run
    assert record.failure.error_type == "RunStoppedError"


class RaisesOneObject(OfClass):
    """Looks up what it is asked first only."""

    error = ValueError("busy")

    def evaluate(self, request):
        if request == "first":
            look_up(request)
        raise self.error

    def classify_error(self, error):
        return Retry(after=100)


class TranslatesToOneObject(RaisesOneObject):
    error = ValueError("untranslatable")

    def evaluate(self, request):
        if request == "first":
            look_up(request)
        return "yes"

    def translate_response(self, request, response):
        raise self.error


@pytest.mark.parametrize(
    ("cls", "advice"), [(RaisesOneObject, "It asks to wait"), (TranslatesToOneObject, "is kept in the cache")]
)
def test_one_exception_object_tells_of_each_item_what_is_its_own(make_test, run, cls, advice):
    items = [TestItem(text, id=text) for text in ("first", "second", "third")]
    record = run(make_test(items), cls("mine"), concurrency=1, call_timeout=5)
    spans = {item.test_item.id: [span.name for span in item.spans] for item in record.test_item_exceptions}
    assert spans == {"first": ["mine", "look_up"], "second": [], "third": []}
    assert [failure.message.count(advice) for failure in record.test_item_exceptions] == [1, 1, 1]


def test_an_app_that_is_not_observed_leaves_no_trace(failed):
    def app(question):
        raise LookupError

    assert failed(FunctionSUT("sut", app)).traces == ()


def test_what_is_recorded_holds_no_secret(failed):
    secrets = SecretStore({})
    secrets.redactor.add("scope.key", "s3cret-value-1234")

    @observe
    def app(question):
        update_current_trace(metadata={"used": "s3cret-value-1234"})
        raise LookupError("s3cret-value-1234")

    item = failed(FunctionSUT("sut", app), secrets=secrets)
    assert "s3cret" not in item.model_dump_json()
    assert item.spans[0].error.startswith("LookupError: ")


def test_traces_are_read_back_and_older_records_have_none(failed, run_folder):
    item = failed(OfClass("mine"))
    (folder,) = (run_folder / "runs").iterdir()
    assert load_record(folder).test_item_exceptions == (item,)
    line = json.loads((folder / "items.jsonl").read_text("utf-8"))
    assert line["traces"][0]["spans"][2]["error"] == "LookupError: a"
    del line["traces"]
    assert item_from_json(json.dumps(line).encode(), "here").traces == ()

"""Secrets that an object was made with by hand, and keys that are ordinary words."""

import asyncio
import json

import pytest

from modelgauge import (
    PromptResponseSUT,
    PromptResponseTest,
    RequiredSecret,
    SecretDescription,
    SUTCompletion,
    SUTResponse,
    TestItem,
    rescore,
    resume,
    run_test,
)
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.cache.responses import ResponseCache
from modelgauge.errors import RecordError, RunStoppedError

KEY = "sk-live-0123456789abcdef"


class AcmeKey(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription("acme", "api_key", "Ask Olga.")


class Leaky(PromptResponseSUT[str, str]):
    """Quotes its key in an answer, and in an error."""

    def __init__(self, uid, keys):
        super().__init__(uid)
        self.keys = keys

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        if request == "fail":
            raise ValueError(f"401 for Authorization: Bearer {self.keys[0].value}")
        return f"The set is {self.keys[0].value}."

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


class Asks(PromptResponseTest):
    def __init__(self, uid, expected="", key=None):
        super().__init__(uid)
        self.expected, self.key = expected, key

    def make_test_items(self, dependencies):
        text = "" if self.key is None else self.key.value
        return [TestItem("fail"), TestItem("tell"), TestItem(f"Say {text}")]

    def measure_quality(self, item):
        return {"accuracy": item.text == self.expected}


class Wraps(Leaky):
    def __init__(self, uid, inner):
        super().__init__(uid, inner.keys)


def kept(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize(
    "made",
    [
        lambda: (Asks("asks"), Leaky("leaky", [AcmeKey(KEY)])),
        lambda: (Asks("asks"), Wraps("outer", Leaky("leaky", [AcmeKey(KEY)]))),
        lambda: (Asks("asks", key=AcmeKey(KEY)), Leaky("leaky", [AcmeKey("EMPTY")])),
    ],
)
def test_a_secret_that_was_given_by_hand_is_in_no_file(tmp_path, made, caching):
    test, sut = made()
    record = run_test(test, sut, data_dir=tmp_path, caching=caching)
    assert record.counts.items == 3
    written = kept(tmp_path)
    assert KEY.encode() not in written
    assert b"[secret acme.api_key]" in written


@pytest.mark.parametrize("word", ["EMPTY", "ollama", "test", "text", "item", "x"])
def test_a_word_for_a_key_changes_no_score_and_no_record(tmp_path, word):
    sut = Leaky("leaky", [AcmeKey(word)])
    for paid in (2, 0):
        record = run_test(Asks("asks", f"The set is {word}."), sut, data_dir=tmp_path)
        assert record.result["accuracy"].value == 1
        assert (record.counts.scored, record.counts.failed, record.counts.sut_calls.paid) == (2, 1, paid)
        assert len(list(record.iter_items())) == 3


# --- what is asked, kept and scored is what was sent and came ---------------------------------------------------------


PIN = "9876543210"


class Answering(PromptResponseSUT[str, str]):
    """Answers with the prompt, or with its key; counts what is paid."""

    def __init__(self, uid, key):
        super().__init__(uid)
        self.key, self.asked = key, []

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        self.asked.append(request)
        return self.key.value if request == "your key" else f"said {request}"

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


class KeyInRequest(Answering):
    def translate_text_prompt(self, prompt):
        return f"{self.key.value} {prompt.text}"


class Expecting(PromptResponseTest):
    """Asks prompts of which the answers are known; they are no arguments, which the manifest would hold."""

    expected, ends_by = {}, None

    @classmethod
    def of(cls, expected, ends_by=None):
        test = cls("expecting")
        test.expected, test.ends_by = expected, ends_by
        return test

    def make_test_items(self, dependencies):
        for prompt, answer in self.expected.items():
            yield TestItem(prompt, context=answer, id=f"of {prompt}")
        if self.ends_by is not None:
            raise self.ends_by

    def measure_quality(self, item):
        return {"accuracy": item.text == item.context}


def expecting(*prompts, **others):
    return Expecting.of({prompt: f"said {prompt}" for prompt in prompts} | others)


def notes_of(record):
    return [note for note in record.notes if note.startswith("Not cached")]


def test_a_prompt_that_holds_a_secret_has_an_answer_of_its_own(tmp_path):
    prompts = (f"pin {PIN}", f"pin {PIN[::-1]}", "pin 1", "PIN 1")
    for paid in (4, 2):
        sut = Answering("sut", AcmeKey(PIN))
        record = run_test(expecting(*prompts), sut, data_dir=tmp_path)
        assert record.result["accuracy"].value == 1
        assert record.counts.sut_calls.paid == len(sut.asked) == paid
        assert record.counts.unkept == 2
        assert (record.prompts, record.distinct_prompts) == (4, 4)
        [note] = notes_of(record)
        assert note == (
            "Not cached, so that another run pays again: 2 calls of 'sut' with the secret acme.api_key in the request."
            " Add the key in `evaluate`, not in a method that translates."
        )
    assert PIN.encode() not in kept(tmp_path)


class Tagged(Expecting):
    def make_test_items(self, dependencies):
        return [TestItem(one, context={"tag": one}) for one in self.expected]

    def measure_quality(self, item):
        return {"accuracy": item.text == f"said {item.context['tag']}"}


def test_items_that_differ_in_secrets_alone_are_of_different_clusters(tmp_path):
    prompts = (f"pin {PIN}", f"pin {PIN[::-1]}", "pin 1")
    tagged = Tagged.of({prompt: f"said {prompt}" for prompt in prompts})
    by_tag, plain = (
        run_test(test, Answering("sut", AcmeKey(PIN)), data_dir=tmp_path, **options)
        for test, options in ((tagged, {"cluster": "tag"}), (expecting("a", "b", "c"), {}))
    )
    assert by_tag.result["accuracy"].interval == plain.result["accuracy"].interval


@pytest.mark.parametrize("options", [{}, {"cluster": "tag"}])
def test_so_they_are_when_the_run_is_resumed(tmp_path, options):
    test = Tagged.of({f"pin {one}": f"said pin {one}" for one in (PIN, PIN[::-1], "1")})
    sut = Answering("sut", AcmeKey(PIN))
    run = run_test(test, sut, data_dir=tmp_path, max_calls=2, concurrency=1, **options)
    assert (run.counts.scored, run.distinct_prompts) == (2, 2)
    [resumed] = resume(run.run_id, tmp_path, test=test, sut=sut, max_calls=9)
    assert (resumed.counts.scored, resumed.distinct_prompts) == (3, 3)
    assert (resumed.result["accuracy"].n, resumed.result["accuracy"].n_clusters) == (3, None)


def test_an_answer_that_is_the_secret_is_scored_as_it_came_and_never_kept(tmp_path):
    test = Expecting.of({"your key": PIN, "a": "said a"})
    for paid in (2, 1):
        record = run_test(test, Answering("sut", AcmeKey(PIN)), data_dir=tmp_path)
        assert (record.result["accuracy"].value, record.counts.sut_calls.paid) == (1, paid)
        assert notes_of(record) == [
            "Not cached, so that another run pays again: 1 call of 'sut' with the secret acme.api_key in the response."
        ]
        marked = {one.test_item.id: one.redacted for one in record.test_item_records}
        assert marked == {"of your key": True, "of a": False}
    assert PIN.encode() not in kept(tmp_path)


@pytest.mark.parametrize("made", [KeyInRequest, lambda uid, key: Wrapping(uid, key, key.value)])
def test_what_makes_every_call_hold_the_key_is_named_once_with_the_fix(tmp_path, made):
    record = run_test(expecting("a", "b", "c"), made("sut", AcmeKey(PIN)), data_dir=tmp_path)
    [note] = notes_of(record)
    assert "3 calls of 'sut' with the secret acme.api_key" in note
    assert "in `evaluate`" in note or "InjectSecret" in note
    assert record.counts.unkept == 3
    assert PIN.encode() not in kept(tmp_path)


class Wrapping(Answering):
    def __init__(self, uid, key, text):
        super().__init__(uid, key)


def test_equal_calls_that_are_not_kept_are_one_while_under_way(tmp_path):
    class Slow(Answering):
        async def evaluate(self, request):
            self.asked.append(request)
            await asyncio.sleep(0.5)  # the others wait for it by then
            return f"said {request}"

    class Twice(Expecting):
        def make_test_items(self, dependencies):
            return [TestItem([PIN, PIN]), TestItem(PIN, context="again")]

        def measure_quality(self, item):
            return {
                "equal": len(
                    {interaction.response.completions[0].completion.text for interaction in item.interactions}
                )
            }

    sut = Slow("sut", AcmeKey(PIN))
    record = run_test(Twice("twice"), sut, data_dir=tmp_path)
    assert len(sut.asked) == record.counts.sut_calls.paid == record.counts.unkept == 1
    assert record.counts.sut_calls.cached == 2


@pytest.mark.parametrize(
    ("request_", "response"), [("pin [secret acme.api_key]", '"other"'), ("a", '"[secret acme.api_key]"')]
)
def test_what_an_earlier_version_took_a_secret_out_of_is_never_read(tmp_path, request_, response):
    sut = Answering("sut", AcmeKey(PIN))
    cache = ResponseCache(FolderBackend(tmp_path / "cache"))
    cache.put_many([Entry(KeyMaker("sut", sut.identity()).key(request_), response)])
    cache.close()
    cache.leave()
    record = run_test(expecting(request_), sut, data_dir=tmp_path)
    assert (record.result["accuracy"].value, record.counts.sut_calls.paid) == (1, 1)


def test_rescoring_leaves_out_answers_that_a_secret_was_taken_out_of(tmp_path):
    test = Expecting.of({"your key": PIN, "a": "said a", f"b {PIN}": "wrong"})
    run = run_test(test, Answering("sut", AcmeKey(PIN)), data_dir=tmp_path)
    for _ in range(2):  # the second time of what the first has written
        [again] = rescore(run.run_id, tmp_path, test=test)
        assert (again.counts.scored, again.counts.unscored) == (1, 2)
        assert again.result["accuracy"].bounds == pytest.approx((1 / 3, 1))
        for failure in again.test_item_exceptions:
            assert (failure.stage, failure.error_type, failure.redacted) == (
                "measure",
                "RedactedAnswerError",
                True,
            )
            assert failure.interactions
        run = again


def test_rescoring_writes_no_secret_of_the_sut_that_it_does_not_make(tmp_path, monkeypatch):
    monkeypatch.setenv("ACME_API_KEY", PIN)
    run = run_test(
        Expecting.of({f"a {PIN}": f"said a {PIN}"}), Answering("sut", AcmeKey(PIN)), data_dir=tmp_path
    )
    rescore(run.run_id, tmp_path, test=Expecting.of({f"a {PIN}": f"another {PIN}"}))
    assert PIN.encode() not in kept(tmp_path)


def test_rescoring_joins_items_whose_prompt_or_id_holds_a_secret(tmp_path):
    class Mute(Answering):
        def evaluate(self, request):
            return "fine"

    test = Expecting.of({f"a {PIN}": "fine", f"b {PIN}": "other"})
    run = run_test(test, Mute("sut", AcmeKey(PIN)), data_dir=tmp_path)
    [again] = rescore(run.run_id, tmp_path, test=test)  # which knows no secret
    assert (again.counts.scored, again.result["accuracy"].value) == (2, 0.5)


@pytest.mark.parametrize("new_key", [PIN, "a-rotated-key-0123"])
def test_a_run_whose_items_hold_a_secret_resumes(tmp_path, new_key):
    class Stopping(Answering):
        identity_excludes = frozenset({"stops"})

        def evaluate(self, request):
            if request.startswith("b") and self.stops:
                raise RunStoppedError("Stopped.", fix="Go on.")
            return super().evaluate(request)

    prompts = (f"a {PIN}", f"b {PIN}")
    sut = Stopping("sut", AcmeKey(PIN))
    sut.stops = True
    run = run_test(expecting(*prompts), sut, data_dir=tmp_path, concurrency=1)
    assert (run.failure.stage, run.counts.scored) == ("run", 1)
    sut = Stopping("sut", AcmeKey(new_key))
    sut.stops = False
    [resumed] = resume(run.run_id, tmp_path, test=expecting(*prompts), sut=sut)
    assert (resumed.counts.scored, resumed.result["accuracy"].value) == (2, 1)
    assert sut.asked == [f"b {PIN}"]


def test_an_item_whose_secret_part_changed_is_another_item(tmp_path):
    sut = Answering("sut", AcmeKey(PIN))
    run = run_test(Expecting.of({"a": PIN}, ValueError("no more")), sut, data_dir=tmp_path)
    with pytest.raises(RecordError, match="Item 'of a' is not what it was"):
        resume(run.run_id, tmp_path, test=Expecting.of({"a": PIN[::-1]}), sut=sut)
    [resumed] = resume(run.run_id, tmp_path, test=Expecting.of({"a": PIN}), sut=sut)
    assert resumed.counts.scored == 1


def test_arguments_that_hold_a_secret_are_compared_without_it(tmp_path):
    class Naming(Expecting):
        def __init__(self, uid, text):
            super().__init__(uid)

    made = Naming("naming", f"of {PIN}")
    made.expected, made.ends_by = {"a": "said a"}, ValueError("no more")
    sut = Answering("sut", AcmeKey(PIN))
    run = run_test(made, sut, data_dir=tmp_path)
    made.ends_by = None
    [resumed] = resume(run.run_id, tmp_path, test=made, sut=sut)
    assert (resumed.failure, resumed.counts.scored) == (None, 1)


def test_lines_without_digests_join_by_id(tmp_path):
    test = Expecting.of({"a": "said a", "your key": PIN})
    run = run_test(test, Answering("sut", AcmeKey(PIN)), data_dir=tmp_path)
    journal = tmp_path / "runs" / run.run_id / "items.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        del line["digests"], line["redacted"]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    [again] = rescore(run.run_id, tmp_path, test=test)
    assert (again.counts.scored, again.counts.unscored) == (1, 1)
    assert again.test_item_exceptions[0].error_type == "RedactedAnswerError"

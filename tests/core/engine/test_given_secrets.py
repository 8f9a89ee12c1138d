"""Secrets that an object was made with by hand, and keys that are ordinary words."""

import pytest

from modelgauge import (
    PromptResponseSUT,
    PromptResponseTest,
    RequiredSecret,
    SecretDescription,
    SUTCompletion,
    SUTResponse,
    TestItem,
    run_test,
)

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

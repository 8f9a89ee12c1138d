import base64
import html
import json
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.redaction import Redactor

CANARY = 'sk-"Canary"/7+é\\x&y'


def redactor_of(value, name="acme.api_key"):
    redactor = Redactor()
    redactor.add(name, value)
    return redactor


SHAPES = {
    "plain": CANARY,
    "upper": CANARY.upper(),
    "lower": CANARY.lower(),
    "bearer": f"Authorization: bearer {CANARY}",
    "json": json.dumps({"key": CANARY}),
    "json_utf8": json.dumps({"key": CANARY}, ensure_ascii=False),
    "json_in_json": json.dumps(json.dumps({"key": CANARY})),
    "repr": repr({"key": CANARY}),
    "ascii": ascii(CANARY),
    "bytes": repr(CANARY.encode()),
    "url": urllib.parse.quote(CANARY, safe=""),
    "url_path": urllib.parse.quote(CANARY),
    "url_plus": urllib.parse.urlencode({"key": CANARY}),
    "url_lower": urllib.parse.quote(CANARY, safe="").lower(),
    "url_twice": urllib.parse.quote(urllib.parse.quote(CANARY, safe=""), safe=""),
    "html": html.escape(CANARY),
    "base64": base64.b64encode(CANARY.encode()).decode(),
    "base64url": base64.urlsafe_b64encode(CANARY.encode()).decode(),
    "basic": base64.b64encode(b"user:" + CANARY.encode()).decode(),
    "basic_empty_user": base64.b64encode(b":" + CANARY.encode()).decode(),
    "hex": CANARY.encode().hex(),
    "hex_upper": CANARY.encode().hex().upper(),
    "reversed": CANARY[::-1],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_is_found_in_every_shape(shape):
    text = f"before {SHAPES[shape]} after"
    cleaned = redactor_of(CANARY).redact(text)
    assert "[secret acme.api_key]" in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")
    assert "anary" not in cleaned.lower()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_in_every_shape_is_found_within_json(shape):
    redactor = redactor_of(CANARY)
    for ascii_only in (True, False):
        assert redactor.finds(json.dumps({"said": SHAPES[shape]}, ensure_ascii=ascii_only))


def test_without_secrets_texts_stay_the_same_object():
    text = "anything"
    assert Redactor().redact(text) is text
    assert Redactor().redact_json(value := {"a": [text]}) is value
    assert not Redactor().finds(text)


def test_each_secret_goes_by_its_name_and_the_longer_wins():
    redactor = redactor_of("abc3ef", "a.short")
    redactor.add("a.long", "abc3efgh")
    assert redactor.redact("abc3ef, abc3efgh") == "[secret a.short], [secret a.long]"


def test_lines_of_a_key_file_are_found_one_by_one():
    pem = "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0\nshort\n-----END KEY-----"
    assert "MIIB" not in redactor_of(pem).redact("  MIIBVgIBADANBgkqhkiG9w0\n")


def test_a_letter_whose_lower_case_depends_on_its_neighbours():
    assert redactor_of("ΔΒΓΣ").redact("ΔΒΓΣΔ") == "[secret acme.api_key]Δ"


def test_a_short_value_does_not_maim_ordinary_text_but_goes_from_a_header():
    redactor = redactor_of("no")
    assert redactor.redact("no, not now") == "no, not now"
    assert redactor.redact("Authorization: Bearer no") == "Authorization: Bearer [secret acme.api_key]"
    assert redactor_of("").redact("") == ""


@pytest.mark.parametrize("word", ["EMPTY", "ollama", "dummy", "test", "Token"])
def test_a_word_that_stands_for_a_key_does_not_maim_what_is_answered(word):
    redactor = redactor_of(word)
    assert redactor.redact(f'{{"{word}": "The set is {word}."}}') == f'{{"{word}": "The set is {word}."}}'
    assert redactor.redact(f"authorization: bearer {word}") == "authorization: bearer [secret acme.api_key]"


@pytest.mark.parametrize(
    "value", ["abc1", "s3cret", "key-canary", "qwertyuiopas", "aBcDeFgH", "1234", "no!way"]
)
def test_what_no_text_holds_by_chance_goes_everywhere(value):
    assert redactor_of(value).redact(f"so {value}.") == "so [secret acme.api_key]."


def test_json_keeps_its_structure():
    redactor = redactor_of("12345678")
    value = {"n": 12345678, "12345678": ["x12345678", None, True, 1.5]}
    assert redactor.redact_json(value) == {
        "n": 12345678,
        "[secret acme.api_key]": ["x[secret acme.api_key]", None, True, 1.5],
    }


@given(st.text(min_size=12).filter(str.strip), st.text(), st.text())
def test_no_value_survives_in_any_text(value, before, after):
    redactor = redactor_of(value, "s.k")
    assert redactor.finds(before + value + after)
    parts = redactor.redact(before + value + after).split("[secret s.k]")
    assert len(parts) > 1
    assert not any(value in part for part in parts)


@given(st.text())
def test_texts_without_the_secret_are_untouched(text):
    if "canary-value" not in text.lower():
        assert redactor_of("canary-value-9f3").redact(text) == text

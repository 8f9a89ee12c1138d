import base64
import html
import itertools
import json
import sys
import urllib.parse
from threading import Barrier, Thread
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.config.redaction import Redactor
from modelgauge.plugins import names

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
    assert Redactor().redact_json_text(written := '{"a":["anything"]}') is written
    assert not Redactor().finds(text)


def test_each_secret_goes_by_its_name_and_the_longer_wins():
    redactor = redactor_of("abc3efgh", "a.short")
    redactor.add("a.long", "abc3efgh45")
    assert redactor.redact("abc3efgh, abc3efgh45") == "[secret a.short], [secret a.long]"


def test_lines_of_a_key_file_are_found_one_by_one():
    pem = "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0\nshort\n-----END KEY-----"
    assert "MIIB" not in redactor_of(pem).redact("  MIIBVgIBADANBgkqhkiG9w0\n")


def test_a_letter_whose_lower_case_depends_on_its_neighbours():
    assert redactor_of("ΔΓΠ7ΔΓΠΣ").redact("ΔΓΠ7ΔΓΠΣΔ") == "[secret acme.api_key]Δ"


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


@pytest.mark.parametrize("value", ["key-canary", "qwertyuiopas", "aBcDeFgH", "12345678", "no!ways!"])
def test_what_no_text_holds_by_chance_goes_everywhere(value):
    assert redactor_of(value).redact(f"so {value}.") == "so [secret acme.api_key]."


@pytest.mark.parametrize("value", ["1234", "abc1", "s3cret!", "x", "ollama", "assistant"])
def test_a_short_value_or_a_word_is_a_secret_only_where_secrets_stand(value):
    redactor = redactor_of(value)
    basic = base64.b64encode(f"user:{value}".encode()).decode()
    mark = "[secret acme.api_key]"
    for text, clean in {
        f"The answer is {value}.": f"The answer is {value}.",
        f"Answer: {value}": f"Answer: {value}",
        f"monkey: {value}": f"monkey: {value}",
        f"Authorization: Bearer {value}": f"Authorization: Bearer {mark}",
        f"X-Api-Key: {value}\n": f"X-Api-Key: {mark}\n",
        repr({"x-api-key": value}): f"{{'x-api-key': '{mark}'}}",
        json.dumps(json.dumps({"api_key": value})): rf'"{{\"api_key\": \"{mark}\"}}"',
        f"http://{value}@host": f"http://{mark}@host",
        f"proxy user:{value}@host:80": f"proxy user:{mark}@host:80",
    }.items():
        assert redactor.redact(text) == clean
    headers = {"x-api-key": value, "said": value, "all": [value]}
    assert redactor.redact_json(headers) == {**headers, "x-api-key": mark}
    if len(value) > 3:
        assert redactor.redact(f"Authorization: Basic {basic}") == f"Authorization: Basic {mark}"


FORMS = {
    "base64": lambda raw: base64.b64encode(raw).decode(),
    "base64url": lambda raw: base64.urlsafe_b64encode(raw).decode(),
}
VALUES = (
    "sk-0123456789abc",
    "sk-0123456789abcd",
    "sk-0123456789abcde",
    "élan-0123456789",
    "漢字-0123456789>?",
)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("form", FORMS)
def test_of_base64_only_what_tells_something_of_the_neighbours_is_left(value, form):
    raw, redactor = value.encode(), redactor_of(value)
    for before, after in itertools.product(["", "u", "us"], ["", ":", "::"]):
        text = FORMS[form](before.encode() + raw + after.encode())
        # The characters that depend on the value alone: 6 bits each, from its first bit to its last.
        begins, ends = -(-len(before) * 8 // 6), (len(before) + len(raw)) * 8 // 6
        expected = f"{text[:begins]}[secret acme.api_key]{text[ends:]}"
        assert redactor.redact(f"<{text}>") == f"<{expected}>"


WRITTEN = {
    "plain": str,
    "upper": str.upper,
    "json": lambda value: json.dumps(value)[1:-1],
    "json_utf8": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "json_in_json": lambda value: json.dumps(json.dumps(value)[1:-1])[1:-1],
    "repr": lambda value: repr(value)[1:-1],
    "ascii": lambda value: ascii(value)[1:-1],
    "bytes": lambda value: repr(value.encode())[2:-1],
    "url": lambda value: urllib.parse.quote(value, safe=""),
    "url_plus": urllib.parse.quote_plus,
    "option": names.encode,
    "option_in_list": lambda value: names.encode(value, within_list=True),
    "html": html.escape,
    "hex": lambda value: value.encode().hex(),
    "reversed": lambda value: value[::-1],
}


@pytest.mark.parametrize("value", ["élan-01&23,45:67/89", "é\\0123456789", *VALUES, "0123456789-é"])
def test_of_any_other_form_nothing_is_left(value):
    redactor = redactor_of(value)
    for form, written in WRITTEN.items():
        text = written(value)
        assert redactor.redact(f"<{text}>") == "<[secret acme.api_key]>", form
        for ascii_only in (True, False):
            within = json.dumps([f"<{text}>"], ensure_ascii=ascii_only)
            assert json.loads(redactor.redact_json_text(within)) == ["<[secret acme.api_key]>"], form


@pytest.mark.parametrize("form", [str, *FORMS.values(), names.encode])
def test_a_piece_of_a_secret_is_taken_out_where_a_text_was_cut(form):
    value = "sk-live-01,23 45&6789-abcdef"
    text = form(value if form is str or form not in FORMS.values() else value.encode())
    redactor = redactor_of(value)
    for most in range(16, len(text) - 4):
        assert text[:16] not in redactor.redact(repr(f"x {text[:most]}"))
        assert redactor.redact(f"x {text[:most]}…") == "x [secret acme.api_key]…"
        assert redactor.redact(f"x {text[:most]}...") == "x [secret acme.api_key]..."
        assert text[-16:] not in redactor.redact(f"x … {text[-most:]} y")
    assert redactor.redact(f"{text[:6]}…") == f"{text[:6]}…"
    assert redactor.redact(f"{text[:12]} goes on") == f"{text[:12]} goes on"


URLS = {
    "http://user:passw0rd@host:80/a?b=c@d": "http://[secret of a URL]@host:80/a?b=c@d",
    "http://user:passw0rd@host:notaport.": "http://[secret of a URL]@host:notaport.",
    "http://user:pa@ss/word@host": "http://[secret of a URL]@ss/word@host",
    "http://user:pa/ss@host": "http://[secret of a URL]@host",
    "https://ghp_0123456789@github.com": "https://[secret of a URL]@github.com",
    "https:\\/\\/user:pw@host": "https:\\/\\/[secret of a URL]@host",
    "ssh://git@github.com/a/b": "ssh://git@github.com/a/b",
    "http://localhost:8080/mail?to=a@b.example": "http://localhost:8080/mail?to=a@b.example",
    "see http://a.example, or write to me@a.example": "see http://a.example, or write to me@a.example",
}


@pytest.mark.parametrize("text", URLS)
def test_what_a_url_holds_before_its_host_is_a_secret_known_or_not(text):
    redactor = Redactor()
    assert redactor.redact(text) == URLS[text]
    assert json.loads(redactor.redact_json_text(json.dumps({"a": text}))) == {"a": URLS[text]}
    assert redactor.names_in(json.dumps(text)) == []


def test_long_texts_that_look_like_urls_take_no_time():
    began = process_time()
    for text in ("://a:" * 50_000 + "@", "a://" + "b" * 500_000 + "@", "@" + ":/" * 200_000):
        Redactor().redact(text)
    assert process_time() - began < 5


def test_which_secrets_a_json_text_holds():
    redactor = redactor_of("0123456789", "a.one")
    redactor.add("a.two", 'key "2" of all')
    assert redactor.names_in(json.dumps({"x": ["9876543210", 'the key "2" of all']})) == ["a.one", "a.two"]
    assert redactor.names_in('{"[secret a.one]":1}') == []


def test_secrets_that_threads_add_at_once_are_all_known():
    redactor, together = Redactor(), Barrier(4)
    scopes = [f"s.k{number}" for number in range(12)]

    def add(number):
        together.wait()
        for name in scopes[number::4]:
            redactor.add(name, f"value-of-{name}-0123456789")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=add, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for name in scopes:
        assert redactor.redact(f"value-of-{name}-0123456789") == f"[secret {name}]"


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


LONG = "0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v2w3x"
MARK = "[secret acme.api_key]"


def test_a_piece_is_a_quarter_of_a_value_and_eight_characters_at_least():
    redactor = redactor_of(LONG)
    assert redactor.redact(f"{LONG[:12]}…") == f"{MARK}…"
    assert redactor.redact(f"{LONG[:11]}…") == f"{LONG[:11]}…"
    assert redactor.redact(f"x … {LONG[-12:]} y") == f"x … {MARK} y"
    assert redactor.redact(f"x … {LONG[-11:]} y") == f"x … {LONG[-11:]} y"
    redactor = redactor_of(LONG[:20])
    assert redactor.redact(f"{LONG[:8]}…") == f"{MARK}…"
    assert redactor.redact(f"{LONG[:7]}…") == f"{LONG[:7]}…"


@pytest.mark.parametrize(
    "end", ["…", " …", "...", " [...", "]…", '"', "'", "`", "\\", ")", "]", "}>", ",", ";", "”", ""]
)
def test_how_a_text_shows_that_it_was_cut(end):
    assert redactor_of(LONG).redact(f"x {LONG[:20].upper()}{end}") == f"x {MARK}{end}"
    encoded = base64.b64encode(LONG.encode()).decode()
    assert redactor_of(LONG).redact(f"x {encoded[:20]}{end}") == f"x {MARK}{end}"


@pytest.mark.parametrize("begin", ["…", '"', "(", "[", "<", ",", "“", ""])
def test_how_a_text_shows_where_a_secret_was_cut_at_its_beginning(begin):
    assert redactor_of(LONG).redact(f"{begin}{LONG[-20:]} y") == f"{begin}{MARK} y"


def test_of_two_secrets_that_begin_alike_the_one_that_goes_on_is_told():
    redactor = redactor_of(LONG, "a.one")
    redactor.add("a.two", f"{LONG[:10]}another-end-of-it")
    assert redactor.redact(f"{LONG[:20]}… {LONG[:10]}another-en…") == "[secret a.one]… [secret a.two]…"
    assert (
        redactor.redact(f"x {LONG[:20]}'{LONG[:14]}'{LONG[:5]}")
        == f"x [secret a.one]'[secret a.one]'{LONG[:5]}"
    )


def test_lines_of_sixteen_characters_are_secrets_of_their_own():
    redactor = redactor_of("first-line-0123\n  sixteen--letters  \nfifteen-letters\nlast")
    assert redactor.redact("a sixteen--letters b") == f"a {MARK} b"
    assert redactor.redact("a fifteen-letters b") == "a fifteen-letters b"


def test_a_word_of_eleven_letters_is_ordinary_and_one_of_twelve_is_not():
    assert redactor_of("qwertyuiopa").redact("so qwertyuiopa.") == "so qwertyuiopa."
    assert redactor_of("qwertyuiopas").redact("so qwertyuiopas.") == f"so {MARK}."
    assert redactor_of("QWERTYUIOPA").redact("so QWERTYUIOPA.") == "so QWERTYUIOPA."


def test_what_is_written_anew_is_compact_json_and_what_is_clean_stays():
    redactor = redactor_of(LONG)
    assert redactor.redact_json_text(f'{{"a": ["é", 1, "{LONG}"]}}') == f'{{"a":["\\u00e9",1,"{MARK}"]}}'
    assert redactor.redact_json_text(clean := '{"a": "me@host.example:// b@c"}') is clean
    assert redactor.redact_json(("x", LONG)) == ["x", MARK]


@pytest.mark.parametrize(
    "name",
    ["authorization", "X-Api-Key", "apikey", "api_key", "token", "client_secret", "Cookie", "password"],
)
def test_under_the_name_of_a_header_a_short_value_is_a_secret(name):
    assert redactor_of("abc1").redact_json({name: "abc1", f"{name}s": "abc1"}) == {
        name: MARK,
        f"{name}s": "abc1",
    }


def test_a_secret_that_is_added_again_keeps_its_first_name():
    redactor = redactor_of(LONG, "a.one")
    redactor.add("a.two", LONG)
    redactor.add("a.three", "")
    assert redactor.redact(LONG) == "[secret a.one]"

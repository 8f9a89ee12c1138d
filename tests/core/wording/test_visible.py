"""Control and invisible characters in texts and JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.wording.visible import visible, visible_json


def test_control_characters_become_escapes():
    assert visible("a\x1b[31mb\r\x9b\u202ec\ud800") == "a\\x1b[31mb\\r\\x9b\\u202ec\\ud800"
    assert visible("tab\tline\nümlaut 漢") == "tab\tline\nümlaut 漢"


@pytest.mark.parametrize(
    "hidden",
    ["\u061c", "\u2028", "\u2029", "\u200b", "\ufeff", "\U000e0041", "\u2066", "\xad", "\u2060", "\ue000"],
)
def test_what_is_not_seen_becomes_an_escape(hidden):
    assert visible(f"pass{hidden}word") == f"pass{repr(hidden)[1:-1]}word"
    shown = visible_json(json.dumps([hidden], ensure_ascii=False))
    assert shown.isascii()
    assert json.loads(shown) == [hidden]


def test_joiners_stay_where_they_join():
    for joined in ("👩\u200d🚀", "❤\ufe0f\u200d🔥", "می\u200cخو", "क्\u200dष"):
        assert visible(joined) == joined
    assert visible("a\u200db\u200c") == "a\\u200db\\u200c"
    assert visible("漢\u200d\u200d字") == "漢\\u200d\\u200d字"
    assert visible("no\xa0break\u3000wide") == "no\xa0break\u3000wide"


@given(st.text(st.characters()))
def test_what_is_visible_is_printable_and_can_be_encoded(text):
    shown = visible(text)
    assert not any(ord(each) < 32 and each not in "\t\n" for each in shown)
    shown.encode("utf-8")
    assert visible(shown) == shown

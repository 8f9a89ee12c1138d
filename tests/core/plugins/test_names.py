import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import InvalidOptionError
from modelgauge.plugins.names import decode, encode, join_name, provider_problem, split_name, uid_problem

KEYS = st.text(min_size=1, max_size=8)
OPTIONS = st.dictionaries(KEYS, st.text(max_size=8), max_size=4)
BASES = st.text(min_size=1, max_size=8).filter(lambda text: uid_problem(text) is None)


@given(BASES, OPTIONS)
def test_what_is_joined_splits_into_the_same(base, options):
    name = join_name(base, {key: encode(value) for key, value in options.items()})
    split_base, split_options = split_name(name)
    assert split_base == base
    assert {key: decode(value) for key, value in split_options.items()} == options
    assert uid_problem(name.replace("?", "")) is None


@given(BASES, OPTIONS)
def test_the_order_of_options_does_not_count(base, options):
    encoded = {key: encode(value) for key, value in options.items()}
    assert join_name(base, encoded) == join_name(base, dict(reversed(encoded.items())))


def test_a_url_stays_readable():
    assert encode("http://localhost:8000/v1") == "http://localhost:8000/v1"
    assert encode("a,b") == "a,b"
    assert encode("a,b", within_list=True) == "a%2Cb"
    assert encode("1 + 1 & 2") == "1%20%2B%201%20%26%202"


def test_a_plus_is_a_plus_and_the_first_question_mark_counts():
    assert decode("a+b%20c") == "a+b c"
    assert split_name("x?q=why?") == ("x", {"q": "why?"})


@pytest.mark.parametrize("name", ["x?", "x?a", "x?=1", "x?a=1&", "x?a=1&&b=2"])
def test_what_is_no_option_is_refused(name):
    with pytest.raises(InvalidOptionError, match="is not an option"):
        split_name(name)


def test_a_key_given_twice_is_refused_however_it_is_spelled():
    with pytest.raises(InvalidOptionError, match="'a' twice"):
        split_name("x?a=1&%61=2")


def test_bytes_that_are_not_utf8_are_refused():
    with pytest.raises(InvalidOptionError, match="UTF-8"):
        decode("%ff")


@pytest.mark.parametrize("uid", ["", " ", "a b", "a\n", "a?b", "a\x00", None, 3])
def test_bad_uids(uid):
    assert uid_problem(uid)
    assert provider_problem(uid)


@pytest.mark.parametrize("uid", ["a", "bbh_snarks", "acme/model:1", "café", "a=b&c"])
def test_good_uids(uid):
    assert uid_problem(uid) is None
    assert (provider_problem(uid) is None) == ("/" not in uid)

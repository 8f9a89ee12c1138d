"""Contexts and continuations as tokens: laws for a tokenizer whose tokens are characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import CallError
from modelgauge_transformers.tokens import Pair, Tokens


class Characters:
    """A tokenizer with a token for each character, and one before each text."""

    bos_token, bos_token_id, eos_token_id = "<s>", 0, 1
    chat_template = None

    def encode(self, text, *, add_special_tokens):
        return [0] * add_special_tokens + [ord(character) for character in text]


TEXT = st.text(st.characters(codec="ascii", categories=["L", "Zs"]), min_size=1)


@given(TEXT, TEXT)
def test_spaces_at_the_end_of_the_context_go_to_the_continuation(context, continuation):
    (pair,) = Tokens(Characters(), 100).encode_pairs(context, [continuation])
    stripped = context.rstrip()
    assert pair.context == [0, *map(ord, stripped)]
    assert pair.continuation == [ord(one) for one in context[len(stripped) :] + continuation]


@given(TEXT, st.integers(1, 20))
def test_windows_score_each_token_once_and_stay_within_the_model(text, size):
    windows = list(Tokens(Characters(), size).windows(text))
    assert [token for window in windows for token in window.continuation] == [ord(one) for one in text]
    assert all(len(window.context) + len(window.continuation) - 1 <= size for window in windows)
    assert windows[0].context == [0]
    if len(text) > size:  # the last reaches back as far as the model reads
        assert len(windows[-1].context) + len(windows[-1].continuation) - 1 == size


def test_context_that_is_too_long_loses_its_beginning():
    assert Tokens(Characters(), 5).fitted(Pair([1, 2, 3, 4, 5, 6], [7, 8])) == Pair([3, 4, 5, 6], [7, 8])


def test_continuation_that_is_too_long_is_refused():
    with pytest.raises(CallError, match="longer than the 5"):
        Tokens(Characters(), 5).fitted(Pair([1], [1, 2, 3, 4, 5, 6]))


def test_text_with_the_beginning_token_gets_no_second_one():
    assert Tokens(Characters(), 5).encode("<s>a") == [ord(one) for one in "<s>a"]


@pytest.fixture(scope="module")
def lm_eval_utils():
    return pytest.importorskip("lm_eval.utils", reason="`.ci/run` makes an environment that has lm_eval")


@given(TEXT, st.integers(1, 20))
def test_windows_are_those_of_lm_eval(lm_eval_utils, text, size):
    rolling = lm_eval_utils.get_rolling_token_windows(
        token_list=list(map(ord, text)), prefix_token=0, max_seq_len=size, context_len=1
    )
    expected = [lm_eval_utils.make_disjoint_window(window) for window in rolling]
    found = Tokens(Characters(), size).windows(text)
    assert [(window.context, window.continuation) for window in found] == expected

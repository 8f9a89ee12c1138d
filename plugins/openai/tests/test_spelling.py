"""The token that a continuation begins with is found for certain, or not at all, however tokens are written."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgauge_openai.spelling import first_token, readings

TEXTS = st.text(st.sampled_from("ab .\n:é北京😀"), min_size=1, max_size=12)


def replaced(parts):
    return [part.decode("utf-8", "replace") for part in parts]


def ignored(parts):
    """As llama-cpp-python decodes tokens: what is no whole character is lost."""
    return [part.decode("utf-8", "ignore") for part in parts]


def corrected(parts):
    """As vLLM decodes tokens: one that ends within a character is written with the token that completes it."""
    texts, held = [], b""
    for part in parts:
        text = (held + part).decode("utf-8", "replace")
        is_corrected = part.decode("utf-8", "replace").endswith("\ufffd")
        whole = is_whole(held + part)
        texts.append((text if whole else "") if is_corrected else part.decode("utf-8", "replace"))
        held = b"" if whole or not is_corrected else held + part
    return texts


def named(parts):
    """As llama.cpp's and SentencePiece's vocabularies name single bytes."""
    return [
        f"<0x{part[0]:02X}>" if len(part) == 1 and part[0] > 127 else part.decode("utf-8", "replace")
        for part in parts
    ]


def quoted(parts):
    """As OpenAI writes bytes."""
    return [
        part.decode() if is_whole(part) else "bytes:" + "".join(f"\\x{byte:02x}" for byte in part)
        for part in parts
    ]


def is_whole(part):
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True


def cut(data, places):
    ends = [0, *sorted({place % len(data) for place in places} - {0}), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(ends)]


def beginning(parts, text, at):
    """The place of the part that begins at a character; None if none does."""
    wanted = len(text[:at].encode())
    begins = [sum(map(len, parts[:place])) for place in range(len(parts) + 1)]
    return begins.index(wanted) if wanted in begins else None


@pytest.mark.parametrize("write", [replaced, ignored, corrected, named, quoted])
@given(text=TEXTS, places=st.lists(st.integers(0, 99)), at=st.integers(0, 99), begins=st.booleans())
@settings(max_examples=150)
def test_tokens_of_bytes_begin_where_they_do_or_nowhere(write, text, places, at, begins):
    parts = cut(text.encode(), places)
    at %= len(text)
    states = readings([*(["<s>"] if begins else []), *write(parts)], text)
    assert states or write in (ignored, corrected)
    true = beginning(parts, text, at)
    assert not states or first_token(states, at) in (None, None if true is None else true + begins)


@given(text=TEXTS, places=st.lists(st.integers(0, 99)), at=st.integers(0, 99))
@settings(max_examples=150)
def test_tokens_of_characters_begin_exactly_where_they_do(text, places, at):
    at %= len(text)
    characters = cut([*text], places)
    tokens = ["".join(part) for part in characters]
    states = readings(tokens, text)
    true = beginning([token.encode() for token in tokens], text, at)
    assert first_token(states, at) == true


@given(text=TEXTS, places=st.lists(st.integers(0, 99)), at=st.integers(0, 99))
@settings(max_examples=300)
def test_tokens_that_lack_a_space_begin_where_they_do_or_nowhere(text, places, at):
    at = len(text[: at % len(text)].rstrip())
    tokens = ["".join(part) for part in cut([*text], places)]
    states = readings([token.removeprefix(" ") for token in tokens], text)
    assert states
    assert first_token(states, at) in (None, beginning([token.encode() for token in tokens], text, at))


@given(text=TEXTS, tokens=st.lists(st.text(st.sampled_from("ab <é\ufffd"), max_size=3), max_size=6))
def test_tokens_of_another_text_have_no_reading(text, tokens):
    spelt = "".join(tokens).replace(" ", "")
    if "\ufffd" not in spelt and spelt.isascii() and "" not in tokens and spelt != text.replace(" ", ""):
        assert readings(tokens, text) == []


@pytest.mark.parametrize(
    ("tokens", "text", "at", "place"),
    [
        (["foobar"], "foobar", 3, None),
        (["Go", ":\n\n", "on"], "Go:\n\non", 3, None),
        (["Go", ":\n\n", "on"], "Go:\n\non", 5, 2),
        (["\ufffd"] * 6, "北京", 1, None),  # three bytes each, or two and four?
        (["\ufffd", "\ufffd", " a"], "北 a", 1, 2),
        (["<|begin_of_text|>", "[INST]", " Hi"], "[INST] Hi", 6, 2),
        (["<s>", "<s>", " Hi"], "<s> Hi", 3, 2),
    ],
)
def test_token_at_a_character(tokens, text, at, place):
    assert first_token(readings(tokens, text), at) == place

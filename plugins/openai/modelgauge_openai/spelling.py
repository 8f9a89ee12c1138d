"""Finding the token that a continuation begins with, by the texts of a prompt's tokens.

Servers write tokens in ways of their own, and a prompt whose tokens are not understood has no reading. Text offsets are
not used: vLLM counts the text of the token that prompts begin with, and SGLang has none.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_UNDECODED = "\ufffd"
_PARTS = re.compile(f"({_UNDECODED}+)")
_MARK = re.compile(r"[<\[].*[>\]]", re.DOTALL)
"""Tokens that prompts begin with: `<s>`, `<|begin_of_text|>`, `[CLS]`."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_BYTES = re.compile(r"bytes:( ?)((\\x[0-9a-f]{2})+)")

State = tuple[int, bool]
"""The number of characters that were read, and whether bytes of the next one were read."""

Reading = list[set[State]]
"""The states before each token and at the end, of all ways in which the tokens spell the text."""


def readings(tokens: Sequence[str], text: str) -> Reading:
    """Return the states of all ways in which tokens spell a whole text; an empty list if they do not."""
    states: Reading = [{(0, False)}]
    for token in tokens:
        following = {after for state in states[-1] for after in _after(state, token, text)}
        if not following:
            return []
        states.append(following)
    states[-1] &= {(len(text), False)}
    for place in reversed(range(len(tokens))):
        ahead = states[place + 1]
        states[place] = {
            state for state in states[place] if not ahead.isdisjoint(_after(state, tokens[place], text))
        }
    return states if all(states) else []


def first_token(states: Reading, at: int) -> int | None:
    """Return the place of the token that begins at a character; None if a token straddles it, or ways differ.

    At the first character, it is the one behind all tokens that spell nothing.
    """
    if at:
        place = next(place for place, before in enumerate(states) if any(read >= at for read, _ in before))
    else:
        place = max(place for place, before in enumerate(states) if (0, False) in before)
    return place if states[place] == {(at, False)} else None


def _after(state: State, token: str, text: str) -> set[State]:
    """Return the states after a token."""
    read, is_open = state
    if token and not is_open and text.startswith(token, read):  # nearly always
        found = {(read + len(token), False)}
    elif token:
        found = {after for form in _forms(token) for after in _after_parts(state, form, text)}
    else:
        found = {*_after_spaces(state, text), *([(read, True)] if read < len(text) else [])}
    if state == (0, False) and (not token or _MARK.fullmatch(token)):
        found.add(state)
    return found


@lru_cache(maxsize=4096)
def _forms(token: str) -> tuple[str, ...]:
    """Return a token as it is, and as text where it is the name of bytes: llama.cpp's `<0xE2>`, OpenAI's `bytes:…`."""
    if _BYTE.fullmatch(token):
        return (token, _UNDECODED)
    found = _BYTES.fullmatch(token)
    if found is None:
        return (token,)
    decoded = bytes.fromhex(found[2].replace("\\x", "")).decode("utf-8", "replace")
    return (token, found[1] + decoded)


def _after_parts(state: State, token: str, text: str) -> set[State]:
    """Return the states after the parts of a token: texts, and bytes that could not be decoded."""
    states = {state}
    if state == (0, False) and token.startswith(" ") and text.startswith(token[1:]):
        return {(len(token) - 1, False)}  # some tokenizers begin texts with a space
    if not token.startswith(" "):  # others leave out one at the beginning of a token
        states.update(_after_spaces(state, text))
    for part in filter(None, _PARTS.split(token)):
        # vLLM writes the bytes of a token, and the text before them, with the token that completes the character.
        literal = {(read + len(part), False) for read, _ in states if text.startswith(part, read)}
        is_undecoded = part.startswith(_UNDECODED)
        states = literal | {after for each in states if is_undecoded for after in _after_bytes(each, text)}
    return states


def _after_spaces(state: State, text: str) -> Iterator[State]:
    """Yield the states after each of the spaces that come next."""
    read, is_open = state
    while not is_open and text.startswith(" ", read):
        read += 1
        yield read, False


def _after_bytes(state: State, text: str) -> Iterator[State]:
    """Yield the states after bytes that are no whole character: they begin, go on, or end one."""
    read, is_open = state
    if _is_long(text, read):
        yield read, True
        if is_open:
            yield read + 1, False
            if _is_long(text, read + 1):
                yield read + 1, True


def _is_long(text: str, at: int) -> bool:
    """Return whether a character takes several bytes."""
    return at < len(text) and not text[at].isascii()

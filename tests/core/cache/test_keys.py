"""Keys and entries: what is stored, as text."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from modelgauge.cache.keys import DamagedEntryError, Entry, Key, KeyMaker, pack, unpack
from modelgauge.errors import InvalidDataError


class Request(BaseModel):
    text: str
    temperature: float | None = None


texts = st.text(st.characters(exclude_categories=["Cs"]))
requests = st.one_of(
    texts,
    st.dictionaries(texts, texts | st.none() | st.booleans() | st.integers(), max_size=2),
    st.builds(Request, text=texts),
)
makers = st.builds(KeyMaker, st.sampled_from(["sut", "annotator"]), st.dictionaries(texts, texts, max_size=1))


def test_a_key_is_pinned():
    key = KeyMaker("sut", {"uid": "x"}).key({"b": 1, "a": "ä"}, repeat=2)
    assert key.parts == '[1,"sut",{"uid":"x"},{"a":"\\u00e4","b":1},2]'
    assert key.digest == hashlib.sha256(key.parts.encode()).hexdigest()


@given(
    st.tuples(st.sampled_from(["sut", "annotator"]), texts, requests, st.integers(0, 2)),
    st.tuples(st.sampled_from(["sut", "annotator"]), texts, requests, st.integers(0, 2)),
)
def test_keys_are_equal_exactly_where_what_they_are_made_of_is(one, other):
    keys = [KeyMaker(role, uid).key(request, repeat) for role, uid, request, repeat in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def test_a_model_that_grows_makes_other_keys_and_a_dict_or_a_subclass_beside_it_does_not():
    def request_class(base, **annotations):
        body = {"__module__": "acme", "__qualname__": "Asked", "__annotations__": annotations}
        return type("Asked", (base,), {**body, **dict.fromkeys(annotations.keys() - {"text"})})

    def key(request):
        return KeyMaker("sut", {"uid": "x"}).key(request)

    before = request_class(BaseModel, text=str)
    grown = request_class(BaseModel, text=str, temperature=float | None)
    moved = type("Asked", (before,), {"__module__": "acme.requests", "__qualname__": "Asked"})
    beside = type("AskedAt", (before,), {"__annotations__": {"temperature": float}, "__module__": "acme"})
    assert key(before(text="q")) == key(request_class(BaseModel, text=str)(text="q"))
    assert len({key(one) for one in (before(text="q"), grown(text="q"), moved(text="q"))}) == 3
    assert key(beside(text="q", temperature=1.0)) != key(before(text="q"))
    assert key({"text": "q"}) != key({"text": "q", "temperature": None})  # so what is not set is left out


@given(makers, requests)
def test_the_parts_of_a_key_are_json(maker, request):
    key = maker.key(request)
    assert key.parts.isascii()
    assert len(json.loads(key.parts)) == 5


@pytest.mark.parametrize("native", [object(), float("nan"), "\ud800", {1: 2}])
def test_a_request_without_json_has_no_key(native):
    with pytest.raises(InvalidDataError):
        KeyMaker("sut", {}).key(native)


@given(makers, requests, texts)
def test_an_entry_comes_back(maker, request, response):
    entry = Entry(maker.key(request), json.dumps(response, ensure_ascii=False))
    assert unpack(entry.key.digest, pack(entry)) == entry


@given(st.data())
def test_no_change_goes_unseen(data):
    entry = Entry(KeyMaker("sut", {}).key("what"), '"the answer"')
    stored = pack(entry)
    place = data.draw(st.integers(0, len(stored) - 1))
    letter = data.draw(st.sampled_from(["", " ", "0", "1", "9", "a", '"', "\n", "\x00", "٣", "\ud800"]))
    changed = stored[:place] + letter + stored[place + 1 :]
    if changed != stored:
        with pytest.raises(DamagedEntryError):
            unpack(entry.key.digest, changed)


def test_an_entry_of_another_key_is_refused():
    one, other = Entry(Key("1" * 64, "[1]"), '"a"'), KeyMaker("sut", {}).key("x")
    with pytest.raises(DamagedEntryError):
        unpack(one.key.digest, pack(one))  # its parts are not what it is the digest of
    with pytest.raises(DamagedEntryError):
        unpack(other.digest, pack(Entry(KeyMaker("sut", {}).key("y"), '"a"')))


def test_the_response_of_another_entry_is_refused():
    one, other = (Entry(KeyMaker("sut", {}).key(request), f'"{request}"') for request in "ab")
    header_and_parts, _ = pack(one).rsplit('"a"', 1)
    _, checksum_of_other, _ = pack(other).split("\n")[0].split(" ")
    _, checksum, _ = pack(one).split("\n")[0].split(" ")
    swapped = header_and_parts.replace(checksum, checksum_of_other, 1) + other.response
    with pytest.raises(DamagedEntryError):
        unpack(one.key.digest, swapped)


@pytest.mark.parametrize(
    "stored", [None, 5, b"mg1", "", "mg1", "mg1 a 5", "mg1 a " + "9" * 5000 + "\n", "mg1 a ٣\nabc"]
)
def test_other_things_are_no_entries(stored):
    with pytest.raises(DamagedEntryError):
        unpack("0" * 64, stored)

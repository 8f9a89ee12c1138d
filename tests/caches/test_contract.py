"""What every cache of responses does, wherever it keeps them."""

import json
import threading
import time

import pytest

from modelgauge.cache.explaining import explain
from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.cache.opening import copy_cache

KEYS = KeyMaker("sut", {"uid": "s"})


def entry(number, response=None):
    text = f"answer {number}" if response is None else response
    return Entry(KEYS.key({"prompt": number}), json.dumps(text))


ENTRIES = [entry(number) for number in range(1200)]
DIGESTS = [one.key.digest for one in ENTRIES]


@pytest.fixture
def open_cache(store, opened):
    """Opens the cache of this test once more."""
    return lambda: opened(store.address)


def test_what_was_put_is_there_for_everybody(open_cache):
    one, other = open_cache(), open_cache()
    one.put_many(ENTRIES)
    assert other.get_many([*DIGESTS, "f" * 64]) == {each.key.digest: each.response for each in ENTRIES}
    assert (len(other), sorted(other.entries())) == (len(ENTRIES), sorted(ENTRIES))
    assert one.get("0" * 64) is None
    assert one.stats().bytes > 0


@pytest.mark.parametrize(
    "text",
    ["\x00", "\U0001f600é\u2028", "a" * 3_000_000, "\"\\'; DROP TABLE x; --"],
    ids=["NUL", "Unicode", "long", "SQL"],
)
def test_any_text_comes_back_as_it_was(open_cache, text):
    cache = open_cache()
    raw = Entry(KEYS.key({"prompt": text.encode("utf-8").hex()[:50]}), text)
    cache.put_many([raw])
    assert open_cache().get(raw.key.digest) == text


def test_the_last_answer_of_a_key_counts(open_cache):
    cache = open_cache()
    cache.put_many([entry(1)])
    cache.put_many([entry(1, "another")])
    assert cache.get(DIGESTS[1]) == '"another"'
    assert len(cache) == 1


def test_a_key_is_leased_to_one_process(open_cache):
    one, other = open_cache(), open_cache()
    assert one.take(DIGESTS[:3]) == {}
    assert set(other.take(DIGESTS[1:5])) == set(DIGESTS[1:3])
    assert set(one.take(DIGESTS[:5])) == set(DIGESTS[3:5])
    assert all(isinstance(name, str) and name for name in one.take(DIGESTS[3:5]).values())
    one.give_back(DIGESTS[:3])
    assert set(other.take(DIGESTS[:5])) == set()


def test_putting_gives_leases_back_and_only_ones_own(open_cache):
    one, other = open_cache(), open_cache()
    one.take(DIGESTS[:2])
    other.put_many(ENTRIES[:1])
    assert set(other.take(DIGESTS[:2])) == set(DIGESTS[:2])
    one.put_many(ENTRIES[:2])
    assert other.take(DIGESTS[:2]) == {}


def test_leases_end_with_whoever_held_them(open_cache):
    one, other = open_cache(), open_cache()
    one.take(DIGESTS[:2])
    assert other.stats().shared
    one.close()
    one.leave()
    assert other.take(DIGESTS[:2]) == {}
    patience = time.monotonic() + 10  # a server notices in its own time that a client has gone
    while other.stats().shared:
        assert time.monotonic() < patience
        time.sleep(0.01)


def test_of_many_who_ask_one_gets_a_key(open_cache):
    caches, won = [open_cache() for _ in range(4)], []

    def ask(cache):
        refused = cache.take(DIGESTS[:200])
        won.extend(one for one in DIGESTS[:200] if one not in refused)
        cache.close()

    threads = [threading.Thread(target=ask, args=[cache]) for cache in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == sorted(DIGESTS[:200])


@pytest.mark.parametrize("change", ["cut", "other key", "flipped", "no text"])
def test_a_damaged_entry_is_quarantined_and_counts_as_missing(store, open_cache, change, caplog):
    cache = open_cache()
    cache.put_many(ENTRIES[:3])

    def changed(stored: bytes) -> bytes:
        match change:
            case "cut":
                return stored[:-3]
            case "other key":
                return stored.replace(b'"prompt":1', b'"prompt":7')
            case "flipped":
                return stored.replace(b"answer", b"lie...")
        return b"\xff\xfe"

    store.stored(DIGESTS[1], changed)
    assert set(cache.get_many(DIGESTS[:3])) == {DIGESTS[0], DIGESTS[2]}
    assert (cache.damaged, cache.stats().quarantined, len(cache)) == (1, 1, 2)
    assert "damaged cache entry" in caplog.text
    cache.put_many(ENTRIES[1:2])
    assert cache.get(DIGESTS[1]) == ENTRIES[1].response


def test_verify_reads_every_entry(store, open_cache):
    cache = open_cache()
    cache.put_many(ENTRIES)
    assert (cache.verify().sound, cache.verify().damaged) == (1200, 0)
    store.stored(DIGESTS[700], lambda stored: stored[:-1])
    found = cache.verify()
    assert (found.sound, found.damaged) == (1199, 1)
    assert cache.verify().damaged == 0


def test_clearing_removes_all(open_cache):
    cache = open_cache()
    cache.put_many(ENTRIES[:5])
    assert (cache.clear(), len(cache), cache.clear()) == (5, 0, 0)


def test_what_differs_is_explained(open_cache):
    cache = open_cache()
    cache.put_many(ENTRIES[:1])
    explained = explain(cache, KEYS.key({"prompt": 8}))
    assert (explained.hit, explained.nearest) == (False, DIGESTS[0])
    assert explain(cache, KEYS.key({"prompt": 0})).hit


def test_an_entry_that_an_earlier_version_redacted_is_not_read(open_cache):
    cache = open_cache()
    cache.put_many([Entry(KEYS.key({"prompt": "x"}), '"[secret a.b]"')])
    assert cache.get(KEYS.key({"prompt": "x"}).digest) is None
    assert list(cache.entries()) == []


def test_a_cache_is_copied_to_a_folder_and_back(store, open_cache, tmp_path):
    cache = open_cache()
    cache.put_many(ENTRIES)
    assert copy_cache(store.address, str(tmp_path / "folder")) == (1200, 0, 0)
    cache.clear()
    cache.put_many(ENTRIES[:100])
    assert copy_cache(str(tmp_path / "folder"), store.address) == (1100, 100, 0)
    assert sorted(cache.entries()) == sorted(ENTRIES)


def test_only_the_keys_that_are_named_are_forgotten(open_cache):
    one, other = open_cache(), open_cache()
    one.put_many(ENTRIES)
    assert one.forget([*DIGESTS[:700], "f" * 64]) == 700
    assert other.get_many(DIGESTS) == {each.key.digest: each.response for each in ENTRIES[700:]}
    assert (other.forget(DIGESTS[:700]), other.forget([]), len(other)) == (0, 0, len(ENTRIES) - 700)
    other.put_many(ENTRIES[:1])
    assert one.get(DIGESTS[0]) == ENTRIES[0].response

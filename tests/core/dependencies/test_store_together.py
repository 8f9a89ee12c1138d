"""The store with several processes at once, offline, and with many dependencies at once."""

import gzip
import re
import threading
from pathlib import Path

import pytest
from archives import sha, tar_gz

from modelgauge.dependencies.sources import LocalData, WebData
from modelgauge.dependencies.store import DependencyStore
from modelgauge.errors import (
    ChecksumError,
    DependencyError,
    DependencyMissingError,
)

# --- several at once ----------------------------------------------------------------------------------------


def test_the_loser_of_a_race_uses_the_winners(store, directory, memory):
    class Overtaken(memory):
        def fetch(self, target, progress):
            super().fetch(target, progress)
            self.winner = DependencyStore(directory).resolve("owner", "key", memory(self.content))

    data = Overtaken()
    assert store.resolve("owner", "key", data) == data.winner
    assert len(store.stored()) == 1
    assert not list(directory.rglob(".tmp-*"))


def test_many_threads_that_fetch_at_once_agree(directory, memory):
    together = threading.Barrier(4)

    class Slow(memory):
        def fetch(self, target, progress):
            together.wait(10)
            super().fetch(target, progress)

    found = []

    def resolve():
        found.append(DependencyStore(directory).resolve("owner", "key", Slow(tar_gz_content, unpack="tar")))

    tar_gz_content = tar_gz(**{f"{number}": b"x" * number for number in range(30)})
    threads = [threading.Thread(target=resolve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert len(list(found[0].path.iterdir())) == 30


# --- offline, missing, all ----------------------------------------------------------------------------------


def test_offline_says_which_file_to_put_where_and_takes_it_from_there(directory):
    raw = gzip.compress(b"text")
    data = WebData("https://example.org/data/a.jsonl.gz", sha(raw), "gzip")
    store = DependencyStore(directory, offline=True)
    with pytest.raises(DependencyMissingError) as caught:
        store.resolve("group/test?n=1", "key", data)
    message = str(caught.value)
    for part in (data.url, sha(raw), "modelgauge dependencies add --test 'group/test?n=1' key FILE"):
        assert part in message
    place = Path(re.search(r"put it at (.*?),", message)[1])
    assert place.is_relative_to(directory)
    assert place.name == "a.jsonl.gz"
    place.parent.mkdir(parents=True)
    place.write_bytes(raw)
    assert store.missing("group/test?n=1", {"key": data}) == []
    resolved = store.resolve("group/test?n=1", "key", data)
    assert resolved.path.read_bytes() == b"text"
    assert not place.exists()  # taken in
    assert store.resolve("group/test?n=1", "key", data) == resolved


def test_a_wrong_file_put_there_is_refused_and_left(directory, memory):
    data = memory(sha256=sha(b"content"))
    place = directory / "owner" / "key" / "file.txt"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"wrong")
    with pytest.raises(ChecksumError, match=re.escape(str(place))):
        DependencyStore(directory).resolve("owner", "key", data)
    assert place.read_bytes() == b"wrong"
    assert data.fetched == 0


def test_a_file_put_there_counts_before_what_is_stored(store, directory, memory):
    data = memory()
    store.resolve("owner", "key", data)
    (directory / "owner" / "key" / "file.txt").write_bytes(b"newer")
    assert store.resolve("owner", "key", data).path.read_bytes() == b"newer"
    assert store.resolve("owner", "key", data).path.read_bytes() == b"newer"


def test_all_missing_data_is_told_at_once(directory, memory):
    declared = {"one": memory(name="one.txt"), "here": memory(), "two": memory(name="two.txt")}
    DependencyStore(directory).resolve("owner", "here", declared["here"])
    store = DependencyStore(directory, offline=True)
    with pytest.raises(DependencyMissingError) as caught:
        store.resolve_all("owner", declared)
    listed = store.missing("owner", declared)
    assert len(listed) == 2
    assert all(description in str(caught.value) for description in listed)
    assert "memory one.txt" in listed[0]
    assert "memory two.txt" in listed[1]
    assert str(directory / "owner" / "two" / "two.txt") in listed[1]


def test_failures_of_several_kinds_are_told_at_once(store, tmp_path, memory):
    declared = {"gone": LocalData(tmp_path / "gone"), "wrong": memory(sha256="0" * 64), "fine": memory()}
    with pytest.raises(DependencyError) as caught:
        store.resolve_all("owner", declared)
    assert str(tmp_path / "gone") in str(caught.value)
    assert "0" * 64 in str(caught.value)
    assert declared["fine"].fetched == 1


def test_one_failure_is_told_as_it_is(store, memory):
    with pytest.raises(ChecksumError):
        store.resolve_all("owner", {"fine": memory(), "wrong": memory(sha256="0" * 64)})


def test_all_are_resolved_by_key(store, memory):
    resolved = store.resolve_all("owner", {"one": memory(b"1"), "two": memory(b"2")})
    assert {key: item.path.read_bytes() for key, item in resolved.items()} == {"one": b"1", "two": b"2"}
    assert store.missing("owner", {"one": memory(b"1"), "two": memory(b"2")}) == []
    assert store.resolve_all("owner", {}) == {}

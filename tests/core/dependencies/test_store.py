"""The store, seen from the engine: what it fetches, what it keeps, and what it tells of failures."""

import errno
import gzip
import json
import os
import re
import shutil
import sys
import time

import pytest
from archives import files_in, sha, tar_gz

from modelgauge.dependencies.safety import DownloadLimits
from modelgauge.dependencies.sources import LocalData, WebData
from modelgauge.dependencies.store import DependencyStore
from modelgauge.errors import (
    ChecksumError,
    DefinitionError,
    DependencyError,
    DependencyMissingError,
    DownloadError,
    UnsafeArchiveError,
)

# --- fetching -----------------------------------------------------------------------------------------------


def test_data_is_fetched_once_and_kept(store, directory, memory):
    data = memory()
    first = store.resolve("owner", "key", data)
    assert first.key == "key"
    assert first.version == sha(b"content")
    assert first.path.name == "file.txt"
    assert first.path.read_bytes() == b"content"
    assert DependencyStore(directory, offline=True).resolve("owner", "key", data) == first
    assert data.fetched == 1
    assert files_in(directory) == {
        f"owner/key/{first.version[:16]}/{rest}" for rest in ("manifest.json", "data/file.txt")
    }


def test_a_download_ends_in_the_store(store, server, answer_body):
    raw = gzip.compress(b"text")
    url = server.serve("/questions.jsonl.gz", answer_body(raw))
    resolved = store.resolve("gsm8k", "questions", WebData(url, sha(raw), "gzip"))
    assert resolved.version == sha(raw)
    assert resolved.path.name == "questions.jsonl"
    assert resolved.path.read_bytes() == b"text"
    assert len(server.requests) == 1


def test_archives_become_folders(store, memory):
    raw = tar_gz(a=b"1", b=b"2")
    resolved = store.resolve("owner", "key", memory(raw, unpack="tar"))
    assert {path.name: path.read_bytes() for path in resolved.path.iterdir()} == {"a": b"1", "b": b"2"}
    assert resolved.version == sha(raw)


@pytest.mark.parametrize("status", [404, 403])
def test_a_failed_download_says_how_to_hand_the_file_over(store, directory, server, answer_body, status):
    url = server.serve("/a.csv", answer_body(b"", status=status))
    with pytest.raises(DownloadError, match=str(status)) as caught:
        store.resolve("my test", "key", WebData(url))
    message = str(caught.value)
    assert url in message
    assert "modelgauge dependencies add --test 'my test' key FILE" in message
    assert re.search(r"put it at \S*a\.csv", message)
    assert files_in(directory) == set()


def test_a_short_body_leaves_nothing(store, directory, server, answer_body):
    url = server.serve("/a.csv", answer_body(b"half", announced=8))
    with pytest.raises(DownloadError, match="announced 8 bytes and sent 4"):
        store.resolve("owner", "key", WebData(url, download_limits=DownloadLimits(backoff=0)))
    assert [path.name for path in directory.rglob("*")] == ["owner", "key"]


def test_a_wrong_checksum_names_both_and_leaves_nothing(store, directory, server, answer_body):
    url = server.serve("/a.csv", answer_body(b"other"))
    with pytest.raises(ChecksumError) as caught:
        store.resolve("owner", "key", WebData(url, sha(b"expected")))
    assert sha(b"other") in str(caught.value)
    assert sha(b"expected") in str(caught.value)
    assert [path.name for path in directory.rglob("*")] == ["owner", "key"]


def test_a_hostile_archive_leaves_nothing(store, directory, memory):
    data = memory(tar_gz(**{"fine": b"1", "../../outside": b"2"}), unpack="tar")
    with pytest.raises(
        UnsafeArchiveError, match=r"'key' of 'owner' \(memory file.txt\): member '../../outside'"
    ):
        store.resolve("owner", "key", data)
    assert [path.name for path in directory.rglob("*")] == ["owner", "key"]
    assert [path.name for path in directory.parent.iterdir()] == ["dependencies"]


def test_a_truncated_archive_is_never_taken_for_whole_later(store, directory, memory):
    data = memory(tar_gz(a=b"1" * 1000, b=b"2")[:-20], unpack="tar")
    for _ in range(2):
        with pytest.raises(UnsafeArchiveError, match="truncated"):
            store.resolve("owner", "key", data)
    with pytest.raises(DependencyMissingError):
        DependencyStore(directory, offline=True).resolve("owner", "key", data)


def test_what_an_authors_fetch_raises_becomes_one_error(store, directory, memory):
    class Broken(memory):
        def fetch(self, target, progress):
            target.write_bytes(b"part")
            raise KeyError("token")

    with pytest.raises(DownloadError, match="'key' of 'owner' could not be fetched: KeyError: 'token'"):
        store.resolve("owner", "key", Broken())
    assert files_in(directory) == set()


def test_a_fetch_that_writes_nothing_is_named(store, memory):
    class Idle(memory):
        def fetch(self, target, progress):
            """Forgets to write."""

    with pytest.raises(DependencyError, match=r"Idle\.fetch` wrote no file"):
        store.resolve("owner", "key", Idle())


def test_a_progress_bar_is_shown_only_when_asked_for_and_on_a_terminal(
    directory, capsys, memory, monkeypatch
):
    DependencyStore(directory, progress=True).resolve("owner", "piped", memory())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    DependencyStore(directory).resolve("owner", "quiet", memory())
    assert capsys.readouterr().err == ""
    DependencyStore(directory, progress=True).resolve("owner", "loud", memory())
    captured = capsys.readouterr()
    assert "Dependency 'loud' of 'owner'" in captured.err
    assert captured.out == ""


def test_a_full_disk_is_a_clear_error(store, directory, memory):
    class Full(memory):
        def fetch(self, target, progress):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DownloadError, match="No space left"):
        store.resolve("owner", "key", Full())
    directory.joinpath("other").write_text("a file where a folder must be", encoding="utf-8")
    with pytest.raises(DownloadError, match="Check the disk"):
        store.resolve("other", "key", memory())


def test_what_is_no_declaration_is_refused(store):
    with pytest.raises(DefinitionError, match="Declare a WebData"):
        store.resolve("owner", "key", "https://example.org/a")


def test_an_authors_file_name_cannot_leave_the_store(store, directory, memory):
    resolved = store.resolve("owner", "key", memory(name="../../outside.txt"))
    assert resolved.path.is_relative_to(directory / "owner" / "key")
    assert [path.name for path in directory.parent.iterdir()] == ["dependencies"]


# --- what is there ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unpack", [None, "tar"])
def test_changed_data_is_noticed(store, unpack, memory):
    data = memory(tar_gz(a=b"1"), unpack=unpack)
    path = store.resolve("owner", "key", data).path
    (path / "a" if unpack else path).write_bytes(b"edited")
    with pytest.raises(ChecksumError, match="was changed since it was stored") as caught:
        store.resolve("owner", "key", data)
    assert "Delete the folder" in str(caught.value)


def test_a_new_source_is_fetched_and_the_old_one_stays(store, memory):
    old, new = memory(b"old", name="old.txt"), memory(b"new", name="new.txt")
    store.resolve("owner", "key", old)
    assert store.resolve("owner", "key", new).version == sha(b"new")
    assert store.resolve("owner", "key", old).version == sha(b"old")
    assert (old.fetched, new.fetched) == (1, 1)


def test_the_same_content_from_another_source_is_known_to_come_from_both(store, directory, memory):
    sources = [memory(name="one.txt"), memory(name="two.txt")]
    for data in sources * 2:
        store.resolve("owner", "key", data)
    assert [data.fetched for data in sources] == [1, 1]
    assert [one.manifest.sources for one in store.stored()] == [("memory one.txt", "memory two.txt")]


def test_the_declared_data_is_known_although_an_override_with_its_content_was_first(
    directory, tmp_path, memory
):
    data = memory(tar_gz(a=b"1"), unpack="tar")
    (tmp_path / "mine").write_bytes(data.content)
    DependencyStore(directory, overrides={"key": tmp_path / "mine"}).resolve("owner", "key", data)
    for _ in range(2):
        DependencyStore(directory).resolve("owner", "key", data)
    assert data.fetched == 1


def test_a_local_file_that_changes_while_it_is_read_is_noticed(store, tmp_path, monkeypatch):
    archive = tmp_path / "a.tar"
    archive.write_bytes(tar_gz(a=b"1"))
    copyfile = shutil.copyfile

    def slow_copyfile(source, target):
        archive.write_bytes(tar_gz(a=b"2"))
        return copyfile(source, target)

    monkeypatch.setattr("shutil.copyfile", slow_copyfile)
    with pytest.raises(ChecksumError, match="changed while it was read"):
        store.resolve("owner", "key", LocalData(archive, unpack="tar"))


def test_a_new_checksum_is_fetched_anew(store, memory):
    store.resolve("owner", "key", memory(b"old", sha256=sha(b"old")))
    assert store.resolve("owner", "key", memory(b"new", sha256=sha(b"new"))).version == sha(b"new")


def test_other_steps_are_done_anew(store, memory):
    raw = gzip.compress(b"text")
    assert store.resolve("owner", "key", memory(raw)).path.read_bytes() == raw
    assert store.resolve("owner", "key", memory(raw, decompress="gzip")).path.read_bytes() == b"text"


def test_owners_that_look_alike_to_a_file_system_stay_apart(store, memory):
    owners = ["a/b", "a?b", "A/B", "a-b", "..", "a/../b", "nul", "x" * 300]
    paths = {owner: store.resolve(owner, "key", memory(owner.encode())).path for owner in owners}
    assert {owner: path.read_bytes().decode() for owner, path in paths.items()} == {
        owner: owner for owner in owners
    }
    assert len({str(path).casefold() for path in paths.values()}) == len(owners)


def test_a_folder_left_by_a_killed_process_counts_for_nothing(store, directory, memory):
    data = memory()
    version = sha(b"content")
    for left in (".tmp-abc/whole", ".tmp-abc/raw"):
        (directory / "owner" / "key" / left / "data").mkdir(parents=True)
        (directory / "owner" / "key" / left / "data" / "file.txt").write_bytes(b"con")
    assert store.stored() == []
    with pytest.raises(DependencyMissingError):
        DependencyStore(directory, offline=True).resolve("owner", "key", data)
    assert store.resolve("owner", "key", data).version == version


def test_old_leftovers_are_removed_and_young_ones_are_not(store, directory, memory):
    left = {name: directory / "owner" / "key" / name for name in (".tmp-old", ".tmp-young")}
    for folder in left.values():
        folder.mkdir(parents=True)
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(left[".tmp-old"], (two_days_ago, two_days_ago))
    store.resolve("owner", "key", memory())
    assert not left[".tmp-old"].exists()
    assert left[".tmp-young"].exists()


@pytest.mark.parametrize(
    "manifest", [None, "", "{", "[]", "{}", '{"schema_version": 2}', '{"schema_version": 1}', "\0"]
)
def test_a_folder_without_a_sound_manifest_is_not_whole(store, directory, manifest, memory):
    folder = directory / "owner" / "key" / sha(b"content")[:16]
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "file.txt").write_bytes(b"cont")
    if manifest is not None:
        (folder / "manifest.json").write_text(manifest, encoding="utf-8")
    assert store.missing("owner", {"key": memory()}) != []
    with pytest.raises(DependencyError, match="is not whole") as caught:
        store.resolve("owner", "key", memory())
    assert f"{folder}" in str(caught.value)


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd", "..", "a\\b", 5])
def test_a_manifest_that_points_elsewhere_is_not_sound(store, directory, name, memory):
    store.resolve("owner", "key", memory())
    manifest = next(directory.rglob("manifest.json"))
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(json.dumps({**json.loads(text), "name": name}), encoding="utf-8")
    assert store.stored() == []


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2}, {"owner": "another"}, {"owner": 1}, {"key": "another"}, {"version": "0" * 64},
        {"version": None}, {"content": 5}, {"sources": [1]}, {"sources": 5}, {"steps": ["gzip"]}, {"size": "7"},
        {"name": ""}, {"name": "nul"}, {"name": 5}, {"name": "another.txt"}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_manifest_with_one_wrong_field_counts_for_nothing(store, directory, change, memory):
    data = memory(sha256=sha(b"content"))
    stored = store.resolve("owner", "key", data)
    manifest = next(directory.rglob("manifest.json"))
    manifest.write_text(
        json.dumps({**json.loads(manifest.read_text(encoding="utf-8")), **change}), encoding="utf-8"
    )
    with pytest.raises(DependencyMissingError):
        DependencyStore(directory, offline=True).resolve("owner", "key", data)
    assert stored.path.exists()


@pytest.mark.parametrize("last", [b"1", b"2", b"3"])
def test_of_several_versions_of_a_source_the_one_stored_last_is_used(store, directory, memory, last):
    for content in (b"1", b"2", b"3"):
        path = store.resolve("owner", "key", memory(content, sha256=sha(content))).path
        stored_at = 2e9 if content == last else 1e9
        os.utime(path.parent.parent / "manifest.json", (stored_at, stored_at))
    used = DependencyStore(directory, offline=True).resolve("owner", "key", memory(b"?"))
    assert used.version == sha(last)
    assert [one.manifest.version for one in store.stored()] == sorted(sha(one) for one in (b"1", b"2", b"3"))

"""What the user of the command line chooses: pins, overrides, files added by hand; and local data."""

import contextlib
import gzip
import re

import pytest
from archives import files_in, sha, tar_gz

from modelgauge.dependencies.request import take_copy
from modelgauge.dependencies.sources import LocalData, PackageData, WebData
from modelgauge.dependencies.store import DependencyStore
from modelgauge.errors import (
    ChecksumError,
    DependencyMissingError,
    DownloadError,
    InputFileError,
    InvalidOptionError,
    UnknownNameError,
    UnsafeArchiveError,
)

# --- pins ---------------------------------------------------------------------------------------------------


def test_a_pin_that_fits_is_kept(directory, memory):
    store = DependencyStore(directory, pins={"key": sha(b"content").upper()})
    assert store.resolve("owner", "key", memory()).version == sha(b"content")


def test_a_pin_chooses_among_stored_versions(store, directory, memory):
    store.resolve("owner", "key", memory(b"old", name="old.txt"))
    store.resolve("owner", "key", memory(b"new"))
    pinned = DependencyStore(directory, offline=True, pins={"owner:key": sha(b"old")})
    assert pinned.resolve("owner", "key", memory(b"new")).path.read_bytes() == b"old"


@pytest.mark.parametrize("place", ["fetched", "in place", "override", "declared", "added"])
def test_a_pin_that_does_not_fit_names_both(directory, tmp_path, place, memory):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    overrides = {"key": file} if place == "override" else {}
    store = DependencyStore(directory, pins={"key": "1" * 64}, overrides=overrides)
    declared = memory(sha256=sha(b"content") if place == "declared" else None)
    data = LocalData(file) if place == "in place" else declared
    with pytest.raises(ChecksumError) as caught:
        store.add("owner", "key", data, file) if place == "added" else store.resolve("owner", "key", data)
    assert "1" * 64 in str(caught.value)
    assert sha(b"content") in str(caught.value)


def test_what_is_no_version_cannot_be_pinned(directory):
    with pytest.raises(InvalidOptionError, match="'v1'"):
        DependencyStore(directory, pins={"key": "v1"})


# --- local data and overrides -------------------------------------------------------------------------------


def test_local_data_is_read_where_it_lies(store, directory, tmp_path, monkeypatch):
    (tmp_path / "local.txt").write_bytes(b"1")
    resolved = store.resolve("owner", "key", LocalData(tmp_path / "local.txt"))
    assert (resolved.path, resolved.version) == (tmp_path / "local.txt", sha(b"1"))
    assert not directory.exists()
    monkeypatch.chdir(tmp_path)
    assert store.resolve("owner", "key", LocalData("local.txt")) == resolved
    (tmp_path / "local.txt").write_bytes(b"2")
    assert store.resolve("owner", "key", LocalData("local.txt")).version == sha(b"2")
    with pytest.raises(ChecksumError):
        store.resolve("owner", "key", LocalData("local.txt", sha(b"1")))


def test_local_archives_are_unpacked_anew_when_they_change(store, tmp_path):
    archive = tmp_path / "a.tar.gz"
    for content in (b"1", b"2"):
        archive.write_bytes(tar_gz(a=content))
        resolved = store.resolve("owner", "key", LocalData(archive, unpack="tar"))
        assert (resolved.path / "a").read_bytes() == content
        assert resolved.version == sha(archive.read_bytes())


def test_a_folders_version_is_of_its_names_and_contents(store, tmp_path):
    def version(**files):
        folder = tmp_path / f"folder{len(list(tmp_path.iterdir()))}"
        for name, content in files.items():
            path = folder / name.replace("_", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return store.resolve("owner", "key", LocalData(folder)).version

    assert version(a=b"1", b_c=b"2") == version(b_c=b"2", a=b"1")
    others = [
        version(a=b"1", b_c=b"2"),
        version(a=b"2", b_c=b"1"),
        version(a=b"1", b_d=b"2"),
        version(a=b"1", bc=b"2"),
    ]
    assert len(set(others)) == 4
    assert all(re.fullmatch("[0-9a-f]{64}", other) for other in others)


def test_missing_local_data_is_named(store, tmp_path):
    with pytest.raises(DependencyMissingError, match=r"gone\.txt") as caught:
        store.resolve("owner", "key", LocalData(tmp_path / "gone.txt"))
    assert store.missing("owner", {"key": LocalData(tmp_path / "gone.txt")}) == [str(caught.value)]
    assert "--dependency key=FILE" in str(caught.value)


def test_a_folder_cannot_be_unpacked(store, tmp_path):
    with pytest.raises(DependencyMissingError, match="is a folder, not a file to unpack"):
        store.resolve("owner", "key", LocalData(tmp_path, unpack="zip"))


def test_an_override_replaces_the_source_without_its_checksum(directory, tmp_path, memory):
    file = tmp_path / "mine.jsonl"
    file.write_bytes(b"mine")
    data = memory(sha256=sha(b"content"), decompress="gzip")
    store = DependencyStore(directory, overrides={"key": file}, offline=True)
    assert store.missing("owner", {"key": data}) == []
    resolved = store.resolve("owner", "key", data)
    assert (resolved.path, resolved.version) == (file, sha(b"mine"))
    assert data.fetched == 0


def test_an_override_is_unpacked_as_far_as_it_needs(directory, tmp_path, memory):
    data = memory(unpack="zip")
    (tmp_path / "a.tar.gz").write_bytes(tar_gz(a=b"1"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_bytes(b"2")
    packed = DependencyStore(directory, overrides={"key": tmp_path / "a.tar.gz"}).resolve(
        "owner", "key", data
    )
    assert (packed.path / "a").read_bytes() == b"1"
    folder = DependencyStore(directory, overrides={"key": tmp_path / "folder"}).resolve("owner", "key", data)
    assert folder.path == tmp_path / "folder"


def test_an_override_is_not_taken_for_the_declared_data_later(directory, tmp_path, memory):
    data = memory(gzip.compress(b"real"), decompress="gzip")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"mine"))
    DependencyStore(directory, overrides={"key": tmp_path / "a.gz"}).resolve("owner", "key", data)
    assert DependencyStore(directory).resolve("owner", "key", data).path.read_bytes() == b"real"


@pytest.mark.parametrize(
    ("options", "given", "reason"),
    [
        ({}, "gone", "not there"),
        ({}, "folder", "is one file"),
        ({"unpack": "tar"}, "text", "neither an archive nor a folder"),
    ],
)
def test_an_override_that_cannot_be_right_is_refused(directory, tmp_path, options, given, reason, memory):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_bytes(b"text")
    store = DependencyStore(directory, overrides={"key": tmp_path / given})
    with pytest.raises(InputFileError, match=reason) as caught:
        store.resolve_all("owner", {"key": memory(**options)})
    assert store.missing("owner", {"key": memory(**options)}) == [str(caught.value)]


def test_an_override_can_be_for_one_test_alone(directory, tmp_path, memory):
    (tmp_path / "mine").write_bytes(b"mine")
    store = DependencyStore(directory, overrides={"one:key": tmp_path / "mine"})
    assert store.resolve("one", "key", memory()).version == sha(b"mine")
    assert store.resolve("two", "key", memory()).version == sha(b"content")


def test_names_that_no_test_declares_are_refused_with_the_known_ones(directory, tmp_path):
    declared = {"one": ["task", "prompt"], "two": ["questions"]}
    good = {"task": tmp_path, "two:questions": tmp_path}
    DependencyStore(directory, overrides=good, pins={"prompt": "0" * 64}).check_names(declared)
    for options in ({"overrides": {"promt": tmp_path}}, {"pins": {"promt": "0" * 64}}):
        with pytest.raises(UnknownNameError, match="Did you mean 'prompt'") as caught:
            DependencyStore(directory, **options).check_names(declared)
        assert "prompt, questions, task" in str(caught.value)
    with pytest.raises(UnknownNameError, match="No dependencies are declared"):
        DependencyStore(directory, overrides={"two:task": tmp_path}).check_names({"two": []})


# --- add and list -------------------------------------------------------------------------------------------


def test_an_added_file_stands_for_the_fetched_one(store, directory, tmp_path):
    file = tmp_path / "downloaded elsewhere.gz"
    file.write_bytes(gzip.compress(b"text"))
    data = WebData("https://example.org/a.txt.gz", None, "gzip")
    added = store.add("owner", "key", data, file)
    assert added.path.name == "a.txt"
    assert added.path.read_bytes() == b"text"
    assert DependencyStore(directory, offline=True).resolve("owner", "key", data) == added
    assert file.exists()


def test_the_file_added_last_counts(store, tmp_path, memory):
    data = memory()
    for content in (b"1", b"2", b"1"):
        (tmp_path / "file").write_bytes(content)
        store.add("owner", "key", data, tmp_path / "file")
        assert store.resolve("owner", "key", data).path.read_bytes() == content


def test_what_cannot_be_added_is_refused(store, directory, tmp_path, memory):
    (tmp_path / "wrong").write_bytes(b"wrong")
    with pytest.raises(ChecksumError):
        store.add("owner", "key", memory(sha256=sha(b"content")), tmp_path / "wrong")
    with pytest.raises(UnsafeArchiveError):
        store.add("owner", "key", memory(unpack="tar"), tmp_path / "wrong")
    for absent in ("gone", "."):
        with pytest.raises(InputFileError, match="is not a file"):
            store.add("owner", "key", memory(), tmp_path / absent)
    with pytest.raises(InputFileError, match="never stored"):
        store.add("owner", "key", LocalData(tmp_path / "wrong"), tmp_path / "wrong")
    assert files_in(directory) == set()


def test_the_stored_versions_are_listed(store, directory, memory):
    assert store.stored() == []
    store.resolve("z/test", "key", memory(tar_gz(a=b"123", b=b"45"), unpack="tar"))
    store.resolve("a", "key", memory(b"1"))
    (directory / "stray.txt").write_text("not ours", encoding="utf-8")
    first, second = store.stored()
    one = first.manifest
    assert (one.owner, one.key, one.version, one.size) == ("a", "key", sha(b"1"), 1)
    assert first.path.read_bytes() == b"1"
    two = second.manifest
    assert (two.owner, two.size, two.sources) == ("z/test", 5, ("memory file.txt",))
    assert second.path.is_dir()


def test_an_interrupt_leaves_nothing_half_done(store, directory, memory):
    class Interrupted(memory):
        def fetch(self, target, progress):
            target.write_bytes(b"half")
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        store.resolve("owner", "key", Interrupted())
    assert [path.name for path in directory.rglob("*")] == ["owner", "key"]


def test_a_package_that_is_not_installed_is_told_missing_and_a_folder_stands_for_it(directory, tmp_path):
    data = {"key": PackageData("no_such_package", "data")}
    (missing,) = DependencyStore(directory).missing("owner", data)
    assert missing.startswith("Dependency 'key' of 'owner': 'package no_such_package: data' cannot be read")
    assert "Install the distribution that holds 'no_such_package'" in missing
    (tmp_path / "folder").mkdir()
    store = DependencyStore(directory, overrides={"key": tmp_path / "folder"})
    assert store.missing("owner", data) == []
    assert store.resolve_all("owner", data)["key"].path == tmp_path / "folder"


def test_what_is_missing_says_which_version_is_wanted(directory, memory):
    store = DependencyStore(directory, pins={"pinned": "2" * 64})
    told = store.missing("owner", {"a": memory(sha256="1" * 64), "pinned": memory(), "any": memory()})
    assert [re.findall(r"is not on this machine(.*?)\. Get it", one) for one in told] == [
        [f" (SHA-256 {'1' * 64})"], [f" (SHA-256 {'2' * 64})"], [""],
    ]  # fmt: skip


def test_a_folder_may_stand_for_local_data_that_is_a_folder_or_is_not_there(directory, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "file").touch()
    store = DependencyStore(directory, overrides={"key": tmp_path / "mine"})
    for local in ("theirs", "absent"):
        assert store.resolve("owner", "key", LocalData(tmp_path / local)).path == tmp_path / "mine"
    with pytest.raises(InputFileError, match="is one file"):
        store.resolve("owner", "key", LocalData(tmp_path / "file"))


def test_a_folder_that_cannot_be_read_is_told(store, tmp_path, monkeypatch):
    def denied(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    (tmp_path / "data").mkdir()
    monkeypatch.setattr("os.scandir", denied)
    with pytest.raises(DownloadError, match="Permission denied"):
        store.resolve("owner", "key", LocalData(tmp_path / "data"))


def test_an_error_of_ours_in_an_authors_fetch_passes_as_it_is(store, memory):
    class Needy(memory):
        def fetch(self, target, progress):
            raise InputFileError("There is no list.", fix="Make one.")

    with pytest.raises(InputFileError, match=r"^There is no list\. Make one\.$"):
        store.resolve("owner", "key", Needy())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_file_put_there_by_hand_may_be_taken_in_by_another_process_meanwhile(
    store, directory, memory, monkeypatch, when
):
    def meanwhile(request, file):
        stored = take_copy(request, file)
        file.unlink()
        return take_copy(request, file) if when == "before" else stored

    drop = directory / "owner" / "key" / "file.txt"
    drop.parent.mkdir(parents=True)
    drop.write_bytes(b"by hand")
    monkeypatch.setattr("modelgauge.dependencies.store.take_copy", meanwhile)
    data = memory()
    assert store.resolve("owner", "key", data).path.read_bytes() == b"by hand"
    assert (data.fetched, drop.exists()) == (0, False)

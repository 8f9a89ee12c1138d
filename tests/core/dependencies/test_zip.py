"""Zip archives: what Python's writer makes is read back; what is hostile or damaged is refused."""

import contextlib
import re
import stat
import struct
import tempfile
import zipfile
from functools import partial
from pathlib import Path

import archives
import pytest
from archives import entry, zip_of
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgauge.dependencies.unpack import UnpackSteps
from modelgauge.errors import UnsafeArchiveError

ZIP = UnpackSteps(unpack="zip")
unpack = partial(archives.unpack, steps=ZIP)
refusal = partial(archives.refusal, steps=ZIP)


@pytest.fixture(autouse=True)
def whatever_comes(nothing_outside):
    """Hostile or not: nothing but the archive and its folder is there after any test."""


def changed(raw, signature, offset, form, value):
    """The archive with one field changed in every header of a kind."""
    out, start = bytearray(raw), 0
    while (start := raw.find(signature, start)) >= 0:
        struct.pack_into(form, out, start + offset, value)
        start += 1
    return bytes(out)


LOCAL, CENTRAL, DIRECTORY_END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


@settings(max_examples=30)
@given(st.dictionaries(st.text("abcé_0", min_size=1, max_size=6), st.binary(max_size=300), max_size=5))
def test_what_the_standard_library_writes_is_read_back(files):
    with tempfile.TemporaryDirectory() as parent:
        assert unpack(zip_of(*files.items()), Path(parent) / "out") == files


def test_folders_and_stored_members_are_read(folder):
    stored = entry("a/stored.bin", method=zipfile.ZIP_STORED)
    raw = zip_of(("a/", b""), (stored, b"s" * 100_000), (entry("file", mode=stat.S_IFREG | 0o4755), b"f"))
    assert unpack(raw, folder) == {"a/stored.bin": b"s" * 100_000, "file": b"f"}
    assert (folder / "file").stat().st_mode & 0o7111 == 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/absolute", "absolute path"),
        ("../outside", "climbs"),
        ("C:/outside", "colon"),
        ("..\\outside", "backslash"),
        ("safe.txt\0.exe", "control character"),
        ("LPT1", "reserves"),
        ("a\n", "control"),
    ],
)
def test_members_that_would_leave_are_refused_by_name(folder, name, reason):
    message = refusal(zip_of(("first", b"1"), (name, b"2")), folder)
    assert re.search(reason, message)
    assert repr(name) in message


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFBLK, stat.S_IFCHR, stat.S_IFSOCK])
def test_links_and_devices_are_refused(folder, kind):
    assert re.search(
        "'odd' is a .*only plain files",
        refusal(zip_of((entry("odd", mode=kind | 0o777), b"/etc/passwd")), folder),
    )


@pytest.mark.parametrize(("first", "second"), [("a", "A"), ("é", "e\u0301"), ("a", "a/b"), ("a/b", "A/c")])
def test_two_members_for_one_place_are_refused(folder, first, second):
    assert "takes the place of" in refusal(zip_of((first, b"1"), (second, b"2")), folder)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_one_name_twice_is_refused(folder):
    assert "takes the place of" in refusal(zip_of(("a", b"1"), ("a", b"2")), folder)


def test_encrypted_members_are_refused(folder):
    raw = changed(changed(zip_of(("a", b"1")), LOCAL, 6, "<H", 1), CENTRAL, 8, "<H", 1)
    assert "encrypted" in refusal(raw, folder)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_expand_without_bound_are_refused(folder, method):
    assert re.search(f"method {method}", refusal(zip_of((entry("a", method=method), b"1")), folder))


def test_a_wrong_crc_is_noticed(folder):
    raw = changed(zip_of(("a", b"content")), CENTRAL, 16, "<I", 12345)
    assert re.search("'a' is damaged .*CRC", refusal(raw, folder))


@pytest.mark.parametrize("claimed", [3, 7_000_000])
def test_sizes_that_lie_are_noticed(folder, claimed):
    raw = changed(changed(zip_of(("a", b"content")), CENTRAL, 24, "<I", claimed), LOCAL, 22, "<I", claimed)
    assert re.search("'a' is .*(damaged|shorter than it says)", refusal(raw, folder))


def test_overlapping_members_are_refused(folder):
    raw = zip_of(("a", b"1" * 1000), ("b", b"2" * 1000))
    assert "overlaps another" in refusal(changed(raw, CENTRAL, 42, "<I", 0), folder)


def test_a_member_that_runs_into_the_directory_is_refused(folder):
    raw = zip_of((entry("a", method=zipfile.ZIP_STORED), b"1" * 100))
    assert "overlaps" in refusal(changed(raw, CENTRAL, 20, "<I", 140), folder)


def test_folders_with_content_are_refused(folder):
    raw = zip_of(("abc", b"content")).replace(b"abc", b"ab/")
    assert "claims to have content" in refusal(raw, folder)


def test_too_many_members_are_refused(folder):
    assert "max_members" in refusal(zip_of(*((f"{n}", b"") for n in range(4))), folder, max_members=3)


def test_a_large_member_is_refused_before_anything_is_written(folder):
    assert "'large' is larger" in refusal(
        zip_of(("small", b""), ("large", b"x" * 2000)), folder, max_member_bytes=1000
    )
    assert list(folder.iterdir()) == []


def test_the_sum_of_members_is_limited(folder):
    assert "max_bytes" in refusal(
        zip_of(*((f"{n}", b"x" * 900) for n in range(20))), folder, max_bytes=10_000
    )


def test_a_decompression_bomb_is_stopped_early(folder, monkeypatch):
    monkeypatch.setattr("modelgauge.dependencies.safety._RATIO_GRACE_BYTES", 1 << 20)
    assert "more than 100 times its size" in refusal(zip_of(("bomb", bytes(20 << 20))), folder, max_ratio=100)
    assert (folder / "bomb").stat().st_size <= 4 << 20


def test_a_huge_directory_is_refused_unread(folder):
    raw = bytes(3 << 20) + zip_of(("a", b""))
    assert "directory of 2,097,152 bytes" in refusal(
        changed(raw, DIRECTORY_END, 12, "<I", 2 << 20), folder, max_members=10
    )


def test_every_truncation_is_noticed(folder):
    raw = zip_of(("a", b"x" * 100), ("b", b"yz"))
    for cut in range(len(raw)):
        with pytest.raises(UnsafeArchiveError):
            unpack(raw[:cut], folder)
        folder.rmdir()
    assert unpack(raw, folder) == {"a": b"x" * 100, "b": b"yz"}


def test_what_is_no_zip_is_refused(folder):
    assert "not a zip archive" in refusal(b"<!DOCTYPE html>" * 10, folder)


@settings(max_examples=80)
@given(st.data())
def test_no_damage_does_anything_but_unpack_or_be_refused(data):
    raw = bytearray(zip_of(("a/b", b"x" * 60), ("ä", bytes(range(100)))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as parent:
        with contextlib.suppress(UnsafeArchiveError):
            unpack(bytes(raw), Path(parent) / "out", max_bytes=1 << 20)
        assert {path.name for path in Path(parent).iterdir()} == {"out", "text"}

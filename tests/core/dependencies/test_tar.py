"""Tar archives: what Python's and GNU's writers make is read back; what is hostile or damaged is refused."""

import contextlib
import gzip
import io
import re
import tarfile
import tempfile
import tracemalloc
from functools import partial
from pathlib import Path

import archives
import pytest
from archives import member, tar_of
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgauge.dependencies.safety import Guard, UnpackLimits
from modelgauge.dependencies.unpack import UnpackSteps
from modelgauge.errors import UnsafeArchiveError

TAR = UnpackSteps(unpack="tar")
unpack = partial(archives.unpack, steps=TAR)
refusal = partial(archives.refusal, steps=TAR)

END = bytes(1024)
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def block(name=b"file", size=b"00000000000\0", kind=b"0", magic=b"ustar\x0000", prefix=b""):
    """One header by hand, with a right checksum."""
    head = (
        name.ljust(100, b"\0")
        + b"0000644\0"
        + bytes(16)
        + size.ljust(12, b"\0")
        + b"00000000000\0"
        + b" " * 8
    )
    head = (head + kind + bytes(100) + magic).ljust(345, b"\0") + prefix.ljust(155, b"\0")
    head = head.ljust(512, b"\0")
    return head[:148] + b"%06o\0 " % sum(head) + head[156:]


def padded(body):
    return body + bytes(-len(body) % 512)


def octal(number):
    return b"%011o\0" % number


def pax(*records, kind=b"x"):
    body = b""
    for keyword, value in records:
        rest = b" %s=%s\n" % (keyword, value)
        length = len(rest)
        while len(b"%d" % length) + len(rest) != length:
            length = len(b"%d" % length) + len(rest)
        body += b"%d" % length + rest
    return block(b"pax", octal(len(body)), kind) + padded(body)


@pytest.fixture(autouse=True)
def whatever_comes(nothing_outside):
    """Hostile or not: nothing but the archive and its folder is there after any test."""


# --- sound archives -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_all_formats_are_read(folder, form, compress):
    name = "deep/" * 20 + "name-" * 10 + ".txt"
    members = [
        member("./", kind=tarfile.DIRTYPE),
        member("./a/b.txt", b"B"),
        member(name, b"x" * 5000),
        member("empty"),
    ]
    assert unpack(compress(tar_of(*members, form=form)), folder) == {
        "a/b.txt": b"B",
        name: b"x" * 5000,
        "empty": b"",
    }


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_beyond_ustar_are_read(folder, form):
    name = "ä" * 60 + "/" + "b" * 120
    assert unpack(tar_of(member(name, b"1"), form=form), folder) == {name: b"1"}


names = st.lists(
    st.text("abcé_0", min_size=1, max_size=3).map(lambda part: f"{part}!"), min_size=1, max_size=3
)


@settings(max_examples=30)
@given(
    st.dictionaries(
        names.map("/".join).map(lambda name: f"{name}.txt"), st.binary(max_size=1500), max_size=5
    ),
    st.sampled_from(FORMATS[1:]),
)
def test_what_the_standard_library_writes_is_read_back(files, form):
    raw = tar_of(*(member(name, content) for name, content in files.items()), form=form)
    with tempfile.TemporaryDirectory() as parent:
        assert unpack(raw, Path(parent) / "out") == files


def test_gnu_binary_sizes_old_v7_headers_and_prefixes_are_read(folder):
    raw = block(b"binary", b"\x80" + (3).to_bytes(11, "big")) + padded(b"abc")
    raw += (
        block(b"v7/", kind=b"\0", magic=b"")
        + block(b"v7/file", octal(1), kind=b"\0", magic=b"")
        + padded(b"7")
    )
    raw += block(b"file", octal(1), prefix=b"prefix") + padded(b"p")
    assert unpack(raw + END, folder) == {"binary": b"abc", "v7/file": b"7", "prefix/file": b"p"}


def test_pax_overrides_path_and_size_and_other_metadata_is_ignored(folder):
    comment = pax((b"comment", b"of git archive"), kind=b"g")
    renamed = (
        pax((b"path", "ä.txt".encode()), (b"size", b"2"), (b"mtime", b"1.5"))
        + block(size=octal(0))
        + padded(b"ab")
    )
    assert unpack(comment + renamed + END, folder) == {"ä.txt": b"ab"}


def test_modes_and_owners_are_not_taken_over(folder):
    unpack(tar_of(member("tool", b"#!", mode=0o6777)), folder)
    assert (folder / "tool").stat().st_mode & 0o7111 == 0


# --- hostile ones -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/absolute", "absolute path"),
        ("../outside", "climbs"),
        ("a/../../outside", "climbs"),
        ("C:/outside", "colon"),
        ("..\\outside", "backslash"),
        ("NUL.txt", "reserves"),
        ("", "without a name"),
        ("./", "claims to have content"),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_members_that_would_leave_are_refused_by_name(folder, name, reason, form):
    message = refusal(tar_of(member("first", b"1"), member(name, b"2"), form=form), folder)
    assert re.search(reason, message)
    assert repr(name) in message


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.LNKTYPE, "hard link"),
        (tarfile.CHRTYPE, "character device"),
        (tarfile.BLKTYPE, "block device"),
        (tarfile.FIFOTYPE, "named pipe"),
        (tarfile.GNUTYPE_SPARSE, "sparse"),
        (b"Z", "unknown kind"),
    ],
)
def test_everything_but_files_and_folders_is_refused(folder, kind, reason):
    assert re.search(
        f"'odd' is .*{reason}", refusal(tar_of(member("odd", kind=kind, linkname="/etc/passwd")), folder)
    )


def test_a_file_through_a_link_cannot_be_written(folder, tmp_path):
    link = member("sub", kind=tarfile.SYMTYPE, linkname=str(tmp_path))
    assert "symbolic link" in refusal(tar_of(link, member("sub/outside", b"x")), folder)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.txt", "a.txt"),
        ("a.txt", "./a.txt"),
        ("a.txt", "A.TXT"),
        ("é", "e\u0301"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("a/b", "A/c"),
        ("a/b/c", "a/B/d"),
    ],
)
def test_two_members_for_one_place_are_refused(folder, first, second):
    assert "takes the place of" in refusal(tar_of(member(first, b"1"), member(second, b"2")), folder)


def test_a_folder_may_be_named_again(folder):
    again = member("a", kind=tarfile.DIRTYPE)
    assert unpack(tar_of(member("a/b", b"1"), again, again, member("a/c", b"2")), folder) == {
        "a/b": b"1",
        "a/c": b"2",
    }


def test_as_many_members_as_allowed_are_unpacked(folder):
    assert len(unpack(tar_of(*(member(f"{number}") for number in range(3))), folder, max_members=3)) == 3


@pytest.mark.parametrize(
    "crowd",
    [
        [member(f"{number}") for number in range(4)],
        [member(".", kind=tarfile.DIRTYPE)] * 4,
        [member("a/b/c/d")],
    ],
    ids=["files", "one folder again and again", "folders that a name implies"],
)
def test_too_many_members_are_refused(folder, crowd):
    assert re.search("is number 4.*max_members", refusal(tar_of(*crowd), folder, max_members=3))


def test_fifty_thousand_members_are_the_default_limit():
    guard = Guard("the archive", UnpackLimits())
    for _ in range(50_000):
        guard.count_member("one")
    with pytest.raises(UnsafeArchiveError, match=r"is number 50,001.*max_members"):
        guard.count_member("one more")


def test_a_large_member_is_refused_before_anything_of_it_is_written(folder):
    assert "larger than 1,000 bytes" in refusal(
        block(size=octal(1 << 30)) + padded(b"x"), folder, max_member_bytes=1000
    )
    assert list(folder.iterdir()) == []


def test_the_sum_of_members_is_limited(folder):
    assert "max_bytes" in refusal(
        tar_of(*(member(f"{n}", b"x" * 900) for n in range(20))), folder, max_bytes=10_000
    )


def test_a_decompression_bomb_is_stopped_early(folder, monkeypatch):
    monkeypatch.setattr("modelgauge.dependencies.safety._RATIO_GRACE_BYTES", 1 << 20)
    bomb = gzip.compress(block(size=octal(20 << 20)) + bytes(20 << 20) + END, 9)
    assert "more than 100 times its size" in refusal(bomb, folder, max_ratio=100)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 2 << 20


@pytest.mark.parametrize("size", [b"\xff" * 12, b"-0000000001\0", b"9999999999\0\0", b"zzz"])
def test_sizes_that_are_no_numbers_are_refused(folder, size):
    assert re.search("number .* is malformed", refusal(block(size=size) + END, folder))


def test_huge_binary_sizes_are_refused(folder):
    assert "max_member_bytes" in refusal(block(size=b"\x80" + b"\xff" * 11) + END, folder)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([(b"path", b"/etc/passwd")], "absolute"),
        ([(b"path", b"../up")], "climbs"),
        ([(b"path", b"a\0b")], "control"),
        ([(b"path", b"\xff\xfe")], "not UTF-8"),
        ([(b"size", b"-1")], "not a number"),
        ([(b"size", b"9" * 30)], "not a number"),
        ([(b"size", "٣".encode())], "not a number"),
        ([(b"size", b"99999999999999")], "max_member_bytes"),
        ([(b"size", b"1000000")], "truncated"),
        ([(b"GNU.sparse.major", b"1"), (b"GNU.sparse.realsize", b"999999999999")], "sparse"),
    ],
)
def test_pax_headers_that_lie_are_refused(folder, records, reason):
    assert re.search(reason, refusal(pax(*records) + block(size=octal(1)) + padded(b"x") + END, folder))


@pytest.mark.parametrize(
    "body", [b"nonsense", b"99 path=x\n", b"5 a=b", b"0 =\n", b"-9 path=x\n", b"7 path\n", b" 9 path=x\n"]
)
def test_malformed_pax_records_are_refused(folder, body):
    assert "malformed" in refusal(
        block(b"pax", octal(len(body)), b"x") + padded(body) + block() + END, folder
    )


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_huge_metadata_is_refused_unread(folder, kind):
    assert "out of all proportion" in refusal(block(b"meta", octal(1 << 40 >> 8), kind), folder)


def test_endless_metadata_is_refused(folder):
    assert "out of all proportion" in refusal(pax((b"comment", b"x")) * 1000, folder)


def test_metadata_of_a_mebibyte_and_sixteen_headers_of_a_member_are_read(folder):
    mebibyte = 1 << 20
    for size, told in ((mebibyte, "truncated"), (mebibyte + 1, "out of all proportion")):
        assert told in refusal(block(b"meta", octal(size), b"K"), folder)
        folder.rmdir()
    assert unpack(pax((b"comment", b"x")) * 16 + block(b"a") + END, folder) == {"a": b""}
    (folder / "a").unlink()
    folder.rmdir()
    assert "out of all proportion" in refusal(pax((b"comment", b"x")) * 17 + block(b"a") + END, folder)


def metadata(body, kind=b"x"):
    return block(b"meta", octal(len(body)), kind) + padded(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"1000000 comment=" + b"1" * 999_983 + b"\n", "out of all proportion"),
        (b"2 " * 500_000 + b"=\n", "malformed"),
        (b"6 a=b\n\0" + b"1 hdrcharset=" * 70_000, "malformed"),
    ],
    ids=["digits", "records in records", "half a character set"],
)
@pytest.mark.parametrize("kind", [b"x", b"g", b"X"])
def test_metadata_that_takes_the_square_of_its_size_is_refused_unparsed(folder, body, reason, kind):
    # CVE-2024-6232: Python 3.11.7 takes hours and hundreds of gigabytes for these
    assert reason in refusal(metadata(body, kind) + block(b"a") + END, folder)


@pytest.mark.parametrize("kind", [b"0", b"5", b"x", b"g", b"L", b"K", b"S", b"Z"])
def test_negative_sizes_never_lead_backwards(folder, kind):
    # CVE-2025-8194: a parser that goes where such a header points reads the same member for ever
    size = b"\xff" * 10 + b"\xfc\x00"
    assert refusal(block(b"first") + block(b"back", size, kind) + END, folder)
    assert {path.name for path in folder.iterdir()} == {"first"}


@pytest.mark.parametrize("kind", [b"x", b"g"])
def test_metadata_is_limited_for_each_member_and_not_kept(folder, kind):
    mebibyte = 1 << 20

    def header(key, size):
        start = b"%d %s=" % (size, key)
        return metadata(start + b"v" * (size - len(start) - 1) + b"\n", kind)

    twice = header(b"a", mebibyte // 2) + header(b"b", mebibyte // 2 + 1)
    assert "out of all proportion" in refusal(twice + block(b"a") + END, folder)
    folder.rmdir()
    raw = b"".join(header(b"key%d" % n, mebibyte // 2) + block(b"%d" % n) for n in range(40)) + END
    tracemalloc.start()
    try:
        unpack(raw, folder)
        assert tracemalloc.get_traced_memory()[1] < 8 * mebibyte
    finally:
        tracemalloc.stop()
    assert len(list(folder.iterdir())) == 40


def test_sparse_maps_without_end_are_refused(folder):
    more = bytes(504) + b"\1" + bytes(7)
    head = bytearray(block(b"odd", kind=b"S"))
    head[482] = 1
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + 256 + sum(head[156:]))
    assert "a sparse file" in refusal(bytes(head) + more * 1000, folder)


def test_times_in_place_of_a_prefix_are_not_taken_for_a_name(folder):
    raw = block(b"file", magic=b"ustar  \0", prefix=b"14000000000\0")
    assert "incremental backup" in refusal(raw + END, folder)


def test_names_for_all_members_at_once_are_refused(folder):
    assert "all members at once" in refusal(pax((b"path", b"one"), kind=b"g") + block() + END, folder)


@pytest.mark.parametrize("kind", [b"x", b"L"])
def test_metadata_without_a_member_is_refused(folder, kind):
    body = padded(b"name") if kind == b"L" else b""
    assert "describes a member to follow" in refusal(
        block(b"meta", octal(4 if body else 0), kind) + body + END, folder
    )


def test_text_behind_a_nul_is_refused(folder):
    assert "after a NUL" in refusal(block(b"safe.txt\0.exe") + END, folder)
    folder.rmdir()
    assert "after a NUL" in refusal(metadata(b"safe.txt\0.exe", b"L") + block(b"a") + END, folder)


# --- damaged ones -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [bytes, lambda raw: gzip.compress(raw, mtime=0)])
def test_every_truncation_is_noticed(folder, compress):
    whole = block(b"a", octal(700)) + padded(b"x" * 700) + block(b"b", octal(3)) + padded(b"abc") + END
    raw = compress(whole)
    for cut in [*range(0, len(raw), 97), len(raw) - 1]:
        folder = folder.parent / "out"
        with pytest.raises(UnsafeArchiveError):
            unpack(raw[:cut], folder)
        (folder / "a").unlink(missing_ok=True)
        (folder / "b").unlink(missing_ok=True)
        folder.rmdir()
    assert unpack(raw, folder) == {"a": b"x" * 700, "b": b"abc"}


def test_a_damaged_header_is_not_taken_for_the_end(folder):
    raw = bytearray(tar_of(member("first", b"1"), member("second", b"2")))
    raw[1024 + 3] ^= 1
    with tarfile.open(fileobj=io.BytesIO(bytes(raw))) as archive:
        assert archive.getnames() == ["first"]  # what the standard library makes of it
    assert "checksum is wrong" in refusal(bytes(raw), folder)


@pytest.mark.parametrize("tail", [b"x", block(b"hidden")])
def test_data_behind_the_end_is_refused(folder, tail):
    assert "data after its end mark" in refusal(block(b"a") + END + tail, folder)


def test_half_an_end_mark_is_refused(folder):
    assert "half an end mark" in refusal(block(b"a") + bytes(512) + block(b"b") + END, folder)


@pytest.mark.parametrize("raw", [b"", b"<!DOCTYPE html>" * 100, b"x" * 511])
def test_what_is_no_tar_is_refused(folder, raw):
    assert re.search("not a tar archive|truncated", refusal(raw, folder))


@settings(max_examples=80)
@given(st.data())
def test_no_damage_does_anything_but_unpack_or_be_refused(data):
    raw = bytearray(
        tar_of(
            member("a/b", b"x" * 600), member("ä" * 60, b"y"), form=data.draw(st.sampled_from(FORMATS[1:]))
        )
    )
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as parent:
        with contextlib.suppress(UnsafeArchiveError):
            unpack(bytes(raw), Path(parent) / "out", max_bytes=1 << 20)
        assert {path.name for path in Path(parent).iterdir()} == {"out", "text"}

"""Decompression, and the choice of steps by declaration and by first bytes."""

import gzip
import sys

import pytest
from archives import member, tar_of, unpack, zip_of

from modelgauge.dependencies.safety import Guard, UnpackLimits
from modelgauge.dependencies.unpack import UnpackSteps, steps_for, unpacked_name
from modelgauge.errors import DefinitionError, DependencyError, UnsafeArchiveError

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, compress
else:
    from backports.zstd import CompressionParameter, compress

TEXT = b"one line of text\n" * 5000


TAR, ZIP = tar_of(member("a", b"1")), zip_of(("a", b"1"))


def zstd(content):
    return compress(content, options={CompressionParameter.checksum_flag: 1})


@pytest.mark.parametrize(
    ("raw", "steps"),
    [
        (gzip.compress(TEXT), UnpackSteps("gzip")),
        (gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]), UnpackSteps("gzip")),
        (gzip.compress(TEXT) + bytes(512), UnpackSteps("gzip")),
        (zstd(TEXT), UnpackSteps("zstd")),
        (zstd(TEXT[:100]) + zstd(b"") + zstd(TEXT[100:]), UnpackSteps("zstd")),
        (zstd(TEXT) + b"\x50\x2a\x4d\x18\x03\0\0\0xyz", UnpackSteps("zstd")),  # a skippable frame
    ],
)
def test_compressed_files_are_decompressed(folder, raw, steps):
    assert unpack(raw, folder, steps) == {"text": TEXT}


@pytest.mark.parametrize(
    ("raw", "steps"), [(zstd(TEXT), UnpackSteps("zstd")), (zstd(TAR), UnpackSteps(unpack="tar"))]
)
def test_zstd_that_this_python_cannot_read_names_the_extra(folder, monkeypatch, raw, steps):
    for module in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DependencyError, match=r'zstd.*pip install "modelgauge-framework\[zstd\]"'):
        unpack(raw, folder, steps)


def test_nothing_is_fetched_that_this_python_cannot_read(store, memory, monkeypatch):
    for module in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    data = memory(decompress="zstd")
    with pytest.raises(DependencyError, match=r"^Dependency 'key' of 'owner' is compressed by zstd"):
        store.resolve("owner", "key", data)
    assert data.fetched == 0


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
@pytest.mark.parametrize("frames", [1, 2])
def test_every_truncation_is_noticed(folder, compress, frames):
    raw = compress(TEXT[:200]) * frames
    kind = "gzip" if compress is gzip.compress else "zstd"
    between = {len(raw) // frames} if frames > 1 else set()
    for cut in set(range(len(raw))) - between:
        with pytest.raises(UnsafeArchiveError):
            unpack(raw[:cut], folder, UnpackSteps(kind))
        (folder / "text").unlink(missing_ok=True)
        folder.rmdir()


@pytest.mark.parametrize(("compress", "kind"), [(gzip.compress, "gzip"), (zstd, "zstd")])
def test_damage_is_noticed_by_checksum(folder, compress, kind):
    raw = bytearray(compress(TEXT))
    raw[-2] ^= 1
    with pytest.raises(UnsafeArchiveError, match=f"damaged {kind} data"):
        unpack(bytes(raw), folder, UnpackSteps(kind))


@pytest.mark.parametrize(("compress", "kind"), [(gzip.compress, "gzip"), (zstd, "zstd")])
def test_garbage_behind_the_end_is_refused(folder, compress, kind):
    with pytest.raises(UnsafeArchiveError):
        unpack(compress(TEXT) + b"garbage", folder, UnpackSteps(kind))


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("raw", [b"", b"<!DOCTYPE html>", TEXT])
def test_what_is_not_compressed_is_refused_with_its_first_bytes(folder, kind, raw):
    with pytest.raises(UnsafeArchiveError, match=f"is not {kind} data: it begins with b'{raw[:9].decode()}"):
        unpack(raw, folder, UnpackSteps(kind))


@pytest.mark.parametrize(("compress", "kind"), [(gzip.compress, "gzip"), (zstd, "zstd")])
@pytest.mark.parametrize(
    "limits",
    [{"max_bytes": 1 << 20}, {"max_member_bytes": 1 << 20, "max_ratio": 1e9}, {"max_ratio": 10}],
    ids=["all", "member", "ratio"],
)
def test_bombs_are_stopped_early(folder, monkeypatch, compress, kind, limits):
    monkeypatch.setattr("modelgauge.dependencies.safety._RATIO_GRACE_BYTES", 1 << 20)
    with pytest.raises(UnsafeArchiveError, match=next(iter(limits))):
        unpack(compress(bytes(16 << 20)), folder, UnpackSteps(kind), **limits)
    assert (folder / "text").stat().st_size <= 8 << 20


@pytest.mark.parametrize(
    ("raw", "steps"),
    [
        (TAR, UnpackSteps(unpack="tar")),
        (gzip.compress(TAR), UnpackSteps(unpack="tar")),
        (zstd(TAR), UnpackSteps(unpack="tar")),
        (gzip.compress(TAR), UnpackSteps("gzip", "tar")),
        (zstd(TAR), UnpackSteps("zstd", "tar")),
        (ZIP, UnpackSteps(unpack="zip")),
        (gzip.compress(ZIP), UnpackSteps("gzip", "zip")),
        (zstd(ZIP), UnpackSteps("zstd", "zip")),
    ],
)
def test_archives_are_unpacked_also_through_compression(folder, raw, steps):
    assert unpack(raw, folder, steps) == {"a": b"1"}
    assert {path.name for path in folder.parent.iterdir()} == {"out", "text"}


@pytest.mark.parametrize(
    ("raw", "steps"),
    [
        (ZIP, UnpackSteps(unpack="tar")),
        (TAR, UnpackSteps(unpack="zip")),
        (TAR, UnpackSteps("gzip", "tar")),
        (gzip.compress(TAR), UnpackSteps("zstd", "tar")),
        (gzip.compress(TEXT), UnpackSteps(unpack="tar")),
        (gzip.compress(gzip.compress(TAR)), UnpackSteps("gzip", "tar")),
    ],
)
def test_another_kind_than_declared_is_refused(folder, raw, steps):
    with pytest.raises(UnsafeArchiveError):
        unpack(raw, folder, steps)


@pytest.mark.parametrize(
    ("raw", "declared", "needed"),
    [
        (TEXT, UnpackSteps(), UnpackSteps()),
        (gzip.compress(TEXT), UnpackSteps(), UnpackSteps()),
        (TEXT, UnpackSteps("gzip"), UnpackSteps()),
        (gzip.compress(TEXT), UnpackSteps("gzip"), UnpackSteps("gzip")),
        (zstd(TEXT), UnpackSteps("gzip"), UnpackSteps("zstd")),
        (TAR, UnpackSteps(unpack="tar"), UnpackSteps(unpack="tar")),
        (TAR, UnpackSteps("gzip", "tar"), UnpackSteps(unpack="tar")),
        (gzip.compress(TAR), UnpackSteps("gzip", "tar"), UnpackSteps(unpack="tar")),
        (ZIP, UnpackSteps("gzip", "tar"), UnpackSteps(unpack="zip")),
        (gzip.compress(TAR), UnpackSteps(unpack="zip"), UnpackSteps(unpack="tar")),
        (gzip.compress(ZIP), UnpackSteps("gzip", "zip"), UnpackSteps("gzip", "zip")),
        (TEXT, UnpackSteps(unpack="tar"), UnpackSteps()),
        (b"", UnpackSteps("gzip", "tar"), UnpackSteps()),
    ],
)
def test_the_steps_that_a_users_file_still_needs_are_seen_from_it(tmp_path, raw, declared, needed):
    file = tmp_path / "file"
    file.write_bytes(raw)
    assert steps_for(file, declared) == needed


@pytest.mark.parametrize(
    ("name", "steps", "expected"),
    [
        ("test.jsonl.gz", UnpackSteps("gzip"), "test.jsonl"),
        ("TEST.ZST", UnpackSteps("zstd"), "TEST"),
        ("test.jsonl.gz", UnpackSteps(), "test.jsonl.gz"),
        ("test.jsonl.gz", UnpackSteps("zstd"), "test.jsonl.gz"),
        (".gz", UnpackSteps("gzip"), ".gz"),
    ],
)
def test_a_decompressed_file_loses_its_suffix(name, steps, expected):
    assert unpacked_name(name, steps) == expected


@pytest.mark.parametrize(
    "limits", [{"max_members": 0}, {"max_bytes": -1}, {"max_ratio": float("nan")}, {"max_bytes": True}]
)
def test_limits_must_be_positive(limits):
    with pytest.raises(DefinitionError, match="not a positive number"):
        UnpackLimits(**limits)


def test_what_is_as_large_as_a_limit_is_taken_and_one_more_is_not(monkeypatch):
    monkeypatch.setattr("modelgauge.dependencies.safety._RATIO_GRACE_BYTES", 100)
    guard = Guard("it", UnpackLimits(max_members=2, max_member_bytes=10, max_bytes=1000, max_ratio=5))
    for _ in range(2):
        guard.count_member("a")
    with pytest.raises(
        UnsafeArchiveError, match=r"^it: member 'a' is number 3\. .*max_members=…\), now 2\.$"
    ):
        guard.count_member("a")
    guard.check_member_bytes(10, "a")
    with pytest.raises(UnsafeArchiveError, match="is larger than 10 bytes"):
        guard.check_member_bytes(11, "a")
    guard.count_bytes(100, consumed=0)  # where the ratio is not judged yet
    guard.count_bytes(400, consumed=100)
    with pytest.raises(UnsafeArchiveError, match="it: the archive unpacks to more than 5 times its size"):
        guard.count_bytes(1, consumed=100)
    guard.count_bytes(499, consumed=1000)
    with pytest.raises(UnsafeArchiveError, match="unpacks to more than 1,000 bytes"):
        guard.count_bytes(1, consumed=1000)


@pytest.mark.parametrize(
    ("length", "shown"), [(120, repr("x" * 120)), (121, repr(f"{'x' * 100}…(121 characters)"))]
)
def test_a_long_name_of_a_member_is_shortened(length, shown):
    told = str(Guard("it", UnpackLimits()).refusal("is bad", member="x" * length))
    assert told.startswith(f"it: member {shown} is bad. Fetch it again from its source")


def test_the_limits_that_nobody_named():
    limits = UnpackLimits()
    gib = 1 << 30
    assert (limits.max_members, limits.max_member_bytes, limits.max_bytes, limits.max_ratio) == (
        50_000, 8 * gib, 16 * gib, 200,
    )  # fmt: skip

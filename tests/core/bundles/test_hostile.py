"""Bundles that are damaged or hostile: each has its message, and leaves nothing behind."""

import gzip
import hashlib
import io
import json
import tarfile

import pytest
from archives import member, tar_of

from modelgauge.bundles.checking import check
from modelgauge.bundles.unbundling import unbundle
from modelgauge.errors import BundleError

RUN = "20260131-120000-a1b2c3"


def contents(file):
    """The members of a bundle."""
    with tarfile.open(file) as archive:
        return {name: archive.extractfile(name).read() for name in archive.getnames()}


def written(path, files, *more):
    members = [member(name, content) for name, content in files.items()]
    path.write_bytes(gzip.compress(tar_of(*members, *more), mtime=0))
    return path


def with_hashes(files, **changes):
    """The members with a manifest that fits them."""
    manifest = json.loads(files["bundle.json"])
    others = {name: content for name, content in files.items() if name != "bundle.json"}
    manifest["files"] = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in others.items()
    }
    return {"bundle.json": json.dumps({**manifest, **changes}).encode(), **others}


@pytest.fixture
def refused(bundled, tmp_path):
    """Unpack a changed bundle: the message, once it is clear that nothing is left behind."""

    def refused(change=lambda files: files, *more):
        files = contents(bundled)
        changed = change(files)
        hostile = written(tmp_path / "hostile.mgb", files if changed is None else changed, *more)
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(BundleError) as error:
            unbundle(hostile, tmp_path / "received")
        assert sorted(tmp_path.rglob("*")) == before
        found = check(str(hostile), tmp_path, None, None)
        assert found.findings  # and `check` finds it too, and names no temporary folder
        assert "modelgauge-check-" not in str(found)
        return str(error.value)

    return refused


def test_wrong_hashes(refused, run):
    def other_answer(files):
        name = f"runs/{run.run_id}/items.jsonl"
        files[name] = files[name].replace(b'"text":"yes"', b'"text":"yep"')

    message = refused(other_answer)
    assert f"'runs/{run.run_id}/items.jsonl' is not what the manifest says: its SHA-256 is another" in message


def test_missing_members(refused, run):
    assert "'cache.jsonl' is missing" in refused(lambda files: files.pop("cache.jsonl") and None)
    assert "There is no bundle.json" in refused(lambda files: files.pop("bundle.json") and None)
    name = f"runs/{run.run_id}/run.json"
    without = refused(lambda files: with_hashes({file: held for file, held in files.items() if file != name}))
    assert f"run '{run.run_id}' has no run.json" in without


def test_extra_members(refused):
    assert "'plugin.py' is not in the manifest" in refused(lambda files: files.update({"plugin.py": b"x"}))
    foreign = refused(lambda files: with_hashes({**files, "cache/cache.db": b"x"}))
    assert "the manifest names 'cache/cache.db', which is not a file of a bundle" in foreign


def test_a_manifest_that_names_other_files(refused):
    one = {"bytes": 1, "sha256": "0" * 64}

    def named(name):
        def change(files):
            manifest = json.loads(files["bundle.json"])
            manifest["files"][name] = one
            files["bundle.json"] = json.dumps(manifest).encode()

        return change

    for name in ("../outside", "/etc/passwd", "runs/../../x/run.json"):
        assert f"names {name!r}, which is not a file of a bundle" in refused(named(name))
    elsewhere = refused(lambda files: with_hashes({"bundle.json": files["bundle.json"]}, runs=["../../../x"]))
    assert "the id of a run, '../../../x', begins with '.'" in elsewhere


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"{", "is not JSON"),
        (b"[]", "is damaged"),
        (b"{}", "is damaged"),
        (b'{"bundle_version": 2}', "is of version 2; this ModelGauge reads up to 1. Upgrade ModelGauge"),
        (b"\xff", "is not UTF-8"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_a_damaged_manifest(refused, text, why):
    assert why in refused(lambda files: files.update({"bundle.json": text}))


def test_a_damaged_file_is_named_as_in_the_bundle(bundled, tmp_path):
    files = contents(bundled)
    [record] = [name for name in files if name.endswith("record.json")]
    files = with_hashes({**files, record: b"null"})
    [run] = check(str(written(tmp_path / "hostile.mgb", files)), tmp_path, None, None).runs
    assert [found.problem for found in run.findings] == ["record.json is not the record of a run"]


def rows(change):
    """Change the rows of the cache, with hashes that fit."""

    def changed(files):
        lines = [json.loads(line) for line in files["cache.jsonl"].splitlines()]
        change(lines)
        text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        return with_hashes({**files, "cache.jsonl": text})

    return changed


def test_a_row_whose_key_does_not_prove_itself(refused):
    message = refused(rows(lambda lines: lines[2].update(parts=lines[3]["parts"])))
    assert "cache.jsonl, line 3: the key is not that of the call that stands there" in message


@pytest.mark.parametrize(
    "row", [b"{}", b"[]", b"1", b'{"key": 1, "parts": 2, "response": 3}', b"\xff", b"[" * 100_000]
)
def test_a_row_that_is_none(refused, row):
    def changed(files):
        return with_hashes({**files, "cache.jsonl": files["cache.jsonl"] + row + b"\n"})

    assert "cache.jsonl, line 11 is not a row of a cache" in refused(changed)


def test_a_response_that_is_no_json(refused):
    message = refused(rows(lambda lines: lines[0].update(response="no JSON")))
    assert "cache.jsonl, line 1 is not a row" in message


def test_a_run_that_poses_as_the_users_own(refused, run):
    name = f"runs/{run.run_id}/run.json"
    signed = (run.path / "run.json").read_bytes()
    message = refused(lambda files: with_hashes({**files, name: signed}))
    assert "has the signature of a user's own run, which no bundle has" in message


@pytest.mark.parametrize(
    "hostile",
    [
        member("../outside", b"x"),
        member("/absolute", b"x"),
        member("link", kind=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("hard", kind=tarfile.LNKTYPE, linkname="bundle.json"),
        member("pipe", kind=tarfile.FIFOTYPE),
        member("BUNDLE.json", b"{}"),
        member("bundle.json", b"{}"),
        member("nul\0name", b"x"),
    ],
    ids=lambda one: repr(one[0].name),
)
def test_members_that_are_not_safe(refused, hostile):
    assert "the archive" in (message := refused(lambda files: files, hostile)) or "member" in message


def test_a_bomb(tmp_path):
    """10 GB of zeros in 10 MB."""
    zeros = tarfile.TarInfo(f"runs/{RUN}/items.jsonl")
    packed = gzip.compress(bytes(2**26)) * 160  # members of gzip follow each other
    for gibibytes, why in ((7, "more than 200 times its size"), (10, "is larger than 8,589,934,592 bytes")):
        zeros.size = gibibytes * 2**30
        (tmp_path / "bomb.mgb").write_bytes(gzip.compress(zeros.tobuf()) + packed)
        with pytest.raises(BundleError, match=why):
            unbundle(tmp_path / "bomb.mgb", tmp_path / "received")
    assert [path.name for path in tmp_path.iterdir()] == ["bomb.mgb"]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(bundled, tmp_path, share):
    whole = bundled.read_bytes()
    bundled.write_bytes(whole[: int(len(whole) * share)])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BundleError, match=r"truncated|damaged"):
        unbundle(bundled, tmp_path / "received")
    assert sorted(tmp_path.rglob("*")) == before


def test_any_changed_byte_is_found(bundled, tmp_path):
    whole = bundled.read_bytes()
    buffer = io.BytesIO(whole)
    for place in range(10, len(buffer.getvalue()), 97):  # the header of gzip says nothing
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        (tmp_path / "changed.mgb").write_bytes(changed)
        with pytest.raises(BundleError):
            unbundle(tmp_path / "changed.mgb", tmp_path / "received")


def test_what_is_no_bundle(tmp_path):
    (tmp_path / "text").write_text("hello", encoding="utf-8")
    with pytest.raises(BundleError, match="text is not a bundle"):
        unbundle(tmp_path / "text", tmp_path / "received")
    (tmp_path / "text").write_bytes(gzip.compress(b"hello"))
    with pytest.raises(BundleError, match=r"truncated|damaged"):
        unbundle(tmp_path / "text", tmp_path / "received")


@pytest.mark.parametrize("name", ["-rf", ".git", "x" * 150, "a|b"])
def test_run_whose_id_is_no_safe_folder_name_is_refused(refused, run, name):
    def renamed(files):
        moved = {path.replace(f"runs/{run.run_id}/", f"runs/{name}/"): text for path, text in files.items()}
        return with_hashes(moved, runs=[name], data={name: {}})

    message = refused(renamed)
    assert f"the id of a run, {name!r}" in message or "unsafe" in message

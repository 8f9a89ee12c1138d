"""A disk that is full: a clean stop with a clear error, and a resume that loses nothing committed."""

import subprocess
import sys
from contextlib import suppress

import pytest
from children import Nesting
from commands import calls, done, ended, record, runs, started, until
from tiers import sample

ANSWER = 40_000  # bytes of each answer: a few hundred fill the small disk


def command(folder, log, number, size=ANSWER, free=None):
    sut = f"gated?folder={log}&free={number if free is None else free}&size={size // 2}"
    return (
        *("run-test", "--test", f"numbered?number={number}", "--sut", sut),
        *("--data-dir", str(folder), "--concurrency", "8", "--no-progress-bar"),
    )


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "modelgauge-test", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system takes Linux and root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def grow(disk):
    subprocess.run(["mount", "-o", "remount,size=256m", str(disk)], check=True)


@pytest.mark.parametrize(
    "more", sample([(), ("--no-caching",), ("--executor", "processes", "--workers", "2")], 1)
)
def test_a_full_disk_stops_the_run_and_loses_nothing_committed(small_disk, tmp_path, more):
    data = small_disk / "data"
    code, _, err = done(tmp_path, *command(data, tmp_path, 400), *more, kind=Nesting)
    assert code == 4, err
    assert "full" in err or "No space left" in err
    assert "Traceback" not in err
    asked = len(calls(tmp_path))
    assert asked < 400  # it stopped
    [run] = (data / "runs").iterdir()
    before = (run / "items.jsonl").read_bytes()
    assert before.endswith(b"\n") or not before
    grow(small_disk)
    code, _, err = done(tmp_path, "resume", str(run), kind=Nesting)
    assert code == 0, err
    finished = record(run)
    assert finished["counts"]["scored"] == 400
    assert (run / "items.jsonl").read_bytes().startswith(before)
    assert (
        len(calls(tmp_path)) == 400
    )  # those under way when the disk was full are kept, and none is paid twice


@pytest.mark.parametrize(
    "more", sample([(), ("--no-caching",), ("--executor", "processes", "--workers", "1")], 1)
)
def test_calls_under_way_when_somebody_fills_the_disk_are_kept(small_disk, tmp_path, more):
    grow(small_disk)
    data = small_disk / "data"
    process = started(tmp_path, *command(data, tmp_path, 50, size=4_000, free=10), *more, kind=Nesting)
    until(lambda: len(calls(tmp_path)) == 18 and lines(data) == 10, process)
    with (small_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(2**16))
    (tmp_path / "open").touch()
    code, _, err = ended(process)
    assert code == 4, err
    assert "Traceback" not in err
    asked = len(calls(tmp_path))
    assert asked >= 18
    (small_disk / "filler").unlink()
    [run] = (data / "runs").iterdir()
    code, _, err = done(tmp_path, "resume", str(run), kind=Nesting)
    assert code == 0, err
    assert len(calls(tmp_path)) == 50  # each question once
    assert record(run)["counts"]["scored"] == 50


def lines(data):
    """The lines in the journal of the only run."""
    return sum(journal.read_bytes().count(b"\n") for journal in data.glob("runs/*/items.jsonl"))


def test_a_disk_that_is_full_from_the_start_is_said_before_any_call(small_disk, tmp_path):
    (small_disk / "filler").write_bytes(b"x" * (8 * 2**20 - 8192))
    code, _, err = done(tmp_path, *command(small_disk / "data", tmp_path, 5))
    assert code == 4, err
    assert "Traceback" not in err
    assert calls(tmp_path) == []


@pytest.mark.parametrize("kilobytes", sample([24, 600, 2000], 1))
def test_a_file_that_may_not_grow_stops_the_run(tmp_path, kilobytes):
    """As a quota does: writing fails with EFBIG."""
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    most = (kilobytes * 1024, kilobytes * 1024)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, most)  # Python itself ignores the signal that comes with it

    unwritten = {
        "PYTHONDONTWRITEBYTECODE": "1"
    }  # bytecode that the limit cuts would fail all later processes
    process = started(
        tmp_path, *command(tmp_path / "run_data", tmp_path, 100), preexec_fn=limit, env=unwritten
    )
    code, _, err = ended(process)
    assert code == 4, err
    assert "Traceback" not in err
    for run in runs(tmp_path):
        code, _, err = done(tmp_path, "resume", str(run))
        assert code == 0, err
        assert record(run)["counts"]["scored"] == 100

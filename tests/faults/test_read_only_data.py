"""Commands in a data folder that somebody else owns, and that this process may only read."""

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import calls, done, ended, runs, started, until

IS_ROOT = sys.platform != "win32" and os.geteuid() == 0

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX"),
    pytest.mark.skipif(
        IS_ROOT and sys.platform != "linux", reason="Root writes everywhere; only Linux lets it give that up."
    ),
]

SOMEBODY = 65534  # nobody, by custom
# Without its capabilities root is a user like any other, and can still read an interpreter in its own home.
UNPRIVILEGED = """
import ctypes, os, runpy, struct
if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    version_3_of_this_process = struct.pack("Ii", 0x20080522, 0)
    assert libc.capset(version_3_of_this_process, bytes(24)) == 0, os.strerror(ctypes.get_errno())
assert not os.access("run_data", os.W_OK)
runpy.run_module("modelgauge", run_name="__main__", alter_sys=True)
"""
NUMBER, CAP = 12, 4


class Shared(NamedTuple):
    """A folder with a `run_data` that may only be read, and what it held at first."""

    folder: Path
    sut: str
    answered: int
    before: dict

    def run(self, *arguments):
        return done(self.folder, *arguments, program=("-c", UNPRIVILEGED))

    def assert_unchanged(self):
        assert contents(self.folder) == self.before


def contents(folder):
    """All files and folders of `run_data`, their modes and bytes, and what the SUT was asked."""
    paths = [folder / "run_data", *(folder / "run_data").rglob("*")]
    found = {path: (path.stat().st_mode, path.is_file() and path.read_bytes()) for path in paths}
    return {"data": found, "calls": calls(folder)}


def run_command(sut):
    return "run-test", "--test", f"numbered?number={NUMBER}", "--sut", sut, "--concurrency", str(CAP)


def kill_midway(folder, sut, answered):
    process = started(folder, *run_command(sut))
    until(lambda: len(calls(folder)) == answered + CAP, process)
    [run] = runs(folder)
    until(lambda: (run / "items.jsonl").read_bytes().count(b"\n") == answered, process)
    process.kill()
    assert ended(process)[0] == -signal.SIGKILL
    assert (folder / "run_data" / "cache" / "cache.db-wal").exists()


@pytest.fixture(params=[NUMBER, 6], ids=["finished", "killed"])
def shared(request, tmp_path):
    """The data of a run that somebody else made: one that ended, or one that was killed with its cache open."""
    answered = request.param
    sut = f"gated?folder={tmp_path}&free={answered}"
    if answered == NUMBER:
        code, _, err = done(tmp_path, *run_command(sut))
        assert code == 0, err
    else:
        kill_midway(tmp_path, sut, answered)
    paths = [tmp_path / "run_data", *(tmp_path / "run_data").rglob("*")]
    for path in paths:
        if IS_ROOT:
            os.chown(path, SOMEBODY, SOMEBODY)
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield Shared(tmp_path, sut, answered, contents(tmp_path))
    for path in paths:
        path.chmod(0o755)


def test_commands_that_only_read_work_and_write_elsewhere(shared):
    number = shared.answered
    for line, shown in {
        "cache stats": f"{number} responses",
        "cache verify": f"{number} responses, all sound",
        f"cache explain --sut '{shared.sut}' --prompt 'question 0'": "The answer is in the cache",
        f"cache explain --sut '{shared.sut}' --prompt 'question x'": "The nearest entry differs in 1 part",
        "runs": "numbered",
        "show latest": f"{number} scored",
        "check latest": f"{number} items, nothing wrong",
        "report latest -o page.html": "page.html",
        "export latest --to csv -o tables": "tables/items.csv",
        "bundle latest -o run.mgb": f"1 run, {number} cache rows",
        "check run.mgb": f"{number} items, nothing wrong",
    }.items():
        code, out, err = shared.run(*shlex.split(line))
        assert (line, code, shown in out) == (line, 0, True), out + err
    assert {path.name for path in shared.folder.iterdir()} >= {"page.html", "tables", "run.mgb"}
    shared.assert_unchanged()


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ((), "Correct the permissions, or write to a folder of your own"),
        (("--no-caching",), "Choose another"),
    ],
)
def test_run_names_the_cause_and_asks_nothing(shared, more, advice):
    code, out, err = shared.run(*run_command(shared.sut), *more)
    assert (code, out) == (4, "")
    assert "Permission denied" in err
    assert f"\n{advice}" in err
    assert "--data-dir" in err
    assert "Traceback" not in err
    shared.assert_unchanged()

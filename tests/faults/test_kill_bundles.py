"""`kill -9` while a bundle is written or unpacked: the file, or the folder, is there whole or not at all.

The processes kill themselves before one of the steps in which they touch the disk.
"""

import shutil
import sys

import children
import pytest
from tiers import sample

from modelgauge import FunctionSUT, run_test
from modelgauge.bundles.checking import check

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")

STEPS = ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "sqlite3.connect")
KILLED = """
import os, sys
from modelgauge.cli.main import main

left, here, steps = int(sys.argv.pop(1)), os.getcwd(), {steps!r}

def step(event, arguments):
    global left
    if event in steps and not str(arguments[0]).endswith((".py", ".pyc", ".so")):
        path = os.path.join(here, os.fsdecode(arguments[0])) if isinstance(arguments[0], (str, bytes)) else ""
        left -= path.startswith(here)
        if left < 0:
            os.kill(os.getpid(), 9)

sys.addaudithook(step)
try:
    main()
finally:
    print(left, flush=True)
"""


def steps_of(arguments, folder, left=10_000):
    """Run a command that kills itself after so many steps: how many it took, or None where it was killed."""
    done = children.run("-c", KILLED.format(steps=STEPS), left, *arguments, cwd=folder)
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr
    return left - int(done.stdout.splitlines()[-1])


@pytest.fixture
def bundle(tmp_path):
    """The command that makes a bundle of a run of ten items."""
    test, sut = "demo_01", FunctionSUT("echo", str, version=1)
    record = run_test(test, sut, data_dir=tmp_path / "data")
    return ["bundle", str(tmp_path / "data" / "runs" / record.run_id), "-o", "run.mgb"]


def test_a_bundle_is_there_whole_or_not_at_all(bundle, tmp_path):
    steps = steps_of(bundle, tmp_path)
    whole = (tmp_path / "run.mgb").read_bytes()
    assert steps > 10
    for before in ("missing", "there"):
        for left in sample(range(0, steps, 3), 3):
            if before == "missing":
                (tmp_path / "run.mgb").unlink(missing_ok=True)
            assert steps_of(bundle, tmp_path, left) is None
            held = (tmp_path / "run.mgb").read_bytes() if (tmp_path / "run.mgb").exists() else None
            assert held in ((whole,) if before == "there" else (whole, None))
        (tmp_path / "run.mgb").write_bytes(whole)
    assert steps_of(bundle, tmp_path) is not None


def test_what_is_unpacked_is_there_whole_or_not_at_all(bundle, tmp_path):
    steps_of(bundle, tmp_path)
    unbundle = ["unbundle", "run.mgb", "-o", "received"]
    steps = steps_of([*unbundle[:-1], "first"], tmp_path)
    assert steps > 10
    for left in sample(range(0, steps, 3), 3):
        assert steps_of(unbundle, tmp_path, left) is None
        if (tmp_path / "received").exists():
            break
    else:
        steps_of(unbundle, tmp_path)
    [run] = check(str(tmp_path / "received"), tmp_path, None, None).runs
    assert (run.items, run.findings) == (10, [])
    assert (tmp_path / "received" / "cache" / "cache.db").exists()


@pytest.mark.parametrize("command", ["bundle", "unbundle"])
def test_next_command_removes_what_a_killed_one_left(bundle, tmp_path, command):
    steps_of(bundle, tmp_path)
    arguments = bundle if command == "bundle" else ["unbundle", "run.mgb", "-o", "received"]
    (tmp_path / "spare").mkdir()
    whole = steps_of(arguments if command == "bundle" else [*arguments[:-1], "spare/received"], tmp_path)
    for left in sample(range(0, whole, 2), 3):
        if steps_of(arguments, tmp_path, left) is not None or (tmp_path / "received").exists():
            break
        steps_of([*arguments[:-1], "received2"] if command == "unbundle" else arguments, tmp_path)
        hidden = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
        assert hidden == [], left
        shutil.rmtree(tmp_path / "received2", ignore_errors=True)

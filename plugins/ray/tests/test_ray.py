"""Runs on a real Ray cluster of two nodes: the records of one process, whatever is killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_PLUGIN = _HERE.parents[2] / "tests" / "executors" / "counted_plugin.py"
_ITEMS = 40
_ROUNDS = int(os.environ.get("TESTS_RAY_ROUNDS", "1"))  # of three kills each
_PATIENCE = 180.0  # seconds, for a slow machine: a cluster takes 12 on an idle one

pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed (uv sync --group dev --group ray)."
)


@pytest.fixture(scope="module")
def cluster():
    """A process that has a cluster; `tell` gives it a line."""
    started = subprocess.Popen(
        [sys.executable, str(_HERE / "cluster_process.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        text=True,
    )
    yield Cluster(started)
    started.communicate(timeout=_PATIENCE)


class Cluster:
    def __init__(self, process):
        self._process = process
        self.address = process.stdout.readline().strip()

    def tell(self, line):
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


class Driver:
    """`modelgauge` in a process of its own, with the plugin whose SUT logs its calls in the folder."""

    def __init__(self, cluster, folder):
        self._cluster, self.folder = cluster, folder
        # A project of its own, as people have who say `uv run modelgauge …`: Ray must not start workers by that.
        (folder / "pyproject.toml").write_text('[project]\nname = "app"\nversion = "1"\n', encoding="utf-8")

    def start(self, *, workers=3, seconds=0.05, command=()):
        pair = (
            "--test",
            "words",
            "--sut",
            f"counted?folder={self.folder}&seconds={seconds}",
            "--concurrency",
            "2",
        )
        asked = command or ("run-test", *pair)
        return subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "modelgauge",
                    *asked,
                    "--plugin",
                    str(_PLUGIN),
                    "--json",
                    "--no-progress-bar",
                ),
                *("--executor", f"ray?address={self._cluster.address}", "--workers", str(workers)),
                *("--data-dir", str(self.folder)),
            ],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def calls(self, what="begin"):
        """Process and prompt of each call."""
        log = self.folder / "calls"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [line.split("\t")[1:] for line in lines if line.startswith(what)]

    def wait_for_calls(self, number):
        end = time.monotonic() + _PATIENCE
        while len(self.calls("end")) < number:
            assert time.monotonic() < end, "the cluster has not begun to work"
            time.sleep(0.02)

    @staticmethod
    def ended(process):
        out, err = process.communicate(timeout=_PATIENCE)
        assert process.returncode == 0, err
        return json.loads(out), err

    def answers(self):
        """The prompts of the journal's items in the order of the test, each with its measurement."""
        (journal,) = (self.folder / "runs").glob("*/items.jsonl")
        lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
        lines.sort(key=lambda line: line["index"])
        return [(line["test_item"]["id"], line["measurements"]["right"]) for line in lines]

    def check_whole(self, more):
        """Every item has one record; no call but `more` at most, which were under way, was made twice."""
        assert self.answers() == [(f"item {n}", 1.0) for n in range(_ITEMS)]
        finished = [prompt for _, prompt in self.calls("end")]
        assert set(finished) == {f"word {n}" for n in range(_ITEMS)}
        assert len(finished) <= _ITEMS + more


def test_options_are_spelled_behind_the_name_of_the_executor(tmp_path):
    for option, spelled in (("--ray-address", "ray?address=VALUE"), ("--gpus-per-worker", "ray?gpus=VALUE")):
        refused = subprocess.run(
            [sys.executable, "-m", "modelgauge", "run-test", option, "1"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        assert (refused.returncode, f"--executor '{spelled}'" in refused.stderr) == (2, True), refused.stderr


@pytest.fixture
def driver(cluster, tmp_path):
    return Driver(cluster, tmp_path)


def test_a_cluster_makes_the_records_of_one_process(driver):
    result, err = driver.ended(driver.start())
    assert (result["records"][0]["counts"]["scored"], err) == (_ITEMS, "")
    driver.check_whole(more=0)
    assert len(driver.calls()) == _ITEMS
    assert len({process for process, _ in driver.calls()}) > 1


@pytest.mark.parametrize("seed", range(_ROUNDS))
def test_what_killed_workers_and_a_killed_node_had_is_done_by_others(cluster, driver, seed):
    chance = random.Random(seed)
    process = driver.start(seconds=0.3)
    for _ in range(2):
        driver.wait_for_calls(len(driver.calls("end")) + chance.randrange(3, 9))
        os.kill(int(driver.calls()[-1][0]), signal.SIGKILL)
    cluster.tell("add")
    cluster.tell("kill")
    result, err = driver.ended(process)
    assert result["records"][0]["counts"]["scored"] == _ITEMS
    assert "another takes its place" in err
    driver.check_whole(more=12)


def test_a_run_whose_driver_was_killed_is_resumed_and_pays_no_committed_call_again(driver):
    process = driver.start(seconds=0.3)
    driver.wait_for_calls(8)
    process.kill()
    process.communicate()
    workers = {int(worker) for worker, _ in driver.calls()}
    end = time.monotonic() + _PATIENCE
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < end, "the workers outlive their driver"
        time.sleep(0.1)
    (run,) = (driver.folder / "runs").iterdir()
    driver.ended(driver.start(command=("resume", run.name)))
    driver.check_whole(more=6)


def test_a_cluster_that_is_not_there_and_numbers_that_are_none_are_said(driver):
    for executor, said in (
        ("ray?address=127.0.0.1:9", "cannot be reached"),
        ("ray?cpus=many", "cpus=many is not a number"),
        ("ray?gpu=1", "does not take these options"),
    ):
        refused = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "modelgauge",
                    "run-test",
                    "--test",
                    "words",
                    "--plugin",
                    str(_PLUGIN),
                ),
                *("--sut", f"counted?folder={driver.folder}", "--executor", executor),
            ],
            cwd=driver.folder,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        assert refused.returncode in (2, 4), refused.stderr
        assert said in refused.stderr

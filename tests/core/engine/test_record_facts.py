"""What a record says of how its numbers were made, so that runs can be compared by their records alone."""

import json
import math
import re
import shutil
import subprocess

import pytest

from modelgauge import PromptResponseTest, SUTOptions, TestItem
from modelgauge.data.records import RunIdentity
from modelgauge.data.results import Threshold
from modelgauge.data.test_cases import Golden
from modelgauge.datasets.dataset_test import DatasetTest
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import DefinitionError
from modelgauge.metrics import ExactMatchMetric, HallucinationMetric
from modelgauge.runs.recorded_run import recorded_run


@pytest.fixture
def record(make_test, make_sut, run):
    test = make_test(
        [TestItem(f"question {n}", context={"book": n % 2}) for n in range(4)],
        measure=lambda item: {"right": True, "errors": 2, "seconds": 1.5, "words": 3},
        measurement_ranges={"errors": (0, math.inf), "words": (0, 9)},
        measurement_directions={"errors": "lower"},
        thresholds={"seconds": Threshold(value=2, higher_is_better=False)},
    )
    return run(test, make_sut(), cluster="book", sut_options=SUTOptions(temperature=0))


def test_ranges_are_those_declared_and_those_of_bools(record):
    passed = {"right": (0, 1), "seconds.passed": (0, 1), "passed": (0, 1)}
    assert record.ranges == {**passed, "errors": (0, None), "words": (0, 9)}


def test_directions_are_those_declared_and_those_of_thresholds(record):
    assert record.directions == {
        "errors": "lower",
        "seconds": "lower",
        "seconds.passed": "higher",
        "passed": "higher",
    }


def test_the_options_that_results_depend_on_are_said(record):
    assert (record.cluster, record.sut_options, record.plugins) == ("book", {"temperature": 0.0}, {})


def test_record_and_manifest_have_one_identity(record):
    described = WorkDescription.load(RunFolder(record.folder).read_manifest())
    facts = {name: getattr(record, name) for name in RunIdentity.model_fields}
    declared = {"errors": (0, None), "words": (0, 9)}
    assert described.identity() == {**facts, "ranges": declared}  # the record has those of all measurements
    assert RunIdentity.model_fields.keys() - described.model_dump().keys() == set()


def test_metrics_have_ranges_and_directions_of_their_own(make_sut, run):
    metrics = [ExactMatchMetric(), HallucinationMetric(model=lambda text: "", threshold=None)]
    record = run(
        DatasetTest("goldens", [Golden(input="a", expected_output="yes", context=["b"])], metrics), make_sut()
    )
    assert record.directions == {
        "ExactMatchMetric": "higher",
        "HallucinationMetric": "lower",
        "ExactMatchMetric.passed": "higher",
        "passed": "higher",
    }
    assert record.ranges["HallucinationMetric"] == (0, 1)
    assert record.annotators["ExactMatchMetric"]["uid"] == "exact_match"
    assert record.judges["HallucinationMetric"]


def test_of_a_killed_run_the_manifest_says_the_same(record, run_folder):
    folder = RunFolder(run_folder / "runs" / record.run_id)
    (folder.path / "record.json").unlink()
    killed = recorded_run(folder).record
    same = (
        "directions",
        "cluster",
        "sut_options",
        "annotators",
        "judges",
        "plugins",
        "thresholds",
        "repeats",
    )
    assert {name: getattr(killed, name) for name in same} == {name: getattr(record, name) for name in same}
    assert killed.ranges == {
        "errors": (0, None),
        "words": (0, 9),
    }  # declared; the others are seen in its items


def test_an_older_record_says_of_neither_that_it_is_known(record, run_folder):
    folder = RunFolder(run_folder / "runs" / record.run_id)
    path = folder.path / "record.json"
    older = {
        name: one
        for name, one in json.loads(path.read_text()).items()
        if name not in ("ranges", "directions")
    }
    path.write_text(json.dumps(older), encoding="utf-8")
    assert (folder.read_record().ranges, folder.read_record().directions) == (None, None)


def test_a_direction_is_higher_or_lower():
    with pytest.raises(DefinitionError, match=r"Turned\.measurement_directions has 'down' for 'x'"):
        type("Turned", (PromptResponseTest,), {"measurement_directions": {"x": "down"}})


@pytest.mark.skipif(
    shutil.which("git") is None, reason="this test needs the program git: apt-get install git"
)
def test_the_commit_of_the_working_directory_is_said(make_test, make_sut, run, tmp_path, monkeypatch):
    def commit(folder):
        monkeypatch.chdir(folder)
        return RunFolder(run(make_test(1), make_sut()).folder).read_manifest()["git_commit"]

    repository, outside = tmp_path / "repository", tmp_path / "outside"
    for folder in (repository / "below", outside):
        folder.mkdir(parents=True)
    user = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for arguments in (["init", "--quiet"], [*user, "commit", "--quiet", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    (head,) = {commit(repository), commit(repository / "below")}
    assert re.fullmatch("[0-9a-f]{40}", head)
    assert commit(outside) is None
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    assert commit(outside) == head

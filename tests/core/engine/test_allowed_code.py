"""A test that runs what a SUT writes runs only where that is allowed, and no run's record allows it."""

import json

import pytest

from modelgauge.errors import UsageError
from modelgauge.rerun.again import rescore


@pytest.fixture
def test(make_test):
    return make_test(2, executes_answers=True)


def test_code_is_refused_before_the_first_call(test, make_sut, run):
    sut = make_sut()
    with pytest.raises(UsageError, match=r"runs the code that the SUT writes.* --allow-code"):
        run(test, sut)
    assert sut.asked == []


def test_allowed_code_runs_and_is_not_recorded(test, make_sut, run, run_folder):
    record = run(test, make_sut(), allow_code=True)
    assert record.counts.scored == 2
    manifest = json.loads((record.folder / "run.json").read_text(encoding="utf-8"))
    assert "allow_code" not in manifest["options"]
    with pytest.raises(UsageError, match="--allow-code"):
        rescore(record.run_id, run_folder, test=test)
    assert rescore(record.run_id, run_folder, test=test, allow_code=True)[0].counts.scored == 2

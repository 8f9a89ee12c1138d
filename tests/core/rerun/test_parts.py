"""A run that several processes share: each measures a range of its items, by what `run.json` says."""

import subprocess
import sys

import pytest

from modelgauge import load_record, resume
from modelgauge.api import Runner
from modelgauge.config.settings import load_settings
from modelgauge.errors import InvalidOptionError, RecordError
from modelgauge.rerun.again import run_part

PLUGIN = """
from modelgauge import CompletionAnnotator, FunctionSUT, PromptResponseTest, TestItem, hookimpl

class Length(CompletionAnnotator[int]):
    def translate_request(self, prompt, completion):
        return completion.text
    def annotate(self, request):
        return len(request)
    def translate_response(self, request, response):
        return response

class Numbers(PromptResponseTest):
    def make_test_items(self, dependencies):  # lazily; every third prompt is there twice
        for n in range(20):
            yield TestItem(f"question {n - n % 3 // 2}", context=n)
    def get_annotators(self):
        return {"length": Length("length")}
    def measure_quality(self, item):
        return {"length": item.annotation("length") + item.context}

def answer(text):
    if text == "question 4":
        raise ValueError("no answer")
    return text.upper()

class Shouting(FunctionSUT):
    def __init__(self, uid):
        super().__init__(uid, answer, version=1)

@hookimpl
def modelgauge_register_tests(register):
    register("numbers", Numbers)

@hookimpl
def modelgauge_register_suts(register):
    register("shouting", Shouting)
"""

PART = """
import sys
from modelgauge.rerun.again import run_part

run, first, end = sys.argv[1:]
print(run_part(run, (int(first), int(end)), max_calls=None).run_id)
"""


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """The folder of a run of 14 items, of which none has been asked."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    data = tmp_path / "data"
    runner = Runner(
        data, settings=load_settings(plugins=[plugin]), max_test_items=14, seed=3, repeats=2, max_calls=0
    )
    (record,) = runner.run(["numbers"], ["shouting"])
    assert record.failure is not None
    return data / "runs" / record.run_id


def told(record):
    """What a record says of each item, by its place in the test; a traceback names threads."""
    return {one.index: one.model_dump_json(exclude={"traceback"}) for one in record.iter_items()}


def test_the_parts_that_two_processes_do_are_together_the_whole(begun):
    commands = [[sys.executable, "-c", PART, str(begun), *places] for places in (("0", "7"), ("7", "100"))]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    ids = [process.communicate(timeout=100)[0].strip() for process in processes]
    halves = [load_record(begun.parent / run_id) for run_id in ids]
    (whole,) = resume(begun, max_calls=None)
    first, second = halves
    assert [half.counts.items for half in halves] == [7, 7]
    assert max(told(first)) < min(told(second))
    assert told(first) | told(second) == told(whole)
    assert whole.counts.failed == first.counts.failed + second.counts.failed
    assert "The items of the places 0 to 6 are measured here: this is a part of a run." in first.notes
    assert first.sample is None


def test_a_part_goes_on_as_a_part(begun):
    stopped = run_part(begun, (0, 5))
    (resumed,) = resume(begun.parent / stopped.run_id, max_calls=None)
    assert resumed.counts.items == 5
    assert resumed.failure is None


def test_a_part_is_measured_as_the_run_was(begun):
    with pytest.raises(InvalidOptionError, match="the run was started with seed=3"):
        run_part(begun, (0, 5), seed=4)


@pytest.mark.parametrize("places", [(5, 5), (-1, 5), (0, 5, 10), (0, 1.5), "0:5"])
def test_a_part_is_a_range_of_places(begun, places):
    with pytest.raises(InvalidOptionError, match=r"Give two places, the first of them 0 or more: \(0, 500\)"):
        run_part(begun, places)


def test_no_part_of_a_strangers_run_is_done(begun, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))
    with pytest.raises(RecordError, match="not known to be your own"):
        run_part(begun, (0, 5))

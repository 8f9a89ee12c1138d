"""Which items of a run are shown: by id, outcome, text and measurements."""

import json

import pytest

from modelgauge import PromptWithContext, TestItem, run_test
from modelgauge.cli.main import cli
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import InvalidOptionError, UnknownNameError
from modelgauge.runs.conditions import Condition
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.runs.selection import Selection
from modelgauge.testing import FakeSUT, FakeTest


def _answer(prompt):
    if prompt.text.endswith("3"):
        raise ValueError('it said "no"\nand left')
    return "Odd" if int(prompt.text[-1]) % 2 else "EVEN \\ all"


@pytest.fixture
def run(tmp_path):
    items = [TestItem([PromptWithContext(f"number {place}")], id=f"n{place}") for place in range(6)]
    test = FakeTest(
        "numbers",
        items,
        lambda item: {"odd": item.text == "Odd", "size": float(len(item.text) + int(item.test_item.id[1:]))},
    )
    record = run_test(test, FakeSUT("sut", _answer), data_dir=tmp_path)
    return recorded_run(RunFolder(tmp_path / "runs" / record.run_id))


def _ids(run, **wanted):
    return [record.test_item.id for record in Selection(**wanted).of(run)]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({}, ["n0", "n1", "n2", "n3", "n4", "n5"]),
        ({"ids": ("n4", "2")}, ["n1", "n4"]),
        ({"wrong": True}, ["n0", "n2", "n4"]),
        ({"text": "even \\ ALL"}, ["n0", "n2", "n4"]),
        ({"text": 'said "no"\nand'}, ["n3"]),
        ({"conditions": (Condition("odd", "==", 1), Condition("size", ">", 4))}, ["n5"]),
        ({"sort": "size"}, ["n1", "n5", "n0", "n2", "n4", "n3"]),
        ({"sort": "-size", "limit": 2}, ["n4", "n2"]),
        ({"wrong": True, "limit": 1}, ["n0"]),
    ],
)
def test_items_are_chosen(run, wanted, ids):
    assert _ids(run, **wanted) == ids


def test_outcomes_have_one_word_each(run):
    found = {record.test_item.id: record.outcome for record in run.items().records()}
    assert found == {"n0": "wrong", "n1": "ok", "n2": "wrong", "n3": "failed", "n4": "wrong", "n5": "ok"}


def test_what_is_not_there_is_an_error_with_the_nearest(run):
    with pytest.raises(UnknownNameError, match=r"no item 'n55'.*Did you mean 'n5'"):
        _ids(run, ids=("n55",))
    for wanted, purpose in (
        ({"conditions": (Condition("od", "==", 1),)}, "for the condition 'od == 1'"),
        ({"sort": "-od"}, "to sort by"),
    ):
        with pytest.raises(
            InvalidOptionError,
            match=rf"no 'od' {purpose}\. Did you mean 'odd'\? The measurements are: odd, size",
        ):
            _ids(run, **wanted)


def test_show_shows_them(run, capsys):
    data = ["--data-dir", str(run.folder.path.parents[1])]
    assert cli.main(["show", "latest", "--wrong", "--limit", "1", *data], standalone_mode=False) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1. n0\n")
    assert shown.endswith("1 item shown, of 6.\n")
    cli.main(["show", "latest", "--where", "size >= 6", "--json", *data], standalone_mode=False)
    (record,) = json.loads(capsys.readouterr().out)["records"]
    assert [one["test_item"]["id"] for one in record["test_item_records"]] == ["n0", "n2", "n4", "n5"]
    assert record["test_item_exceptions"] == []

"""Files of records with their items: read line by line where we wrote them, and whole where others did."""

import json

import pytest

from modelgauge.data.item_records import item_from_json
from modelgauge.errors import RecordError
from modelgauge.runs import record_files
from modelgauge.runs.record_files import record_as_json, records_as_json, records_in
from modelgauge.runs.recorded_run import RecordedRun


@pytest.fixture
def run(folder, record, scored, failure):
    items = folder(scored(2), failure(1, message="]}\n"), scored(0), failure(3))
    return RecordedRun(record(), items)


def _without_lines(text):
    """What an older version wrote: the comma behind an item, the bracket behind the last one."""
    return text.replace("\n,", ",\n").replace("\n]", "]")


@pytest.fixture(params=["one", "one older", "several", "several older", "compact", "indented"])
def file(request, run, tmp_path):
    several = request.param.startswith("several")
    text = "".join(records_as_json([run, run]) if several else record_as_json(run)) + "\n"
    if request.param in ("compact", "indented"):
        text = json.dumps(json.loads(text), indent=2 if request.param == "indented" else None)
    elif "older" in request.param:
        text = _without_lines(text)
    path = tmp_path / "out.json"
    path.write_text(text, encoding="utf-8")
    assert json.loads(text)
    return path


def test_every_form_gives_record_and_items_in_the_order_of_the_test(file, run):
    expected = list(run.items().records())
    for found in records_in(file):
        assert found == run.record
        assert list(found.iter_items()) == expected
        assert list(found.iter_items()) == expected  # as often as one likes
        held = RecordedRun(found).items()
        assert [one.index for one in held.records(held.failed)] == [1, 3]
        assert [json.loads(line.text)["index"] for line in held.lines()] == [0, 1, 2, 3]


def test_items_are_read_when_they_are_asked_for(run, tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    path.write_text("".join(record_as_json(run)), encoding="utf-8")
    monkeypatch.setattr(record_files, "read_json", None)  # which reads all
    asked = []

    def read(line, where):
        asked.append(line)
        return item_from_json(line, where)

    monkeypatch.setattr(record_files, "item_from_json", read)
    (found,) = records_in(path)
    assert asked == []
    next(found.iter_items())
    assert len(asked) == 2  # the first of each list


@pytest.mark.parametrize("parts", [{"scored": False, "failed": False}, {"scored": False}, {"failed": False}])
def test_a_part_of_the_items_will_do(run, tmp_path, parts):
    path = tmp_path / "out.json"
    path.write_text("".join(record_as_json(run, **parts)), encoding="utf-8")
    (found,) = records_in(path)
    items = run.items()
    wanted = (items.failed & parts.get("failed", True)) | (~items.failed & parts.get("scored", True))
    assert list(found.iter_items()) == list(items.records(wanted))


def test_a_damaged_item_is_an_error_that_names_the_file(run, tmp_path):
    path = tmp_path / "out.json"
    text = "".join(record_as_json(run)).replace('"index":2,', '"index":2,"index":[],')
    path.write_text(text, encoding="utf-8")
    (found,) = records_in(path)
    with pytest.raises(
        RecordError, match=r"out\.json is not an item record: .*Give a file that modelgauge wrote"
    ):
        list(found.iter_items())


@pytest.mark.parametrize(
    "text", ["", "[", '{"a": 1}', "[1, 2]", '{"run_id": 1, "test_item_records": 3}', "\xff"]
)
def test_what_is_no_record_is_an_error_that_names_the_file(tmp_path, text):
    path = tmp_path / "out.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(RecordError, match=r"out\.json"):
        records_in(path)


def test_a_cut_file_is_an_error(run, tmp_path):
    path = tmp_path / "out.json"
    lines = "".join(record_as_json(run)).splitlines(keepends=True)
    for number in range(1, len(lines)):
        path.write_text("".join(lines[:number]), encoding="utf-8")
        with pytest.raises(RecordError, match=r"out\.json is not JSON"):
            records_in(path)

"""The lines of a journal and the items of a file, one by one and at their offsets."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelgauge.data.items import TestItem
from modelgauge.engine.items.item_frame import ItemFrame
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.run_files.journal import make_line
from modelgauge.engine.run_files.lines import JournalLines, RecordLines
from modelgauge.errors import RecordError


def test_line_is_found_again_at_its_offset(folder, scored, failure):
    journal = JournalLines(folder(scored(2), failure(0), scored(1)).journal)
    lines = list(journal)
    assert [line.number for line in lines] == [1, 2, 3]
    again = list(journal.at([lines[2].offset, lines[0].offset]))
    assert [(line.index, line.number, line.text) for line in again] == [
        (line.index, line.number, line.text) for line in (lines[2], lines[0])
    ]


def test_lines_behind_an_offset_are_all_whole_lines(folder, scored):
    run = folder(scored(0), scored(1), scored(1, replaces=(0,)))
    first, *others = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join([first, *others, b'{"kind":"item","index":3']))
    lines = JournalLines(run.journal)
    assert [line.line for line in lines.after(len(first))] == others
    assert [line.line for line in lines.after(0)] == [first, *others]
    assert list(JournalLines(run.path / "missing.jsonl").after(0)) == []


def test_summary_is_that_of_the_record_however_the_line_is_spelled(folder, scored, failure):
    torn = failure(0).failures[0].replaced(repeat=1)
    for record in (scored(3), failure(4), scored(5, failures=(torn,))):
        ours = make_line(record, "t", str)[1]
        spaced = json.dumps(dict(reversed(json.loads(ours).items()))).encode() + b"\n"
        run = folder()
        run.journal.write_bytes(ours + spaced)
        for line in JournalLines(run.journal):
            summary = line.summary()
            found = (summary.index, summary.is_scored, summary.has_failures)
            assert found == (record.index, record.is_scored, bool(record.failures))


def test_unusual_line_is_read_as_its_validated_record(folder, scored):
    run = folder()
    usual = scored(0).model_dump_json()
    unusual = usual.replace('"measurements":{"x":1.0}', '"measurements":{"x":1}')
    run.journal.write_text(f"{usual}\n{unusual}\nno JSON\n", encoding="utf-8")

    def read(record):
        if type(record["measurements"]["x"]) is not float:
            raise TypeError("not as we write it")
        return record["measurements"]

    first, second, third = JournalLines(run.journal)
    assert first.read_json(read) == (usual.encode(), {"x": 1.0})
    text, measured = second.read_json(read)
    assert (json.loads(text), measured) == (json.loads(usual), {"x": 1.0})
    with pytest.raises(RecordError, match=r"items\.jsonl, line 3 is not an item record"):
        third.read_json(read)


def test_items_of_a_file_come_in_the_order_in_which_they_are_asked_for(record, scored):
    lines = RecordLines(record().with_items(lambda: map(scored, range(5))))
    assert [line.record().index for line in lines.at([3, 0, 4])] == [3, 0, 4]


def test_damaged_lines_can_be_left_out(folder, record, scored):
    run = folder(scored(1), scored(0))
    with run.journal.open("a", encoding="utf-8") as file:
        file.write('{"kind":"item","index":2}\n')
    frame = ItemFrame(JournalLines(run.journal), record(), skip_damaged=True)
    assert frame.values("x").tolist() == [1, 1]
    with pytest.raises(RecordError, match="line 3"):
        ItemFrame(JournalLines(run.journal), record())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(6)))
def test_measured_items_do_not_depend_on_the_order_in_which_they_were_written(folder, scored, failure, order):
    def record(index):
        made = failure(index) if index == 4 else scored(index).replaced(measurements={"x": float(index)})
        prompt = f"prompt {index % 4}"  # 0 is 4, which failed, and 1 is 5
        return made.replaced(test_item=TestItem([prompt], id=f"i{index}"))

    journal = folder(*map(record, order)).journal
    index = JournalIndex(journal, {}, is_asked=True)
    for line in JournalLines(journal):
        index.add(line.record(), line.offset, line.record().test_item)
    items = index.items(known=8)
    assert [item.test_item.id for item in items] == ["i0", "i1", "i2", "i3", "i5"]
    assert items.column("x").tolist() == [0, 1, 2, 3, 5]
    assert items.shared[1] == items.shared[4]
    assert len({*items.shared.tolist()}) == 4
    assert [item.id for item in items.failed] == ["i4"]
    assert (items.missing, items.unfinished, index.distinct_prompts()) == (3, 2, 4)

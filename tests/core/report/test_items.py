"""The items of a run in the order of the test, however they were finished."""

import json
import random

import pytest

from modelgauge.data.records import record_from_json
from modelgauge.errors import RecordError
from modelgauge.report.failures import group_failures
from modelgauge.report.items import JournalOrder, ShownRun, record_as_json, records_as_json


def test_items_come_in_the_order_of_the_test(folder, scored, failure):
    items = [scored(n) if n % 3 else failure(n) for n in range(30)]
    random.Random(0).shuffle(items)
    order = JournalOrder(folder(*items).journal)
    assert [item.index for item in order.records()] == list(range(30))
    assert [json.loads(line)["index"] for line in order.scored()] == [n for n in range(30) if n % 3]
    assert [json.loads(line)["index"] for line in order.failed()] == list(range(0, 30, 3))


def test_an_item_that_stands_twice_counts_as_it_was_last(folder, scored, failure):
    order = JournalOrder(folder(failure(1), scored(0), scored(1)).journal)
    assert [item.kind for item in order.records()] == ["item", "item"]
    assert list(order.failed()) == []


def test_a_missing_journal_and_a_torn_line_hold_nothing(folder, scored):
    run = folder(scored(0))
    with run.journal.open("a", encoding="utf-8") as file:
        file.write('{"kind":"item","index":1')
    assert len(list(JournalOrder(run.journal).records())) == 1
    run.journal.unlink()
    assert list(JournalOrder(run.journal).records()) == []


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "5",
        "garbage",
        '{"kind":"item"}',
        '{"kind":"nope"}',
        '{"kind":"item","index":-1}',
        '{"kind":[]}',
        "{",
    ],
)
def test_a_damaged_line_is_named(folder, scored, line):
    run = folder(scored(0), scored(1))
    with run.journal.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(RecordError, match=r"items\.jsonl, line 3 is not an item record") as caught:
        JournalOrder(run.journal)
    assert "Error(" not in str(caught.value)


def test_a_record_as_json_reads_back_with_its_items(folder, record, scored, failure):
    run = ShownRun(record(result={"x": 0.1}), folder(scored(2), failure(0), scored(1)))
    text = "".join(record_as_json(run))
    read = record_from_json(json.loads(text), "here")
    assert read == run.record
    assert [item.index for item in read.test_item_records] == [1, 2]
    assert [item.index for item in read.test_item_exceptions] == [0]
    again = ShownRun(read)
    assert "".join(record_as_json(again)) == text
    assert [item.index for item in again.order().records()] == [0, 1, 2]
    assert [item.index for item in again.failures()] == [0]


def test_several_records_are_a_list_and_items_can_be_left_out(folder, record, scored):
    run = ShownRun(record(), folder(scored(0)))
    data = json.loads("".join(records_as_json([run, run], scored=False)))
    assert [one["test_item_exceptions"] for one in data["records"]] == [[], []]
    assert "test_item_records" not in data["records"][0]
    assert json.loads("".join(records_as_json([]))) == {"records": []}


def test_secrets_are_taken_out_of_the_record(folder, record):
    run = ShownRun(record(notes=("a key",)), folder())
    text = "".join(record_as_json(run, redact_json=lambda value: {**value, "notes": ["[secret]"]}))
    assert json.loads(text)["notes"] == ["[secret]"]


def test_failures_that_differ_in_numbers_and_quotes_only_are_one_group(failure):
    alike = [failure(n, f"no answer to {n!r} in 'file {n}.txt' after {n}.5 s") for n in range(5)]
    groups = group_failures([failure(9, "other"), *alike, failure(10, "other", stage="measure")])
    assert [(group.count, group.item_id) for group in groups] == [(5, "i0"), (1, "i9"), (1, "i10")]
    assert groups[0].message == alike[0].message


def test_the_number_of_groups_is_bounded_and_no_failure_is_lost(failure):
    words = (chr(97 + n % 26) * (1 + n // 26) for n in range(1500))
    groups = group_failures(failure(n, word) for n, word in enumerate(words))
    assert len(groups) <= 1001
    assert sum(group.count for group in groups) == 1500

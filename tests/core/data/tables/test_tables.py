"""Records as tables: their rows, the keys by which they join, and frames of Arrow and pandas."""

import json
import sys
from typing import ClassVar

import pandas as pd
import pyarrow as pa
import pytest

from modelgauge import TestItem, run_test
from modelgauge.data.item_records import TestItemRecord
from modelgauge.data.spans import Span, Trace
from modelgauge.data.tables.frames import TABLES, arrow_schema
from modelgauge.errors import InvalidOptionError, UsageError
from modelgauge.testing import FakeSUT, FakeTest


def _rows(record, table):
    return record.to_arrow(table).to_pylist()


def test_every_item_has_a_row_in_the_order_of_the_test(record):
    rows = _rows(record, "items")
    assert [row["item_id"] for row in rows] == ["two", "chat", "fails", "-5"]
    assert [row["item_index"] for row in rows] == [0, 1, 2, 3]
    assert {(row["test"], row["sut"]) for row in rows} == {("made", "sut")}
    labelled = _rows(record.replaced(sut_label="mine"), "items")
    assert {row["sut"] for row in labelled} == {"mine"}
    assert [row["outcome"] for row in rows] == ["wrong", "ok", "failed", "ok"]
    assert [row["context"] for row in rows] == ['{"target":"ü"}', "yes", "[1,null]", None]
    assert [row["prompt"] for row in rows] == ["same\n\nsame", "[user] hi", "fails", "plain"]
    assert [row["answer"] for row in rows] == ["=to same", "=to hi", None, "=to plain"]


def test_a_failed_item_says_where_and_why(record):
    failed = _rows(record, "items")[2]
    assert (failed["stage"], failed["source_uid"], failed["error_type"]) == ("sut", "sut", "ValueError")
    assert failed["message"] == "there is\nno answer"
    assert "raise ValueError" in failed["traceback"]
    others = [row["stage"] for row in _rows(record, "items") if row["outcome"] != "failed"]
    assert others == [None, None, None]


def test_completions_have_their_prompts_and_the_usage_of_a_call_once(record):
    rows = _rows(record, "completions")
    keys = [(row["item_id"], row["prompt_index"], row["repeat"], row["completion"]) for row in rows]
    expected = [
        (item, prompt, repeat, completion)
        for item, prompts in (("two", 2), ("chat", 1), ("-5", 1))
        for prompt in range(prompts)
        for repeat in range(2)
        for completion in range(2)
    ]
    assert sorted(keys) == sorted(expected)
    assert sum(row["input_tokens"] or 0 for row in rows) == 3 * 8
    assert sum(row["cost_usd"] or 0 for row in rows) == 0.5 * 8
    chat = next(row for row in rows if row["item_id"] == "chat")
    assert (chat["source_id"], chat["text"], chat["reasoning"]) == ("src", "=to hi", "hm")
    assert json.loads(chat["metadata"]) == {"trace": "a word of its own"}
    assert json.loads(chat["tool_calls"])[0]["name"] == "find"


class Harm(FakeTest):
    measurement_ranges: ClassVar = {"score": (0, 1)}
    measurement_directions: ClassVar = {"score": "lower"}


def _harm(item):
    if item.text == "q 0":
        raise ValueError("not measured")
    return {"score": 0.25}


def test_results_with_missing_items_have_bounds_worst_first_and_an_interval(tmp_path):
    test = Harm("harm", [f"q {number}" for number in range(4)], _harm)
    record = run_test(test, FakeSUT("sut", lambda prompt: prompt.text), data_dir=tmp_path)
    (row,) = [row for row in _rows(record, "results") if row["result"] == "score"]
    assert (row["worst"], row["best"]) == pytest.approx(((3 * 0.25 + 1) / 4, 3 * 0.25 / 4))
    low, high = record.result["score"].bounds_interval
    assert (row["with_missing_low"], row["with_missing_high"]) == (low, high)
    assert low < row["best"] < row["worst"] < high


def test_equal_prompts_are_told_apart_in_json_that_names_no_places(record):
    def keys(items):
        rows = [row for item in items for row in TABLES["completions"].rows_of_item(record, item)]
        return sorted(row[1:5] for row in rows)

    items = list(record.test_item_records)
    plain = [TestItemRecord.model_validate_json(item.model_dump_json()) for item in items]
    assert keys(plain) == keys(items)
    assert len(set(keys(plain))) == 16


def test_annotations_are_numbers_with_reasons_where_they_are(record):
    rows = _rows(record, "annotations")
    judged = [row for row in rows if row["annotator"] == "judge"]
    assert {(row["score"], row["reason"]) for row in judged} == {
        (0.25, "=to same"),
        (0.25, "=to hi"),
        (0.25, "=to plain"),
        (0.25, "second"),
    }
    assert json.loads(judged[0]["annotation"]) == {"value": 0.25, "reason": "=to same"}
    assert {row["annotation"] for row in rows if row["annotator"] == "length"} == {"6", "8", "9"}
    assert len(rows) == 2 * len(_rows(record, "completions"))


def test_measurements_are_of_items_and_those_of_repeats_apart(record):
    rows = _rows(record, "measurements")
    assert [(row["item_id"], row["measurement"], row["value"], row["binary"]) for row in rows] == [
        (item, *measured)
        for item, good in (("two", 0.0), ("chat", 1.0), ("-5", 1.0))
        for measured in (("good", good, True), ("size", -1.5, False))
    ]
    repeats = _rows(record, "repeat_measurements")
    assert [row["repeat"] for row in repeats] == [0, 0, 1, 1] * 3


def test_measurements_of_repeats_keep_their_numbers_where_one_failed(tmp_path):
    asked = []

    def answer(prompt):
        asked.append(prompt)
        if len(asked) == 1:
            raise ValueError("no")
        return "yes"

    options = {"repeats": 3, "concurrency": 1, "max_retries": 0}
    made = run_test(
        FakeTest("t", [TestItem("p", id="i")]), FakeSUT("s", answer), data_dir=tmp_path, **options
    )
    failed = made.test_item_records[0].failed_repeats[0].repeat
    repeats = [row["repeat"] for row in _rows(made, "repeat_measurements")]
    assert repeats == [one for one in range(3) if one != failed]
    assert _rows(made, "items")[0]["failed_repeats"] == 1


def test_the_run_has_one_row_and_its_results_one_each(record):
    (run,) = _rows(record, "runs")
    assert (run["test_uid"], run["sut_uid"], run["scored"], run["failed"]) == ("made", "sut", 3, 1)
    assert run["started"].isoformat() == record.run_timestamp
    results = {row["result"]: row for row in _rows(record, "results")}
    good = record.result["good"]
    assert results["good"]["value"] == good.value
    assert (results["good"]["interval_low"], results["good"]["interval_high"]) == good.interval
    assert {row["run_id"] for table in TABLES for row in _rows(record, table)} == {record.run_id}


def test_results_by_group_have_a_row_for_each_group(record):
    grouped = record.replaced(result={"a": {"x": 1, "y": record.result["good"]}, "b": 2})
    rows = [(row["result"], row["group"], row["n"]) for row in _rows(grouped, "results")]
    assert rows == [("a", "x", None), ("a", "y", 3), ("b", None, None)]


def test_spans_name_the_completion_that_they_belong_to(record):
    spans = (Span(id=0, name="app", start=0.0, seconds=0.2), Span(id=1, parent=0, name="find", start=0.1))
    trace = Trace(name="app", started="2026-01-31T12:00:00+00:00", seconds=0.2, spans=spans)
    item = record.test_item_records[1]
    (interaction, *_), response = item.interactions, item.interactions[0].response
    completion = response.completions[0]
    traced = completion.completion.replaced(metadata={"trace": trace.model_dump(mode="json"), "more": 1})
    response = response.replaced(completions=(completion.replaced(completion=traced),))
    failed = record.test_item_exceptions[0]
    failure = failed.replaced(failures=(failed.failures[0].replaced(traces=(trace,)),))
    item = item.replaced(interactions=(interaction.replaced(response=response),))
    traced = record.with_items(lambda: (item, failure))
    rows = _rows(traced, "spans")
    keys = ("item_id", "trace", "span", "parent", "prompt_index", "repeat", "completion")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("chat", 0, 0, None, 0, 0, 0),
        ("chat", 0, 1, 0, 0, 0, 0),
        ("fails", 0, 0, None, None, None, None),
        ("fails", 0, 1, 0, None, None, None),
    ]
    assert _rows(traced, "completions")[0]["metadata"] == '{"more":1}'


def test_a_data_frame_keeps_whole_numbers_whole(record):
    frame = record.to_pandas("completions")
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["input_tokens"].dropna()) == [3] * 8
    assert str(frame.dtypes["input_tokens"]) == "Int64"
    assert str(record.to_pandas("runs").dtypes["started"]) == "datetime64[us, UTC]"
    joined = record.to_pandas().merge(record.to_pandas("measurements"), on=["run_id", "item_id"])
    assert len(joined) == 6


def test_the_schema_says_what_the_columns_are(record):
    for name, table in TABLES.items():
        schema = record.to_arrow(name).schema
        assert schema.equals(arrow_schema(table), check_metadata=True)
        assert schema.names == table.head
        assert len(set(table.head)) == len(table.head)
    cost = record.to_arrow("completions").schema.field("cost_usd")
    assert cost.type == pa.float64()
    assert cost.metadata[b"unit"] == b"US dollars"


def test_the_key_of_each_table_identifies_its_rows(record):
    for name, table in TABLES.items():
        keys = [tuple(row.values())[: table.key] for row in _rows(record, name)]
        assert len(set(keys)) == len(keys)


def test_a_number_that_no_float_holds_has_no_score(record):
    item = record.test_item_records[1]
    (interaction, *_) = item.interactions
    annotated = interaction.response.completions[0].replaced(annotations={"huge": 10**400})
    response = interaction.response.replaced(completions=(annotated,))
    item = item.replaced(interactions=(interaction.replaced(response=response),))
    (row,) = _rows(record.with_items(lambda: (item,)), "annotations")
    assert row["score"] is None
    assert int(row["annotation"]) == 10**400


def test_an_unknown_table_is_an_error_with_the_nearest_one(record):
    with pytest.raises(InvalidOptionError, match="Did you mean 'items'"):
        record.to_arrow("item")


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_without_the_packages_the_error_names_the_extra(record, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=rf'{package}.*pip install "modelgauge-framework\[frames\]"'):
        record.to_pandas()

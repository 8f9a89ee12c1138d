"""The frame of a run's items: its columns, whatever holds the items."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import folder, item, record

from modelgauge.data.item_records import Failure
from modelgauge.data.prompts import ChatPrompt, SUTOptions, TextPrompt
from modelgauge.data.results import GIVEN
from modelgauge.errors import RecordError
from modelgauge.runs.recorded_run import RecordedRun, recorded_run

ITEMS = [
    item(
        0, {"right": 1.0, "words": 3.0}, binary=("right",), source="s0", context={"name": "n", "input": "q"}
    ),
    item(1, None, measurements={"words": 4.0}),
    item(2, {"right": 0.0}, binary=("right",), prompt=["a", ChatPrompt([{"role": "user", "text": "b"}])]),
    item(3, {"right": 0.5, "words": 1.0}, repeat_measurements=({"right": 0.0}, {"right": 1.0})),
]


def frame_of(made, **fields):
    return RecordedRun(made).frame(**fields)


def values(frame, name):
    return [None if math.isnan(one) else one for one in frame.values(name)]


def test_items_are_columns_in_the_order_of_the_test():
    frame = frame_of(record("a", *random.Random(0).sample(ITEMS, len(ITEMS))))
    assert len(frame) == 4
    assert values(frame, "right") == [1, None, 0, 0.5]
    assert values(frame, "words") == [3, 4, None, 1]
    assert frame.failed.tolist() == [False, True, False, False]
    assert [list(frame.repeats(np.array([3, 0]))["right"](place)) for place in (0, 1)] == [[0, 1], []]


@given(st.permutations(ITEMS))
def test_a_journal_and_a_record_that_holds_its_items_are_read_alike(tmp_path_factory, items):
    made = record("a", *items, cluster="topic")
    frames = [
        frame_of(made, match="input", group="name"),
        recorded_run(folder(tmp_path_factory.mktemp("run"), made)).frame(match="input", group="name"),
    ]
    for name in ("id", "source", "name", "input", "field"):
        assert frames[0].keys(name).tolist() == frames[1].keys(name).tolist()
    assert frames[0].targets.tolist() == frames[1].targets.tolist()
    assert frames[0].groups == frames[1].groups == ["n", "", "", ""]
    for name in ("right", "words"):
        assert values(frames[0], name) == values(frames[1], name)
    read = [[one.index for one in frame.records([2, 0])] for frame in frames]
    assert read == [[2, 0], [2, 0]]


def test_of_an_item_that_stands_twice_the_last_record_counts(tmp_path):
    made = record("a", item(1, 0.0), item(0, 0.0), item(1, 1.0))
    for frame in (frame_of(made), recorded_run(folder(tmp_path, made)).frame()):
        assert values(frame, "right") == [0, 1]
        assert [one.measurements["right"] for one in frame.records([0, 1])] == [0, 1]
    indices = random.Random(0).choices(range(200), k=1000)
    many = frame_of(record("a", *(item(index, float(n)) for n, index in enumerate(indices))))
    last = {index: n for n, index in enumerate(indices)}
    assert values(many, "right") == [last[index] for index in sorted(last)]


@pytest.mark.parametrize(
    "line",
    [
        "nothing",
        "{}",
        '{"kind":"item","index":1}',
        json.dumps({**json.loads(ITEMS[0].model_dump_json()), "measurements": {"x": "1"}}),
        json.dumps({**json.loads(ITEMS[0].model_dump_json()), "measurements": [1]}),
        json.dumps({**json.loads(ITEMS[0].model_dump_json()), "index": -1}),
        json.dumps({**json.loads(ITEMS[0].model_dump_json()), "index": 2**63}),
        ITEMS[0].model_dump_json().replace("3.0", "NaN"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line):
    run = folder(tmp_path, record("a", *ITEMS))
    with run.journal.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(RecordError, match=r"items\.jsonl, line 5 is not an item record"):
        recorded_run(run).frame().values("right")


def test_a_line_that_is_only_unusual_is_read_as_everybody_reads_it(tmp_path):
    run = folder(tmp_path, record("a", item(0, 0.0)))
    whole = json.loads(item(1, 1.0).model_dump_json())
    with run.journal.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps({**whole, 'measurements': {'right': 1}})}\n")
        file.write('{"kind":"item","index":2')  # torn
    assert values(recorded_run(run).frame(), "right") == [0, 1]


def test_items_that_share_their_prompts_are_one_cluster():
    frame = frame_of(record("a", item(0, prompt="x"), item(1, prompt="y"), item(2, prompt="x")))
    assert frame.clusters.tolist() in ([0, 1, 0], [1, 0, 1])
    assert frame_of(record("a", item(0, prompt="x"), item(1, prompt="y"))).clusters is None


def test_prompts_are_shared_only_where_their_options_are():
    cold, same = SUTOptions(temperature=0.0), SUTOptions(temperature=0.5)
    items = [
        item(0, prompt=TextPrompt("x", cold)),
        item(1, prompt=TextPrompt("x", same)),
        item(2, prompt="x"),
    ]
    assert frame_of(record("a", *items)).clusters is None
    assert frame_of(record("a", *items, sut_options={"temperature": 0.5})).clusters.tolist() == [0, 0, 0]
    assert frame_of(record("a", *items, sut_options={"max_tokens": 5})).clusters is None


def test_nobody_was_asked_for_answers_that_were_given():
    assert frame_of(record(GIVEN, item(0, prompt="x"), item(1, prompt="x"))).clusters is None


def test_items_with_one_value_in_the_field_of_the_run_are_one_cluster():
    items = [item(n, context={"book": book}) for n, book in enumerate(("a", "b", "a", None, None, 3))]
    clusters = frame_of(record("a", *items, cluster="book")).clusters.tolist()
    assert clusters[0] == clusters[2]
    assert sorted({*clusters}) == [0, 1, 2, 3, 4]


def test_the_target_of_an_answer_that_was_given_is_not_the_answer():
    case = {"input": "q", "actual_output": "a", "expected_output": "e", "tags": ["t"], "metadata": None}
    contexts = [case, {**case, "actual_output": "b", "tags": None}, {**case, "expected_output": "f"}]
    same, other, different = frame_of(
        record(GIVEN, *(item(n, context=one) for n, one in enumerate(contexts)))
    ).targets
    assert same == other != different
    same, other, different = frame_of(
        record("sut", *(item(n, context=one) for n, one in enumerate(contexts)))
    ).targets
    assert len({same, other, different}) == 3


def test_what_an_observed_app_did_is_no_part_of_its_input():
    uses = [item(0, prompt=["q", "a span"], source="0"), item(0, prompt=["q"], source="5")]
    first, second = (frame_of(record(GIVEN, use)) for use in uses)
    assert first.keys("input").tolist() == second.keys("input").tolist()
    assert first.keys("source").tolist() == [0]


def test_repeats_that_failed_are_left_out():
    torn = Failure(repeat=1, stage="sut", source_uid="s", error_type="E", message="m", traceback="t")
    frame = frame_of(record("a", item(0, 1.0, repeat_measurements=({"right": 1.0},), failed_repeats=(torn,))))
    assert list(frame.repeats(np.array([0]))["right"](0)) == [1]


def test_a_range_is_implied_where_all_values_are_bools():
    assert frame_of(record("a", *ITEMS[:3])).bool_ranges == {"right": (0, 1)}
    assert frame_of(record("a", *ITEMS)).bool_ranges == {}


@pytest.mark.parametrize(
    ("context", "alike", "other"),
    [
        ({"a": 1, "b": "x"}, {"b": "x", "a": 1}, {"a": 1, "b": "y"}),
        ({"a": [1, {"b": 2}], "c": 3}, {"c": 3, "a": [1, {"b": 2}]}, {"a": [1, {"b": 4}], "c": 3}),
    ],
)
def test_targets_are_equal_where_contexts_are_in_whatever_order(context, alike, other):
    items = [item(place, 0.0, context=one) for place, one in enumerate((context, alike, other))]
    first, second, third = frame_of(record("a", *items)).targets
    assert first == second != third

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.errors import InvalidDataError, UnknownNameError
from modelgauge.stats.measured import MeasuredItems


def _item(name, context=None):
    return TestItem(prompts=[PromptWithContext(prompt=name)], context=context, id=name)


def _measured(*rows, failed=(), **known):
    """Items i0, i1… of (context, measurements)."""
    items = [
        MeasuredTestItem(test_item=_item(f"i{place}", context), measurements=measurements)
        for place, (context, measurements) in enumerate(rows)
    ]
    lost = [_item(f"f{place}", context) for place, context in enumerate(failed)]
    return MeasuredItems.of(items, failed=lost, **known)


class OnDisk(MeasuredItems):
    """As small as a subclass can be: items as lines of JSON, columns as arrays."""

    def __init__(self, lines, failed=()):
        self._lines = [json.dumps(line) for line in lines]
        self._columns = {"x": np.array([line["x"] for line in lines], dtype=float)}
        self._lost = failed
        self.reads = 0

    def __len__(self):
        return len(self._lines)

    def _item(self, index):
        self.reads += 1
        line = json.loads(self._lines[index])
        return MeasuredTestItem(test_item=_item(line["id"], line["id"][0]), measurements={"x": line["x"]})

    def _column_values(self, name):
        return self._columns[name].copy()

    @property
    def names(self):
        return ("x",)

    @property
    def failed(self):
        return self._lost

    @property
    def ranges(self):
        return {"x": (0, 10)}


# --- sequence ---------------------------------------------------------------------------------------------


def test_it_is_a_sequence():
    items = _measured(("a", {"x": 1}), ("b", {"x": 2}), ("c", {"x": 3}))
    assert len(items) == 3
    assert [item.context for item in items] == ["a", "b", "c"]
    assert items[-1].context == "c"
    assert items[0] in items
    assert [item.context for item in reversed(items)] == ["c", "b", "a"]
    with pytest.raises(IndexError):
        items[3]
    with pytest.raises(IndexError):
        items[-4]


@given(st.slices(7), st.slices(7))
def test_slices_are_views_and_slices_of_slices_too(first, second):
    items = _measured(*((place, {"x": place}) for place in range(7)))
    places = list(range(7))[first][second]
    view = items[first][second]
    assert view.column("x").tolist() == places
    assert [item.context for item in view] == places
    assert len(view) == len(places)


def test_a_slice_cannot_tell_whether_failed_items_belong_to_it():
    items = _measured((None, {"x": 1}), (None, {"x": 2}), failed=[None])
    assert len(items[:1].failed) == 0
    assert items[:1].unplaced == 1
    assert items.unplaced == 0


def test_repr_says_what_it_holds():
    items = _measured((None, {"x": 1}), failed=[None], ranges={"y": (0, 1)})
    assert repr(items) == "<1 measured items, 1 failed, with 'x', 'y'>"


# --- columns ----------------------------------------------------------------------------------------------


def test_a_column_is_float64_in_order():
    column = _measured((None, {"x": True, "y": 5}), (None, {"x": 0, "y": 0.5})).column("x")
    assert column.dtype == np.float64
    assert column.tolist() == [1.0, 0.0]


def test_names_are_in_order_of_first_appearance():
    assert _measured((None, {"b": 1}), (None, {"c": 1, "a": 1, "b": 1})).names == ("b", "c", "a")


def test_a_column_is_the_authors_to_change():
    items = _measured((None, {"x": 1}))
    items.column("x")[0] = 7
    assert items.column("x").tolist() == [1.0]


def test_a_missing_measurement_is_an_error_that_names_the_items():
    items = _measured((None, {"x": 1}), *[(None, {"y": 1})] * 7)
    with pytest.raises(InvalidDataError) as caught:
        items.column("x")
    assert "7 items of 8 have no measurement 'x': 'i1', 'i2', 'i3', 'i4', 'i5' and 2 more" in str(
        caught.value
    )
    assert 'missing="skip"' in caught.value.fix


def test_missing_says_what_stands_in():
    items = _measured((None, {"x": 1}), (None, {"y": 1}), (None, {"x": 3}))
    assert items.column("x", missing="skip").tolist() == [1.0, 3.0]
    assert items.column("x", missing=0).tolist() == [1.0, 0.0, 3.0]
    assert math.isnan(items.column("x", missing=math.nan)[1])
    assert items.column("x", missing=math.inf)[1] == math.inf


def test_missing_is_checked_though_nothing_is_missing():
    with pytest.raises(InvalidDataError, match="`missing` cannot be 'drop'"):
        _measured((None, {"x": 1})).column("x", missing="drop")


@pytest.mark.parametrize("missing", [None, "skip", 0.0])
def test_a_name_that_no_item_has_is_an_error_with_a_suggestion(missing):
    items = _measured((None, {"accuracy": 1, "length": 2}))
    with pytest.raises(UnknownNameError) as caught:
        items.column("acuracy", missing=missing)
    assert str(caught.value) == (
        "No item has a measurement 'acuracy'. Did you mean 'accuracy'?"
        " The measurements are: 'accuracy', 'length'."
    )
    with pytest.raises(UnknownNameError):
        items.having("acuracy")


def test_a_declared_measurement_may_occur_nowhere():
    items = _measured((None, {"x": 1}), ranges={"rare": (0, 1)})
    assert items.column("rare", missing=0).tolist() == [0.0]
    assert items.column("rare", missing="skip").tolist() == []
    with pytest.raises(InvalidDataError, match="1 item of 1 has"):
        items.column("rare")


def test_no_items_have_empty_columns():
    assert _measured().column("x").tolist() == []


def test_a_group_knows_the_names_of_the_whole():
    groups = _measured(("a", {"x": 1}), ("b", {"y": 1})).group_by(lambda item: item.context)
    assert groups["b"].column("x", missing="skip").tolist() == []


def test_having_keeps_those_with_the_measurement_and_all_failed():
    items = _measured((0, {"x": 1}), (1, {"y": 1}), (2, {"x": 3}), failed=["f"])
    having = items.having("x")
    assert [item.context for item in having] == [0, 2]
    assert having.failed == items.failed
    assert having.unplaced == 0


@pytest.mark.parametrize("bad", [(1, 0), (math.nan, 1), (math.inf, math.inf), (-math.inf, -math.inf)])
def test_a_range_is_two_numbers_in_order(bad):
    with pytest.raises(InvalidDataError, match="range of measurement 'x'"):
        _measured(ranges={"x": bad})


# --- groups -----------------------------------------------------------------------------------------------


class Question(BaseModel):
    subject: str
    level: int = 0

    @property
    def initial(self):
        return self.subject[0]


def test_groups_are_in_order_of_first_appearance():
    groups = _measured(("b", {"x": 1}), ("a", {"x": 2}), ("b", {"x": 3})).group_by(lambda item: item.context)
    assert list(groups) == ["b", "a"]
    assert groups["b"].column("x").tolist() == [1.0, 3.0]
    assert groups["b"][1].test_item.id == "i2"


def test_groups_of_groups():
    items = _measured(*(({"a": place % 2, "b": place % 3}, {"x": place}) for place in range(12)))
    inner = items.group_by("a")[1].group_by("b")[2]
    assert inner.column("x").tolist() == [5.0, 11.0]
    assert [item.test_item.id for item in inner] == ["i5", "i11"]


@given(st.lists(st.sampled_from("abc"), max_size=20), st.lists(st.sampled_from("abcd"), max_size=5))
def test_groups_part_the_whole(contexts, lost):
    items = _measured(*((context, {"x": place}) for place, context in enumerate(contexts)), failed=lost)
    groups = items.group_by(lambda item: item.context)
    assert sorted(value for group in groups.values() for value in group.column("x")) == [
        *range(len(contexts))
    ]
    assert {key: len(group.failed) for key, group in groups.items()} == {
        key: lost.count(key) for key in dict.fromkeys(contexts)
    }
    assert all(group.unplaced == 0 for group in groups.values())


def test_a_key_of_a_mapping_or_an_attribute_of_a_model():
    mapping = _measured(({"subject": "art"}, {"x": 1}), ({"subject": None}, {"x": 1}))
    assert list(mapping.group_by("subject")) == ["art", None]
    model = _measured((Question(subject="law"), {"x": 1}))
    assert list(model.group_by("subject")) == ["law"]
    assert list(model.group_by("initial")) == ["l"]


@pytest.mark.parametrize(
    ("context", "key", "message"),
    [
        (
            {"subject": 1},
            "subjct",
            "The context of item 'i0' has no 'subjct'; it has: 'subject'. Did you mean 'subject'?",
        ),
        (Question(subject="law"), "levle", "it has: 'subject', 'level'. Did you mean 'level'?"),
        (Question(subject="law"), "model_dump", "has no 'model_dump'"),
        ("a text", "upper", "it has: none. Give a function"),
        (None, "subject", "it has: none. Give a function"),
    ],
)
def test_a_key_that_the_context_lacks(context, key, message):
    with pytest.raises(InvalidDataError) as caught:
        _measured((context, {"x": 1})).group_by(key)
    assert message in str(caught.value)


def test_a_key_that_cannot_name_a_group():
    with pytest.raises(InvalidDataError, match="key of item 'i0' is a list"):
        _measured(({"tags": ["a"]}, {"x": 1})).group_by("tags")


def test_an_error_of_the_function_on_a_scored_item_is_the_authors():
    with pytest.raises(ZeroDivisionError):
        _measured((0, {"x": 1})).group_by(lambda item: 1 / item.context)


@pytest.mark.parametrize(
    "key",
    [
        lambda item: item.measurements["x"] > 1,
        lambda item: item.measurements.get("x", 0) > 1,
        lambda item: "x" in item.measurements,
        lambda item: len(item.measurements),
        lambda item: sum(item.measurements.values()),
        lambda item: item.measurements == {},
    ],
)
def test_failed_items_have_no_group_where_the_key_reads_measurements(key):
    items = _measured((None, {"x": 1}), (None, {"x": 2}), failed=[None])
    for group in items.group_by(key).values():
        assert (len(group.failed), group.unplaced) == (0, 1)


def test_failed_items_have_no_group_where_the_key_raises_for_them():
    items = _measured(({"a": 1}, {"x": 1}), failed=[{"a": 1}, None])
    group = items.group_by("a")[1]
    assert (len(group.failed), group.unplaced) == (1, 1)
    assert group.group_by("a")[1].unplaced == 1  # and stay so further in


def test_a_group_of_failed_items_alone_is_left_out():
    assert list(_measured(("a", {"x": 1}), failed=["b"]).group_by(lambda item: item.context)) == ["a"]


# --- what intervals need to know of items ---------------------------------------------------------------------


def test_views_hand_on_shared_answers_and_population():
    rows = [_item(f"i{place}", {"group": place % 2}) for place in range(6)]
    items = MeasuredItems.of(
        [
            MeasuredTestItem(test_item=row, measurements={"x": 1} if place else {})
            for place, row in enumerate(rows)
        ],
        shared=["p", "q", "p", "r", "s", "s"],
        population=20,
    )
    odd = items.group_by("group")[1]
    assert (odd.shared, odd.population) == (["q", "r", "s"], 10)
    assert (odd[1:].shared, odd[1:].population) == (["r", "s"], 7)  # 6.67, and rounding up claims less
    assert (items.having("x").shared, items.having("x").population) == (["q", "p", "r", "s", "s"], 17)


def test_of_a_population_that_is_measured_in_full_each_part_is_so_too():
    items = _measured(*[({"group": place % 3}, {"x": place}) for place in range(7)], population=7)
    assert [(len(group), group.population) for group in items.group_by("group").values()] == [
        (3, 3), (2, 2), (2, 2)
    ]  # fmt: skip


def test_nothing_is_shared_by_default_and_all_questions_like_these_are_meant():
    items = _measured((None, {"x": 1}))
    assert (items.shared, items.population) == (None, None)
    assert (items[:1].shared, items[:1].population) == (None, None)


def test_impossible_labels_and_populations_are_refused():
    with pytest.raises(InvalidDataError, match="1 item, but 2 labels"):
        _measured((None, {"x": 1}), shared=["a", "b"])
    with pytest.raises(InvalidDataError, match="population of 1 cannot have 2 items"):
        _measured((None, {"x": 1}), failed=[None], population=1)


# --- subclasses -------------------------------------------------------------------------------------------


def test_a_subclass_on_disk_has_everything():
    items = OnDisk(
        [{"id": name, "x": place} for place, name in enumerate(["a1", "b1", "a2"])], [_item("a3", "a")]
    )
    assert [item.test_item.id for item in items] == ["a1", "b1", "a2"]
    groups = items.group_by(lambda item: item.context)
    assert groups["a"].column("x").tolist() == [0.0, 2.0]
    assert groups["a"][-1].test_item.id == "a2"
    assert [item.id for item in groups["a"].failed] == ["a3"]
    assert groups["a"].ranges == {"x": (0, 10)}
    assert items[1:].column("x").tolist() == [1.0, 2.0]


def test_columns_and_views_read_no_item():
    items = OnDisk([{"id": f"a{place}", "x": place} for place in range(50)])
    assert items[10:20][::2].having("x").column("x").sum() == 70
    assert items.reads == 0


# --- import -----------------------------------------------------------------------------------------------


def test_numpy_is_loaded_with_the_first_column_only():
    program = """
import sys
import modelgauge.stats
from modelgauge.stats.measured import MeasuredItems
from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.items import TestItem
items = MeasuredItems.of([MeasuredTestItem(test_item=TestItem(["q"], id="i"), measurements={"x": 1})])
assert list(items.group_by(lambda item: item.test_item.id)) == ["i"]
assert "numpy" not in sys.modules, "numpy came in early"
items.column("x")
assert "numpy" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""Measurements are finite floats."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from modelgauge.data.annotations import MeasuredTestItem, measurement
from modelgauge.data.item_records import TestItemRecord
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.errors import InvalidDataError


@pytest.mark.parametrize(
    "value",
    [1, True, 1.0, np.float32(1), np.float64(1), np.int64(1), np.bool_(True), np.array(1.0),
     Decimal(1), Fraction(1)],
)  # fmt: skip
def test_numbers_of_all_kinds_become_floats(value):
    assert type(measurement("x", value)) is float
    for made in (
        MeasuredTestItem(TestItem("a"), {"x": value}),
        TestItemRecord(index=0, test_item=TestItem("a"), interactions=(), measurements={"x": value}),
    ):
        assert made.measurements == {"x": 1.0}
        assert type(made.measurements["x"]) is float


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1", "a str, not a number"),
        (None, "None, not a number"),
        ([1.0], "a list, not a number"),
        (1j, "a complex, not a number"),
        (float("nan"), "is nan"),
        (-np.inf, "is -inf"),
        (np.array([1.0, 2.0]), "a ndarray that is not a number"),
        (10**400, "an int that is not a number"),
    ],
)
def test_what_is_no_finite_number_is_refused(value, said):
    with pytest.raises(InvalidDataError) as caught:
        measurement("accuracy", value)
    assert "'accuracy'" in caught.value.problem
    assert said.removeprefix("an ").removeprefix("a ") in caught.value.problem
    with pytest.raises(InvalidDataError, match="'accuracy'"):
        MeasuredTestItem(TestItem("a"), {"accuracy": value})


def test_a_measured_item_gives_its_context():
    assert MeasuredTestItem(TestItem("a", context=1), {}).context == 1
    assert MeasuredTestItem(TestItem(PromptWithContext("a", context=2)), {}).context == 2
    two = TestItem([PromptWithContext("a", context=2), PromptWithContext("b", context=3)])
    assert MeasuredTestItem(two, {}).context is None

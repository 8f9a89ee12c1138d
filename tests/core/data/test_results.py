"""What aggregate_measurements may return, and how it is read back."""

import json
from collections import OrderedDict

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, Field

from modelgauge.data.estimates import Estimate, Score
from modelgauge.data.records import TestRecord
from modelgauge.data.results import normalized_result, plain_result, revived_result
from modelgauge.errors import InvalidDataError

HALF = Estimate(0.5, 4, stderr=0.1, interval=(0.3, 0.7))


class ByGroup(BaseModel):
    first: Estimate
    second: float


class Result(BaseModel):
    model_config = ConfigDict(extra="allow")

    accuracy: Estimate
    count: int
    groups: ByGroup
    named: float = Field(default=0, alias="Named")


def record(result) -> TestRecord:
    return TestRecord(
        run_id="r", invocation_id="i", run_timestamp="t", test_uid="t", test_initialization={}, sut_uid="s",
        sut_initialization={}, result=result,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, {}),
        ({"a": 1, "b": 0.5}, {"a": 1, "b": 0.5}),
        ({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True)}, {"a": 0.5, "b": 3, "c": 1}),
        ({"a": True}, {"a": 1}),
        ({"a": HALF, "g": {"x": HALF, "y": 1}}, {"a": HALF, "g": {"x": HALF, "y": 1}}),
        (OrderedDict(g=OrderedDict(x=1.5)), {"g": {"x": 1.5}}),
        ({1: {2: 3}}, {"1": {"2": 3}}),
        ({"s": Score(0.25)}, None),
        (
            Result(accuracy=HALF, count=3, groups=ByGroup(first=HALF, second=1), Named=2, more=4),
            {"accuracy": HALF, "count": 3, "groups": {"first": HALF, "second": 1.0}, "named": 2.0, "more": 4},
        ),
    ],
)
def test_results_become_numbers_estimates_and_groups(raw, expected):
    if expected is None:
        with pytest.raises(InvalidDataError):
            normalized_result(raw)
        return
    made = normalized_result(raw)
    assert made == expected
    assert json.loads(json.dumps(plain_result(made))) == plain_result(made)
    assert revived_result(plain_result(made)) == made


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (None, "returned None"),
        (0.5, "returned a float"),
        (HALF, "returned an Estimate"),
        ([("a", 1)], "returned a list"),
        ({"a": "x"}, "'a' is a str"),
        ({"a": None}, "'a' is None"),
        ({"a": float("nan")}, "'a' is nan"),
        ({"g": {"x": np.inf}}, "'g.x' is inf"),
        ({"g": {"x": {"y": 1}}}, "'g.x' is a dict"),
        ({"g": [1, 2]}, "'g' is a list"),
        ({"a": np.array([1.0, 2.0])}, "'a' is a ndarray"),
        ({"a": 10**400}, "'a' is an int that is not a number: int too large"),
    ],
)
def test_other_results_are_refused_by_name(raw, said):
    with pytest.raises(InvalidDataError) as caught:
        normalized_result(raw)
    assert said in caught.value.problem
    assert caught.value.fix


def test_a_group_that_looks_like_an_estimate_stays_a_group():
    looks = dict.fromkeys(Estimate.model_fields, 1.0)
    assert revived_result({"g": looks}) == {"g": looks}


def test_estimates_of_older_records_have_the_five_fields_that_there_were():
    older = {"value": 0.5, "n": 4, "stderr": 0.1, "interval": [0.3, 0.7], "bounds": None}
    assert revived_result({"a": older}) == {"a": HALF}
    newer = {**older, "reduction": "pass@2", "interval_kind": "wilson", "n_clusters": 3}
    assert revived_result({"a": newer})["a"] == HALF.replaced(
        reduction="pass@2", interval_kind="wilson", n_clusters=3
    )
    assert plain_result({"a": HALF})["a"] == {
        **older,
        "reduction": None,
        "interval_kind": None,
        "n_clusters": None,
        "bounds_interval": None,
    }
    partly = {name: 1.0 for name in older if name != "n"}
    assert revived_result({"g": partly}) == {"g": partly}


def test_a_model_is_read_back_from_a_record():
    raw = Result(accuracy=HALF, count=3, groups=ByGroup(first=HALF, second=1), Named=2)
    made = record(normalized_result(raw))
    loaded = TestRecord.model_validate_json(made.model_dump_json())
    assert loaded == made
    assert loaded.result["accuracy"] == HALF
    assert made.get_result(Result) == loaded.get_result(Result) == raw
    with pytest.raises(InvalidDataError, match="does not fit ByGroup"):
        loaded.get_result(ByGroup)

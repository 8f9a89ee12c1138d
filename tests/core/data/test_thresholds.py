"""The decision whether an item passed: True, False, or None if it was not measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.data.results import Threshold
from modelgauge.data.thresholds import failing, has_passed, judged

THRESHOLDS = {"accuracy": Threshold(value=0.5), "length": Threshold(value=10, higher_is_better=False)}


@pytest.mark.parametrize(
    ("measurements", "name", "passed"),
    [
        ({"accuracy": 0.5}, "accuracy", True),
        ({"accuracy": 0.5 - 1e-10}, "accuracy", True),
        ({"accuracy": 0.4}, "accuracy", False),
        ({"length": 10.0}, "length", True),
        ({"length": 11.0}, "length", False),
        ({}, "accuracy", None),
        ({"other": 1.0}, "other", None),
        ({"accuracy": 0.9, "accuracy.passed": 0.0}, "accuracy", False),
        ({"accuracy": 0.9, "accuracy.passed": 2 / 3}, "accuracy", False),
        ({"accuracy": 0.5, "length": 9.0}, None, True),
        ({"accuracy": 0.5, "length": 11.0}, None, False),
        ({"accuracy": 0.4}, None, None),
        ({"passed": 1.0}, None, True),
        ({"accuracy": 0.9, "length": 9.0, "passed": 0.5}, None, False),
    ],
)
def test_item_has_passed_failed_or_was_not_measured(measurements, name, passed):
    assert has_passed(measurements, name, THRESHOLDS) is passed


def test_item_without_thresholds_has_nothing_to_pass():
    assert has_passed({"accuracy": 0.0}) is None
    assert judged({}, {"accuracy": 0.0}) == {}


def test_item_that_lacks_a_measurement_does_not_pass_all_thresholds():
    assert judged(THRESHOLDS, {"accuracy": 0.9}) == {"accuracy.passed": True, "passed": False}


VALUES = st.floats(0, 20) | st.sampled_from([0.5, 10.0])


@given(st.dictionaries(st.sampled_from([*THRESHOLDS, "other"]), VALUES))
def test_recorded_verdicts_say_what_thresholds_say(measurements):
    recorded = {**measurements, **judged(THRESHOLDS, measurements)}
    assert judged(THRESHOLDS, recorded) == {}
    for name in (*THRESHOLDS, "other"):
        assert has_passed(recorded, name) is has_passed(measurements, name, THRESHOLDS)
        assert (name in failing(recorded)) is (has_passed(measurements, name, THRESHOLDS) is False)
    assert has_passed(recorded) is (has_passed(measurements, thresholds=THRESHOLDS) is True)

"""Intervals on a common axis."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.documents.text_axis import TextAxis


@pytest.mark.parametrize(
    ("values", "head", "drawing"),
    [
        ([1.5, 7.1], "0                  +8", "│   ├──────x──────┤  "),
        ([-2, 6], "-2   0             +6", "├────┼────x─────────┤"),
        ([-40, -31], "-40                 0", "├─x─┤               │"),
        ([-0.0002, 0.0002], "-0.0002   0   +0.0002", "├─────────x─────────┤"),
    ],
)
def test_the_axis_holds_all_intervals_and_0(values, head, drawing):
    axis = TextAxis(values, 21, symbols=True)
    assert axis.head() == head
    assert axis.drawn(sum(values) / 2, tuple(values), "x") == drawing


def test_without_unicode_all_is_ascii():
    axis = TextAxis([-2, 6], 21, symbols=False)
    assert axis.drawn(3, (-2, 6), "x") == "[----+------x-------]"
    assert axis.drawn(None, None, "x") == "     :               "


def test_a_value_alone_and_none():
    axis = TextAxis([-1, 1], 11, symbols=True)
    assert axis.drawn(1, None, "x") == "     │    x"
    assert axis.drawn(None, None, "x") == "     │     "


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32) | st.integers(-100, 100), max_size=5),
    st.integers(13, 60),
    st.booleans(),
)
def test_every_drawing_is_as_wide_as_the_axis(values, width, symbols):
    axis = TextAxis(values, width, symbols=symbols)
    ends = sorted(value for value in values if math.isfinite(value))
    interval = (ends[0], ends[-1]) if ends else None
    assert len(axis.drawn(ends[0] if ends else None, interval, "x")) == width

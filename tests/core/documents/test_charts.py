"""Charts as SVG: places on axes, and labels that say the same in words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.documents.axis import Axis
from modelgauge.documents.charts import axis_ruler, dot_sample, histogram, interval_bar

LOOKS = ("told", "untold", "untested")
FINITE = st.floats(-1e12, 1e12).map(lambda value: round(value, 6))


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_an_axis_has_round_ends_and_holds_its_values(values):
    axis = Axis.over(values)
    assert axis.low <= min(values) <= max(values) <= axis.high
    assert 3 <= len(axis.ticks) <= 13
    assert (axis.ticks[0], axis.ticks[-1]) == pytest.approx((axis.low, axis.high))
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= axis.width for place in places)


def test_an_interval_is_drawn_to_scale_and_said():
    chart = str(interval_bar(Axis(0, 1, width=114), 0.5, (0.25, 1.0), mark=0.0))
    assert 'aria-label="0.5, from 0.25 to 1"' in chart
    assert 'class="bar" x1="32.0" y1="10.0" x2="107.0"' in chart
    assert 'cx="57.0"' in chart
    assert 'class="mark" x1="7.0"' in chart


def test_what_was_found_can_be_told_from_what_was_not_without_colour():
    charts = [str(interval_bar(Axis(-1, 1), 0.5, None, label="+50 points", look=look)) for look in LOOKS]
    assert all('aria-label="+50 points"' in chart for chart in charts)
    assert [re.search(r"<(\w+) class=\"dot (\w+)", chart).groups() for chart in charts] == [
        *(("circle", "told"), ("circle", "untold"), ("path", "untested")),
    ]
    assert "aria-label" not in str(dot_sample("untold"))


def test_values_beyond_an_axis_stay_on_it():
    assert 'cx="107.0"' in str(interval_bar(Axis(0, 1, width=114), 7.0, None))


def test_a_ruler_names_its_ticks():
    assert re.findall(r"<text[^>]*>([^<]*)<", str(axis_ruler(Axis(0, 1)))) == [
        "0",
        "0.2",
        "0.4",
        "0.6",
        "0.8",
        "1",
    ]


@given(st.lists(FINITE, min_size=1, max_size=200))
def test_a_histogram_counts_every_value(values):
    chart = str(histogram(values))
    assert sum(int(one.replace(",", "")) for one in re.findall(r"<title>([\d,]+) from", chart)) == len(values)


def test_labels_are_escaped():
    assert "<script>" not in str(interval_bar(Axis(0, 1), 0.5, None)) + str(histogram([1.0, 2.0]))

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.weightstats import ttost_paired

from modelgauge.errors import InvalidDataError
from modelgauge.stats import equivalence_test, paired_difference, tango_interval, tango_statistic

BASELINE = [0.9, 0.4, 0.7, 0.8, 0.6, 0.9]
CANDIDATE = [0.85, 0.5, 0.6, 0.7, 0.6, 0.8]


def test_numbers_have_statsmodels_tost():
    p_value, lower, upper = ttost_paired(np.array(CANDIDATE), np.array(BASELINE), -0.1, 0.1)
    found = equivalence_test(BASELINE, CANDIDATE, 0.1)
    assert (found.p_equivalent, found.p_not_lower, found.p_not_higher) == pytest.approx(
        (p_value, lower[1], upper[1]), rel=1e-10
    )
    expected = scipy_stats.ttest_rel(CANDIDATE, BASELINE).confidence_interval(0.9)
    assert found.interval == pytest.approx((expected.low, expected.high), rel=1e-10)


def test_right_and_wrong_have_tangos_score_test():
    baseline, candidate = [1] * 6 + [0] * 4 + [1] * 90, [0] * 6 + [1] * 4 + [1] * 90
    found = equivalence_test(baseline, candidate, 0.1)
    assert found.interval == tango_interval(6, 4, 100, confidence=0.9)
    assert found.p_not_lower == pytest.approx(
        scipy_stats.norm.sf(tango_statistic(6, 4, 100, -0.1)), rel=1e-10
    )
    assert found.p_not_higher == pytest.approx(
        scipy_stats.norm.cdf(tango_statistic(6, 4, 100, 0.1)), rel=1e-10
    )
    agreeing = equivalence_test([1, 0] * 50, [1, 0] * 50, 0.05)
    assert agreeing.p_equivalent < 0.05
    assert equivalence_test([1] * 9, [1] * 9, 0.05, declared=(0, 1)).p_equivalent > 0.05


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 3)), min_size=4, max_size=40),
    st.sampled_from([0.05, 0.2, 0.5]),
    st.booleans(),
)
@example([(0, 0, 0)] * 4 + [(1, 0, 0)] * 2, 0.2, False)
def test_equivalent_is_where_the_interval_lies_within_the_margin(rows, margin, clustered):
    baseline, candidate, labels = zip(*rows, strict=True)
    found = equivalence_test(baseline, candidate, margin, clusters=labels if clustered else None)
    assume(found.interval is not None)
    assume(all(abs(abs(end) - margin) > 1e-9 for end in found.interval))
    assert (found.p_equivalent < 0.05) == (-margin < found.interval[0] and found.interval[1] < margin)
    turned = equivalence_test(candidate, baseline, margin, clusters=labels if clustered else None)
    assert turned.p_not_higher == pytest.approx(found.p_not_lower, abs=1e-12)


def test_clusters_have_their_own_degrees_of_freedom():
    found = equivalence_test(BASELINE, CANDIDATE, 0.2, clusters=[*"aabbcc"])
    whole = paired_difference(BASELINE, CANDIDATE, clusters=[*"aabbcc"]).difference
    t = (0.2 + whole.value) / whole.stderr
    assert found.p_not_lower == pytest.approx(scipy_stats.t.sf(t, 2), rel=1e-10)


def test_without_a_spread_nothing_is_known():
    for values in ([0.5], [0.5, 0.25, 0.125]):
        assert equivalence_test(values, [1 + value for value in values], 0.1)[1:] == (None, None, None, None)


@pytest.mark.parametrize("margin", [0, -0.1, math.nan, math.inf])
def test_what_is_no_margin(margin):
    with pytest.raises(InvalidDataError, match="A margin of"):
        equivalence_test(BASELINE, CANDIDATE, margin)


def test_a_margin_that_every_difference_keeps_is_refused():
    with pytest.raises(InvalidDataError, match="A margin of 1 "):
        equivalence_test([0, 1], [1, 1], 1)
    with pytest.raises(InvalidDataError, match=r"alpha=0\.5"):
        equivalence_test(BASELINE, CANDIDATE, 0.1, alpha=0.5)

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from modelgauge.stats.distributions import (
    binomial_sf,
    f_sf,
    student_t_pdf,
    student_t_quantile,
    student_t_sf,
)

DFS = [0.5, 1, 1.5, 2, 2.5, 5, 9, 19.5, 38, 39.9, 40, 41, 99, 1000.5, 1e4, 1e5, 1e6]


@pytest.mark.parametrize("probability", [0.51, 0.75, 0.95, 0.975, 0.995, 1 - 1e-7, 0.025])
def test_t_quantile_is_scipys(probability):
    found = {df: student_t_quantile(probability, df) for df in DFS}
    assert found == pytest.approx({df: special.stdtrit(df, probability) for df in DFS}, rel=1e-10)


@given(st.floats(1, 1e6))
def test_t_quantile_of_any_degrees_of_freedom(df):
    assert student_t_quantile(0.975, df) == pytest.approx(special.stdtrit(df, 0.975), rel=1e-10)


def test_t_quantile_of_known_tables():
    assert student_t_quantile(0.975, 1) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-13)  # Cauchy
    assert student_t_quantile(0.975, 10) == pytest.approx(
        2.228138851986274, rel=1e-13
    )  # checked by the closed form
    assert student_t_quantile(0.5, 3) == 0.0


@given(st.floats(0.3, 1e4), st.floats(0.01, 0.49))
def test_t_quantile_inverts_sf_and_is_symmetric(df, tail):
    quantile = student_t_quantile(1 - tail, df)
    assert student_t_sf(quantile, df) == pytest.approx(tail, rel=1e-9)
    assert student_t_quantile(tail, df) == pytest.approx(-quantile, rel=1e-9)


@given(st.floats(-50, 50), st.floats(0.5, 1e5))
def test_t_sf_and_pdf_are_scipys(t, df):
    assert student_t_sf(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-9, abs=1e-300)
    assert student_t_pdf(t, df) == pytest.approx(stats.t.pdf(t, df), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("t", [0.0, 1e-300, 1e300])
def test_t_sf_at_the_ends(t):
    assert student_t_sf(t, 2.0) == pytest.approx(0.5 if t < 1 else 0.0)
    assert student_t_sf(-t, 2.0) == pytest.approx(0.5 if t < 1 else 1.0)


@pytest.mark.parametrize(("probability", "df"), [(0.0, 5), (1.0, 5), (0.9, 0), (0.9, -1), (math.nan, 5)])
def test_what_is_no_quantile_is_refused(probability, df):
    with pytest.raises(ValueError, match="must be above 0"):
        student_t_quantile(probability, df)


@given(st.integers(0, 3000), st.data())
def test_binomial_sf_is_scipys(n, data):
    k = data.draw(st.integers(-1, n + 2))
    probability = data.draw(st.sampled_from([0.0, 0.001, 0.05, 0.3, 0.5, 0.95, 1.0]))
    expected = stats.binom.sf(k - 1, n, probability)  # scipy's sf is P(X > k)
    assert binomial_sf(k, n, probability) == pytest.approx(expected, rel=1e-8, abs=1e-250)


def test_binomial_sf_of_a_million_trials():
    assert binomial_sf(500_980, 1_000_000, 0.5) == pytest.approx(stats.binom.sf(500_979, 1_000_000, 0.5))


@given(st.floats(0, 50), st.floats(0.5, 200), st.floats(0.5, 1e4))
def test_f_sf_is_scipys(f, df, df_within):
    assert f_sf(f, df, df_within) == pytest.approx(stats.f.sf(f, df, df_within), rel=1e-8, abs=1e-250)

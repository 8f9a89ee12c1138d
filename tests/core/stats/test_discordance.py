import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar

from modelgauge.errors import InvalidDataError
from modelgauge.stats import Discordance, mcnemar_test, tango_interval, tango_statistic

COUNTS = [(20, 40, 160), (1, 7, 21), (7, 1, 21), (28, 25, 618), (1, 3, 9), (150, 130, 1000)]


# --- Tango ------------------------------------------------------------------------------------------------


def _score(difference, losses, wins, n):
    """Tango's statistic, with the likeliest table by a search for the root of the likelihood's slope."""

    def slope(q):  # q: only the baseline is right
        return wins / (q + difference) + losses / q - 2 * (n - wins - losses) / (1 - 2 * q - difference)

    low, high = max(0.0, -difference), (1 - difference) / 2
    inside = (high - low) * 1e-12
    q = optimize.brentq(slope, low + inside, high - inside, xtol=1e-16, rtol=1e-15)
    return (wins - losses - n * difference) / math.sqrt(n * (2 * q + difference * (1 - difference)))


@pytest.mark.parametrize("counts", COUNTS)
def test_tango_is_the_score_test_of_the_likeliest_table(counts):
    for difference in (-0.4, -0.05, 0.01, 0.3):
        assert tango_statistic(*counts, difference) == pytest.approx(_score(difference, *counts), rel=1e-10)


@pytest.mark.parametrize("counts", COUNTS)
def test_tango_ends_where_the_score_test_rejects(counts):
    low, high = tango_interval(*counts)
    z = NormalDist().inv_cdf(0.975)
    found = (counts[1] - counts[0]) / counts[2]
    for end, sign, outside in ((low, 1, -0.999), (high, -1, 0.999)):
        expected = optimize.brentq(
            lambda d, sign=sign: _score(d, *counts) - sign * z, outside, found, xtol=1e-15
        )
        assert end == pytest.approx(expected, abs=1e-10)


def test_tango_is_that_of_published_tables():
    # Fagerland, Lydersen and Laake (2014), Statistics in Medicine 33:2850-2875, their first example.
    assert tango_interval(7, 1, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    # R: PropCIs::scoreci.mp(25, 28, 618, 0.90).
    assert tango_interval(25, 28, 618, confidence=0.9) == pytest.approx((-0.0148, 0.0247), abs=5e-5)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 200))
def test_tango_contains_the_difference_stays_within_and_turns_with_the_systems(losses, wins, agreeing):
    n = max(1, losses + wins + agreeing)
    low, high = tango_interval(losses, wins, n)
    assert -1 <= low <= (wins - losses) / n <= high <= 1
    assert low < high
    assert tango_interval(wins, losses, n) == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.parametrize("counts", [(-1, 0, 5), (3, 3, 5), (0, 0, 0), (math.nan, 0, 5)])
def test_impossible_pairs_are_refused(counts):
    with pytest.raises(InvalidDataError, match="cannot be"):
        tango_interval(*counts)


# --- McNemar ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_is_the_binomial_test_of_the_discordant(pairs):
    baseline, candidate = zip(*pairs, strict=True)
    found = mcnemar_test(baseline, candidate)
    losses = sum(before and not after for before, after in pairs)
    wins = sum(after and not before for before, after in pairs)
    assert (found.only_baseline, found.only_candidate) == (losses, wins)
    assert found.p_value == pytest.approx(mcnemar([[0, losses], [wins, 0]]).pvalue, rel=1e-10)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mid_p_counts_the_outcome_seen_half(losses, wins):
    found = mcnemar_test([1] * losses + [0] * wins + [1], [0] * losses + [1] * wins + [1])
    chances = scipy_stats.binom.pmf(range(losses + wins + 1), losses + wins, 0.5)
    distances = [abs(2 * place - losses - wins) for place in range(losses + wins + 1)]
    seen = abs(wins - losses)
    expected = sum(
        chance * (1 if distance > seen else 0.5)
        for chance, distance in zip(chances, distances, strict=True)
        if distance >= seen
    )
    assert found.p_mid == pytest.approx(expected if losses + wins else 1.0, rel=1e-10)


def test_mcnemar_by_hand():
    assert mcnemar_test([1] * 6 + [0], [0] * 6 + [0]) == Discordance(
        6, 0, pytest.approx(2 / 64), pytest.approx(1 / 64)
    )
    assert mcnemar_test([1, 0], [1, 0]) == Discordance(0, 0, 1.0, 1.0)
    # Fagerland, Lydersen and Laake (2013), table 1: 1 and 7 of 21.
    found = mcnemar_test([0] + [1] * 7 + [1] * 13, [1] + [0] * 7 + [1] * 13)
    assert (round(found.p_value, 4), round(found.p_mid, 4)) == (0.0703, 0.0391)


def test_mcnemar_is_for_right_and_wrong():
    with pytest.raises(InvalidDataError, match="neither 0 nor 1"):
        mcnemar_test([1, 0.5], [0, 1])


def test_no_p_value_is_above_one():
    for losses in range(60):
        found = mcnemar_test([1] * losses + [0] * (losses + 1), [0] * losses + [1] * (losses + 1))
        assert found.p_value <= 1
        assert found.p_mid <= 1

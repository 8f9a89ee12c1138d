import itertools
import math
import time

import numpy as np
import pytest
from scipy import special
from scipy import stats as scipy_stats
from statsmodels.stats.power import TTestIndPower, TTestPower
from statsmodels.stats.proportion import power_proportions_2indep

from modelgauge.errors import InvalidDataError
from modelgauge.stats import (
    detectable_difference,
    detectable_effect,
    items_needed,
    mcnemar_power,
    proportions_power,
    t_power,
)
from modelgauge.stats.comparisons.power import bounded_power

NAN = math.nan


# --- power ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 5, 20, 200, 5000, 100_000])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_the_power_of_t_is_that_of_the_non_central_distribution(n, alpha):
    critical = scipy_stats.t.isf(alpha / 2, n - 1)
    for noncentrality in (0.0, 0.5, 2.8, -2.8, 5.0):
        below, above = (special.nctdtr(n - 1, sign * noncentrality, -critical) for sign in (1, -1))
        found = t_power(noncentrality, 1, n - 1, alpha=alpha)
        assert found == pytest.approx(below + above, abs=1e-10), noncentrality


def test_the_power_of_t_is_that_of_statsmodels():
    paired = TTestPower().power(effect_size=0.3, nobs=50, alpha=0.05)
    assert t_power(0.6, 2 / math.sqrt(50), 49) == pytest.approx(paired, rel=1e-10)
    unpaired = TTestIndPower().power(effect_size=0.3, nobs1=50, alpha=0.01)
    assert t_power(0.6, 2 * math.sqrt(2 / 50), 98, alpha=0.05, family=5) == pytest.approx(unpaired, rel=1e-10)


@pytest.mark.parametrize(
    ("losses", "wins", "n"), [(0.1, 0.3, 12), (0.2, 0.2, 15), (0.0, 0.5, 14), (0.4, 0.6, 10)]
)
def test_the_power_of_mcnemar_is_that_of_all_tables(losses, wins, n):
    expected = 0.0
    for b, c in itertools.product(range(n + 1), repeat=2):
        if b + c <= n and scipy_stats.binomtest(b, b + c).pvalue <= 0.1 if b + c else False:
            expected += scipy_stats.multinomial.pmf(
                [b, c, n - b - c], n, [losses, wins, max(0.0, 1 - losses - wins)]
            )
    assert mcnemar_power(losses, wins, n, alpha=0.1) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("losses", "wins", "n"), [(0.08, 0.13, 3000), (0.0, 0.02, 900), (0.5, 0.5, 700)])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_the_power_of_mcnemar_in_many_items_is_that_of_all_disagreements(losses, wins, n, alpha):
    m = np.arange(n + 1)
    least = scipy_stats.binom.isf(alpha / 2, m, 0.5) + 1  # P(W >= least) <= alpha / 2
    share = wins / (losses + wins)
    found = scipy_stats.binom.sf(least - 1, m, share) + scipy_stats.binom.sf(least - 1, m, 1 - share)
    expected = float((scipy_stats.binom.pmf(m, n, losses + wins) * found).sum())
    assert mcnemar_power(losses, wins, n, alpha=alpha) == pytest.approx(expected, rel=1e-10)


def test_the_power_of_mcnemar_by_the_normal_approximation():
    d, discordant, n = 0.1, 0.3, 150
    z = scipy_stats.norm.isf(0.025)
    expected = sum(
        scipy_stats.norm.cdf(
            (sign * d * math.sqrt(n) - z * math.sqrt(discordant)) / math.sqrt(discordant - d * d)
        )
        for sign in (1, -1)
    )
    assert mcnemar_power(0.1, 0.2, n, exact=False) == pytest.approx(expected, rel=1e-10)
    assert mcnemar_power(0.1, 0.2, 20_000) == pytest.approx(
        mcnemar_power(0.1, 0.2, 20_000, exact=False), abs=0.005
    )
    assert mcnemar_power(0.101, 0.099, 1000) < 0.05  # exact tests keep below their level


def test_the_power_of_mcnemar_of_many_items_is_quick():
    started = time.process_time()
    mcnemar_power(0.1, 0.11, 20_000)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("baseline", "candidate", "n"), [(0.5, 0.6, 100), (0.9, 0.99, 40), (0.3, 0.25, 1000)]
)
def test_the_power_of_separate_samples_is_that_of_statsmodels(baseline, candidate, n):
    expected = power_proportions_2indep(candidate - baseline, baseline, n).power
    assert proportions_power(baseline, candidate, n) == pytest.approx(expected, rel=1e-10)


def test_certain_systems_are_told_apart_or_not():
    assert proportions_power(0, 1, 10) == 1.0
    assert mcnemar_power(0, 1, 5) == 0.0  # 2 / 32 is above the level
    assert mcnemar_power(0, 1, 6) == 1.0
    assert mcnemar_power(0, 1, 6, exact=False) == 1.0


# --- what it takes ----------------------------------------------------------------------------------------


def test_the_items_needed_are_the_first_to_reach_the_power():
    def power_at(n):
        return t_power(0.1, 0.5 / math.sqrt(n), n - 1)

    n = items_needed(power_at)
    assert power_at(n) >= 0.8 > power_at(n - 1)
    assert n == math.ceil(TTestPower().solve_power(effect_size=0.2, power=0.8, alpha=0.05))
    assert items_needed(lambda n: t_power(9, 1 / math.sqrt(n), n - 1), power=0.05) == 2


def test_published_items_of_mcnemar():
    # Connor (1987), Biometrics 43:207-211, and Machin et al. (2018), "Sample Sizes for Clinical Studies", table 8.
    z = scipy_stats.norm.isf(0.025), scipy_stats.norm.isf(0.2)
    n = items_needed(lambda n: mcnemar_power(0.1, 0.2, n, exact=False))
    assert n == math.ceil((z[0] * math.sqrt(0.3) + z[1] * math.sqrt(0.3 - 0.01)) ** 2 / 0.01)
    exact = items_needed(lambda n: mcnemar_power(0.1, 0.2, n))
    assert n < exact < 1.1 * n


def test_no_number_of_items_finds_nothing():
    with pytest.raises(InvalidDataError, match=r"would not detect this effect\. Plan for a larger effect"):
        items_needed(lambda n: 0.05)


def test_the_detectable_effect_is_the_first_to_reach_the_power():
    found = detectable_effect(lambda effect: t_power(effect, 0.01, 1_000_000), 1)
    assert found == pytest.approx(detectable_difference(0.01), rel=1e-4)
    assert detectable_effect(lambda effect: t_power(effect, 1, 9), 0.1) is None


@pytest.mark.parametrize(("power", "alpha", "family"), [(0.8, 0.05, 1), (0.9, 0.01, 12)])
def test_the_detectable_difference_is_that_of_the_z_test(power, alpha, family):
    z = scipy_stats.norm.isf(alpha / family / 2) + scipy_stats.norm.ppf(power)
    found = detectable_difference(0.3, power=power, alpha=alpha, family=family)
    assert found == pytest.approx(0.3 * z, rel=1e-12)


# --- what cannot be planned -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        *((detectable_difference, (stderr,)) for stderr in (0, math.nan, math.inf, -1)),
        (bounded_power, (0.1, 0, 5, (-1, 1))),
        *((t_power, one) for one in ((math.nan, 1, 5), (1, 0, 5), (1, 1, 0), (1, 1, math.nan), (math.inf, 1, 5))),
        *((mcnemar_power, one) for one in ((0, 0, 5), (0.6, 0.5, 5), (-0.1, 0.5, 5), (0.1, 0.2, 0), (NAN, 0.1, 5))),
        *((proportions_power, one) for one in ((0, 0, 5), (1, 1, 5), (-0.1, 0.5, 5), (0.1, 0.2, 0), (NAN, 0.1, 5))),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(function, arguments):
    with pytest.raises(InvalidDataError):
        function(*arguments)


@pytest.mark.parametrize("options", [{"alpha": 0}, {"alpha": 1}, {"family": 0}, {"alpha": math.nan}])
def test_what_is_no_level_is_refused(options):
    for function, arguments in (
        (t_power, (1, 1, 5)),
        (bounded_power, (0.1, 0.2, 5, (-1, 1))),
        (mcnemar_power, (0.1, 0.2, 9)),
        (proportions_power, (0.1, 0.2, 9)),
    ):
        with pytest.raises(InvalidDataError):
            function(*arguments, **options)


@pytest.mark.parametrize("power", [0, 1, math.nan])
def test_what_is_no_power_is_refused(power):
    with pytest.raises(InvalidDataError, match="power="):
        detectable_difference(1, power=power)
    with pytest.raises(InvalidDataError, match="power="):
        items_needed(lambda n: 0.9, power=power)
    with pytest.raises(InvalidDataError, match="power="):
        detectable_effect(lambda effect: 0.9, 1, power=power)

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from modelgauge.errors import InvalidDataError
from modelgauge.stats.intervals import (
    MeanError,
    bounded_interval,
    cluster_sums,
    joined_clusters,
    mean_error,
    quantile,
    quantile_interval,
    t_interval,
    wilson_interval,
)

numbers = st.floats(-1e6, 1e6)
samples = st.lists(numbers, min_size=2, max_size=40)


# --- means ------------------------------------------------------------------------------------------------


@given(samples)
def test_standard_error_is_the_textbooks(values):
    error = mean_error(values)
    assert error.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    assert error.stderr == pytest.approx(np.std(values, ddof=1) / math.sqrt(len(values)), rel=1e-6, abs=1e-6)
    assert error.df == len(values) - 1


def test_t_interval_is_scipys():
    values = [0.2, 0.9, 0.4, 0.4, 0.7]
    expected = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    assert t_interval(mean_error(values)) == pytest.approx(expected, rel=1e-12)
    expected = stats.t.interval(0.9, 4, np.mean(values), stats.sem(values))
    assert t_interval(mean_error(values), confidence=0.9) == pytest.approx(expected, rel=1e-12)


@given(samples, st.randoms(use_true_random=False))
def test_order_has_no_effect_at_all(values, shuffler):
    labels = [int(abs(value)) % 3 for value in values]
    order = list(range(len(values)))
    shuffler.shuffle(order)
    shuffled = [values[place] for place in order]
    assert mean_error(shuffled) == mean_error(values)
    assert mean_error(shuffled, [labels[place] for place in order]) == mean_error(values, labels)


def test_one_value_has_no_error():
    assert mean_error([0.3]) == MeanError(0.3, None, 0)
    assert t_interval(mean_error([0.3])) is None


@given(numbers, st.integers(2, 50))
def test_equal_values_have_that_mean_and_no_spread_hence_no_interval(value, n):
    error = mean_error([value] * n)
    assert error == MeanError(value, 0.0, n - 1)
    assert t_interval(error) is None


@pytest.mark.parametrize("size", [1e-300, 1e300, 1.7e308])
def test_values_of_any_size_neither_vanish_nor_overflow(size):
    error = mean_error([0.0, size, size / 2])
    assert error.mean == pytest.approx(size / 2)
    assert error.stderr == pytest.approx(0.5 / math.sqrt(3) * size)


def test_an_interval_beyond_floats_is_none():
    assert t_interval(mean_error([-1.7e308, 1.7e308])) is None


@pytest.mark.parametrize("values", [[], [[0.0, 1.0]]])
def test_what_has_no_mean_is_refused(values):
    with pytest.raises(InvalidDataError, match="at least one number"):
        mean_error(values)


# --- clusters ---------------------------------------------------------------------------------------------


def test_clustered_error_by_hand():
    # Mean 2; residual sums of a: -3, b: 1, c: 2; shares 2/5, 2/5, 1/5.
    error = mean_error([0, 1, 3, 2, 4], ["a", "a", "b", "b", "c"])
    assert error.mean == 2
    assert error.stderr == pytest.approx(math.sqrt((9 / 0.6 + 1 / 0.6 + 4 / 0.8) / 25), rel=1e-14)
    assert error.df == pytest.approx(1.8, rel=1e-14)


# In R, with clubSandwich 0.5.8:
#   m <- lm(y ~ 1); v <- vcovCR(m, g, type = "CR2")
#   coef_test(m, v, test = "Satterthwaite"); conf_int(m, v, test = "Satterthwaite")
@pytest.mark.parametrize(
    ("values", "clusters", "stderr", "df", "interval"),
    [
        ([0, 1, 3, 2, 4], "aabbc", 0.9309493362512623, 1.8, (-2.4637916243055926, 6.4637916243055926)),
        (
            [0.2, 0.9, 0.4, 0.4, 0.7, 0.1, 0.8, 0.35],
            "aaaaabbc",
            0.044194173824159085,
            1.4651162790697683,
            (0.20629838195677763, 0.75620161804322228),
        ),
        (
            [1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1],
            "aaaaaaabcdee",
            0.11459194182538816,
            2.0733379026730643,
            (0.18995865577834403, 1.14337467755499),
        ),
        (
            [0.5, 0.6, 0.9, 0.1],
            "abcd",
            0.16520189667999174,
            3,
            (-0.00074616571510044416, 1.0507461657151007),
        ),
        ([1, 2, 3, 5, 6, 9], "aaabbb", 2.3333333333333326, 1, (-25.314477717740751, 33.981144384407422)),
    ],
)
def test_clustered_error_is_clubsandwichs(values, clusters, stderr, df, interval):
    error = mean_error(values, clusters)
    assert (error.stderr, error.df) == (pytest.approx(stderr, rel=1e-12), pytest.approx(df, rel=1e-12))
    assert t_interval(error) == pytest.approx(interval, rel=1e-10)


@given(samples)
def test_clusters_of_one_are_no_clusters(values):
    assert mean_error(values, range(len(values))) == mean_error(values)


@given(st.lists(numbers, min_size=2, max_size=10), st.integers(2, 5))
def test_copies_in_a_cluster_add_no_information(values, copies):
    copied = mean_error(
        [value for value in values for _ in range(copies)],
        [place for place in range(len(values)) for _ in range(copies)],
    )
    alone = mean_error(values)
    assert copied.stderr == pytest.approx(alone.stderr, rel=1e-6, abs=1e-6)
    assert copied.df == pytest.approx(alone.df, rel=1e-12)


def test_one_cluster_has_no_error():
    assert mean_error([0, 1, 1], ["text"] * 3) == MeanError(pytest.approx(2 / 3), None, 0)


def test_a_label_for_each_value():
    with pytest.raises(InvalidDataError, match="3 values, but 2 cluster labels"):
        mean_error([0, 1, 1], ["a", "b"])


def test_cluster_sums_take_any_labels_in_order_of_appearance():
    sums = cluster_sums(np.array([1.0, 2.0, 4.0, 8.0]), [None, ("b", 1), None, "c"])
    assert sums.tolist() == [5.0, 2.0, 8.0]


def test_labels_join_items_directly_and_over_others():
    assert joined_clusters([*"abcda"], None).tolist() == [0, 1, 2, 3, 0]
    assert joined_clusters([*"aabcd"], [*"uvvwx"]).tolist() == [0, 0, 0, 1, 2]
    assert joined_clusters(np.array([5, 9, 5, 7]), [1, 1, 2, 3]).tolist() == [0, 0, 0, 1]
    assert joined_clusters([*"abc"], range(3)) is None
    assert joined_clusters(None, None) is None
    assert joined_clusters([]) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=25))
def test_joined_clusters_are_the_connected_components(pairs):
    first, second = zip(*pairs, strict=True)
    edges = csr_array((np.ones(len(pairs)), (first, [10 + label for label in second])), shape=(20, 20))
    expected = connected_components(edges, directed=False)[1][[*first]]
    found = joined_clusters(first, second)
    found = range(len(pairs)) if found is None else found.tolist()
    assert len(set(zip(found, expected, strict=True))) == len(set(found)) == len(set(expected))


# --- means within a known range ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "low", "high"), [([0.5, 1.5], 0, 1), ([-0.5, 0.5], 0, 1), ([0.5, 0.6], 1, 0)]
)
def test_bounded_interval_refuses_values_out_of_range(values, low, high):
    with pytest.raises(InvalidDataError, match=f"are not within {low} to {high}"):
        bounded_interval(values, low, high)


def test_bounded_interval_by_hand():
    # With 1.5 zeros and ones: 11 values, mean (8 * 0.7 + 1.5) / 11, 10 degrees of freedom.
    mean = 7.1 / 11
    variance = (8 * (0.7 - mean) ** 2 + 1.5 * mean**2 + 1.5 * (1 - mean) ** 2) / 10
    half = stats.t.ppf(0.975, 10) * math.sqrt(variance / 11)
    assert bounded_interval([0.7] * 8, 0, 1) == pytest.approx((mean - half, mean + half), rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 30), st.floats(1e-3, 1e6))
def test_bounded_interval_has_a_width_stays_within_and_contains(values, groups, scale):
    labels = [place % groups for place in range(len(values))]
    low, high = bounded_interval(np.array(values) * scale - 7, -7, scale - 7, clusters=labels)
    mean = np.mean(values) * scale - 7
    assert -7 <= low <= mean + 1e-9 * scale
    assert mean - 1e-9 * scale <= high <= scale - 7
    assert low < high


@pytest.mark.parametrize("copies", [1, 3])
def test_bounded_interval_of_clusters_is_that_of_their_means(copies):
    means = [0.1, 0.9, 0.4, 0.4, 0.8]
    values, labels = np.repeat(means, copies), np.repeat(range(5), copies)
    assert bounded_interval(values, 0, 1, clusters=labels) == pytest.approx(bounded_interval(means, 0, 1))


def test_a_range_of_one_value_has_no_interval():
    assert bounded_interval([2.0, 2.0], 2.0, 2.0) is None


@pytest.mark.parametrize("n", [5, 20, 100])
def test_bounded_coverage_holds_for_the_worst_two_values(n):
    """Exact: the share of samples, of a value from a and one from b, whose interval holds the mean."""
    for a, b in [(0, 1), (0, 0.5), (0.7, 0), (0.4, 1), (0.05, 1), (0.45, 0.55), (1, 0.95)]:
        intervals = [bounded_interval([b] * k + [a] * (n - k), 0, 1) for k in range(n + 1)]
        lows, highs = np.array(intervals).T
        for p in np.geomspace(1e-3, 0.5, 60):
            mean = a + (b - a) * p
            held = (lows <= mean + 1e-12) & (mean <= highs + 1e-12)
            assert stats.binom.pmf(np.arange(n + 1), n, p)[held].sum() > 0.935


# --- proportions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "n"), [(0, 1), (1, 1), (0, 20), (20, 20), (3, 20), (742, 1319), (1, 10**7)]
)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_is_scipys(successes, n, confidence):
    expected = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    actual = wilson_interval(successes, n, confidence=confidence)
    assert actual == pytest.approx((expected.low, expected.high), rel=1e-12, abs=1e-15)


@given(st.integers(1, 10**6), st.data())
def test_wilson_stays_within_and_contains(n, data):
    successes = data.draw(st.integers(0, n))
    low, high = wilson_interval(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    assert low < high
    mirrored = wilson_interval(n - successes, n)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_no_trials_have_no_interval():
    assert wilson_interval(0, 0) is None


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (math.nan, 5)])
def test_impossible_proportions_are_refused(successes, n):
    with pytest.raises(InvalidDataError, match="not a proportion"):
        wilson_interval(successes, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_impossible_confidence_is_refused(confidence):
    with pytest.raises(InvalidDataError, match=r"0\.95 for 95 %"):
        wilson_interval(1, 2, confidence=confidence)
    with pytest.raises(InvalidDataError, match=r"0\.95 for 95 %"):
        t_interval(mean_error([0, 1]), confidence=confidence)


# --- quantiles --------------------------------------------------------------------------------------------


@given(st.lists(numbers, min_size=1, max_size=40), st.floats(0, 1))
def test_quantile_is_numpys(values, q):
    values.sort()
    assert quantile(values, q) == pytest.approx(np.quantile(values, q), rel=1e-9, abs=1e-9)
    assert values[0] <= quantile(values, q) <= values[-1]


@pytest.mark.parametrize(
    ("n", "expected"), [(5, None), (6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (100, (40, 61))]
)
def test_median_interval_of_the_tables(n, expected):
    # Conover's table of the sign-test interval, at a confidence of at least 95 %.
    assert quantile_interval([float(rank) for rank in range(1, n + 1)], 0.5) == expected


@given(st.lists(numbers, min_size=1, max_size=60).map(sorted), st.floats(0, 1))
def test_quantile_interval_contains_the_quantile(values, q):
    interval = quantile_interval(values, q)
    if interval is not None:
        assert interval[0] <= quantile(values, q) <= interval[1]


@pytest.mark.parametrize("q", [-0.1, 95])
def test_impossible_quantiles_are_refused(q):
    with pytest.raises(InvalidDataError, match="not 95"):
        quantile([1.0], q)
    with pytest.raises(InvalidDataError, match="not 95"):
        quantile_interval([1.0], q)
    with pytest.raises(InvalidDataError, match="at least one value"):
        quantile([], 0.5)


# --- coverage: of 95 % intervals, about 95 % hold the truth -----------------------------------------------


def _coverage(truth, interval_of_sample, draws=1500):
    held = 0
    for _ in range(draws):
        low, high = interval_of_sample()
        held += low <= truth <= high
    return held / draws


def test_wilson_covers_what_readme_says():
    def normal(successes):
        half = 1.96 * math.sqrt(successes * (20 - successes) / 20**3)
        return successes / 20 - half, successes / 20 + half

    def coverage(interval):
        bounds = [interval(successes) for successes in range(21)]
        chances = stats.binom.pmf(range(21), 20, 0.95)
        return sum(chance for chance, (low, high) in zip(chances, bounds, strict=True) if low <= 0.95 <= high)

    assert round(coverage(normal), 2) == 0.64
    assert round(coverage(lambda successes: wilson_interval(successes, 20)), 2) == 0.92


def test_wilson_coverage():
    coin = random.Random(1)
    interval = lambda: wilson_interval(sum(coin.random() < 0.3 for _ in range(50)), 50)  # noqa: E731
    assert _coverage(0.3, interval) == pytest.approx(0.95, abs=0.02)


def test_t_coverage():
    generator = np.random.default_rng(2)
    assert _coverage(0.0, lambda: t_interval(mean_error(generator.normal(size=8)))) == pytest.approx(
        0.95, abs=0.02
    )


def test_clustered_coverage_holds_where_the_plain_one_does_not():
    generator = np.random.default_rng(3)
    labels = np.repeat(np.arange(30), 5).tolist()

    def sample():
        return np.repeat(generator.normal(size=30), 5) + 0.5 * generator.normal(size=150)

    assert _coverage(0.0, lambda: t_interval(mean_error(sample(), labels)), 800) == pytest.approx(
        0.95, abs=0.025
    )
    assert _coverage(0.0, lambda: t_interval(mean_error(sample())), 300) < 0.8


def test_median_coverage():
    generator = np.random.default_rng(4)
    interval = lambda: quantile_interval(np.sort(generator.exponential(size=25)), 0.5)  # noqa: E731
    assert 0.94 <= _coverage(math.log(2), interval, 800) <= 0.985  # at least 95 %, in steps of the binomial

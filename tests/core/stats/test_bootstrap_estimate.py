"""The bootstrap of a statistic of the whole: scipy as an oracle, clusters, and what has no error bar."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import bootstrap_estimate

PAIRS = [(n % 3, (n * n) % 5 % 3) for n in range(60)]


def share_of_first(pairs):
    first, second = zip(*pairs, strict=True)
    return sum(first) / (sum(first) + sum(second))


def test_interval_is_scipys_percentile_interval():
    found = bootstrap_estimate(PAIRS, share_of_first, resamples=2_000, seed=3)
    expected = scipy_stats.bootstrap(
        (np.arange(60),),
        lambda places: share_of_first([PAIRS[place] for place in places]),
        vectorized=False,
        n_resamples=2_000,
        method="percentile",
        rng=np.random.default_rng(3),
    )
    assert found.interval == pytest.approx(tuple(expected.confidence_interval), abs=0.003)
    assert found.stderr == pytest.approx(expected.standard_error, rel=0.03)
    assert (found.value, found.n, found.interval_kind) == (share_of_first(PAIRS), 60, "bootstrap")


def test_same_seed_gives_same_interval():
    assert bootstrap_estimate(PAIRS, share_of_first) == bootstrap_estimate(PAIRS, share_of_first)
    assert bootstrap_estimate(PAIRS, share_of_first, seed=1) != bootstrap_estimate(PAIRS, share_of_first)


def test_values_of_a_cluster_are_drawn_together():
    twice = [*PAIRS, *PAIRS]
    clustered = bootstrap_estimate(twice, share_of_first, clusters=[*range(60), *range(60)])
    assert clustered.n_clusters == 60
    assert clustered.stderr == pytest.approx(bootstrap_estimate(PAIRS, share_of_first).stderr, rel=0.1)
    assert bootstrap_estimate(twice, share_of_first).stderr < 0.8 * clustered.stderr


def test_equal_statistics_have_no_error_bar():
    found = bootstrap_estimate([1.0] * 9, lambda values: sum(values) / len(values))
    assert (found.value, found.stderr, found.interval) == (1.0, None, None)


def test_statistic_that_often_fails_has_no_error_bar():
    def of_both_classes(values):
        return sum(values) / len(values) if len(set(values)) == 2 else math.nan

    assert bootstrap_estimate([0, 1, 1], of_both_classes).interval is None
    assert bootstrap_estimate([0, 1] * 20, of_both_classes).interval is not None


@pytest.mark.parametrize(
    ("values", "resamples", "problem"),
    [([], 1_000, "0 values"), ([1.0], 99, "99 resamples"), ([math.nan], 100, "statistic is nan")],
)
def test_what_has_no_bootstrap_is_refused(values, resamples, problem):
    with pytest.raises(InvalidDataError, match=problem):
        bootstrap_estimate(values, math.fsum, resamples=resamples)

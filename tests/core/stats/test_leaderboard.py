import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import compare_systems, paired_difference


def _board(n, skill=1.0):
    """Scores of seven systems on n items, of which some are harder for all; by arithmetic, so that R has them too."""
    item, system = np.arange(n)[:, None], np.arange(7)
    noise = ((item * item * (system + 3) * 7 + item * (11 * system + 5) + 13 * system * system) % 97) / 97
    skills = np.array([0, 0.02, 0.1, 0.12, 0.3, 0.32, 0.6])
    return (item * 37 % 101) / 100 + 0.6 * noise * (1 + system % 3 / 2) + skill * skills


# R 4.2.2, csranks at its public repository: csranks(colMeans, cov / n, coverage=0.95, R=50000, simul=TRUE), with
# stepdown=TRUE: the best and the worst rank of each system.
CSRANKS = [
    (120, 1.0, [7, 5, 3, 5, 3, 1, 1], [7, 6, 4, 6, 4, 2, 2]),
    # Here a second step finds more than the first.
    (300, 0.275, [7, 4, 2, 6, 3, 1, 3], [7, 5, 2, 6, 4, 1, 5]),
    (300, 0.355, [7, 5, 2, 6, 3, 1, 3], [7, 5, 2, 6, 4, 1, 4]),
    (400, 0.215, [7, 4, 2, 6, 3, 1, 4], [7, 5, 2, 6, 3, 1, 5]),
]


@pytest.mark.parametrize(("n", "skill", "best", "worst"), CSRANKS)
def test_the_ranks_are_those_of_csranks(n, skill, best, worst):
    found = compare_systems(_board(n, skill))
    assert found.ranks.tolist() == [[*pair] for pair in zip(best, worst, strict=True)]


def test_two_systems_have_the_paired_t_test():
    values = _board(40)[:, 2:4]
    found, expected = compare_systems(values, draws=400_000), paired_difference(*values.T)
    assert found.means.tolist() == pytest.approx([expected.baseline, expected.candidate], rel=1e-12)
    assert (found.low[0, 1], found.high[0, 1]) == pytest.approx(expected.difference.interval, abs=0.002)
    assert found.p_values[0, 1] == pytest.approx(expected.p_value, abs=0.003)
    clusters = np.arange(40) // 3
    clustered = compare_systems(values, clusters=clusters.tolist(), draws=400_000)
    expected = paired_difference(*values.T, clusters=clusters.tolist()).difference
    assert (clustered.low[0, 1], clustered.high[0, 1]) == pytest.approx(expected.interval, abs=0.002)


def test_alike_systems_have_tukeys_range():
    # Independent, of equal variance and many: then the largest |t| is the studentized range over sqrt(2).
    m, n = 5, 801
    raw = np.random.default_rng(1).normal(size=(n, m))
    raw -= raw.mean(axis=0)
    white = raw @ np.linalg.inv(np.linalg.cholesky(np.cov(raw.T))).T
    found = compare_systems(white + np.arange(m), draws=400_000)
    half = (found.high - found.low)[0, 1] / 2
    stderr = math.sqrt(2 / n)
    assert half / stderr == pytest.approx(
        scipy_stats.studentized_range.ppf(0.95, m, n - 1) / math.sqrt(2), rel=0.005
    )


def test_all_intervals_and_ranks_hold_together():
    generator = np.random.default_rng(2)
    truth = np.array([0.0, 0.0, 0.1, 0.4])
    differences = truth - truth[:, None]
    ranks = np.array([[3, 4], [3, 4], [2, 2], [1, 1]])
    held = []
    for _ in range(400):  # with 10 items, so that each pair's standard error counts
        values = generator.normal(size=(10, 1)) + generator.normal(size=(10, 4)) * [1, 0.5, 1, 2] + truth
        found = compare_systems(values, draws=2000)
        intervals = np.isnan(found.low) | ((found.low <= differences) & (differences <= found.high))
        held.append(
            (
                intervals.all(),
                (found.ranks[:, 0] <= ranks[:, 1]).all() and (ranks[:, 0] <= found.ranks[:, 1]).all(),
            )
        )
    assert np.mean(held, axis=0).tolist() == pytest.approx([0.955, 0.97], abs=0.03)


def test_lower_may_be_better():
    higher, lower = compare_systems(_board(40)), compare_systems(-_board(40), lower_is_better=True)
    assert higher.ranks.tolist() == lower.ranks.tolist()
    assert higher.groups == lower.groups
    assert higher.low.T[~np.eye(7, dtype=bool)] == pytest.approx(lower.low[~np.eye(7, dtype=bool)])


def test_groups_hold_what_cannot_be_told_apart():
    assert compare_systems(_board(120)).groups == ((5, 6), (4, 2), (1, 3), (0,))
    found = compare_systems(_board(30))
    separate = {(j, k) for j in range(7) for k in range(7) if found.p_values[j, k] < 0.05}
    for group in found.groups:
        assert not separate & {(j, k) for j in group for k in group}
    together = {(j, k) for group in found.groups for j in group for k in group}
    assert {(j, k) for j in range(7) for k in range(7)} - together == separate


def test_systems_that_differ_by_the_same_on_all_items_are_not_told_apart():
    one = np.array([0.5, 0.25, 0.75, 0.5])
    found = compare_systems(np.stack([one, one, one + 1, one[::-1]], axis=1))
    assert np.isnan(found.low[:3, :3]).all()
    assert np.isnan(found.p_values.diagonal()).all()
    assert not np.isnan(found.low[0, 3])
    assert found.ranks[:2].tolist() == [[1, 4], [1, 4]]
    constant = compare_systems([[1, 2], [1, 2]])
    assert constant.groups == ((1, 0),)
    assert constant.ranks.tolist() == [[1, 2], [1, 2]]


@given(st.permutations(range(7)))
def test_the_order_of_the_systems_does_not_matter(order):
    whole, turned = (
        compare_systems(_board(120), draws=2000),
        compare_systems(_board(120)[:, order], draws=2000),
    )
    assert turned.ranks.tolist() == whole.ranks[order].tolist()


def test_huge_values_neither_overflow_nor_vanish():
    for scale in (1e300, 1e-300):
        found = compare_systems(_board(40) * scale)
        assert found.ranks.tolist() == compare_systems(_board(40)).ranks.tolist()
        assert found.low[0, 1] == pytest.approx(compare_systems(_board(40)).low[0, 1] * scale, rel=1e-6)


@pytest.mark.parametrize(
    "values", [[], [1, 2], [[1, 2]], [[1], [2]], [[1, math.nan], [1, 2]], [[1, math.inf], [1, 2]]]
)
def test_what_is_no_leaderboard(values):
    with pytest.raises(InvalidDataError):
        compare_systems(values)


def test_what_does_not_fit_the_values():
    with pytest.raises(InvalidDataError, match=r"with 1 cluster label\."):
        compare_systems([[1, 2], [2, 1]], clusters=["a"])
    with pytest.raises(InvalidDataError, match="from a single cluster"):
        compare_systems([[1, 2], [2, 1]], clusters=["a", "a"])
    for options in ({"draws": 999}, {"confidence": 1}):
        with pytest.raises(InvalidDataError, match="Cannot compare systems"):
            compare_systems([[1, 2], [2, 1]], **options)

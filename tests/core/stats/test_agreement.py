import math
from functools import partial

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss_kappa

from modelgauge.errors import InvalidDataError
from modelgauge.stats import (
    agreement_interval,
    cohen_kappa,
    confusion_matrix,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    ratings_of,
    raw_agreement,
)

COEFFICIENTS = [raw_agreement, cohen_kappa, fleiss_kappa, gwet_ac1, krippendorff_alpha]
# Krippendorff's own example: 12 items, 4 raters (Gwet 2014, table 2.10; Krippendorff 2019, chapter 12).
PUBLISHED = [
    [1, 1, None, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [None, 5, 5, 5], [None, None, 1, 1], [None, None, 3, None],
]  # fmt: skip

TWO = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30)
SOME = st.lists(
    st.lists(st.sampled_from([None, 0, 1, 2, 5]), min_size=3, max_size=3), min_size=2, max_size=20
)


def test_published_figures():
    ratings = ratings_of(PUBLISHED)
    # irrCAC 0.4.4 for Python, CAC(…, digits=12), which follows Gwet's book.
    assert raw_agreement(ratings) == pytest.approx(0.818181818182, abs=1e-12)
    assert gwet_ac1(ratings) == pytest.approx(0.775444068127, abs=1e-12)
    assert fleiss_kappa(ratings) == pytest.approx(0.761169275422, abs=1e-12)
    assert krippendorff_alpha(ratings) == pytest.approx(0.743421052632, abs=1e-12)


@given(TWO)
def test_cohens_kappa_is_that_of_statsmodels(rows):
    ratings = ratings_of(rows, [0, 1, 2, 3])
    table = confusion_matrix(ratings)
    assert table.sum() == len(rows)
    assert table[rows[0][0], rows[0][1]] > 0
    for weights in (None, "linear", "quadratic"):
        found = cohen_kappa(ratings, weights=weights)
        if found is None:
            assert len({label for row in rows for label in row}) == 1
        else:
            expected = cohens_kappa(table, wt=weights, return_results=False)
            assert found == pytest.approx(expected, abs=1e-10)


@given(TWO)
def test_fleiss_kappa_is_that_of_statsmodels(rows):
    assume(len({label for row in rows for label in row}) > 1)
    ratings = ratings_of(rows)
    assert fleiss_kappa(ratings) == pytest.approx(statsmodels_fleiss_kappa(ratings.counts), abs=1e-10)


@given(SOME)
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
def test_alpha_is_that_of_krippendorff(level, rows):
    paired = {label for row in rows if sum(one is not None for one in row) > 1 for label in row} - {None}
    ratings = ratings_of(rows, [0, 1, 2, 5])
    found = krippendorff_alpha(ratings, level=level)
    if len(paired) < 2:
        assert found is None
        return
    values = np.array([[math.nan if one is None else one for one in row] for row in rows], dtype=float).T
    expected = krippendorff.alpha(values, level_of_measurement=level, value_domain=[0, 1, 2, 5])
    assert found == pytest.approx(expected, abs=1e-10)


def test_gwets_ac1_by_hand_where_kappa_misleads():
    # 118 agree on yes, 2 on no, 5 disagree: nearly all agree, and kappa is low.
    rows = [("yes", "yes")] * 118 + [("yes", "no")] * 5 + [("no", "yes")] * 2 + [("no", "no")] * 0
    ratings = ratings_of(rows)
    observed, yes = 118 / 125, (123 + 120) / 250
    chance = 2 * yes * (1 - yes)
    assert gwet_ac1(ratings) == pytest.approx((observed - chance) / (1 - chance), abs=1e-12)
    assert cohen_kappa(ratings) < 0 < 0.9 < gwet_ac1(ratings)


def test_missing_labels_are_left_out():
    rows = [("a", "b"), ("b", "b"), ("a", None), (None, None), ("a", "a")]
    ratings = ratings_of(rows)
    assert confusion_matrix(ratings).tolist() == [[1, 1], [0, 1]]
    assert raw_agreement(ratings) == pytest.approx(2 / 3)
    assert cohen_kappa(ratings) == cohen_kappa(ratings_of([("a", "b"), ("b", "b"), ("a", "a")]))
    assert krippendorff_alpha(ratings) == pytest.approx(
        krippendorff_alpha(ratings_of([rows[0], rows[1], rows[4]]))
    )


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_full_agreement_and_none(coefficient):
    assert coefficient(ratings_of([("a", "a"), ("b", "b")])) == 1
    assert coefficient(ratings_of([("a", None), (None, "b")])) is None
    assert agreement_interval(coefficient, ratings_of([("a", None), (None, "b")])) is None


def test_one_label_alone_says_nothing_beyond_chance():
    alone = ratings_of([("a", "a"), ("a", "a")])
    assert [coefficient(alone) for coefficient in COEFFICIENTS] == [1, None, None, None, None]
    assert gwet_ac1(ratings_of([("a", "a"), ("a", "a")], ["a", "b"])) == 1


def test_the_interval_is_the_bca_bootstrap_over_items():
    rows = np.random.default_rng(1).integers(0, 2, (60, 2))
    ratings = ratings_of(rows.tolist())

    def kappa(first, second, axis=-1):
        return cohen_kappa(ratings_of([*zip(first.tolist(), second.tolist(), strict=True)], [0, 1]))

    expected = scipy_stats.bootstrap(
        tuple(rows.T), kappa, vectorized=False, paired=True, n_resamples=200, confidence_level=0.9, method="BCa",
        rng=np.random.default_rng(5),
    ).confidence_interval  # fmt: skip
    found = agreement_interval(cohen_kappa, ratings, resamples=200, seed=5, confidence=0.9)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-10)


@pytest.mark.parametrize(
    "coefficient",
    [*COEFFICIENTS, partial(cohen_kappa, weights="quadratic"), partial(krippendorff_alpha, level="ordinal")],
)
def test_a_function_of_ones_own_has_the_same_interval(coefficient):
    rows = np.random.default_rng(2).integers(0, 3, (40, 2)).tolist()
    ratings = ratings_of([*rows, (0, None), (None, 1)])
    expected = agreement_interval(lambda one: coefficient(one), ratings, resamples=100)  # noqa: PLW0108  not itself
    assert expected[0] < coefficient(ratings) < expected[1]
    assert agreement_interval(coefficient, ratings, resamples=100) == pytest.approx(expected, abs=1e-10)


def test_full_agreement_has_no_bootstrap_interval():
    assert agreement_interval(cohen_kappa, ratings_of([("a", "a"), ("b", "b")] * 20)) is None


def test_clusters_are_drawn_together():
    rng = np.random.default_rng(0)
    kinds = [("a", "a"), ("b", "b"), ("a", "b"), ("b", "a")]
    of_texts = [kinds[kind] for kind in rng.choice(4, 40, p=[0.4, 0.4, 0.1, 0.1])]
    rows = [row for row in of_texts for _ in range(5)]
    alone = agreement_interval(raw_agreement, ratings_of(of_texts))
    clustered = agreement_interval(raw_agreement, ratings_of(rows), clusters=np.arange(200) // 5)
    ignored = agreement_interval(raw_agreement, ratings_of(rows))
    assert clustered == pytest.approx(alone, abs=0.02)
    assert np.ptp(ignored) < 0.6 * np.ptp(clustered)
    single = agreement_interval(raw_agreement, ratings_of(rows), clusters=range(200))
    assert single == pytest.approx(ignored, abs=0.02)


def test_an_interval_of_what_mostly_does_not_exist():
    rare = ratings_of([("a", "a")] * 40 + [("a", "b")])
    assert cohen_kappa(rare) == 0
    assert agreement_interval(cohen_kappa, rare) is None


@pytest.mark.parametrize(
    ("rows", "categories"),
    [
        ([], None),
        ([[1]], None),
        ([[1, 2], [1]], None),
        ([[1, "a"]], None),
        ([[None, None]], None),
        ([[1, 2]], [1]),
    ],
)
def test_what_are_no_ratings(rows, categories):
    with pytest.raises(InvalidDataError):
        ratings_of(rows, categories)


def test_what_does_not_fit_a_coefficient():
    three = ratings_of([[1, 2, 1], [2, 2, 2]])
    for function in (cohen_kappa, confusion_matrix):
        with pytest.raises(InvalidDataError, match="two raters, not 3"):
            function(three)
    with pytest.raises(InvalidDataError, match="are not numbers"):
        krippendorff_alpha(ratings_of([("a", "b")]), level="interval")
    with pytest.raises(InvalidDataError, match="level='ratio'"):
        krippendorff_alpha(ratings_of([(-1, 1)]), level="ratio")
    with pytest.raises(InvalidDataError, match="level='interval'"):
        krippendorff_alpha(ratings_of([(math.inf, 1)]), level="interval")
    with pytest.raises(InvalidDataError, match="Cannot compute an interval"):
        agreement_interval(raw_agreement, three, resamples=10)
    with pytest.raises(InvalidDataError, match="Cannot compute an interval"):
        agreement_interval(raw_agreement, three, confidence=1)

import math

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import bounded_interval, mean_error, prediction_powered_mean, rogan_gladen
from modelgauge.stats.intervals import bounded_error

RIGHT = [1, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1]
JUDGED = [1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1]
OTHERS = [1] * 37 + [0] * 23
SCORES = [0.9, 0.4, 0.7, 0.8, 0.6, 0.9, 0.1, 0.35, 0.55, 0.75]
JUDGED_SCORES = [0.8, 0.5, 0.65, 0.9, 0.4, 0.85, 0.3, 0.3, 0.7, 0.6]
OTHER_SCORES = np.linspace(0.2, 1, 25) ** 2

# ppi-python 0.2.3: ppi_mean_pointestimate, and ppi_mean_ci with alpha=0.05. Its variances have the divisor n.
PPI = [
    ((RIGHT, JUDGED, OTHERS), 0.61127451, (0.4386744993321919, 0.783874520275651)),
    ((SCORES, JUDGED_SCORES, OTHER_SCORES), 0.53591751, (0.4142240463830519, 0.6576109775413511)),
]


@pytest.mark.parametrize(("given", "value", "interval"), PPI)
def test_the_mean_is_that_of_ppi_python(given, value, interval):
    labels, judged, others = map(np.asarray, given)
    found = prediction_powered_mean(*given)
    assert found.value == pytest.approx(sum(interval) / 2, abs=1e-10)
    assert found.value == pytest.approx(value, abs=1e-8)
    errors = labels - found.weight * judged
    theirs = math.sqrt(found.weight**2 * others.var() / len(others) + errors.var() / len(errors))
    assert 2 * scipy_stats.norm.ppf(0.975) * theirs == pytest.approx(interval[1] - interval[0], abs=1e-10)
    ours = math.sqrt(found.weight**2 * others.var(ddof=1) / len(others) + errors.var(ddof=1) / len(errors))
    assert found.stderr == pytest.approx(ours, rel=1e-12)
    assert found.interval[0] < interval[0] < interval[1] < found.interval[1]
    if set(labels) == {0, 1}:  # Student's t with one and a half imaginary errors at each end
        ends = {"lows": (0, 1), "errors": (-found.weight, 1)}
        lows, errors_ = (
            bounded_error(values, ends[name]) for name, values in (("lows", others), ("errors", errors))
        )
        half = scipy_stats.t.ppf(0.975, len(labels) + 2) * math.hypot(
            found.weight * lows.stderr, errors_.stderr
        )
        middle = found.weight * lows.mean + errors_.mean
        assert found.interval == pytest.approx((middle - half, middle + half), rel=1e-10)


def test_a_judge_that_is_useless_or_turned_round_is_left_out():
    for judged, others in ((np.ones(10), np.ones(25)), (1 - np.array(JUDGED_SCORES), OTHER_SCORES)):
        found = prediction_powered_mean(SCORES, judged, others)
        classical = mean_error(SCORES)
        assert (found.weight, found.value) == (0.0, pytest.approx(classical.mean))
        every = [*SCORES, *judged, *others]
        ends = min(every), max(every)
        assert found.interval == pytest.approx(bounded_interval(SCORES, *ends), rel=1e-10)


def test_a_judge_that_knows_all_is_relied_on():
    found = prediction_powered_mean(RIGHT, RIGHT, OTHERS * 1000)
    assert found.weight == pytest.approx(1, abs=0.2)
    assert found.stderr < mean_error(RIGHT).stderr / 2
    assert prediction_powered_mean([1, 1], [1, 1], [1, 1]) == (1.0, 0.0, None, 0.0)
    low, high = prediction_powered_mean([1, 1], [1, 1], [1, 1], declared=(0, 1)).interval
    assert low < 0.5
    assert high == 1


def test_the_interval_holds_the_mean_of_a_biased_judge():
    generator = np.random.default_rng(4)
    held, narrower = 0, 0
    for _ in range(600):
        truth = generator.random(400) < 0.6
        judged = (
            np.where(generator.random(400) < 0.9, truth, 1) * 1.0
        )  # it lets a tenth of the wrong answers pass
        found = prediction_powered_mean(truth[:60] * 1.0, judged[:60], judged[60:])
        held += found.interval[0] <= 0.6 <= found.interval[1]
        narrower += found.stderr < mean_error(truth[:60]).stderr
    assert 0.93 < held / 600 < 0.985
    assert narrower > 590


@pytest.mark.parametrize("rate", [0.5, 0.9])
@pytest.mark.parametrize(("n", "others"), [(14, 1000), (30, 1000), (100, 200)])
@pytest.mark.parametrize("judge", [(1, 0.9), (0.98, 0.98), (1, 1)])
def test_interval_covers_mean_although_sample_shows_few_errors_of_good_judge(judge, n, others, rate):
    generator, held, (finds_right, finds_wrong) = np.random.default_rng(1), 0, judge
    for _ in range(300):
        people = generator.random(n + others) < rate
        judged = generator.random(n + others) < np.where(people, finds_right, 1 - finds_wrong)
        interval = prediction_powered_mean(people[:n], judged[:n], judged[n:]).interval
        assert 0 <= interval[0] <= interval[1] <= 1
        held += interval[0] <= rate <= interval[1]
    assert held / 300 >= 0.935


share = st.sampled_from([0, 0.1, 0.5, 0.9, 1])


@drawn(st.lists(st.tuples(share, share), min_size=2, max_size=8), st.lists(share, min_size=2, max_size=8))
def test_estimate_and_interval_stay_within_the_declared_range(pairs, others):
    labels, judged = zip(*pairs, strict=True)
    found = prediction_powered_mean(labels, judged, others, declared=(0, 1))
    assert 0 <= found.interval[0] <= found.value <= found.interval[1] <= 1


def test_clustered_labels_have_wider_intervals_that_cover():
    generator, held, ignored = np.random.default_rng(2), 0, 0
    texts = np.arange(4 * 120) // 4
    for _ in range(300):
        people = (generator.random(120) < 0.7)[texts]
        judged = people ^ (generator.random(120) < 0.2)[texts]
        given = people[:80], judged[:80], judged[80:]
        clustered = prediction_powered_mean(*given, clusters=texts[:80], unlabelled_clusters=texts[80:])
        plain = prediction_powered_mean(*given)
        held += clustered.interval[0] <= 0.7 <= clustered.interval[1]
        ignored += plain.interval[0] <= 0.7 <= plain.interval[1]
    assert held / 300 >= 0.935
    assert ignored / 300 < 0.85


def test_clusters_of_single_items_change_nothing():
    given = RIGHT, JUDGED, OTHERS
    alone = {"clusters": range(20), "unlabelled_clusters": range(20, 80)}
    clustered, plain = prediction_powered_mean(*given, **alone), prediction_powered_mean(*given)
    assert clustered.interval == pytest.approx(plain.interval)
    assert clustered.stderr == pytest.approx(plain.stderr)


@pytest.mark.parametrize(
    "given",
    [
        ([1], [1], [1, 0]), ([1, 0], [1], [1, 0]), ([1, 0], [1, 0], [1]), ([[1, 0]], [[1, 0]], [1, 0]),
        ([1, math.nan], [1, 0], [1, 0]), ([1, 0], [math.inf, 0], [1, 0]), ([1, 0], [1, 0], [math.nan, 0]), ([], [], []),
    ],
)  # fmt: skip
def test_what_has_no_corrected_mean(given):
    with pytest.raises(InvalidDataError):
        prediction_powered_mean(*given)


# prevSeSp of Fay's R package asht 1.0.1 in R 4.2.2. The first four are the paper's examples 1, 2 and 4 (two), which
# prints 0.349 to 0.372, 0 to 0.053, 0.58 to 0.87 and 0.037 to 0.195.
LANG_REICZIGEL = [
    (
        ((4060, 11284), (178, 179), (358, 359)),
        0.95,
        (0.360030184924523, 0.348673545667138, 0.372082954561085),
    ),
    (((51, 2971), (32, 33), (20, 20)), 0.95, (0.017702372938405, 0, 0.053345076474732)),
    (((259, 509), (84, 127), (96, 109)), 0.95, (0.718572163416923, 0.584867868359010, 0.866458208820525)),
    (((51, 509), (23, 41), (187, 195)), 0.95, (0.113800992762935, 0.036609810510874, 0.194694062163026)),
    (((27, 650), (50, 100), (199, 200)), 0.95, (0.073815073815074, 0.027460010566892, 0.114583025729825)),
    (((130, 200), (70, 80), (51, 60)), 0.95, (0.689655172413793, 0.567393306647181, 0.816456222870992)),
    (((130, 200), (70, 80), (51, 60)), 0.9, (0.689655172413793, 0.587776618533006, 0.797098160106000)),
    (((49, 50), (18, 20), (19, 20)), 0.95, (1.0, 0.934491780223435, 1.0)),
]


@pytest.mark.parametrize(("counts", "confidence", "expected"), LANG_REICZIGEL)
def test_the_share_has_the_interval_of_lang_and_reiczigel(counts, confidence, expected):
    found = rogan_gladen(*counts, confidence=confidence)
    assert (found.value, *found.interval) == pytest.approx(expected, abs=1e-10)
    assert (found.sensitivity, found.specificity) == tuple(count / total for count, total in counts[1:])


def test_the_interval_holds_the_true_share():
    generator = np.random.default_rng(6)
    held = 0
    for _ in range(1000):
        positive = generator.binomial(300, 0.3 * 0.85 + 0.7 * 0.1)
        found = rogan_gladen(
            (positive, 300), (generator.binomial(60, 0.85), 60), (generator.binomial(80, 0.9), 80)
        )
        held += found.interval[0] <= 0.3 <= found.interval[1]
    assert 0.935 < held / 1000 < 0.98


def test_a_perfect_judge_corrects_nothing_and_a_barely_known_one_says_nothing():
    assert rogan_gladen((30, 100), (50, 50), (50, 50)).value == pytest.approx(0.3)
    assert rogan_gladen((5, 10), (1, 1), (1, 10)).interval == (0.0, 1.0)


@pytest.mark.parametrize(
    "counts", [((1, 2), (1, 2), (1, 2)), ((1, 2), (1, 3), (2, 3)), ((1, 2), (0, 5), (5, 5))]
)
def test_a_judge_that_tells_nothing_is_refused(counts):
    with pytest.raises(InvalidDataError, match="no better than chance"):
        rogan_gladen(*counts)


@pytest.mark.parametrize(
    "counts", [((3, 2), (1, 1), (1, 1)), ((0, 0), (1, 1), (1, 1)), ((1, 2), (-1, 1), (1, 1))]
)
def test_what_are_no_counts(counts):
    with pytest.raises(InvalidDataError, match="between 0 and its total"):
        rogan_gladen(*counts)

"""The mean over several tests that may share items: its error, interval and p value."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.distributions import student_t_sf
from modelgauge.stats.intervals import (
    CONFIDENCE,
    Interval,
    MeanError,
    cluster_codes,
    joined_clusters,
    mean_error,
    t_interval,
    with_imaginary,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class MeanParts(NamedTuple):
    """The mean of a test with its error, and the contribution of each cluster of items to that error.

    Args:
        mean: of the test.
        stderr: its standard error; None if it is not known.
        df: the degrees of freedom of the standard error.
        clusters: (g,) a label for each cluster; equal labels of several tests are one cluster.
        parts: (g,) the contribution of each cluster to the error of the mean. The squares add up to stderr².
    """

    mean: float
    stderr: float | None
    df: float
    clusters: "NDArray[np.int64]"
    parts: "NDArray[np.float64]"


class OverallMean(NamedTuple):
    """The mean of the means of several tests, with equal weights.

    Args:
        value: the mean.
        stderr: its standard error, that of imaginary clusters included; None if that of a test is not known.
        df: the degrees of freedom of the standard error.
        interval: by Student's t; None if there is no standard error.
        p_value: two-sided, that the true mean is 0; None if there is no standard error, or it is 0.
    """

    value: float
    stderr: float | None = None
    df: float = math.inf
    interval: Interval | None = None
    p_value: float | None = None


def parts_of_values(values: "ArrayLike", clusters: "NDArray[np.int64]") -> MeanParts:
    """Return the mean of a test's values with its error, as `mean_error` has it.

    Args:
        values: (n,) finite numbers, n >= 1.
        clusters: (n,) labels; equal labels of several tests are one cluster.

    Raises:
        InvalidDataError: see `mean_error`.
    """
    labels, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    array, error = np.asarray(values, dtype=np.float64), mean_error(values, codes)
    if error.stderr is None:
        return MeanParts(error.mean, None, error.df, labels, np.zeros(len(labels)))
    sums = np.bincount(codes, weights=array - error.mean)
    parts = sums / (len(array) * np.sqrt(1 - sizes / len(array)))
    return MeanParts(error.mean, error.stderr, error.df, labels, parts)


def parts_of_clusters(
    mean: float, stderr: float | None, clusters: "NDArray[np.int64]", *, exact: bool = False
) -> MeanParts:
    """Return the mean of a test when only the size of its error is known.

    If tests share clusters, their errors are assumed to be correlated as much as the share of these clusters allows.
    Tests of the same clusters have the same error.

    Args:
        mean: of the test.
        stderr: its standard error.
        clusters: (n,) labels; equal labels of several tests are one cluster.
        exact: whether the standard error comes from an interval, not from a sample variance.
    """
    labels, sizes = np.unique(clusters, return_counts=True)
    parts = (stderr or 0.0) * np.sqrt(sizes / len(clusters))
    return MeanParts(mean, stderr, math.inf if exact else max(1.0, len(labels) - 1.0), labels, parts)


def overall_mean(
    tests: Sequence[MeanParts], *, ends: Interval | None = None, confidence: float = CONFIDENCE
) -> OverallMean:
    """Return the mean of several tests' means (or differences), with equal weights, and its error.

    Tests that share items are not independent: the contributions of a cluster to several tests are added before they
    are squared. Without shared items the standard error is √Σ SE² / k, and the degrees of freedom are Satterthwaite's
    (1946, Biometrics Bulletin 2:110-114): V² / Σ (V_p² / df_p). Here p runs over the sets of clusters that the same
    tests share, and df_p is the number of clusters in it, less what their means take. It is about questions like those
    of these tests, and no other tests.

    Args:
        tests: k >= 1.
        ends: the lowest and the highest value that a cluster could show which the tests lack, on average over them;
            one and a half imaginary clusters of each are added, as by `bounded_error`. None adds none.
        confidence: the share of such intervals that hold the true mean, between 0 and 1.

    Raises:
        InvalidDataError: there is no test, or the confidence is not between 0 and 1.
    """
    if not tests:
        raise InvalidDataError(
            "Cannot compute the mean of an empty list of tests.", fix="Give at least one test."
        )
    value = math.fsum(test.mean for test in tests) / len(tests)
    if any(test.stderr is None for test in tests):
        return OverallMean(value)
    codes = cluster_codes(np.concatenate([test.clusters for test in tests]))
    parts = np.bincount(codes, weights=np.concatenate([test.parts for test in tests])) / len(tests)
    variance = math.fsum(parts * parts)
    df = _degrees_of_freedom(tests, codes, parts) if variance else min(test.df for test in tests)
    error = MeanError(value, math.sqrt(variance), min(df, 1e9))
    if ends is not None:
        error = with_imaginary(error, ends, len(parts))
    p_value = 2 * student_t_sf(abs(error.mean) / error.stderr, error.df) if error.stderr else None
    interval = t_interval(error, confidence=confidence) or (value, value)
    return OverallMean(value, error.stderr, error.df, interval, p_value)


def _degrees_of_freedom(
    tests: Sequence[MeanParts], codes: "NDArray[np.int64]", parts: "NDArray[np.float64]"
) -> float:
    """Return Satterthwaite's degrees of freedom of the sum of squared parts of all clusters."""
    has = np.zeros((len(parts), len(tests)), dtype=bool)
    has[codes, np.repeat(np.arange(len(tests)), [len(test.clusters) for test in tests])] = True
    of_clusters = np.array([test.df / len(test.clusters) for test in tests])
    patterns, places = np.unique(has, axis=0, return_inverse=True)
    variances = np.bincount(places.ravel(), weights=parts * parts)
    of_each = np.where(patterns, of_clusters, np.inf).min(axis=1)
    dfs = np.bincount(places.ravel()) * of_each
    lost = float((variances**2 / dfs).sum())
    return float(variances.sum() ** 2) / lost if lost else math.inf


def clusters_over_tests(
    lengths: Sequence[int],
    own: "Sequence[NDArray[np.int64] | None]",
    labelings: "Sequence[Sequence[NDArray[np.int64] | None]]",
) -> "list[NDArray[np.int64]]":
    """Return the labels of the clusters of all tests. They are equal if tests share a cluster.

    Args:
        lengths: the number of items of each test.
        own: for each test (n,) the codes of its clusters; None if every item is its own.
        labelings: for each test rows of (n,) labels; items of any tests with an equal label in a row belong together.
            None if the items of the test have no label in it.
    """
    total, starts = sum(lengths), np.cumsum([0, *lengths]).tolist()
    alone = np.arange(total)
    rows = [
        np.concatenate(
            [
                _placed(codes, start, length)
                for codes, start, length in zip(own, starts, lengths, strict=False)
            ]
        )
    ]
    for row in zip(*labelings, strict=True):
        labels = [
            _apart(start, length) if given is None else given
            for given, start, length in zip(row, starts, lengths, strict=False)
        ]
        rows.append(np.concatenate(labels))
    joined = joined_clusters(*rows)
    return np.split(alone if joined is None else joined, starts[1:-1])


def _placed(codes: "NDArray[np.int64] | None", start: int, length: int) -> "NDArray[np.int64]":
    """Return the codes of a test, shifted to differ from those of other tests."""
    return (np.arange(length) if codes is None else codes) + start


def _apart(start: int, length: int) -> "NDArray[np.int64]":
    """Return unique labels. Hashes are hardly ever so close to the lowest number."""
    return np.arange(start, start + length) + np.iinfo(np.int64).min

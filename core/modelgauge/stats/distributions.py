"""The distribution functions that intervals and tests need: Student's t, F and the binomial, in pure Python.

All rest on one function, the regularized incomplete beta function. The normal quantile is not here: it is
`statistics.NormalDist().inv_cdf`. What is built on these lives in `intervals` and `paired`; scipy serves as
the oracle of the tests only, so that no user has to install it.
"""

import functools
import math
from statistics import NormalDist

# From here on the four terms of Stirling's series below are exact to the last bit of a double.
_STIRLING_FROM = 20.0


def student_t_sf(t: float, df: float) -> float:
    """Return the probability that a Student-t variable exceeds `t`.

    Abramowitz and Stegun (1964), 26.7.1: sf(t) = I_x(df/2, 1/2) / 2 with x = df / (df + t²), for t >= 0.

    Args:
        t: any finite number.
        df: degrees of freedom, above 0; need not be whole.

    Raises:
        ValueError: `df` is not above 0.
    """
    if not df > 0:
        raise ValueError(f"Degrees of freedom must be above 0, not {df}.")
    if t < 0:
        return 1.0 - student_t_sf(-t, df)
    ratio = t / math.sqrt(df)
    odds = ratio * ratio  # infinite for a huge t, where ** would raise
    log_x = -math.log1p(odds)
    # 1 - x is odds / (1 + odds), but 1 once the odds have overflowed.
    log_rest = math.log(odds) + log_x if 0.0 < odds < math.inf else (0.0 if odds else -math.inf)
    return 0.5 * _beta_cdf(log_x, log_rest, 0.5 * df, 0.5)


@functools.lru_cache(maxsize=4096)
def student_t_quantile(probability: float, df: float) -> float:
    """Return the `t` that a Student-t variable stays below with this probability.

    Newton's method on log sf as a function of log t, which is decreasing and concave: after its first step it
    approaches the root from one side. It starts at the normal quantile, the limit for large `df`.

    Args:
        probability: above 0, below 1.
        df: degrees of freedom, above 0; need not be whole.

    Raises:
        ValueError: an argument is outside its range.
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"A probability must be above 0 and below 1, not {probability}.")
    if not df > 0:
        raise ValueError(f"Degrees of freedom must be above 0, not {df}.")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -student_t_quantile(1.0 - probability, df)
    tail = 1.0 - probability
    t = NormalDist().inv_cdf(probability)
    for _ in range(100):
        sf = student_t_sf(t, df)
        step = math.log(sf / tail) * sf / (t * student_t_pdf(t, df))
        t *= math.exp(step)
        if abs(step) < 1e-14:
            break
    return t


def student_t_pdf(t: float, df: float) -> float:
    """Return the density of Student's t at `t`; for the arguments see `student_t_sf`."""
    log_norm = _log_beta(0.5 * df, 0.5) + 0.5 * math.log(df)
    ratio = t / math.sqrt(df)
    return math.exp(-log_norm - 0.5 * (df + 1.0) * math.log1p(ratio * ratio))


def f_sf(f: float, df: float, df_within: float) -> float:
    """Return the probability that an F variable exceeds `f`.

    Abramowitz and Stegun (1964), 26.6.2: sf(f) = I_x(df_within / 2, df / 2) with x = df_within / (df_within + df f).

    Args:
        f: 0 or more, finite.
        df: degrees of freedom of the numerator, above 0.
        df_within: those of the denominator, above 0.
    """
    odds = df * f / df_within
    log_x = -math.log1p(odds)
    return _beta_cdf(log_x, math.log(odds) + log_x if odds else -math.inf, 0.5 * df_within, 0.5 * df)


def binomial_sf(k: float, n: float, probability: float) -> float:
    """Return the probability of `k` or more successes in `n` independent trials.

    Abramowitz and Stegun (1964), 26.5.24: P(X >= k) = I_p(k, n - k + 1). (In scipy, sf means P(X > k).) Between
    whole numbers, which occur as effective sample sizes, it is that beta function.

    Args:
        k: any number; at 0 and below the answer is 1, above `n` it is 0.
        n: trials, 0 or more.
        probability: of one success, from 0 to 1.
    """
    if k <= 0:
        return 1.0
    if k > n or probability == 0.0:
        return 0.0
    if probability == 1.0:
        return 1.0
    return _beta_cdf(math.log(probability), math.log1p(-probability), float(k), float(n - k + 1))


def _beta_cdf(log_x: float, log_rest: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b).

    It is given log x and log(1 - x), so that neither loses digits. Continued fraction of NIST DLMF 8.17.22,
    https://dlmf.nist.gov/8.17#v, on the side of the symmetry I_x(a, b) = 1 - I_(1-x)(b, a) where it converges
    in about the square root of the larger argument's steps.
    """
    if log_rest == -math.inf:
        return 1.0
    if log_x == -math.inf:
        return 0.0
    log_front = a * log_x + b * log_rest - _log_beta(a, b)
    if math.exp(log_x) < (a + 1.0) / (a + b + 2.0):
        return min(1.0, math.exp(log_front) / a * _beta_fraction(math.exp(log_x), a, b))
    return max(0.0, 1.0 - math.exp(log_front) / b * _beta_fraction(math.exp(log_rest), b, a))


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of `_beta_cdf` by the modified Lentz method (Thompson and Barnett 1986)."""
    tiny = 1e-300  # stands for a denominator of zero
    d = 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1.0), tiny)
    c = 1.0
    fraction = d
    for m in range(1, 1000 + 20 * math.isqrt(int(max(a, b)))):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _nonzero(1.0 + numerator * d, tiny)
            c = _nonzero(1.0 + numerator / c, tiny)
            fraction *= c * d
        if abs(c * d - 1.0) < 3e-16:  # a last bit may go to and fro
            return fraction
    raise ArithmeticError(f"The incomplete beta function did not converge at x={x}, a={a}, b={b}.")


def _nonzero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def _log_beta(a: float, b: float) -> float:
    """log B(a, b), the difference of two large log-gammas taken term by term, to keep its digits."""
    small, large = sorted((a, b))
    if large < _STIRLING_FROM:
        return math.lgamma(small) + math.lgamma(large) - math.lgamma(small + large)
    difference = (
        _stirling(large)
        - _stirling(large + small)
        - (large - 0.5) * math.log1p(small / large)
        - small * math.log(large + small)
        + small
    )
    return math.lgamma(small) + difference


def _stirling(x: float) -> float:
    """lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), by the series of NIST DLMF 5.11.1."""
    square = x * x
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / x

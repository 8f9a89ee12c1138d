"""What a comparison can find: differences, items and repeats before a run, and after one."""

from statistics import NormalDist

from modelgauge.errors import InvalidDataError


def detectable_difference(
    stderr: float, *, power: float = 0.8, alpha: float = 0.05, family: int = 1
) -> float:
    """The smallest true difference that a two-sided test finds with a given power: (z₁ + z₂) · stderr.

    z₁ is the normal quantile of 1 - alpha / (2 · family), z₂ that of the power. This is the normal approximation for
    the mean of many items (Miller 2024, "Adding Error Bars to Evals", https://arxiv.org/abs/2411.00640, section 5).

    Args:
        stderr: the standard error of the difference, above 0.
        power: the chance to find the difference, above 0 and below 1.
        alpha: the level of the test, above 0 and below 1.
        family: how many comparisons share the level, 1 or more.

    Raises:
        InvalidDataError: an argument is outside its range.
    """
    if not 0 < stderr < float("inf"):
        raise InvalidDataError(f"A standard error of {stderr} finds no difference.", fix="Give one above 0.")
    return (_z(1 - _level(alpha, family) / 2) + _z(_share(power, "power"))) * stderr


def _level(alpha: float, family: int) -> float:
    """The level of one comparison of a family, before Holm's first step."""
    if not family >= 1:
        raise InvalidDataError(f"A family of {family} holds no comparison.", fix="Give 1 or more.")
    return _share(alpha, "alpha") / family


def _share(value: float, name: str) -> float:
    if not 0 < value < 1:
        raise InvalidDataError(f"{name}={value} is no probability.", fix="Give a number above 0 and below 1.")
    return value


def _z(probability: float) -> float:
    return NormalDist().inv_cdf(probability)

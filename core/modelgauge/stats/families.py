"""Several comparisons at once: p values that allow for the others."""

from collections.abc import Sequence

from modelgauge.errors import InvalidDataError


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P values of several comparisons, adjusted so that the chance of any false finding stays in hand.

    Holm (1979), Scandinavian Journal of Statistics 6:65-70: the k-th smallest of m is multiplied by
    (m - k + 1), and none falls below the one before it. It assumes nothing about how the comparisons depend on
    each other.

    Args:
        p_values: (m,) from 0 to 1.

    Returns:
        (m,) adjusted p values, in the order given.

    Raises:
        InvalidDataError: a value is not from 0 to 1.
    """
    if not all(0.0 <= p <= 1.0 for p in p_values):
        raise InvalidDataError(f"These are not p values: {list(p_values)}.", fix="Give numbers from 0 to 1.")
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)

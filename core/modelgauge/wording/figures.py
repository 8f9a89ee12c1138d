"""Numbers for people: with the digits that error bars allow; times and sizes in their unit."""

import math
from collections.abc import Iterator

_DIGITS, _ALL_DIGITS = 4, 15
_MOST_DECIMALS = 12
_TINY, _HUGE = 1e-4, 1e15
_LEAST_P = 0.001


def decimals_for(error: float) -> int:
    """Return the number of decimals that show an uncertainty with two significant digits.

    Args:
        error: above 0.
    """
    return min(max(0, 1 - math.floor(math.log10(error))), _MOST_DECIMALS)


def figure(value: float, error: float | None = None) -> str:
    """Format a number with the digits that its uncertainty leaves meaningful.

    Args:
        value: any finite number.
        error: its standard error, or another measure of its uncertainty. None or 0 without an error bar: then whole
            numbers are whole, and others have four significant digits.
    """
    if error is not None and error > 0:
        if max(abs(value), error) < _TINY or max(abs(value), error) >= _HUGE:
            return f"{value:.3g}"
        shown = f"{value:,.{decimals_for(error)}f}"
        return shown[1:] if shown.startswith("-") and not shown.strip("-0.,") else shown  # no minus zero
    return next(ever_longer(value))


def ever_longer(value: float) -> Iterator[str]:
    """Yield a number with four significant digits, then with more and more, until it has all."""
    return (_with_digits(value, digits) for digits in range(_DIGITS, _ALL_DIGITS + 1))


def between(ends: tuple[float, float] | None, uncertainty: float) -> str:
    """Format the ends of an interval; "" for None."""
    return "" if ends is None else " to ".join(figure(end, uncertainty) for end in ends)


def width(ends: tuple[float, float] | None) -> float:
    """Return the width of an interval; 0 for None."""
    return 0.0 if ends is None else ends[1] - ends[0]


def exact(value: float) -> str:
    """Format a number with all its digits, without the noise of floats."""
    return _with_digits(value, _ALL_DIGITS)


def p_text(value: float, alpha: float) -> str:
    """Format a p value with enough digits that it stays on its side of alpha: `0.032`, or `<0.001`."""
    if value < _LEAST_P <= alpha:
        return f"<{_LEAST_P}"
    for decimals in range(2 if value >= 0.1 else 3, 17):
        shown = f"{value:.{decimals}f}"
        if (float(shown) < alpha) == (value < alpha) and float(shown):
            return shown
    return f"{value:.3g}"


def p_phrase(value: float, alpha: float) -> str:
    """Format a p value for a sentence: `p = 0.032`, or `p < 0.001`; see `p_text`."""
    shown = p_text(value, alpha)
    return f"p < {shown[1:]}" if shown.startswith("<") else f"p = {shown}"


def limit(threshold: float | None, *, higher_is_better: bool) -> str:
    """Format the values that pass a threshold, with all digits: `≥ 0.7`; empty if there is no threshold.

    Args:
        threshold: as it was given.
        higher_is_better: the direction.
    """
    if threshold is None:
        return ""
    return f"{'≥' if higher_is_better else '≤'} {exact(threshold)}"


def _with_digits(value: float, digits: int) -> str:
    if float(value).is_integer() and abs(value) < _HUGE:
        return f"{int(value):,}"
    if abs(value) >= _HUGE or abs(value) < _TINY:
        return f"{value:.{digits}g}"
    decimals = max(1, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".rstrip("0").rstrip(".")


def duration(seconds: float) -> str:
    """`0.42 s`, `12 s`, `3 min 20 s`, `1 h 02 min`."""
    if seconds < 10:
        # In milliseconds with one digit, 9.5 of them would be `1e+01`.
        return f"{seconds:.2g} s" if seconds >= 0.0095 or seconds == 0 else f"{1000 * seconds:.1g} ms"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"


def size(count: float) -> str:
    """Format a number of bytes: `512 B`, `3.1 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def dollars(amount: float | None) -> str:
    """Format dollars and cents; below ten cents, with two significant digits."""
    if amount is None:
        return "unknown"
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.2g}"

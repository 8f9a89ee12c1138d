"""Perplexities and bits per unit, of the log-likelihoods of whole texts."""

import math

import numpy as np

from modelgauge.data.estimates import Estimate
from modelgauge.errors import InvalidDataError
from modelgauge.stats.intervals import joined_clusters, mean_error, t_interval
from modelgauge.stats.keys import Key, key_function
from modelgauge.stats.measured import MeasuredItems


def perplexity(items: MeasuredItems, logprob: str, units: str, *, cluster: Key | None = None) -> Estimate:
    """Return the perplexity per unit of all texts together: exp(-sum of log-likelihoods / sum of units).

    Long texts weigh more, as in lm-evaluation-harness. The error bar is that of a ratio (Cochran 1977, "Sampling
    Techniques", section 6.4): the residuals of the log-likelihoods from their mean per unit, divided by the mean number
    of units, have a t interval, whose ends are then exponentiated; the standard error is that of the delta method.

    Args:
        items: texts that were scored as wholes, such as by a `ContinuationPrompt` with an empty context.
        logprob: the measurement with the log-likelihood of a text, a natural logarithm.
        units: the measurement with the number of units of a text: its words, bytes or tokens.
        cluster: see `mean`.

    Raises:
        UnknownNameError: no item has one of the measurements.
        InvalidDataError: there are no texts, some lack a measurement, or a number of units is not above 0.
    """
    rate = _rate(items, logprob, units, cluster)
    value, ends = math.exp(-rate.value), rate.interval
    return rate.replaced(
        value=value,
        stderr=None if rate.stderr is None else value * rate.stderr,
        interval=None if ends is None else (math.exp(-ends[1]), math.exp(-ends[0])),
    )


def bits_per_unit(items: MeasuredItems, logprob: str, units: str, *, cluster: Key | None = None) -> Estimate:
    """Return the bits per unit of all texts together: the binary logarithm of their perplexity.

    Arguments, errors and error bar are those of `perplexity`.
    """
    rate, bit = _rate(items, logprob, units, cluster), math.log(2)
    ends = rate.interval
    return rate.replaced(
        value=-rate.value / bit,
        stderr=None if rate.stderr is None else rate.stderr / bit,
        interval=None if ends is None else (-ends[1] / bit, -ends[0] / bit),
    )


def _rate(items: MeasuredItems, logprob: str, units: str, cluster: Key | None) -> Estimate:
    """Return the log-likelihood per unit of all texts together."""
    if not len(items):
        raise InvalidDataError(
            "Cannot compute the perplexity of an empty list.", fix="Score at least one text."
        )
    likelihoods, lengths = items.column(logprob), items.column(units)
    if not (lengths > 0).all():
        raise InvalidDataError(
            f"'{units}' is {lengths.min():g} for a text, and must be above 0.",
            fix="Leave empty texts out, or count in another unit.",
        )
    rate = math.fsum(likelihoods) / math.fsum(lengths)
    clusters = joined_clusters(
        items.shared, None if cluster is None else [*map(key_function(cluster), items)]
    )
    error = mean_error(rate + (likelihoods - rate * lengths) / np.mean(lengths), clusters)
    interval = t_interval(error)
    return Estimate(
        value=rate,
        n=len(lengths),
        stderr=error.stderr,
        interval=interval,
        interval_kind=None if interval is None else "t" if clusters is None else "cr2-t",
        n_clusters=None if clusters is None else int(clusters.max()) + 1,
    )

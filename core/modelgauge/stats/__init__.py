"""Statistics of measurements: aggregations with error bars, intervals, paired comparisons.

The names below are loaded on use, so that importing this package does not import numpy.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelgauge.stats.aggregations import (
        count,
        grouped,
        maximum,
        mean,
        mean_of_each,
        median,
        minimum,
        quantiles,
        stddev,
        total,
    )
    from modelgauge.stats.intervals import (
        MeanError,
        bounded_interval,
        mean_error,
        quantile_interval,
        t_interval,
        wilson_interval,
    )
    from modelgauge.stats.measured import MeasuredItems
    from modelgauge.stats.paired import (
        Discordance,
        PairedDifference,
        Pairs,
        holm,
        mcnemar_test,
        paired_difference,
        pairs_of,
        sign_flip_test,
        tango_interval,
    )

__all__ = [
    "Discordance",
    "MeanError",
    "MeasuredItems",
    "PairedDifference",
    "Pairs",
    "bounded_interval",
    "count",
    "grouped",
    "holm",
    "maximum",
    "mcnemar_test",
    "mean",
    "mean_error",
    "mean_of_each",
    "median",
    "minimum",
    "paired_difference",
    "pairs_of",
    "quantile_interval",
    "quantiles",
    "sign_flip_test",
    "stddev",
    "t_interval",
    "tango_interval",
    "total",
    "wilson_interval",
]

_MODULE_OF = {
    **dict.fromkeys(["MeasuredItems"], "measured"),
    **dict.fromkeys(["MeanError", "bounded_interval", "mean_error", "quantile_interval"], "intervals"),
    **dict.fromkeys(["t_interval", "wilson_interval"], "intervals"),
    **dict.fromkeys(["Discordance", "PairedDifference", "Pairs", "holm", "mcnemar_test"], "paired"),
    **dict.fromkeys(["paired_difference", "pairs_of", "sign_flip_test", "tango_interval"], "paired"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULE_OF.get(name, 'aggregations')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return __all__

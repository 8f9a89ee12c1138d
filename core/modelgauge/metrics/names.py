"""The names of metrics in one run: metrics of one name are distinguished by the arguments in which they differ."""

from collections.abc import Sequence
from typing import Any

from modelgauge.metrics.base import Metric

_LONGEST = 40


def names_apart(metrics: Sequence[Metric]) -> list[str]:
    """A name for each metric: its own; where several share it, with the arguments in which they differ.

    Metrics that differ in nothing keep one name.

    Args:
        metrics: of one run.
    """
    groups: dict[str, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault(metric.name, []).append(metric)
    return [_named(metric, groups[metric.name]) for metric in metrics]


def _named(metric: Metric, group: Sequence[Metric]) -> str:
    others = [one.initialization.arguments for one in group if one is not metric]
    own = metric.initialization.arguments if others else {}
    differing = [
        f"{argument}={_shown(value)}"
        for argument, value in own.items()
        if any(argument not in other or other[argument] != value for other in others)
    ]
    return f"{metric.name}({', '.join(differing)})" if differing else metric.name


def _shown(value: Any) -> str:
    """An argument as people read it, without the tags of initializations."""
    text = repr(_untagged(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(part) for part in value]
    if isinstance(value, dict):
        for tag in ("$tuple", "$enum", "$object", "$opaque", "$model"):
            if tag in value:
                return _untagged(value["value"] if tag == "$enum" else value[tag])
        return {name: _untagged(part) for name, part in value.items()}
    return value

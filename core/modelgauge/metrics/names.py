"""What metrics are called in one run: those of one name are told apart by the arguments in which they differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelgauge.metrics.base import Metric

_LONGEST = 40


def names_apart(metrics: Sequence[Metric]) -> list[str]:
    """A name for each metric: its own, and where several share it, with the arguments that are not theirs all.

    Two may still have one name, where nothing tells them apart.

    Args:
        metrics: of one run.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for metric in metrics:
        groups.setdefault(metric.name, []).append(metric.initialization.arguments)
    return [
        _named(metric.name, metric.initialization.arguments, groups[metric.name])
        if len(groups[metric.name]) > 1
        else metric.name
        for metric in metrics
    ]


def _named(name: str, own: Mapping[str, Any], group: Sequence[Mapping[str, Any]]) -> str:
    told = [
        f"{argument}={_shown(value)}"
        for argument, value in own.items()
        if any(argument not in other or other[argument] != value for other in group)
    ]
    return f"{name}({', '.join(told)})" if told else name


def _shown(value: Any) -> str:
    """An argument as people read it: what initializations tag (an enum, an object) by what it says."""
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

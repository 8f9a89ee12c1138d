"""Conversion of a run to MLflow's parameters, metrics and tags, under names that MLflow accepts. Nothing is sent
here.

Records contain no secrets: ModelGauge removes them before plugins see them.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from modelgauge import Estimate, TestRecord

T = TypeVar("T")

LONGEST_NAME, LONGEST_TEXT = 250, 500
"""Limits of every MLflow server since version 1.28."""
_REFUSED = re.compile(r"^\.|[^\w .-]")  # a `/` is refused here, since some servers make folders of it
_PARAMETERS = {"test_uid", "sut_uid", "sut_label", "identifier", "repeats", "reduction", "sample", "dataset"}
_PARAMETERS |= {"sut_options", "hyperparameters", "plugins", "dependency_versions"}


def parameters(record: TestRecord) -> dict[str, str]:
    """Return the settings of the run, named as in record.json: MLflow's columns for filtering and comparing runs."""
    found = record.model_dump(mode="json", include=_PARAMETERS)
    found["test"] = record.test_initialization["arguments"]
    found["sut"] = record.sut_initialization["arguments"]
    return {name: _text(value) for name, value in named(_flat("", found)).items()}


def metrics(record: TestRecord) -> dict[str, float]:
    """Return the results with their uncertainty, and the usage of the run, except what is unknown."""
    counts, calls = record.counts, record.counts.sut_calls
    took: dict[str, Any] = {"items": counts.items, "scored": counts.scored, "failed": counts.failed}
    took |= {"blocked": counts.blocked} if counts.blocked else {}
    took |= {"calls_paid": calls.paid, "calls_cached": calls.cached}
    took |= {"seconds": record.seconds, **dict(record.spent or {})}
    found = [*_flat("", record.result), *_flat("run", took)]
    return named((name, value) for name, value in found if math.isfinite(value))


def tags(record: TestRecord) -> dict[str, str]:
    """Return tags to find the run by, and its state."""
    state = "interrupted" if record.cancelled else "stopped" if record.failure else "finished"
    why = f"{record.failure.error_type}: {record.failure.message}" if record.failure else ""
    found = {"run_id": record.run_id, "invocation_id": record.invocation_id, "state": state, "why": why}
    return {f"modelgauge.{name}": _text(value) for name, value in found.items()}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value, each under its dotted name: `sut_options.temperature`, `accuracy.stderr`."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(f"{name}.{key}" if name else key, part)
    elif isinstance(value, Estimate):
        low, high = value.interval or (None, None)
        yield name, value.value
        yield from _flat(name, {"stderr": value.stderr, "low": low, "high": high, "n": value.n})
    elif value is not None:
        yield name, value


def named(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Give values names that MLflow takes: other characters become `_`, and a name that is taken gets a number."""
    found: dict[str, T] = {}
    for name, value in pairs:
        free = wanted = _REFUSED.sub("_", name)[:LONGEST_NAME] or "_"
        number = 1
        while free in found:
            number += 1
            free = f"{wanted[: LONGEST_NAME - 6]}_{number}"
        found[free] = value
    return found


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."

"""The names of results, with their thresholds."""

from modelgauge.data.records import TestRecord
from modelgauge.wording.figures import limit


def label_of(record: TestRecord, name: str) -> str:
    """Return the name of a result, with its threshold: `Faithfulness ≥ 0.5`."""
    threshold, label = record.thresholds.get(record.measurement_of(name)), name_of(record, name)
    if threshold is None:
        return label
    return f"{label} {limit(threshold.value, higher_is_better=threshold.higher_is_better)}"


def name_of(record: TestRecord, name: str) -> str:
    """Return the name of a result, with its reduction if it is not the mean of repeats: `accuracy, pass@2 of 5`."""
    plain = record.measurement_of(name)
    if plain == name or record.reduction is None:
        return name
    right, is_share, _ = record.reduction.partition("of")
    how = f"at least {right}" if is_share else record.reduction
    return f"{plain}, {how} of {record.repeats}"

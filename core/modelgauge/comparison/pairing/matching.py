"""Matching of items between two runs: the key, and the pairs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelgauge.data.base import list_names
from modelgauge.data.results import Sample
from modelgauge.engine.items.item_columns import ABSENT
from modelgauge.engine.items.item_frame import ItemFrame
from modelgauge.engine.items.source import list_fields
from modelgauge.errors import RecordError
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import counted

KEYS = {"id": "id", "source": "source id", "name": "name", "input": "input"}
"""Keys for pairing items, with their names in messages. The first that pairs any and is unique on both sides is
used.
"""


class Pairing(NamedTuple):
    """Pairs of items from two runs.

    Args:
        matched_by: the key.
        baseline: (n,) the places of the baseline's items, in the order of its test.
        candidate: (n,) the places of the candidate's.
    """

    matched_by: str
    baseline: NDArray[np.int64]
    candidate: NDArray[np.int64]


def pairing(baseline: ItemFrame, candidate: ItemFrame, match: str | None = None) -> Pairing:
    """Pair the items of two runs.

    Args:
        baseline: the items of the run that is compared with.
        candidate: those of the run that is compared.
        match: the key, one of `KEYS` or the field of the items' contexts that the frames were read with; None for the
            first of `KEYS` that pairs any and is unique on both sides.

    Raises:
        RecordError: no items are paired, or several items of a run share the key that was asked for.
    """
    shared: list[str] = []
    for name in KEYS if match is None else (match,):
        keys = [items.keys(name if name in KEYS else "field") for items in (baseline, candidate)]
        repeated = [
            _shared_key(items, name, place)
            for items, own in zip((baseline, candidate), keys, strict=True)
            if (place := _place_of_duplicate(own)) is not None
        ]
        pairs = _equal_places(*keys)
        if len(pairs[0]) and not repeated:
            return Pairing(name, *pairs)
        shared += repeated[:1] if len(pairs[0]) else []
    if match is not None and not shared:
        for items in (baseline, candidate):
            _check_has(items, match)
    raise _nothing_paired(baseline, candidate, match, shared)


def _equal_places(
    baseline: NDArray[np.int64], candidate: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of equal keys, in the baseline's order."""
    common, first, second = np.intersect1d(baseline, candidate, return_indices=True)
    held = common != ABSENT
    first, second = first[held], second[held]
    order = np.argsort(first)
    return first[order], second[order]


def _place_of_duplicate(keys: NDArray[np.int64]) -> int | None:
    """Return the position of an item that shares its key with another; None if there is none."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    same = np.flatnonzero((ordered[1:] == ordered[:-1]) & (ordered[1:] != ABSENT))
    return int(order[same[0]]) if len(same) else None


def _shared_key(items: ItemFrame, name: str, place: int) -> str:
    shared = items.record(place).test_item
    return f"items of run {items.run.run_id} share one {KEYS.get(name, repr(name))}, such as '{shared.id}'"


def _check_has(items: ItemFrame, match: str) -> None:
    """Refuse a key that no item of a run has.

    Raises:
        RecordError: none has it; the message says what items have.
    """
    if np.any(items.keys(match if match in KEYS else "field") != ABSENT):
        return
    if match in KEYS:
        raise RecordError(
            f"No item of run {items.run.run_id} has a {KEYS[match]} to be paired by.",
            fix="Pair by another key: --match id.",
        )
    raise without_field(items, match, "be paired by", f"; or pair by {', '.join(KEYS)}")


def without_field(items: ItemFrame, field: str, purpose: str, others: str = "") -> RecordError:
    """Return the error for a field that no item of a run has.

    Args:
        items: of the run.
        field: that a caller named.
        purpose: what it was to serve for.
        others: what else would serve.
    """
    known = list_fields(items.record(0).test_item)
    return RecordError(
        f"No item of run {items.run.run_id} has the field '{field}' to {purpose}.",
        fix=f"{did_you_mean(field, known)}Its fields are: {list_names(known)}{others}.",
    )


def _nothing_paired(
    baseline: ItemFrame, candidate: ItemFrame, match: str | None, shared: list[str]
) -> RecordError:
    runs = f"{baseline.run.run_id} and {candidate.run.run_id}"
    if shared:
        by = "cannot be paired" if match is None else f"cannot be paired by {KEYS.get(match, repr(match))}"
        return RecordError(
            f"The items of runs {runs} {by}: {'; '.join(shared)}.",
            fix="Give a key that is unique: --match id, or a field of the items' contexts (in Python match=…).",
        )
    samples = [items.run.sample for items in (baseline, candidate)]
    by = "id, source id, name or input" if match is None else KEYS.get(match, repr(match))
    if any(samples):
        chosen = " and ".join(map(_sample_text, samples))
        return RecordError(
            f"Runs {runs} have no item in common, by {by}: they measured {chosen}.",
            fix="Measure the same sample, by one --seed: a smaller one is then part of a larger one.",
        )
    return RecordError(
        f"Runs {runs} have no item in common, by {by}.",
        fix="Compare runs of one test on the same data, or say what pairs them: --match FIELD (in Python match=…).",
    )


def _sample_text(sample: Sample | None) -> str:
    return (
        "all items"
        if sample is None
        else f"{sample.size:,} of {counted(sample.total, 'item')} by seed {sample.seed}"
    )

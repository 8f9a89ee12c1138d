"""Merging of facts that the parts of a run record."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def agreed(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the names, with their values, that have the same value in every mapping that contains them."""
    found: dict[str, list[Any]] = {}
    for mapping in several:
        for name, value in mapping.items():
            found.setdefault(name, []).append(value)
    return {name: first for name, (first, *others) in found.items() if others.count(first) == len(others)}


def union(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge mappings: join the lists and dicts of a name; return None for other values that differ."""
    made: dict[str, Any] = {}
    for name, value in [pair for mapping in several for pair in mapping.items()]:
        held = made.setdefault(name, value)
        if isinstance(held, list) and isinstance(value, list):
            made[name] = [*held, *(part for part in value if part not in held)]
        elif isinstance(held, dict) and isinstance(value, dict):
            made[name] = {**held, **value}
        elif held != value:
            made[name] = None
    return made


def joined_annotators(manifests: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return `annotators` and `judges` of several manifests. Those that share a name and differ are numbered."""
    annotators: dict[str, Any] = {}
    judges: dict[str, Any] = {}
    seen: set[tuple[str, str]] = set()
    times: Counter[str] = Counter()
    for manifest in manifests:
        for name, made in manifest["annotators"].items():
            asked = (manifest["judges"] or {}).get(name)
            known = (name, json.dumps([made, asked], sort_keys=True))
            if known not in seen:
                seen.add(known)
                times[name] += 1
                key = numbered(name, times[name])
                annotators[key] = made
                judges.update({} if asked is None else {key: asked})
    return {"annotators": annotators, "judges": judges}


def numbered(name: str, number: int) -> str:
    """Return a name that occurs several times.

    Args:
        name: of the first.
        number: from 1.
    """
    return name if number == 1 else f"{name}~{number}"

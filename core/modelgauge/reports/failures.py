"""Failures in groups: errors that differ only in numbers, ids and quoted texts are one group."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from modelgauge.data.item_records import Failure, ItemRecord

# Ids hold a digit.
_DIFFERING = re.compile(r"'[^'\n]{0,10000}'|\"[^\"\n]{0,10000}\"|(?<![\w-])[\w-]*\d[\w-]*(?:\.\d+)?")
_MOST_GROUPS = 1000
_MOST_NAMED = 5
_FRAME = re.compile(r'^  File "([^"\n]+)", line .*\n(?:^    .*\n|^  \[.*\n)*', re.MULTILINE)
_NO_FRAMES = re.compile(r"^Traceback \(most recent call last\):\n(?!  )", re.MULTILINE)
_OURS = Path(__file__).parents[1]


@dataclass(slots=True)
class FailureGroup:
    """Items, or repeats of items, that failed in the same way.

    Args:
        item: the record of the first item.
        failure: its failure.
        others: the ids of the next few.
        count: how many there are.
    """

    item: ItemRecord
    failure: Failure
    others: list[str] = field(default_factory=list)
    count: int = 1


def failure_key(
    kind: tuple[str, str, str], message: str, *, known: Collection[tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the key that failures of one group share.

    Args:
        kind: stage, uid of what failed, class of the exception.
        message: of the exception.
        known: the keys of the groups so far; after a thousand, a new key has no message.
    """
    key = (*kind, _DIFFERING.sub("#", message[:2000]))
    return key if key in known or len(known) < _MOST_GROUPS else (*kind, "")


def group_failures(records: Iterable[ItemRecord]) -> list[FailureGroup]:
    """Group failures, the largest group first. After a thousand groups, further errors are grouped by their type.

    Args:
        records: of items that failed, wholly or in part; read once, and of each group the first is held.
    """
    groups: dict[tuple[str, ...], FailureGroup] = {}
    for record, failure in ((item, failure) for item in records for failure in item.failures):
        key = failure_key(
            (failure.stage, failure.source_uid, failure.error_type), failure.message, known=groups
        )
        if key not in groups:
            groups[key] = FailureGroup(record, failure)
            continue
        group, name = groups[key], record.test_item.id or ""
        group.count += 1
        if len(group.others) < _MOST_NAMED and name not in (group.item.test_item.id, *group.others):
            group.others.append(name)
    return sorted(groups.values(), key=lambda group: -group.count)


def without_our_frames(traceback: str) -> str:
    """Keep only the author's frames of a traceback; none where this library raised the error."""
    kept = _FRAME.sub(lambda frame: "" if _is_ours(frame[1]) else frame[0], f"{traceback.rstrip()}\n")
    return _NO_FRAMES.sub("", kept).rstrip()


def _is_ours(file: str) -> bool:
    """Return whether a file belongs to this library, even in a traceback from another installation."""
    parts = PurePath(file.replace("\\", "/")).parts
    inside = [parts[at + 1 :] for at, part in enumerate(parts) if part == _OURS.name]
    return any(rest and _OURS.joinpath(*rest).is_file() for rest in inside)

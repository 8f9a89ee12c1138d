"""How two data sets differ: which goldens came, went and changed, whatever their order."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from modelgauge.data.json_values import canonical_json
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.rows import row_of

Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One golden that is in both data sets, and is not the same.

    Args:
        old: its row in the one.
        new: its row in the other.
    """

    old: Row
    new: Row

    @property
    def fields(self) -> list[str]:
        """The fields that differ, in order."""
        names = [*self.old, *(name for name in self.new if name not in self.old)]
        return [name for name in names if _text(self.old, name) != _text(self.new, name)]


@dataclass(frozen=True)
class Differences:
    """What became of the goldens of one data set in another.

    Args:
        added: rows of the new one that the old one does not have.
        removed: rows of the old one that the new one does not have.
        changed: rows of both, joined by their name, else by what is asked.
        unchanged: how many are equal.
        is_order_other: the same goldens stand in another order: no difference between them, and a run on a part of
            them measures other ones, so the content hash is another.
    """

    added: list[Row]
    removed: list[Row]
    changed: list[Change]
    unchanged: int
    is_order_other: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def differences(old: EvaluationDataset, new: EvaluationDataset) -> Differences:
    """Compare the goldens of two data sets: equal ones are joined first, then by name, then by input.

    Args:
        old: what was.
        new: what is.
    """
    before: list[Row] = [row_of(golden) for golden in old.goldens]
    after: list[Row] = [row_of(golden) for golden in new.goldens]
    was = before
    same, before, after = _joined(before, after, canonical_json)
    named, before, after = _joined(before, after, lambda row: row.get("name"))
    asked, before, after = _joined(before, after, _asked)
    changed = [Change(one, other) for one, other in (*named, *asked)]
    other = not (before or after or changed) and [row for row, _ in same] != was
    return Differences(after, before, changed, len(same), other)


def _text(row: Row, name: str) -> str:
    """A field as text: 1 and True are equal values, and not the same."""
    return canonical_json(row.get(name))


def _asked(row: Row) -> str | None:
    asked: str | None = row.get("input", row.get("scenario"))
    return asked


def _joined(
    old: Sequence[Row], new: Sequence[Row], key: Callable[[Row], Hashable]
) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    """The pairs that share a key, in the order of the new ones, and what remains of both; None is no key."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for place in range(len(old) - 1, -1, -1):  # so that pop gives the first
        waiting[key(old[place])].append(place)
    waiting.pop(None, None)
    pairs, rest, taken = [], [], set()
    for row in new:
        places = waiting.get(key(row))
        if places:
            place = places.pop()
            taken.add(place)
            pairs.append((old[place], row))
        else:
            rest.append(row)
    return pairs, [row for place, row in enumerate(old) if place not in taken], rest

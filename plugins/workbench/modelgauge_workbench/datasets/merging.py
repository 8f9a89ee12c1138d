"""Two people changed the same version of a data set: what both did, and the cells in which a person must choose."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from modelgauge.data.json_values import canonical_json
from modelgauge.datasets.differences import Row, joined
from modelgauge.datasets.fields import CUSTOM

OF_CUSTOM = "custom:"
"""What stands before the name of a custom column."""


class Conflict(NamedTuple):
    """A cell that both changed to different values, or a row that one changed and the other removed.

    Args:
        row: its place in the merged rows, which have the value of mine; a row that I removed is there as theirs.
        column: the field, or the custom column behind `OF_CUSTOM`; empty for the whole row.
        base: what both began with; None for nothing, as for the others.
        theirs: what they made of it.
        mine: what I made of it.
    """

    row: int
    column: str
    base: Any
    theirs: Any
    mine: Any


class Merged(NamedTuple):
    """What two people made.

    Args:
        rows: with the changes of both.
        conflicts: where they contradict each other.
        origins: the place of each row in theirs; None for one that they do not have.
    """

    rows: list[Row]
    conflicts: list[Conflict]
    origins: list[int | None]


def merged(
    base: Sequence[Row], theirs: Sequence[Row], mine: Sequence[Row], origins: Sequence[int | None]
) -> Merged:
    """Merge the rows that two people made of the same ones, cell by cell.

    Args:
        base: what both began with.
        theirs: what the others saved.
        mine: what is to be saved.
        origins: the place in `base` of each of mine; None for a row that I added.
    """
    same, changed, _, added = joined(base, theirs)
    now = {id(was): row for was, row in (*same, *changed)}
    places = {id(row): place for place, row in enumerate(theirs)}
    added_texts = {*map(canonical_json, added)}
    rows: list[Row] = []
    conflicts: list[Conflict] = []
    found: list[int | None] = []
    for row, origin in zip(mine, origins, strict=True):
        was = {} if origin is None else base[origin]
        their = row if origin is None else now.get(id(was))
        if their is None:  # they removed it
            if not _equal(row, was):
                conflicts.append(Conflict(len(rows), "", was, None, row))
                rows.append(row)
                found.append(None)
            continue
        if origin is None and canonical_json(row) in added_texts:
            continue  # both added it
        rows.append(_of_cells(was, their, row, len(rows), conflicts) if origin is not None else row)
        found.append(None if origin is None else places[id(their)])
    for place in sorted({*range(len(base))} - {*origins}):  # what I removed
        their = now.get(id(base[place]))
        if their is not None and not _equal(their, base[place]):
            conflicts.append(Conflict(len(rows), "", base[place], their, None))
            rows.append(their)
            found.append(places[id(their)])
    return Merged([*rows, *added], conflicts, [*found, *(places[id(row)] for row in added)])


def _of_cells(base: Row, theirs: Row, mine: Row, place: int, conflicts: list[Conflict]) -> Row:
    was, their, own = _cells(base), _cells(theirs), _cells(mine)
    made = dict(own)
    for column in {**was, **their, **own}:
        before, other, value = was.get(column), their.get(column), own.get(column)
        if _equal(other, before) or _equal(other, value):
            continue
        if _equal(value, before):
            made[column] = other
        else:
            conflicts.append(Conflict(place, column, before, other, value))
    return _row(made)


def _cells(row: Row) -> dict[str, Any]:
    cells = {name: value for name, value in row.items() if name != CUSTOM}
    return cells | {f"{OF_CUSTOM}{name}": value for name, value in (row.get(CUSTOM) or {}).items()}


def _row(cells: dict[str, Any]) -> Row:
    there = {name: value for name, value in cells.items() if value is not None}
    custom = {
        name.removeprefix(OF_CUSTOM): value for name, value in there.items() if name.startswith(OF_CUSTOM)
    }
    row = {name: value for name, value in there.items() if not name.startswith(OF_CUSTOM)}
    return row | ({CUSTOM: custom} if custom else {})


def _equal(one: Any, other: Any) -> bool:
    return canonical_json(one) == canonical_json(other)

"""Questions to the index about items: those of a run that are like this, their neighbours, the same in other runs."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelgauge.data.thresholds import PASSED
from modelgauge_workbench.index.queries import PAGE, Found, Wanted, found_in, match_of, whole_number

LATEST = "latest"
"""The way to sort that shows first what finished last."""
FAILED_FIRST, IN_ORDER = "failed first", "place"
"""Further ways to sort: by the verdicts on items, as in a report; by their places in the test."""
_PASSED, _IS = ".passed", "is-"
_VERDICTS = {"yes": ">= 1", "no": "< 1", "none": "IS NULL"}
_STATES = ("ok", "wrong", "below threshold", "failed in part", "failed")
_OTHERS = 20


def wanted_items(
    run: sqlite3.Row, asked: Mapping[str, str], failures: Sequence[str], used: Sequence[str]
) -> Wanted:
    """What an address asks for. Its fields are those of the report, so that its links work here too.

    Args:
        run: of the index.
        asked: `q` (words), `show` (a state), `failure` (a number), `NAME.passed` (yes or no), `passed`
            (yes, no or none), `is-NAME` (a label),
            `sort` (`NAME<`, `NAME>`, `LATEST` or `FAILED_FIRST`); each may be missing.
        failures: the kinds of failures by their numbers, from 1.
        used: what can be sorted by besides measurements.
    """
    wheres, values = ["run = ?"], list[Any]([run["number"]])
    if asked.get("show") in _STATES:
        wheres.append("state = ?")
        values.append(asked["show"])
    number = whole_number(asked.get("failure", ""))
    if number is not None and 0 < number <= len(failures):
        wheres.append("failure = ?")
        values.append(failures[number - 1])
    for name, value in asked.items():
        if name.endswith(_PASSED) and value in ("yes", "no"):
            wheres.append(f"json_extract(measured, ?) {'>=' if value == 'yes' else '<'} 1")
            values.append(_path(name))
        elif name == PASSED and value in _VERDICTS:
            wheres.append(f"json_extract(measured, ?) {_VERDICTS[value]}")
            values.append(_path(name))
        elif name.startswith(_IS) and value:
            wheres.append("json_extract(labels, ?) = ?")
            values += [_path(name.removeprefix(_IS)), value]
    if words := match_of(asked.get("q", "")):
        wheres.append(
            "number IN (SELECT rowid FROM item_texts WHERE item_texts MATCH ? AND rowid BETWEEN ? AND ?)"
        )
        values += [words, run["first_item"], run["last_item"]]
    order = _order(asked.get("sort", ""), used)
    return Wanted(" AND ".join(wheres), values, order, in_order=len(wheres) == 1 and order == "place")


def _path(name: str) -> str:
    """A name as a path of JSON in SQLite."""
    return f'$."{name}"'


def _order(sort: str, used: Sequence[str]) -> str:
    if sort == LATEST:
        return "number DESC"
    if sort == FAILED_FIRST:
        passed = f"json_extract(measured, '{_path(PASSED)}')"
        return f"CASE WHEN {passed} < 1 THEN 0 WHEN {passed} IS NULL THEN 1 ELSE 2 END, place"
    if sort[-1:] not in ("<", ">"):
        return "place"
    column = "used" if sort[:-1] in used else "measured"
    value = f"json_extract({column}, '{_path(sort[:-1]).replace(chr(39), chr(39) * 2)}')"
    return f"{value} IS NULL, {value}{' DESC' if sort[-1] == '>' else ''}, place"


def find_items(db: sqlite3.Connection, wanted: Wanted, asked: Mapping[str, str]) -> Found:
    """A page of the items that are wanted.

    Args:
        db: reads the index.
        wanted: which items.
        asked: the fields of the address, with `page`.
    """
    return found_in(db, "items", wanted, asked)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Where an item stands among those that are wanted.

    Args:
        at: its number among them, from 1; None if it is not one of them.
        count: of them.
        previous: the place of the one before; None if there is none.
        next: the place of the one behind.
    """

    at: int | None
    count: int
    previous: int | None
    next: int | None


def neighbours(db: sqlite3.Connection, run: sqlite3.Row, wanted: Wanted, place: int) -> Neighbours:
    """Where an item stands among those that are wanted.

    Args:
        db: reads the index.
        run: of the index.
        wanted: which of its items.
        place: of the item in its test.
    """
    if wanted.in_order:  # of a million items, too
        query = """
            SELECT COUNT(*), COUNT(*) FILTER (WHERE place < :place), MAX(place) FILTER (WHERE place < :place),
                MIN(place) FILTER (WHERE place > :place) FROM items WHERE run = :run
        """
        count, before, previous, behind = db.execute(query, {"run": run["number"], "place": place}).fetchone()
        return Neighbours(before + 1, count, previous, behind)
    query = f"SELECT place FROM items WHERE {wanted.where} ORDER BY {wanted.order}"
    places = [found for (found,) in db.execute(query, wanted.values)]
    if place not in places:
        return Neighbours(None, len(places), None, places[0] if places else None)
    at = places.index(place)
    return Neighbours(
        at + 1, len(places), places[at - 1] if at else None, places[at + 1] if at + 1 < len(places) else None
    )


def item_of(db: sqlite3.Connection, run: int, place: int) -> sqlite3.Row | None:
    """An item by its place in the test; None if there is none.

    Args:
        db: reads the index.
        run: its number.
        place: from 0.
    """
    query = "SELECT * FROM items WHERE run = ? AND place = ?"
    found: sqlite3.Row | None = db.execute(query, (run, place)).fetchone()
    return found


def same_item(db: sqlite3.Connection, run: sqlite3.Row, item: sqlite3.Row) -> list[sqlite3.Row]:
    """The same item in the latest other runs of the test.

    Args:
        db: reads the index.
        run: the item's own.
        item: of the index.
    """
    if not item["id"]:
        return []
    query = f"""
        SELECT runs.key, runs.sut, runs.began, items.place, items.state, items.measured, items.answer
        FROM items JOIN runs ON runs.number = items.run
        WHERE items.id = ? AND items.run <> ? AND runs.test = ? ORDER BY items.run DESC LIMIT {_OTHERS}
    """
    return db.execute(query, (item["id"], run["number"], run["test"])).fetchall()


def failures_of(db: sqlite3.Connection, run: int) -> list[tuple[str, int]]:
    """The kinds of failures of a run and how many items failed so, the most frequent first.

    Args:
        db: reads the index.
        run: its number.
    """
    query = (
        "SELECT failure, COUNT(*) FROM items WHERE run = ? AND failure <> '' GROUP BY failure ORDER BY 2 DESC"
    )
    return [(str(failure), int(count)) for failure, count in db.execute(query, (run,))]


def states_of(db: sqlite3.Connection, run: int) -> dict[str, int]:
    """How many items of a run are in each state.

    Args:
        db: reads the index.
        run: its number.
    """
    return dict(
        db.execute("SELECT state, COUNT(*) FROM items WHERE run = ? GROUP BY state", (run,)).fetchall()
    )


def search_items(db: sqlite3.Connection, words: str, page: int) -> list[sqlite3.Row]:
    """A page of the items of all runs in which words stand, and one more where there is a next page.

    Args:
        db: reads the index.
        words: as somebody typed them.
        page: its number, from 1.
    """
    match = match_of(words)
    if not match:
        return []
    found = "SELECT rowid FROM item_texts WHERE item_texts MATCH ? ORDER BY rowid DESC LIMIT ? OFFSET ?"
    query = f"""
        SELECT runs.key, runs.test, runs.sut, runs.began, items.* FROM items JOIN runs ON runs.number = items.run
        WHERE items.number IN ({found}) ORDER BY items.number DESC
    """
    return db.execute(query, (match, PAGE + 1, (page - 1) * PAGE)).fetchall()

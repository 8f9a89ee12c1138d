"""Questions to the index: which runs are like this."""

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from modelgauge.wording.phrases import time_of

PAGE = 50
"""Rows of a page."""
_MOST_OPTIONS = 500
_MOST_BEFORE = 50  # the earlier runs that are searched
OF_CASES = "cases of "
"""The prefix of the subjects of runs of given answers. Their items tell which cases they judged."""
SORTS = {
    "": ("newest first", "runs.number DESC"),
    "oldest": ("oldest first", "runs.number"),
    "test": ("by test", "runs.test, runs.number DESC"),
    "sut": ("by SUT", "runs.sut, runs.number DESC"),
    "longest": ("longest", "runs.seconds DESC"),
    "dearest": ("dearest", "runs.cost DESC"),
    "failed": ("most failed", "runs.failed DESC"),
}
"""How runs are sorted, by the words of addresses: what the page calls it, and the order in SQL."""
_EXACT = ("test", "sut", "state")
_WORD = re.compile(r"[^\s\"]+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs, or items of a run, an address asks for, in which order.

    Args:
        where: the condition in SQL.
        values: of its parameters.
        order: in SQL.
        in_order: whether all items are wanted in the order of the test.
    """

    where: str
    values: list[Any]
    order: str
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A page of what was found.

    Args:
        rows: of the page.
        count: of all pages.
        page: its number, from 1.
    """

    rows: list[sqlite3.Row]
    count: int
    page: int

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.count // PAGE))


def find_runs(db: sqlite3.Connection, asked: Mapping[str, str]) -> Found:
    """The runs that an address asks for.

    Args:
        db: reads the index.
        asked: `q` (words), `test`, `sut`, `state`, `tag`, `favourite`, `since`, `sort` and `page`; each may be missing.
    """
    wheres, values = ["1"], list[Any]()
    for name in _EXACT:
        if asked.get(name):
            wheres.append(f"runs.{name} = ?")
            values.append(asked[name])
    if asked.get("tag"):
        wheres.append("runs.number IN (SELECT run FROM tags WHERE tag = ?)")
        values.append(asked["tag"])
    if asked.get("favourite"):
        wheres.append("runs.favourite")
    with suppress(ValueError):  # another text is passed over
        values.append(time_of(asked.get("since", "").strip()).timestamp() * 1e6)
        wheres.append("runs.number >= ?")
    if words := match_of(asked.get("q", ""), beginnings=True):
        found = db.execute("SELECT rowid FROM run_texts WHERE run_texts MATCH ?", (words,))  # once for both
        wheres.append("runs.number IN (SELECT value FROM json_each(?))")
        values.append(json.dumps([number for (number,) in found]))
    _, order = SORTS.get(asked.get("sort", ""), SORTS[""])
    return found_in(db, "runs", Wanted(" AND ".join(wheres), values, order), asked)


def found_in(db: sqlite3.Connection, table: str, wanted: Wanted, asked: Mapping[str, str]) -> Found:
    """A page of the rows of a table that are wanted.

    Args:
        db: reads the index.
        table: its name.
        wanted: which rows.
        asked: the fields of the address, with `page`: of a page behind the last, the last is meant.
    """
    (count,) = db.execute(f"SELECT COUNT(*) FROM {table} WHERE {wanted.where}", wanted.values).fetchone()
    page = min(page_of(asked), max(1, -(-count // PAGE)))
    query = f"SELECT * FROM {table} WHERE {wanted.where} ORDER BY {wanted.order} LIMIT {PAGE} OFFSET ?"
    return Found(db.execute(query, [*wanted.values, (page - 1) * PAGE]).fetchall(), count, page)


def run_of(db: sqlite3.Connection, key: str) -> sqlite3.Row | None:
    """A run by its address; None if there is none.

    Args:
        db: reads the index.
        key: of the run.
    """
    found: sqlite3.Row | None = db.execute("SELECT * FROM runs WHERE key = ?", (key,)).fetchone()
    return found


def run_in(db: sqlite3.Connection, folder: int, name: str) -> sqlite3.Row | None:
    """Return a run by the place of its data folder and its id; None if there is none.

    Args:
        db: reads the index.
        folder: the place of the data folder.
        name: the id of the run.
    """
    query = "SELECT * FROM runs WHERE folder = ? AND name = ?"
    found: sqlite3.Row | None = db.execute(query, (folder, name)).fetchone()
    return found


def run_before(db: sqlite3.Connection, row: sqlite3.Row) -> sqlite3.Row | None:
    """Return the last finished run of the same subject before a run; None if there is none.

    That is the same test, data set or test files: rather the same version of the data set, then the same SUT. Runs of
    given answers are of the same if they share test files, or cases that have no file; rather all of these.

    Args:
        db: reads the index.
        row: of the run.
    """
    query = (
        "SELECT * FROM runs WHERE subject = ? AND (began, name) < (?, ?) AND state = 'finished' "
        f"ORDER BY datasets = ? DESC, sut = ? DESC, began DESC, name DESC LIMIT {_MOST_BEFORE}"
    )
    values = (row["subject"], row["began"], row["name"], row["datasets"], row["sut"])
    found: list[sqlite3.Row] = db.execute(query, values).fetchall()
    if not row["subject"].startswith(OF_CASES):
        return found[0] if found else None
    own, sharing = _files_of(db, row["number"]), None
    for other in found:
        files = _files_of(db, other["number"])
        if files == own:
            return other
        sharing = sharing or (other if files & own else None)
    return sharing


_LATEST_OF = {
    "tag": "number IN (SELECT run FROM tags WHERE tag = :name)",
    "dataset": (
        "instr(datasets, :name) AND EXISTS (SELECT 1 FROM json_each(datasets) "
        "WHERE json_extract(value, '$.name') = :name)"
    ),
    "test": "CASE WHEN subject LIKE 'cases of %' THEN subject LIKE '%' || :name ELSE test = :name END",
}


def latest_of(db: sqlite3.Connection, kind: str, name: str) -> sqlite3.Row | None:
    """Return the latest finished run of a data set, a test or a tag; None if there is none.

    Args:
        db: reads the index.
        kind: "dataset", "test" or "tag".
        name: of it.
    """
    query = f"SELECT * FROM runs WHERE {_LATEST_OF[kind]} AND state = 'finished' ORDER BY number DESC LIMIT 1"
    found: sqlite3.Row | None = db.execute(query, {"name": name}).fetchone()
    return found


def _files_of(db: sqlite3.Connection, run: int) -> set[str]:
    """Return the test files of a run's items, taken from their ids; the id itself for items without a file."""
    query = "SELECT DISTINCT substr(id, 1, instr(id || '::', '::') - 1) FROM items WHERE run = ?"
    return {file for (file,) in db.execute(query, (run,))}


def options(db: sqlite3.Connection) -> dict[str, list[str]]:
    """What runs can be filtered by: tests, SUTs, states and tags that there are.

    Args:
        db: reads the index.
    """
    found = {name: _distinct(db, "runs", name) for name in _EXACT}
    return {**found, "tag": _distinct(db, "tags", "tag")}


def _distinct(db: sqlite3.Connection, table: str, column: str) -> list[str]:
    """The values of a column with an index: from one to the next in it, however many rows have each."""
    query = f"""
        WITH RECURSIVE found (one) AS (
            SELECT MIN({column}) FROM {table} UNION ALL
            SELECT (SELECT MIN({column}) FROM {table} WHERE {column} > one) FROM found WHERE one IS NOT NULL
        ) SELECT one FROM found WHERE one IS NOT NULL LIMIT {_MOST_OPTIONS}
    """
    return [str(value) for (value,) in db.execute(query)]


def match_of(query: str, *, beginnings: bool = False) -> str:
    """A search of words in the syntax of FTS5: all must stand there. `wor*` finds all words that begin so.

    Args:
        query: what somebody typed.
        beginnings: whether every word may be the beginning of one. Among a million items that takes a while.
    """
    words = (word for word in _WORD.findall(query) if any(map(str.isalnum, word)))
    return " ".join(
        f'"{word.rstrip("*")}"{"*" if beginnings or word.endswith("*") else ""}' for word in words
    )


def page_of(asked: Mapping[str, str]) -> int:
    """The number of the page that an address asks for.

    Args:
        asked: the names and values of the address.
    """
    return max(1, whole_number(asked.get("page", "")) or 1)


def whole_number(text: str) -> int | None:
    """The number that an address or a form says; None if it says none, or one of ten digits or more.

    Args:
        text: as it came.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

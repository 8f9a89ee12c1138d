"""Questions to the index: which runs are like this."""

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from modelgauge.wording.phrases import parse_time

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
SETTING = "is-"
"""The prefix of a setting among the labels of runs, and in addresses."""
_LABELS = ("tag", "dataset", "file")
DIGEST = "digest"
"""The name of the labels with the digests of the goldens that runs judged. People do not filter by them."""
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
        asked: `q` (words), `test`, `sut`, `state`, `favourite`, `since`, a label (`tag`, `dataset`, `file` or
            `is-NAME`, a setting), `group`, `sort` and `page`; each may be missing.
    """
    wheres, values = ["1"], list[Any]()
    for name in _EXACT:
        if asked.get(name):
            wheres.append(f"runs.{name} = ?")
            values.append(asked[name])
    for name, value in asked.items():
        if value and (name in _LABELS or name.startswith(SETTING)):
            wheres.append("runs.number IN (SELECT run FROM labels WHERE name = ? AND value = ?)")
            values += [name, value]
    if asked.get("favourite"):
        wheres.append("runs.favourite")
    with suppress(ValueError):  # another text is passed over
        values.append(parse_time(asked.get("since", "").strip()).timestamp() * 1e6)
        wheres.append("runs.number >= ?")
    if words := match_of(asked.get("q", ""), beginnings=True):
        found = db.execute("SELECT rowid FROM run_texts WHERE run_texts MATCH ?", (words,))  # once for both
        wheres.append("runs.number IN (SELECT value FROM json_each(?))")
        values.append(json.dumps([number for (number,) in found]))
    _, order = SORTS.get(asked.get("sort", ""), SORTS[""])
    if group := asked.get("group"):
        order = f"{_group_in_sql(group)}, {order}"
    return found_in(db, "runs", Wanted(" AND ".join(wheres), values, order), asked)


def _group_in_sql(name: str) -> str:
    """Return the order that keeps groups together, runs without a value last."""
    quoted = name.replace("'", "''")
    of_labels = (
        f"(SELECT group_concat(value, ', ') FROM labels WHERE run = runs.number AND name = '{quoted}')"
    )
    value = f"runs.{name}" if name in _EXACT else of_labels
    return f"{value} IS NULL, {value}"


def group_of(row: sqlite3.Row, name: str) -> str:
    """Return the group of a run: its test, SUT or state, or its labels of a name; empty if it has none.

    Args:
        row: of the run.
        name: by which runs are grouped.
    """
    if name in _EXACT:
        return str(row[name])
    if name.startswith(SETTING):
        return str(json.loads(row["settings"]).get(name.removeprefix(SETTING), ""))
    if name == "dataset":
        return ", ".join(sorted({str(dataset.get("name")) for dataset in json.loads(row["datasets"])}))
    return ", ".join(sorted(json.loads(row["tags"]))) if name == "tag" else ""


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


_OF_TEST = "CASE WHEN subject LIKE 'cases of %' THEN subject LIKE '%' || :name ELSE test = :name END"
_OF_LABEL = "number IN (SELECT run FROM labels WHERE name = :kind AND value = :name)"
_OF_DIGESTS = f"""
    number IN (SELECT run FROM labels WHERE name = '{DIGEST}' AND value IN (SELECT value FROM json_each(:digests)))
"""


def latest_of(
    db: sqlite3.Connection, kind: str, name: str, digests: Sequence[str] = ()
) -> sqlite3.Row | None:
    """Return the latest finished run of a data set, a test or a tag; None if there is none.

    Args:
        db: reads the index.
        kind: "dataset", "test" or "tag".
        name: of it.
        digests: of the versions of a data set, which may have had another name.
    """
    where = _OF_TEST if kind == "test" else f"({_OF_LABEL} OR {_OF_DIGESTS})"
    query = f"SELECT * FROM runs WHERE {where} AND state = 'finished' ORDER BY number DESC LIMIT 1"
    values = {"kind": kind, "name": name, "digests": json.dumps([*digests])}
    found: sqlite3.Row | None = db.execute(query, values).fetchone()
    return found


def _files_of(db: sqlite3.Connection, run: int) -> set[str]:
    """Return the test files of a run's items, taken from their ids; the id itself for items without a file."""
    query = "SELECT DISTINCT substr(id, 1, instr(id || '::', '::') - 1) FROM items WHERE run = ?"
    return {file for (file,) in db.execute(query, (run,))}


def finished_runs(db: sqlite3.Connection, kind: str, name: str, most: int) -> list[sqlite3.Row]:
    """Return the latest finished runs of a test, or with a label, the latest first.

    Args:
        db: reads the index.
        kind: "test", or the name of the label.
        name: the test, or the value of the label.
        most: the number of runs.
    """
    of = "test = :name" if kind == "test" else _OF_LABEL
    query = f"SELECT * FROM runs WHERE {of} AND state = 'finished' ORDER BY began DESC, name DESC LIMIT :most"
    return db.execute(query, {"kind": kind, "name": name, "most": most}).fetchall()


def seconds_of(db: sqlite3.Connection, run: int, file: str = "") -> list[float]:
    """Return the seconds that the answers of a run's items took, as far as they are known.

    Args:
        db: reads the index.
        run: its number.
        file: the test file whose cases are wanted; empty for all items.
    """
    query = "SELECT json_extract(used, '$.seconds') FROM items WHERE run = ? AND substr(id, 1, ?) = ?"
    start = f"{file}::" if file else ""
    found = db.execute(query, (run, len(start), start))
    return [float(seconds) for (seconds,) in found if seconds is not None]


def test_files(db: sqlite3.Connection, runs: Sequence[sqlite3.Row]) -> dict[int, list[str]]:
    """Return the test files of runs, by the numbers of the runs.

    Args:
        db: reads the index.
        runs: of the index.
    """
    found: dict[int, list[str]] = {}
    query = "SELECT run, value FROM labels WHERE name = 'file' AND run IN (SELECT value FROM json_each(?))"
    for run, file in db.execute(query, (json.dumps([row["number"] for row in runs]),)):
        found.setdefault(run, []).append(file)
    return found


def options(db: sqlite3.Connection) -> dict[str, list[str]]:
    """Return what runs can be filtered by: the tests, SUTs, states and values of each label that there are.

    Args:
        db: reads the index.
    """
    found = {name: _distinct(db, "runs", name) for name in _EXACT}
    labels = [*_LABELS, *(name for name in _distinct(db, "labels", "name") if name not in (*_LABELS, DIGEST))]
    return found | {name: _distinct(db, "labels", "value", name) for name in labels}


def _distinct(db: sqlite3.Connection, table: str, column: str, label: str = "") -> list[str]:
    """Return the values of a column with an index, from one to the next in it, however many rows have each.

    Args:
        db: reads the index.
        table: the name of the table.
        column: the name of the column.
        label: the name of the labels whose values are wanted.
    """
    among = f"FROM {table} WHERE {'name = :label AND' if label else ''}"
    query = f"""
        WITH RECURSIVE found (one) AS (
            SELECT MIN({column}) {among} 1 UNION ALL
            SELECT (SELECT MIN({column}) {among} {column} > one) FROM found WHERE one IS NOT NULL
        ) SELECT one FROM found WHERE one IS NOT NULL LIMIT {_MOST_OPTIONS}
    """
    return [str(value) for (value,) in db.execute(query, {"label": label})]


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

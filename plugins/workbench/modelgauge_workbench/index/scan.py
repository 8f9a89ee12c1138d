"""Reading runs into the index: all of a new one, and of a known one what is new."""

import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self

from modelgauge.engine.run_files.folder import JOURNAL, RUNS, RunFolder
from modelgauge.files.regular import is_folder
from modelgauge_workbench.index.index import Index
from modelgauge_workbench.index.queries import DIGEST, SETTING, run_of
from modelgauge_workbench.index.rows import (
    GOING_ON,
    ItemRow,
    item_columns,
    new_items,
    run_columns,
    searched_texts,
    stamp_of,
)

_GROUP = 2000
"""Items of a transaction, so that readers and the memory see small ones."""
_TEXTS = ("name", "test", "sut", "tags", "note", "headline")
_INSERT_RUN_TEXTS = f"INSERT INTO run_texts (rowid, {', '.join(_TEXTS)}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_INSERT_ITEM = f"INSERT OR REPLACE INTO items VALUES ({', '.join('?' * 14)})"
_INSERT_ITEM_TEXTS = "INSERT INTO item_texts (rowid, id, question, answer) VALUES (?, ?, ?, ?)"
_UPDATE_RUN = """
    UPDATE runs SET journal_read = ?, first_item = COALESCE(first_item, ?), last_item = ? WHERE number = ?
"""
_OF_AN_ID = re.compile(r"\d{8}-\d{6}-([0-9a-f]{5})")


def folder_of(index: Index, run: sqlite3.Row) -> RunFolder:
    """The folder of a run.

    Args:
        index: of the data folders.
        run: of the index.
    """
    return RunFolder(_path(index, run["folder"], run["name"]))


def _path(index: Index, folder: int, name: str) -> Path:
    return index.data_dirs[folder] / RUNS / name


def scan_run(index: Index, folder: int, name: str, *, stamp: str | None = None) -> None:
    """Bring the index up to date with a run; a run that is gone is taken out.

    Args:
        index: of the data folders.
        folder: the place of its data folder.
        name: of the run.
        stamp: that of the index, where it is known: a run that has it still is not read.
    """
    if stamp_of(_path(index, folder, name)) != stamp:
        scan_runs(index, folder, [name])


def find_run(index: Index, key: str) -> sqlite3.Row | None:
    """A run by its address, as it is now; it may be newer than the last look at the folders. None if there is none.

    Args:
        index: of the data folders.
        key: of the run.
    """
    with index.reading() as db:
        known = run_of(db, key)
    if known is not None:
        scan_run(index, known["folder"], known["name"], stamp=known["stamp"])
    else:
        for folder in range(len(index.data_dirs)):
            if key in names_in(index, folder):
                scan_run(index, folder, key)
    with index.reading() as db:
        return run_of(db, key)


def scan_runs(index: Index, folder: int, names: Iterable[str]) -> None:
    """Bring the index up to date with several runs of a folder. A transaction takes many small runs, or a part of one.

    Args:
        index: of the data folders.
        folder: the place of their data folder.
        names: of the runs.
    """
    left = iter(names)
    name = next(left, None)
    while name is not None:
        with index.writing() as db, _Rows(db) as rows:
            read = 0
            while name is not None and read < _GROUP:
                count, has_more = _scan(rows, _path(index, folder, name), folder)
                read += count + 1
                name = name if has_more else next(left, None)


class _Rows:
    """The rows that a transaction adds. It writes them together at its end: full texts take long in small steps.

    Args:
        db: in the transaction.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.run_texts: list[tuple[Any, ...]] = []
        self.labels = set[tuple[str, str, int]]()
        self._items: list[tuple[Any, ...]] = []
        self._item_texts: list[tuple[Any, ...]] = []
        query = "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'items'"
        self.last_item: int = db.execute(query).fetchone()[0]

    def __enter__(self) -> Self:
        return self

    def add_item(self, run: int, item: ItemRow) -> None:
        """Add an item of a run, replacing those that its line replaces."""
        if item.replaces:
            self._write_items()
            replaced = [(run, place) for place in item.replaces]
            self.db.executemany("DELETE FROM items WHERE run = ? AND place = ?", replaced)
        self.last_item += 1
        self._items.append((self.last_item, run, *item_columns(item)))
        self._item_texts.append((self.last_item, *searched_texts(item)))
        file, has_case, _ = item.row.id.partition("::")
        if has_case and file.endswith(".py"):
            self.labels.add(("file", file, run))

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self.db.executemany(_INSERT_RUN_TEXTS, self.run_texts)
            self.db.executemany("INSERT OR IGNORE INTO labels VALUES (?, ?, ?)", self.labels)
            self._write_items()
            self.db.executemany(_INSERT_ITEM_TEXTS, self._item_texts)

    def _write_items(self) -> None:
        self.db.executemany(_INSERT_ITEM, self._items)
        self._items.clear()


def _scan(rows: _Rows, path: Path, folder: int) -> tuple[int, bool]:
    """Bring a run up to date, and return how many items were read, and whether there may be more."""
    stamp = stamp_of(path)
    query = "SELECT number, journal, journal_read, stamp, state FROM runs WHERE folder = ? AND name = ?"
    known: sqlite3.Row | None = rows.db.execute(query, (folder, path.name)).fetchone()
    journal, size = _journal_of(path)
    if known is not None and (not stamp or not _goes_on(known, journal, size)):
        forget(rows.db, known["number"])
        known = None
    if not stamp:
        return 0, False
    if known is None or known["stamp"] != stamp or known["state"] == GOING_ON:
        columns = run_columns(path) | {"folder": folder, "name": path.name, "stamp": stamp}
        columns["journal"] = journal
        number = _write_run(rows, columns, None if known is None else known["number"])
    else:
        number = known["number"]
    return _read_items(rows, path, number, 0 if known is None else known["journal_read"])


def forget(db: sqlite3.Connection, number: int) -> None:
    """Take a run out of the index. The full texts of its items stay there until it is made again.

    Args:
        db: in a transaction.
        number: of the run.
    """
    for table, column in (
        ("items", "run"),
        ("labels", "run"),
        ("views", "run"),
        ("run_texts", "rowid"),
        ("runs", "number"),
    ):
        db.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))


def _goes_on(known: sqlite3.Row, journal: str, size: int) -> bool:
    """Return whether the part of a run's journal that was read is still its beginning."""
    read: int = known["journal_read"]
    return not read or (known["journal"] == journal and read <= size)


def _journal_of(run: Path) -> tuple[str, int]:
    """Return the identity and size of a run's journal. Offsets in one file are invalid in another."""
    try:
        stat = (run / JOURNAL).stat()
    except OSError:
        return "", 0
    return f"{stat.st_dev}.{stat.st_ino}", stat.st_size


def _write_run(rows: _Rows, columns: dict[str, Any], number: int | None) -> int:
    """Write the row of a run, which may have a number already, and return its number."""
    db = rows.db
    if number is None:
        taken = db.execute("SELECT 1 FROM runs WHERE key = ?", (columns["name"],)).fetchone()
        key = f"{columns['name']}~{columns['folder'] + 1}" if taken else columns["name"]
        number = _new_number(db, columns["began"], columns["name"])
        columns = columns | {"number": number, "key": key, "journal_read": 0}
        marks = ", ".join(f":{column}" for column in columns)
        db.execute(f"INSERT INTO runs ({', '.join(columns)}) VALUES ({marks})", columns)
    else:
        marks = ", ".join(f"{column} = :{column}" for column in columns)
        db.execute(f"UPDATE runs SET {marks} WHERE number = :number", columns | {"number": number})
        db.execute("DELETE FROM run_texts WHERE rowid = ?", (number,))
        # The items say their files.
        db.execute("DELETE FROM labels WHERE run = ? AND name <> 'file'", (number,))
    tags = json.loads(columns["tags"])
    texts = columns | {"tags": " ".join(tags)}
    rows.run_texts.append((number, *(texts[name] for name in _TEXTS)))
    labels = [("tag", tag) for tag in tags]
    for dataset in json.loads(columns["datasets"]):
        labels += [("dataset", str(dataset.get("name"))), (DIGEST, str(dataset.get("digest")))]
    labels += [(f"{SETTING}{name}", text) for name, text in json.loads(columns["settings"]).items()]
    rows.labels.update((name, value, number) for name, value in labels)
    return number


def _new_number(db: sqlite3.Connection, began: str, name: str) -> int:
    """The microsecond in which a run began, which its id has, or the next that no run has."""
    second = int(datetime.fromisoformat(began).timestamp()) * 1_000_000
    number = second + (int(found[1], 16) if (found := _OF_AN_ID.match(name)) else 0)
    while db.execute("SELECT 1 FROM runs WHERE number = ?", (number,)).fetchone():
        number += 1
    return number


def _read_items(rows: _Rows, run: Path, number: int, start: int) -> tuple[int, bool]:
    """Read the next items of a run, at most `_GROUP`, and return how many they were, and whether there may be more."""
    query = "SELECT DISTINCT failure FROM items WHERE run = ? AND failure <> ''"
    kinds = rows.db.execute(query, (number,)) if start else ()
    known = {tuple(json.loads(failure)): None for (failure,) in kinds}
    before, end = rows.last_item, start
    for item in islice(new_items(run / JOURNAL, start, known), _GROUP):
        rows.add_item(number, item)
        end = item.start + item.length
    count = rows.last_item - before
    if count:
        rows.db.execute(_UPDATE_RUN, (end, before + 1, rows.last_item, number))
    return count, count == _GROUP


def names_in(index: Index, folder: int) -> Iterator[str]:
    """The names of the folders of runs in a data folder. A link is none: it may lead anywhere.

    Args:
        index: of the data folders.
        folder: the place of the data folder.
    """
    runs = index.data_dirs[folder] / RUNS
    if is_folder(runs):
        with os.scandir(runs) as found:
            yield from (entry.name for entry in found if not entry.is_symlink())

"""What a page shows of an ended run above its items: the report's first screen, made once and kept in the index."""

import json
import sqlite3
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from pydantic import TypeAdapter

from modelgauge.data.results import Threshold
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import Sentences
from modelgauge.documents.html import as_html
from modelgauge.reports.pages.classes import ANSWERED
from modelgauge.reports.pages.item_columns import ItemColumn, title_of_failure
from modelgauge.reports.pages.item_data import MOST_ITEMS, ItemTable
from modelgauge.reports.pages.run_view import first_screen, run_details, title_of
from modelgauge.runs.recorded_run import recorded_run
from modelgauge_workbench.index.item_queries import FAILED_FIRST, IN_ORDER, wanted_items
from modelgauge_workbench.index.queries import Wanted
from modelgauge_workbench.index.scan import folder_of
from modelgauge_workbench.workbench import Workbench

_ITEMS = "?{}#items"
_making = Lock()
"""One is made after the other: a large run takes memory."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of a run for its page.

    Args:
        html: of what is above the items.
        title: of the run.
        details: the HTML of what is below the items.
        common: what all questions begin with.
        measured: the names of its measurements.
        columns: those that people may choose.
        thresholds: of its test, by the names of measurements.
        of_some: those that some scored items do not have.
        used: what is known of the use of items: seconds, tokens, dollars.
        facets: labels by which items can be filtered, with their values.
        failures: the kinds of failures, as items have them in the index, by their numbers in addresses.
        kinds: what these are called.
    """

    html: str
    title: str
    details: str = ""
    common: str = ""
    measured: list[str] = field(default_factory=list)
    columns: list[ItemColumn] = field(default_factory=list)
    thresholds: dict[str, Threshold] = field(default_factory=dict)
    of_some: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    facets: dict[str, list[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    @property
    def has_verdicts(self) -> bool:
        """Whether items passed or failed thresholds."""
        return PASSED in self.measured

    @property
    def usual_order(self) -> str:
        """The way in which items are sorted if nobody chooses another."""
        return FAILED_FIRST if self.has_verdicts else IN_ORDER

    def wanted(self, run: sqlite3.Row, asked: Mapping[str, str]) -> Wanted:
        """Return which items an address asks for, in which order: by default failed ones first, if items have verdicts.

        Args:
            run: of the index.
            asked: the fields of the address.
        """
        sort = asked.get("sort") or self.usual_order
        return wanted_items(run, {**asked, "sort": sort}, self.failures, self.used)


_AS_JSON = TypeAdapter(Summary)


def summary_of(workbench: Workbench, row: sqlite3.Row) -> Summary:
    """What the page of a run shows, from the index where that has it.

    Args:
        workbench: has the run.
        row: of the run in the index.

    Raises:
        RecordError: the run is damaged.
    """
    if kept := _kept(workbench, row):
        return kept
    with _making:
        return _kept(workbench, row) or _made(workbench, row)


def _kept(workbench: Workbench, row: sqlite3.Row) -> Summary | None:
    query = "SELECT view FROM views WHERE run = ? AND stamp = ?"
    with workbench.index.reading() as db:
        found = db.execute(query, (row["number"], row["stamp"])).fetchone()
    return None if found is None else _AS_JSON.validate_json(found["view"])


def _made(workbench: Workbench, row: sqlite3.Row) -> Summary:
    """Make it, and keep it in the index."""
    run, table = recorded_run(folder_of(workbench.index, row)), ItemTable(redact=workbench.redact)
    deque(table.taken(run), maxlen=0)
    first = [*first_screen(run, table, items=_ITEMS)]
    if run.record.counts.finished > table.number:
        note = f"The charts and the kinds of failures are those of the first {MOST_ITEMS:,} items."
        first.append(Sentences([note], look="dim"))
    summary = Summary(
        as_html(first, workbench.redact),
        title_of(run.record),
        details=as_html(run_details(run, table, items=_ITEMS), workbench.redact),
        common=table.common.strip(),
        measured=[*table.measured],
        columns=table.columns,
        thresholds=table.thresholds,
        of_some=[*table.measured_of_some()],
        used=[*table.used],
        facets={name: [*labels.values] for name, labels in table.facets.items()},
        failures=[json.dumps(key, ensure_ascii=False) for key in table.failures],
        kinds=[title_of_failure(key) for key in table.failures],
    )
    with workbench.index.writing() as db:
        values = (row["number"], row["stamp"], _AS_JSON.dump_json(summary).decode())
        db.execute("INSERT OR REPLACE INTO views VALUES (?, ?, ?)", values)
        _keep_classes(db, row["number"], table)
    return summary


def _keep_classes(db: sqlite3.Connection, number: int, table: ItemTable) -> None:
    """Let items be found by what they answered, and what was right: that is known when all are read."""
    if table.answered is None:
        return
    query = "SELECT place FROM items WHERE run = ? ORDER BY place"
    places = [place for (place,) in db.execute(query, (number,))]
    for name, labels in zip((table.label_of_right_class, ANSWERED), table.answered, strict=True):
        values = [*labels.values]
        db.executemany(
            "UPDATE items SET labels = json_set(labels, ?, ?) WHERE run = ? AND place = ?",
            [
                (f'$."{name}"', values[at], number, place)
                for place, at in zip(places, labels.of, strict=False)
                if at >= 0
            ],
        )

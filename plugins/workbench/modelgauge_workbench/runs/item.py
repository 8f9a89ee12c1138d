"""The page of an item: its record, where it stands among those that were listed, the same item in other runs."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from modelgauge.config.redaction import redacted_json
from modelgauge.datasets.versions import VersionsFolder
from modelgauge.documents.document import TableBlock, TableColumn, Text
from modelgauge.errors import RecordError
from modelgauge.reports.pages.item_columns import scores_in
from modelgauge.reports.pages.run_page import ITEM_SCRIPTS
from modelgauge.wording.figures import figure
from modelgauge_workbench.datasets.links import versions_of_run
from modelgauge_workbench.index.item_queries import item_of, neighbours, same_item
from modelgauge_workbench.index.rows import GOING_ON, item_line
from modelgauge_workbench.index.scan import folder_of
from modelgauge_workbench.rendering import page
from modelgauge_workbench.runs.listing import item_name, item_state, shown_run
from modelgauge_workbench.runs.run import place_of, run_row, running_summary, verdict_on
from modelgauge_workbench.runs.summary import Summary, summary_of
from modelgauge_workbench.workbench import Workbench, workbench_of


def show_item(request: Request) -> Response:
    """Answer with the page of an item."""
    workbench, row, place = workbench_of(request), run_row(request), place_of(request)
    summary = running_summary(workbench, row) if row["state"] == GOING_ON else summary_of(workbench, row)
    asked = {name: value for name, value in request.query_params.items() if value}
    with workbench.index.reading() as db:
        item = item_of(db, row["number"], place)
        if item is None:
            raise HTTPException(
                404, f"The run has no item {place + 1} yet: it is not done, or the test has fewer items."
            )
        beside = neighbours(db, row, summary.wanted(row, asked), place)
        same = same_item(db, row, item)
    run = f"/runs/{quote(row['key'], safe='')}"
    query = f"?{urlencode(asked)}" if asked else ""

    def address(of: int | None) -> str:
        return "" if of is None else f"{run}/items/{of + 1}{query}"

    return page(
        request,
        "runs/item.html.j2",
        scripts=ITEM_SCRIPTS,
        title=f"Item {place + 1} of {summary.title}",
        run=shown_run(row),
        run_title=summary.title,
        datasets=versions_of_run(workbench, row),
        aliases=VersionsFolder(workbench.data_dir).aliases(),
        item=item,
        has_verdict=summary.has_verdicts,
        number=place + 1,
        back=f"{run}{query}#items",
        beside=beside,
        previous=address(beside.previous),
        next=address(beside.next),
        same=[_same_table(same)] if same else [],
        record=json_block(
            {
                "record": record_of(workbench, row, item),
                "about": _about(item, summary),
            }
        ),
    )


def _about(item: sqlite3.Row, summary: Summary) -> dict[str, Any]:
    """Return what the view of an item shows besides its record; see `itemView` in `item_view.js`."""
    about = {"expected": item["expected"], "common": summary.common}
    if not summary.has_verdicts:
        return about
    thresholds = {
        name: (threshold.value, threshold.higher_is_better) for name, threshold in summary.thresholds.items()
    }
    reason, _ = verdict_on(json.loads(item["measured"]), item["failure"], summary)
    return about | {"thresholds": thresholds, "reason": reason}


def record_of(workbench: Workbench, run: sqlite3.Row, item: sqlite3.Row) -> dict[str, Any]:
    """The record of an item, read from its one line of the journal, without secrets.

    Args:
        workbench: has the run.
        run: of the index.
        item: likewise.

    Raises:
        HTTPException: the line is no more what it was.
    """
    journal = folder_of(workbench.index, run).journal
    try:
        _, record = item_line(journal, item["start"], item["place"]).read_json(dict)
    except RecordError:
        raise HTTPException(409, "The journal of the run has changed: reload the page.") from None
    clean: dict[str, Any] = redacted_json(record, workbench.redact)
    return clean


def json_block(data: Any) -> str:
    """JSON for a block of data in a page, which nothing in it can end.

    Args:
        data: any JSON value.
    """
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _same_table(others: Sequence[sqlite3.Row]) -> TableBlock:
    """Return a row for each run that has the same item."""
    runs = [
        item_name(row["sut"], row["began"].replace("T", " ")[:16], row["key"], row["place"]) for row in others
    ]
    return TableBlock(
        [
            TableColumn("Run", runs, kind="name"),
            TableColumn("Answer", [row["answer"] for row in others], kind="quote"),
            TableColumn("State", [item_state(row["state"]) for row in others]),
            TableColumn("Measured", [Text(_measured(row), look="headline") for row in others]),
        ],
        label="Table of runs",
        kind="rows cards",
    )


def _measured(row: sqlite3.Row) -> str:
    measured = json.loads(row["measured"])
    names = scores_in(measured) or measured  # a test may measure nothing but what passed
    return " · ".join(f"{name} {figure(measured[name])}" for name in names)

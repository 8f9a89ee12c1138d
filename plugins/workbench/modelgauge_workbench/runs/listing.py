"""The list of runs: search, filters, sorting, and what came out of each at a glance."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from modelgauge.documents.document import Inline, TableBlock, TableColumn, Text
from modelgauge.engine.run_files.folder import MANIFEST
from modelgauge.files.regular import is_folder
from modelgauge.runs.trash import TRASH
from modelgauge.wording.figures import dollars, duration
from modelgauge_workbench.comparisons.baselines import shown_baseline
from modelgauge_workbench.index.item_queries import search_items
from modelgauge_workbench.index.queries import PAGE, SORTS, find_runs, options, page_of, run_of
from modelgauge_workbench.index.rows import RECORDED, run_columns
from modelgauge_workbench.rendering import page
from modelgauge_workbench.workbench import Workbench, workbench_of


def list_runs(request: Request) -> Response:
    """Answer with the list of runs that the address asks for."""
    asked = {name: value for name, value in request.query_params.items() if value}
    deleted, deleted_of, noted = (asked.pop(name, "") for name in ("deleted", "folder", "noted"))
    workbench = workbench_of(request)
    with workbench.index.reading() as db:
        found, choices = find_runs(db, asked), options(db)
        noted_run = run_of(db, noted)
        known = db.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is not None
    filters = {name: value for name, value in asked.items() if name not in ("page", "sort")}

    def page_address(number: int) -> str:
        return f"/runs?{urlencode(asked | {'page': number})}"

    return page(
        request,
        "runs/list.html.j2",
        title="Runs",
        asked=defaultdict(str, asked),
        filtered=bool(filters),
        found=found,
        runs=[shown_run(row) for row in found.rows],
        choices=choices,
        sorts=SORTS,
        known=known,
        baseline=next(
            (shown for kind in ("tag", "test") if (shown := _baseline(workbench, asked, kind))), None
        ),
        data_dirs=workbench.data_dirs,
        has_demo=workbench.shelf.has_demo(),
        page_address=page_address,
        query=urlencode(asked),
        noted=noted_run,
        deleted=deleted,
        deleted_of=deleted_of,
    )


def _baseline(workbench: Workbench, asked: Mapping[str, str], kind: str) -> dict[str, Any] | None:
    """Return the baseline of the tag or the test that the list is filtered by."""
    return shown_baseline(workbench, kind, asked[kind]) if kind in asked else None


def search(request: Request) -> Response:
    """Answer with the items of all runs in which words stand."""
    words, number = request.query_params.get("q", ""), page_of(request.query_params)
    with workbench_of(request).index.reading() as db:
        found = search_items(db, words, number)
    return page(
        request,
        "runs/search.html.j2",
        title=f"Items with {words}" if words else "Items",
        words=words,
        items=[_found_table(found[:PAGE])] if found else [],
        number=number,
        has_next=len(found) > PAGE,
        address=lambda to: f"/items?{urlencode({'q': words, 'page': to})}",
    )


def _found_table(rows: Sequence[sqlite3.Row]) -> TableBlock:
    """Return a row for each item that was found."""
    names = [
        item_name(
            f"{row['test']}, {row['place'] + 1}",
            f"{row['sut']} · {_when(row['began'])}",
            row["key"],
            row["place"],
        )
        for row in rows
    ]
    return TableBlock(
        [
            TableColumn("Item", names, kind="name"),
            TableColumn("Question", [row["question"] for row in rows], kind="quote"),
            TableColumn("Answer", [row["answer"] for row in rows], kind="quote"),
            TableColumn("State", [item_state(row["state"]) for row in rows]),
        ],
        label="Table of items",
        kind="rows",
    )


def item_name(name: str, beside: str, run: str, place: int) -> Inline:
    """Return the name of an item in a list, which leads to the item.

    Args:
        name: the name.
        beside: what stands smaller below it.
        run: the key of its run.
        place: its place in the run.
    """
    return Text(name, f"/runs/{quote(run, safe='')}/items/{place + 1}"), " ", Text(beside, look="small")


def item_state(state: str) -> Text:
    """Return the state of an item as a cell of a list, in red unless it is ok."""
    return Text(state, look="" if state == "ok" else "missed")


def show_trash(request: Request) -> Response:
    """Answer with the runs in the trash, the latest first."""
    workbench = workbench_of(request)
    trashes = [folder / TRASH for folder in workbench.data_dirs]
    runs = [
        run_columns(path) | {"name": path.name, "folder": folder}
        for folder, trash in enumerate(trashes)
        if is_folder(trash)
        for path in trash.iterdir()
        if (path / MANIFEST).is_file()
    ]
    runs.sort(key=lambda run: str(run["began"]), reverse=True)
    shown = [run | {"when": _when(run["began"])} for run in runs]
    return page(request, "runs/trash.html.j2", title="Trash", runs=shown, folders=[*map(str, trashes)])


def _when(began: str) -> str:
    return began.replace("T", " ")[:16]


def shown_run(row: sqlite3.Row) -> dict[str, Any]:
    """What lists show of a run.

    Args:
        row: of the index.
    """
    return {
        **dict(row),
        "when": _when(row["began"]),
        "is_given": row["sut"] == RECORDED,
        "answered_by": row["test"] if row["sut"] == RECORDED else row["sut"],
        "tags": json.loads(row["tags"]),
        "scored_of_all": "" if row["scored"] is None else f"{row['scored']:,}/{row['items']:,}",
        "took": " · ".join(
            text
            for text in (
                duration(row["seconds"]) if row["seconds"] else "",
                dollars(row["cost"]) if row["cost"] else "",
            )
            if text
        ),
        "needs_look": row["state"] not in ("finished", "running"),
    }

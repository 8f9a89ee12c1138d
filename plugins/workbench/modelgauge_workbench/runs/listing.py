"""The list of runs: search, filters, sorting, and what came out of each at a glance."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from modelgauge.datasets.versions import VersionsFolder
from modelgauge.documents.charts import portions_bar
from modelgauge.documents.document import Inline, TableBlock, TableColumn, Text
from modelgauge.engine.run_files.folder import MANIFEST
from modelgauge.files.regular import is_folder
from modelgauge.reports.pages.verdicts import verdict_portions
from modelgauge.runs.trash import TRASH
from modelgauge.wording.figures import dollars, duration
from modelgauge_workbench.comparisons.baselines import shown_baseline
from modelgauge_workbench.index.item_queries import search_items
from modelgauge_workbench.index.queries import (
    PAGE,
    SETTING,
    SORTS,
    find_runs,
    group_of,
    options,
    page_of,
    run_of,
    test_files,
)
from modelgauge_workbench.index.rows import RECORDED, differing_settings, run_columns
from modelgauge_workbench.rendering import page
from modelgauge_workbench.workbench import Workbench, workbench_of

_FILTERS = {
    "test": "Test",
    "sut": "SUT",
    "dataset": "Data set",
    "file": "Test file",
    "state": "State",
    "tag": "Tag",
}
"""The filters that any list of runs may have, beside those of settings: what the page calls them."""
_ORDERING = ("page", "sort", "group")
_BAR = 120  # pixels


def list_runs(request: Request) -> Response:
    """Answer with the list of runs that the address asks for."""
    asked = {name: value for name, value in request.query_params.items() if value}
    deleted, deleted_of, noted = (asked.pop(name, "") for name in ("deleted", "folder", "noted"))
    workbench = workbench_of(request)
    with workbench.index.reading() as db:
        found, choices = find_runs(db, asked), options(db)
        files = test_files(db, found.rows)
        noted_run = run_of(db, noted)
        known = db.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is not None
    filters = {name: value for name, value in asked.items() if name not in _ORDERING}
    names = {**_FILTERS, **{name: name.removeprefix(SETTING) for name in choices if name.startswith(SETTING)}}

    def page_address(number: int) -> str:
        return f"/runs?{urlencode(asked | {'page': number})}"

    def without(name: str) -> str:
        return f"/runs?{urlencode({key: value for key, value in asked.items() if key not in (name, 'page')})}"

    return page(
        request,
        "runs/list.html.j2",
        title="Runs",
        asked=defaultdict(str, asked),
        filters=filters,
        without=without,
        found=found,
        runs=_listed_runs(found.rows, files, asked.get("group", "")),
        names=names,
        settings=[
            name for name in names if name.startswith(SETTING) and (len(choices[name]) > 1 or name in asked)
        ],
        groups=[name for name in names if name != "file" and choices[name]],
        choices=choices,
        sorts=SORTS,
        known=known,
        baseline=next(
            (shown for kind in ("tag", "dataset", "test") if (shown := _baseline(workbench, asked, kind))),
            None,
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
    """Return the baseline of the tag, data set or test that the list is filtered by."""
    return shown_baseline(workbench, kind, asked[kind]) if kind in asked else None


def _listed_runs(
    rows: Sequence[sqlite3.Row], files: Mapping[int, Sequence[str]], group: str
) -> list[dict[str, Any]]:
    """Return what the list shows of runs: with the settings in which they differ, and a heading before each group."""
    settings: list[dict[str, str]] = [json.loads(row["settings"]) for row in rows]
    differing = [name for name in differing_settings([*filter(None, settings)]) if SETTING + name != group]
    runs, above = [], None
    for row, texts in zip(rows, settings, strict=True):
        of = group_of(row, group) if group else ""
        shown = {name: texts[name] for name in differing if name in texts}
        data = [
            ("dataset", dataset["name"], dataset.get("version")) for dataset in json.loads(row["datasets"])
        ]
        data += [("file", file, None) for file in files.get(row["number"], ())]
        heading = of if group and of != above else None
        runs.append(shown_run(row) | {"settings": shown, "data": data, "heading": heading})
        above = of
    return runs


def _verdicts_bar(row: sqlite3.Row) -> Markup | None:
    """Draw how many items of a run passed, failed, and have no verdict; None where it judges none."""
    if not row["judged"] or row["items"] is None:
        return None
    passed, judged = row["passed"], row["judged"]
    parts = verdict_portions(passed, judged - passed, row["items"] - judged)
    return portions_bar([part for part in parts if part.count], width=_BAR, height=8)


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
    return page(
        request,
        "runs/trash.html.j2",
        title="Trash",
        runs=shown,
        datasets=VersionsFolder(workbench.data_dir).deleted(),
        folders=[*map(str, trashes)],
    )


def _when(began: str) -> str:
    return began.replace("T", " ")[:16]


def _beside(row: sqlite3.Row) -> str:
    """Say of how many items a result is, and which it lacks."""
    if row["items"] is None:
        return ""
    if not row["judged"]:
        failed = f", {row['failed']:,} failed" if row["failed"] else ""
        return f"n {row['scored']:,}{failed}"
    unjudged = row["items"] - row["judged"]
    return f"{unjudged:,} not judged" if unjudged else ""


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
        "bar": _verdicts_bar(row),
        "beside": _beside(row),
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

"""The page of a run: the report's first screen, what people noted, and its items; and its stream while it goes on."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from modelgauge.data.thresholds import PASSED, failing, has_passed
from modelgauge.wording.figures import figure
from modelgauge_workbench.index.item_queries import (
    LATEST,
    failures_of,
    find_items,
    states_of,
    wanted_items,
)
from modelgauge_workbench.index.queries import run_before, whole_number
from modelgauge_workbench.index.rows import GOING_ON
from modelgauge_workbench.index.scan import find_run, folder_of
from modelgauge_workbench.rendering import page, rendered
from modelgauge_workbench.runs.listing import shown_run
from modelgauge_workbench.runs.live import Looks, progress_of
from modelgauge_workbench.runs.notes import Notes
from modelgauge_workbench.runs.summary import Summary, summary_of
from modelgauge_workbench.workbench import Workbench, workbench_of

_SORTS = (("<", "lowest first"), (">", "highest first"))


def run_row(request: Request) -> sqlite3.Row:
    """The run that an address names, as it is now.

    Raises:
        HTTPException: there is none.
    """
    key = request.path_params["run"]
    known = find_run(workbench_of(request).index, key)
    if known is None:
        raise HTTPException(
            404, f"There is no run {key!r}: it may be in the trash, or in a folder that is not watched."
        )
    return known


def place_of(request: Request) -> int:
    """The place in the test, from 0, of the item that an address names.

    Raises:
        HTTPException: it names none.
    """
    number = whole_number(request.path_params["number"])
    if not number:
        raise HTTPException(404, "There is no such item. Choose one from the page of the run.")
    return number - 1


def show_run(request: Request) -> Response:
    """Answer with the page of a run."""
    workbench, row = workbench_of(request), run_row(request)
    notes = Notes.of(folder_of(workbench.index, row).path)
    going_on = row["state"] == GOING_ON
    summary = running_summary(workbench, row) if going_on else summary_of(workbench, row)
    with workbench.index.reading() as db:
        before = run_before(db, row)
    return page(
        request,
        "runs/run.html.j2",
        has_earlier=before is not None,
        title=summary.title,
        run=shown_run(row),
        datasets=saved_versions(row),
        notes=notes,
        summary=summary,
        progress=progress_of(workbench, row) if going_on else None,
        **items_data(workbench, row, summary, request.query_params),
    )


def saved_versions(row: sqlite3.Row) -> list[dict[str, Any]]:
    """The data sets that the items of a run are of, and their versions, where they were saved under these names.

    Args:
        row: of the run in the index.
    """
    return [dataset for dataset in json.loads(row["datasets"]) if isinstance(dataset.get("version"), int)]


def running_summary(workbench: Workbench, row: sqlite3.Row) -> Summary:
    """What is known of a run that is going on: no first screen, but what its items can be filtered by.

    Args:
        workbench: has the run.
        row: of the run in the index.
    """
    with workbench.index.reading() as db:
        failures = [failure for failure, _ in failures_of(db, row["number"])]
        first = "SELECT measured FROM items WHERE run = ? AND state <> 'failed' LIMIT 100"
        held = [json.loads(measured) for (measured,) in db.execute(first, (row["number"],))]
    measured = [*dict.fromkeys(name for names in held for name in names)]
    of_some = [name for name in measured if not all(name in names for names in held)]
    kinds = [f"{error_type} at {stage}" for stage, _, error_type, _ in map(json.loads, failures)]
    title = f"{row['test']} on {row['sut']}"
    return Summary("", title, measured=measured, of_some=of_some, failures=failures, kinds=kinds)


def items_data(
    workbench: Workbench, row: sqlite3.Row, summary: Summary, asked: Mapping[str, str]
) -> dict[str, Any]:
    """What the table of a run's items shows.

    Args:
        workbench: has the run.
        row: of the run in the index.
        summary: of the run.
        asked: the fields of the address.
    """
    given = {name: value for name, value in asked.items() if value}
    if row["state"] == GOING_ON:
        given.setdefault("sort", LATEST)
    wanted = wanted_items(row, given, summary.failures, summary.used)
    with workbench.index.reading() as db:
        found, states = find_items(db, wanted, given), states_of(db, row["number"])
    names = [name for name in summary.measured if name != "passed" and not name.endswith(".passed")]
    address = f"/runs/{quote(row['key'], safe='')}"
    kept = {name: value for name, value in given.items() if name != "page"}
    return {
        "asked": defaultdict(str, given),
        "found": found,
        "total": sum(states.values()),
        "names": names,
        "items": [_shown_item(item, names, summary.of_some, address, kept) for item in found.rows],
        "has_verdicts": PASSED in summary.measured,
        "has_expected": any(item["expected"] for item in found.rows),
        "choices": [choice for choice in _choices(summary, states, names) if choice[2]],
        "page_address": lambda number: f"{address}?{urlencode(given | {'page': number})}#items",
        "address": address,
    }


def _choices(
    summary: Summary, states: Mapping[str, int], names: list[str]
) -> Iterator[tuple[str, str, list[tuple[str, str]], str]]:
    """What items can be filtered and sorted by: name, title, values with their words, and the word for all."""
    said = [(state, f"{state} {count:,}") for state, count in sorted(states.items()) if state != "ok"]
    kinds = [(str(number), kind) for number, kind in enumerate(summary.kinds, start=1)]
    if PASSED in summary.measured:
        yield "passed", "Result", [("no", "failed"), ("none", "not judged"), ("yes", "passed")], "all"
    yield "show", "Show", said, f"all {sum(states.values()):,}"
    yield "failure", "Failure", kinds, "any"
    for name in summary.measured:
        if name.endswith(".passed"):
            yield name, name.removesuffix(".passed"), [("yes", "passed"), ("no", "below threshold")], "all"
    for name, values in summary.facets.items():
        yield f"is-{name}", name, [(value, value) for value in values], "all"
    first = [(f"{PASSED}<", "failed first")] if PASSED in summary.measured else []
    sorts = [(f"{name}{sign}", f"{name}, {how}") for name in (*names, *summary.used) for sign, how in _SORTS]
    yield "sort", "Sort", [*first, *sorts], "in order"


def _shown_item(
    item: sqlite3.Row, names: list[str], of_some: list[str], run: str, asked: Mapping[str, str]
) -> dict[str, Any]:
    measured = json.loads(item["measured"])
    query = f"?{urlencode(asked)}" if asked else ""
    return {
        **dict(item),
        "look": item["state"].replace(" ", "-"),
        "address": f"{run}/items/{item['place'] + 1}{query}",
        "verdict": _verdict(measured),
        "numbers": [_cell(name, measured, item["state"], of_some) for name in names],
    }


def _verdict(measured: Mapping[str, float]) -> tuple[str, str]:
    """Return whether an item passed its thresholds, with the metrics that failed, and the style of that."""
    failed = ", ".join(failing(measured))
    if PASSED not in measured:
        return (f"not judged; failed: {failed}" if failed else "not judged"), "not-measured"
    if measured[PASSED] >= 1:
        return "passed", ""
    return (f"failed: {failed}" if failed else "failed"), "missed"


def _cell(name: str, measured: Mapping[str, float], state: str, of_some: list[str]) -> tuple[str, str]:
    """Return the text and style of a measurement of an item. A score is marked by its own threshold.

    A failed item is shown to lack only measurements that all scored items have. It might not have had the others.
    """
    if name not in measured:
        return (
            ("failed", "missed")
            if state == "failed" and name not in of_some
            else ("not measured", "not-measured")
        )
    passed = has_passed(measured, name)
    is_missed = state == "wrong" and name == next(iter(measured)) if passed is None else not passed
    return figure(measured[name]), "missed" if is_missed else ""


def stream_run(request: Request) -> Response:
    """Answer with what changes on the page of a run while it goes on."""
    workbench = workbench_of(request)
    run_row(request)  # is refused here where there is none: a stream that has begun has its status

    def look() -> tuple[str, bool]:
        row = run_row(request)
        if row["state"] != GOING_ON:
            return "", False
        summary = running_summary(workbench, row)
        items = items_data(workbench, row, summary, request.query_params)
        shown = {
            "progress": rendered(request, "runs/progress.html.j2", progress=progress_of(workbench, row)),
            "rows": rendered(request, "runs/rows.html.j2", **items),
        }
        return json.dumps(shown), True

    looks: Looks = request.app.state.looks
    return looks.events(f"{request.url.path}?{request.url.query}", look)

"""The page of a run: the report's first screen, what people noted, and its items; and its stream while it goes on."""

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from modelgauge.data.thresholds import PASSED, has_passed
from modelgauge.reports.pages.item_columns import (
    ItemColumn,
    item_columns,
    reason_of,
    scores_in,
    shown_columns,
    title_of_failure,
)
from modelgauge.runs.notes import Notes
from modelgauge.wording.figures import figure
from modelgauge_workbench.comparisons.baselines import baseline_choices
from modelgauge_workbench.datasets.links import versions_of_run
from modelgauge_workbench.index.item_queries import (
    FAILED_FIRST,
    IN_ORDER,
    LATEST,
    failures_of,
    find_items,
    states_of,
)
from modelgauge_workbench.index.queries import run_before, whole_number
from modelgauge_workbench.index.rows import GOING_ON, RECORDED
from modelgauge_workbench.index.scan import find_run, folder_of
from modelgauge_workbench.rendering import page, rendered
from modelgauge_workbench.runs.listing import shown_run
from modelgauge_workbench.runs.live import Looks, progress_of
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
        baselines=[] if going_on else baseline_choices(workbench, row),
        has_earlier=before is not None,
        title=summary.title,
        run=shown_run(row),
        datasets=versions_of_run(workbench, row),
        notes=notes,
        summary=summary,
        progress=progress_of(workbench, row) if going_on else None,
        **items_data(workbench, row, summary, request.query_params),
    )


def running_summary(workbench: Workbench, row: sqlite3.Row) -> Summary:
    """What is known of a run that is going on: no first screen, but what its items can be filtered by.

    Args:
        workbench: has the run.
        row: of the run in the index.
    """
    with workbench.index.reading() as db:
        failures = [failure for failure, _ in failures_of(db, row["number"])]
        first = "SELECT measured, expected FROM items WHERE run = ? AND state <> 'failed' LIMIT 100"
        rows = db.execute(first, (row["number"],)).fetchall()
    held = [json.loads(measured) for measured, _ in rows]
    measured = {name: [each.get(name, math.nan) for each in held] for names in held for name in names}
    return Summary(
        "",
        row["test"] if row["sut"] == RECORDED else f"{row['test']} on {row['sut']}",
        measured=[*measured],
        columns=item_columns(measured, has_answers=True, has_expected=any(expected for _, expected in rows)),
        of_some=[name for name, values in measured.items() if any(map(math.isnan, values))],
        failures=failures,
        kinds=[title_of_failure(json.loads(failure)) for failure in failures],
    )


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
    usual = LATEST if row["state"] == GOING_ON else summary.usual_order
    if usual == LATEST:
        given.setdefault("sort", LATEST)
    wanted = summary.wanted(row, given)
    with workbench.index.reading() as db:
        found, states = find_items(db, wanted, given), states_of(db, row["number"])
    columns = shown_columns(summary.columns, given.get("columns", ""))
    address = f"/runs/{quote(row['key'], safe='')}"
    kept = {name: value for name, value in given.items() if name != "page"}
    query = f"?{urlencode(kept)}" if kept else ""
    return {
        "asked": defaultdict(str, given),
        "found": found,
        "total": sum(states.values()),
        "columns": columns,
        "all_columns": summary.columns,
        "items": [
            {**_shown_item(item, columns, summary), "address": f"{address}/items/{item['place'] + 1}{query}"}
            for item in found.rows
        ],
        "has_verdicts": summary.has_verdicts,
        "choices": [choice for choice in _choices(summary, states, usual) if choice.values],
        "page_address": lambda number: f"{address}?{urlencode(given | {'page': number})}#items",
        "address": address,
    }


class Choice(NamedTuple):
    """A choice by which items are filtered or sorted.

    Args:
        name: of its field.
        title: its title.
        values: the values of the field, with their words.
        all: the words for no choice.
        is_folded: whether it is behind "more filters".
    """

    name: str
    title: str
    values: list[tuple[str, str]]
    all: str = "all"
    is_folded: bool = False


def _choices(summary: Summary, states: Mapping[str, int], usual: str) -> Iterator[Choice]:
    """Yield the choices of filters, and the ways to sort; with verdicts the other filters are folded.

    Args:
        summary: of the run.
        states: how many items are in each state.
        usual: the way to sort if nobody chooses one.
    """
    said = [(state, f"{state} {count:,}") for state, count in sorted(states.items()) if state != "ok"]
    kinds = [(str(number), kind) for number, kind in enumerate(summary.kinds, start=1)]
    verdicts, below = summary.has_verdicts, [("yes", "passed"), ("no", "below threshold")]
    if verdicts:
        yield Choice(PASSED, "Result", [("no", "failed"), ("none", "not judged"), ("yes", "passed")])
    yield Choice("show", "Show", said, f"all {sum(states.values()):,}", verdicts)
    yield Choice("failure", "Failure", kinds, "any", verdicts)
    for name in summary.measured:
        if name.endswith(".passed"):
            yield Choice(name, name.removesuffix(".passed"), below, is_folded=verdicts)
    for name, values in summary.facets.items():
        yield Choice(f"is-{name}", name, [(value, value) for value in values], is_folded=verdicts)
    sorts = [
        (f"{name}{sign}", f"{name}, {how}")
        for name in (*scores_in(summary.measured), *summary.used)
        for sign, how in _SORTS
    ]
    orders = {LATEST: "latest first", FAILED_FIRST: FAILED_FIRST, IN_ORDER: "in order"}
    possible = [*([FAILED_FIRST] if verdicts else []), IN_ORDER]
    others = [(order, orders[order]) for order in possible if order != usual]
    yield Choice("sort", "Sort", [*others, *sorts], orders[usual])


def _shown_item(item: sqlite3.Row, columns: Sequence[ItemColumn], summary: Summary) -> dict[str, Any]:
    """Return an item as a row of the table."""
    measured = json.loads(item["measured"])
    return {
        **dict(item),
        "look": item["state"].replace(" ", "-"),
        "verdict": verdict_on(measured, item["failure"], summary),
        "cells": [
            (column, *_cell(column.title, measured, item["state"], summary))
            if column.is_measured
            else (column, item[column.title], "")
            for column in columns
        ],
    }


def verdict_on(measured: Mapping[str, float], failure: str, summary: Summary) -> tuple[str, str]:
    """Return the verdict on an item with its reason, and the style of that.

    Args:
        measured: its measurements.
        failure: the kind of its failure, as the index has it; empty if nothing failed.
        summary: of its run.
    """
    why = title_of_failure(json.loads(failure)) if failure else ""
    passed = has_passed(measured)
    look = "not-measured" if passed is None else "" if passed else "missed"
    return reason_of(measured, summary.thresholds, why), look


def _cell(name: str, measured: Mapping[str, float], state: str, summary: Summary) -> tuple[str, str]:
    """Return the text and style of a measurement of an item. A score is marked by its own threshold.

    A failed item is shown to lack only measurements that all scored items have. It might not have had the others.
    """
    if name not in measured:
        if state != "failed" or name in summary.of_some:
            return "not measured", "not-measured"
        return ("not judged", "not-measured") if summary.has_verdicts else ("failed", "missed")
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

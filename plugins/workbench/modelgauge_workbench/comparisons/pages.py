"""The routes of comparisons and trends."""

import sqlite3
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from modelgauge.comparison.options import ALLOWED
from modelgauge.errors import RecordError, UsageError
from modelgauge.reports.pages.run_page import SCRIPTS
from modelgauge.wording.phrases import counted
from modelgauge_workbench.comparisons.baselines import baseline_of, compared_address
from modelgauge_workbench.comparisons.trends import show_trends
from modelgauge_workbench.index.queries import run_before
from modelgauge_workbench.index.scan import find_run, folder_of
from modelgauge_workbench.rendering import error_page, page
from modelgauge_workbench.runs.listing import shown_run
from modelgauge_workbench.workbench import Workbench, workbench_of

_MOST = 20  # runs that are compared
_SAME = {"cases": "the same test files", "data": "the same data set", "test": "the same test"}


def show_comparison(request: Request) -> Response:
    """Compare the runs of the address; one alone with its pinned baseline, or else with the last run before it.

    The first is `baseline`, else the pinned baseline of the latest if that is among them, else the oldest.
    """
    asked = request.query_params
    keys = [*dict.fromkeys(asked.getlist("runs"))]
    allow = [kind for kind in asked.getlist("allow") if kind in ALLOWED]
    workbench = workbench_of(request)
    rows = [_row_of(request, key) for key in keys]
    if len(rows) == 1:
        return _against_another(request, rows[0])
    if not 2 <= len(rows) <= _MOST:
        raise UsageError(
            f"{counted(len(rows), 'run is', 'runs are')} chosen, and 2 to {_MOST} can be compared.",
            fix="Choose runs in the list, and press 'compare'.",
        )
    rows.sort(key=lambda row: (row["began"], row["name"]))
    baseline = asked.get("baseline") or _pinned_key(workbench, rows[-1])
    rows.sort(key=lambda row: row["key"] != baseline)
    compared = workbench.comparisons.of([folder_of(workbench.index, row) for row in rows], allow)
    return page(
        request,
        "comparisons/compare.html.j2",
        title=compared.title,
        compared=compared,
        scripts=SCRIPTS,
        rows=[{**shown_run(row), "as_baseline": compared_address(keys, baseline=row["key"])} for row in rows],
        kinds=[*allow, *compared.refused],
        test=rows[0]["test"],
    )


def _pinned_key(workbench: Workbench, row: sqlite3.Row) -> str:
    """Return the key of the pinned baseline of a run; empty if it has none."""
    with suppress(RecordError):  # it is not among the runs that are compared
        pinned = baseline_of(workbench, row)
        return str(pinned["key"]) if pinned is not None else ""
    return ""


def _against_another(request: Request, row: sqlite3.Row) -> Response:
    """Lead to the comparison of a run with its pinned baseline, or else with the last run before it."""
    workbench = workbench_of(request)
    pinned = baseline_of(workbench, row)
    if pinned is not None:
        return RedirectResponse(compared_address([pinned["key"], row["key"]], baseline=pinned["key"]), 303)
    with workbench.index.reading() as db:
        before = run_before(db, row)
    if before is None:
        raise UsageError(
            f"There is no earlier run of {_SAME.get(row['subject'].split()[0])} to compare this one with.",
            fix="Choose two runs or more in the list.",
        )
    return RedirectResponse(compared_address([before["key"], row["key"]]), 303)


def _row_of(request: Request, key: str) -> sqlite3.Row:
    found = find_run(workbench_of(request).index, key)
    if found is None:
        raise UsageError(f"There is no run '{key}'.", fix="The page 'Runs' lists those that there are.")
    return found


def send_block(request: Request) -> Response:
    """A block of the data of a comparison, for the scripts of its page."""
    found = workbench_of(request).comparisons.block(request.path_params["key"], request.path_params["name"])
    if found is None:
        return error_page(request, 404, "This comparison is kept no more.", "Reload its page.")
    return FileResponse(found, media_type="text/plain")


routes = [
    Route("/compare", show_comparison),
    Route("/compare/{key}/{name}", send_block),
    Route("/trends", show_trends),
]

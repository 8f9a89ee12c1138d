"""The routes of runs."""

from starlette.routing import Route

from modelgauge_workbench.runs.changes import (
    change_notes,
    delete_run,
    pin_baseline,
    restore_run,
    share_run,
    undo_notes,
)
from modelgauge_workbench.runs.item import show_item
from modelgauge_workbench.runs.listing import list_runs, search, show_trash
from modelgauge_workbench.runs.run import show_run, stream_run

_CHANGES = {"notes": change_notes, "undo": undo_notes, "delete": delete_run, "baseline": pin_baseline}

routes = [
    Route("/runs", list_runs),
    Route("/items", search),
    Route("/trash", show_trash),
    Route("/runs/restore", restore_run, methods=["POST"]),
    Route("/runs/{run}", show_run),
    Route("/runs/{run}/live", stream_run),
    Route("/runs/{run}/report.html", share_run),
    Route("/runs/{run}/items/{number}", show_item),
    *(Route(f"/runs/{{run}}/{name}", change, methods=["POST"]) for name, change in _CHANGES.items()),
]

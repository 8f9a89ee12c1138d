"""The routes of runs."""

from __future__ import annotations

from starlette.routing import Route

from modelgauge_workbench.runs.listing import list_runs

routes = [
    Route("/runs", list_runs),
]

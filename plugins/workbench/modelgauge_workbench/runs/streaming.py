"""The stream of a run that is going on: what its page shows now, again and again until it has ended."""

import json

from starlette.requests import Request
from starlette.responses import Response

from modelgauge_workbench.index.rows import GOING_ON
from modelgauge_workbench.rendering import rendered
from modelgauge_workbench.runs.live import events, progress_of
from modelgauge_workbench.runs.run import items_data, run_row, running_summary
from modelgauge_workbench.workbench import workbench_of


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

    return events(look)

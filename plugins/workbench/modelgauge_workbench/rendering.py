"""Pages out of templates: those of the workbench, and the components of `modelgauge.reports`."""

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from modelgauge.reports.pages.assets import environment
from modelgauge_workbench.workbench import workbench_of

ROOMS = (
    ("Runs", "/runs"),
    ("Datasets", "/datasets"),
    ("Ratings", "/ratings"),
    ("Trends", "/trends"),
    ("Start a run", "/starts"),
)
"""What the head of each page leads to: names and addresses."""


def rendered(request: Request, template: str, **data: Any) -> str:
    """The HTML of a template.

    Every template has `redact`, `read_only`, `path` (of the request) and `csrf`, which each form must hold:
    `<input type="hidden" name="csrf" value="{{ csrf }}">`.

    Args:
        request: that is answered.
        template: its name, such as "runs/list.html.j2".
        data: what the template shows.
    """
    workbench = workbench_of(request)
    shared = {
        "rooms": ROOMS,
        "redact": workbench.redact,
        "read_only": workbench.read_only,
        "csrf": request.app.state.access.csrf,
        "path": request.url.path,
    }
    return environment(__package__).get_template(template).render(shared | data)


def page(request: Request, template: str, *, status: int = 200, **data: Any) -> HTMLResponse:
    """The answer to a request; for the arguments see `rendered`."""
    return HTMLResponse(rendered(request, template, **data), status)


def error_page(request: Request, status: int, problem: str, fix: str) -> HTMLResponse:
    """The answer to a request that cannot be served: what is wrong, and what to do."""
    return page(request, "error.html.j2", status=status, problem=problem, fix=fix)

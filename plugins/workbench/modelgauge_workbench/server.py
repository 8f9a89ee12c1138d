"""The server: the routes of all rooms behind what keeps strangers out."""

import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from modelgauge.errors import ModelGaugeError
from modelgauge_workbench.comparisons import pages as comparisons
from modelgauge_workbench.connections import TimedConnection
from modelgauge_workbench.datasets import pages as datasets
from modelgauge_workbench.people import pages as people
from modelgauge_workbench.rendering import error_page, page
from modelgauge_workbench.runs import pages as runs
from modelgauge_workbench.runs.live import Looks
from modelgauge_workbench.safety import LOGIN, Access, Safety, cookie_of, form_of
from modelgauge_workbench.starts import pages as starts
from modelgauge_workbench.workbench import Workbench, workbench_of

_ROOMS = (runs, datasets, people, starts, comparisons)
_LARGEST_BODY = 256 << 20
_THREADS = 16  # that answer: more take memory, and make no answer sooner
_GRACE = 2  # seconds for answers under way when the server is stopped


def make_app(workbench: Workbench, access: Access) -> Starlette:
    """The application.

    Args:
        workbench: what is shown.
        access: who may come in.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        with workbench.watching():
            yield

    app = Starlette(
        routes=[
            Route("/", lambda _: RedirectResponse("/runs", 303)),
            Route(LOGIN, _login, methods=["GET", "POST"]),
            *(route for room in _ROOMS for route in room.routes),
            Mount("/static", StaticFiles(packages=[(str(__package__), "static")])),
            Mount("/report", StaticFiles(packages=[("modelgauge.reports.pages", "static")])),
        ],
        middleware=[Middleware(Safety, access=access, read_only=workbench.read_only)],
        exception_handlers={
            HTTPException: _http_error,
            ModelGaugeError: _own_error,
            sqlite3.DatabaseError: _index_error,
            Exception: _bug,
        },
        lifespan=lifespan,
        max_body_size=_LARGEST_BODY,
    )
    app.state.workbench, app.state.access = workbench, access
    return app


def run_server(workbench: Workbench, access: Access, listening: socket.socket) -> None:
    """Serve until the process is told to stop.

    Args:
        workbench: what is shown.
        access: who may come in.
        listening: where visitors come in.
    """
    config = uvicorn.Config(
        app := make_app(workbench, access),
        http=TimedConnection,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    server = uvicorn.Server(config)
    app.state.looks = Looks(lambda: server.should_exit)
    server.run(sockets=[listening])


def _login(request: Request) -> Response:
    """Take the token, and give a cookie for it."""
    access: Access = request.app.state.access
    wanted = request.query_params.get("next", "/")
    if not wanted.startswith("/") or wanted.startswith(("//", "/\\")):  # another site
        wanted = "/"
    if request.method == "POST" and access.is_token(str(form_of(request).get("token", ""))):
        answer = RedirectResponse(wanted, 303)
        secure = request.url.scheme == "https"
        name = cookie_of(request)
        answer.set_cookie(name, access.session(), httponly=True, samesite="strict", secure=secure)
        return answer
    refused = request.method == "POST"
    return page(request, "login.html.j2", status=401 if refused else 200, refused=refused)


# --- what cannot be served ------------------------------------------------------------------------------------------


def _http_error(request: Request, error: Exception) -> Response:
    """An error of HTTP. A `detail` of our own may say what to do as well, after the first sentence."""
    status = getattr(error, "status_code", 500)
    detail = str(getattr(error, "detail", ""))
    if detail in ("", HTTPStatus(status).phrase):
        detail = "There is no such page" if status == 404 else HTTPStatus(status).phrase
    problem, _, fix = detail.partition(". ")
    fix = fix or ("Look for it in the list of runs." if status == 404 else "Go back and try again.")
    return error_page(request, status, f"{problem.rstrip('.')}.", fix)


def _own_error(request: Request, error: Exception) -> Response:
    problem, fix = (error.problem, error.fix) if isinstance(error, ModelGaugeError) else (str(error), "")
    return error_page(request, 400, problem, fix)


def _index_error(request: Request, error: Exception) -> Response:
    if type(error) is not sqlite3.DatabaseError:  # one of its subclasses: a full disk, say
        raise error
    workbench_of(request).index.broken.set()
    fix = "It is made again from the files: reload the page in a moment."
    return error_page(request, 503, "The index of runs is damaged.", fix)


def _bug(request: Request, error: Exception) -> Response:
    """An error of the workbench itself; the terminal shows its traceback."""
    problem = f"The workbench failed: {type(error).__name__}."
    return error_page(
        request, 500, problem, "The terminal of `modelgauge serve` says why. Go back and try again."
    )

"""The routes of starting runs: the form with the queue, and a page for each job."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from modelgauge.cli.commands.measure import run_test
from modelgauge.cli.run_file import list_keys
from modelgauge.documents.document import Block, Sentences, TableBlock, TableColumn, Text
from modelgauge.engine.planning import Plan
from modelgauge.engine.run_files.folder import RUNS, RunFolder
from modelgauge.errors import ModelGaugeError, UsageError
from modelgauge.reports.plans import BESIDE, failing_in_words, plans_table, sum_of_plans
from modelgauge.runs.recorded_run import read_state
from modelgauge_workbench.index.scan import find_run, folder_of
from modelgauge_workbench.rendering import page
from modelgauge_workbench.safety import form_of
from modelgauge_workbench.starts.jobs import Job, find_job, jobs_of, new_job
from modelgauge_workbench.starts.order import DEMO, NAMES, OPTIONS, Order
from modelgauge_workbench.starts.queue import Queue
from modelgauge_workbench.workbench import Workbench, workbench_of

_MOST_LISTED = 30


# --- the form and the queue -----------------------------------------------------------------------------


def show_form(request: Request) -> Response:
    """The form, empty or filled from an earlier job (`job`), from a run (`run`) or by the address itself."""
    workbench, asked = workbench_of(request), request.query_params
    if asked.get("job"):
        job = find_job(workbench.data_dir, asked["job"])
        if job.resumes() is not None:
            raise UsageError(
                "This job resumed a run.", fix="Open that run, and choose 'Run again with changes' there."
            )
        order = Order.of_run_file(job.run_file.read_text(encoding="utf-8"), workbench.shelf)
    elif asked.get("run"):
        order = Order.of_manifest(_folder_of(request, asked["run"]).read_manifest(), workbench.shelf)
    else:
        order = Order.of_fields({name: asked.getlist(name) for name in asked})
    return _form_page(request, order, {})


def order_run(request: Request) -> Response:
    """Make a job of the form, and show what it would take; or the form again, with what is wrong beside its fields."""
    workbench, form = workbench_of(request), form_of(request)
    order = Order.of_fields({name: [str(value) for value in form.getlist(name)] for name in form})
    problems = order.problems(workbench.shelf)
    if problems:
        return _form_page(request, order, problems)
    return _estimated(request, text=order.run_file(workbench.shelf))


def order_demo(request: Request) -> Response:
    """Start the demo run at once: it costs nothing."""
    workbench = workbench_of(request)
    job = new_job(workbench.data_dir, text=Order.of_fields(DEMO).run_file(workbench.shelf))
    workbench.queue.approve(job)
    return _to(job)


def order_resume(request: Request) -> Response:
    """Make a job that resumes a run, and show what is left would take; it starts when somebody says so."""
    folder = _folder_of(request, str(form_of(request).get("run", "")))
    return _estimated(request, resumes=folder.path)


def _estimated(request: Request, *, text: str | None = None, resumes: Path | None = None) -> Response:
    workbench = workbench_of(request)
    job = new_job(workbench.data_dir, text=text, resumes=resumes)
    workbench.queue.estimate(job)
    return _to(job)


def _form_page(request: Request, order: Order, problems: dict[str, list[str]]) -> Response:
    workbench, keys = workbench_of(request), list_keys(run_test)

    def field(name: str, label: str, about: str | None, texts: Sequence[str]) -> dict[str, Any]:
        return {
            "name": name,
            "label": label,
            "help": about,
            "texts": texts,
            "problems": problems.get(name, []),
        }

    def texts(name: str) -> Sequence[str]:
        given = order.names.get(name, ())
        return given if name == "judge" and given else [*given, ""]

    rows = [_row(workbench, job) for job in jobs_of(workbench.data_dir)[:_MOST_LISTED]]
    return page(
        request,
        "starts/form.html.j2",
        names=[field(name, *about, texts(name)) for name, about in NAMES.items()],
        options=[
            field(name, label, keys[name].help, [order.options.get(name, "")])
            for name, label in OPTIONS.items()
        ],
        wrong=len(problems),
        suggestions=workbench.shelf.suggestions(),
        jobs=[_jobs_table(rows)] if rows else [],
        is_live=any(row["state"] in ("running", "queued") for row in rows),
        has_demo=workbench.shelf.has_demo(),
    )


def _jobs_table(rows: Sequence[dict[str, str]]) -> TableBlock:
    """Return a row for each job."""
    looks = [
        "headline missed" if row["state"] in ("failed", "killed", "stopped") else "headline" for row in rows
    ]
    return TableBlock(
        [
            TableColumn("Job", [Text(row["title"], f"/starts/{row['id']}") for row in rows], kind="name"),
            TableColumn(
                "State", [Text(row["words"], look=look) for row, look in zip(rows, looks, strict=True)]
            ),
            TableColumn("Ordered (UTC)", [row["when"] for row in rows]),
        ],
        label="Table of jobs",
        kind="rows",
    )


def _row(workbench: Workbench, job: Job) -> dict[str, str]:
    """A job in the list; one whose files are damaged says so, and hides no other."""
    try:
        state = workbench.queue.state(job)
        when = str(job.facts().get("created")).replace("T", " ")[:16]
        about = {
            "title": _title(workbench, job),
            "state": state,
            "words": _words(workbench.queue, job),
            "when": when,
        }
    except (ModelGaugeError, OSError) as error:
        about = {"title": "a damaged job", "state": "failed", "words": str(error), "when": ""}
    return {"id": job.id, **about}


def _title(workbench: Workbench, job: Job) -> str:
    run = job.resumes()
    if run is not None:
        return f"resume {run.name}"
    names = Order.of_run_file(job.run_file.read_text(encoding="utf-8"), workbench.shelf).names
    asked = ", ".join([*names.get("tests", ()), *names.get("datasets", ())])
    return f"{asked} on {', '.join(names.get('suts', ()))}"


def _words(queue: Queue, job: Job) -> str:
    state = queue.state(job)
    if state == "queued" and not queue.waits(job):
        return "was queued when the server stopped: it starts when you say so"
    if state == "running" and queue.cancelled_times(job):
        return "is being cancelled: calls under way get a few seconds"
    return job.words(state)


# --- a job ----------------------------------------------------------------------------------------------


def show_job(request: Request) -> Response:
    """What a job would take, what became of it, its runs, and the end of its output."""
    workbench, job = workbench_of(request), _job_of(request)
    state = workbench.queue.state(job)
    found = job.plans() or {}
    plans = [Plan.model_validate(plan) for plan in found.get("plans", ())]
    run = job.resumes()
    is_estimating = workbench.queue.is_estimating(job)
    folder = workbench.data_dir if run is None else run.parent.parent
    return page(
        request,
        "starts/job.html.j2",
        job=job,
        title=_title(workbench, job),
        state=state,
        words=_words(workbench.queue, job),
        waits=workbench.queue.waits(job),
        is_estimating=is_estimating,
        is_live=is_estimating or state in ("running", "queued"),
        estimate=[*_estimate(plans, found.get("left_out", []))] if plans else [],
        estimate_problem=found.get("problem", ""),
        runs=[_run(RunFolder(folder / RUNS / run_id)) for run_id in sorted(job.run_ids())],
        log=job.log_end(),
        run_file=None if run is not None else job.run_file.read_text(encoding="utf-8"),
        resumes=run is not None,
    )


def _estimate(plans: Sequence[Plan], left_out: Sequence[dict[str, Any]]) -> Iterator[Block]:
    """Show what each pair takes, and what is left out or will fail."""
    yield Sentences([f"{sum_of_plans(plans)} {BESIDE}"])
    yield plans_table(plans, has_tokens=True)
    yield Sentences(
        [
            f"Left out: {pair['test_uid']} on {pair['sut_label'] or pair['sut_uid']}. {pair['reason']}"
            for pair in left_out
        ]
    )
    yield Sentences([*failing_in_words(plans)], look="alarm")


def _run(folder: RunFolder) -> dict[str, str]:
    """A run of a job, as its page shows it."""
    try:
        state, _ = read_state(folder)
        manifest = folder.read_manifest()
    except ModelGaugeError as error:
        return {"id": folder.run_id, "about": str(error), "state": "damaged"}
    about = f"{manifest.get('test_uid')} on {manifest.get('sut_label') or manifest.get('sut_uid')}"
    return {"id": folder.run_id, "about": about, "state": state}


def _action(act: Callable[[Queue, Job], object]) -> Callable[[Request], Response]:
    """A form of the page of a job: what it does with the job; then the page is shown again."""

    def answer(request: Request) -> Response:
        job = _job_of(request)
        act(workbench_of(request).queue, job)
        return _to(job)

    return answer


def _job_of(request: Request) -> Job:
    return find_job(workbench_of(request).data_dir, request.path_params["job"])


def _folder_of(request: Request, key: str) -> RunFolder:
    """The folder of a run by the key of its address.

    Raises:
        UsageError: there is none.
    """
    index = workbench_of(request).index
    found = find_run(index, key)
    if found is None:
        raise UsageError("There is no such run.", fix="The page 'Runs' lists those that there are.")
    return folder_of(index, found)


def _to(job: Job) -> Response:
    return RedirectResponse(f"/starts/{job.id}", 303)


_ACTIONS = {
    "estimate": Queue.estimate,
    "start": Queue.approve,
    "cancel": Queue.cancel,
    "put-back": Queue.put_back,
}

routes = [
    Route("/starts", show_form),
    Route("/starts", order_run, methods=["POST"]),
    Route("/starts/demo", order_demo, methods=["POST"]),
    Route("/starts/resume", order_resume, methods=["POST"]),
    Route("/starts/{job}", show_job),
    *(Route(f"/starts/{{job}}/{name}", _action(act), methods=["POST"]) for name, act in _ACTIONS.items()),
]

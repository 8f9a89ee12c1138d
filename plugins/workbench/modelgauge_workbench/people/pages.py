"""The routes of ratings: choosing runs, the queue, what raters say, guidelines, and measuring by ratings."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from modelgauge.data.item_records import ItemRecord
from modelgauge.documents.document import TableBlock, TableColumn, Text
from modelgauge.errors import RecordError, UsageError
from modelgauge.reports.item_texts import expected_text
from modelgauge.rerun.again import rescore
from modelgauge.runs.ratings import Rating
from modelgauge_workbench.index.queries import find_runs, whole_number
from modelgauge_workbench.people.guidelines import Guidelines, OtherVersionError, add_version, versions
from modelgauge_workbench.people.queue import DRAWN, Queue, RatedRun, rated_run, shown_answer
from modelgauge_workbench.people.results import show_agreement, show_calibration
from modelgauge_workbench.rendering import page
from modelgauge_workbench.runs.listing import shown_run
from modelgauge_workbench.safety import form_of
from modelgauge_workbench.workbench import workbench_of

_LONGEST_NAME, _LONGEST_REASON = 100, 20_000
_SCORES = {str(score): score for score in range(1, 6)} | {"skip": None}


def queue_of(request: Request) -> Queue:
    """The queue that an address names."""
    drawn = whole_number(request.query_params.get("n", ""))
    keys = request.query_params.getlist("run")
    return Queue(workbench_of(request), keys, DRAWN if drawn is None else max(1, drawn))


def _list_runs(request: Request) -> Response:
    """Answer with the runs whose answers can be rated, and how far each is."""
    asked = {"q": request.query_params.get("q", "")}
    with workbench_of(request).index.reading() as db:
        found = find_runs(db, asked)
    workbench = workbench_of(request)
    runs = [shown_run(row) | _rated(rated_run(workbench, row)) for row in found.rows]
    return page(
        request, "people/list.html.j2", title="Ratings", runs=runs, found=found, asked=asked, drawn=DRAWN
    )


def _rated(run: RatedRun) -> dict[str, Any]:
    """How many answers of a run are rated; or why its ratings cannot be read, and what to do."""
    try:
        return {"rated": run.rated, "problem": ""}
    except RecordError as error:  # the others can be rated
        return {"rated": 0, "problem": f"{error.problem} {error.fix}"}


def _show_queue(request: Request) -> Response:
    """Answer with the first page of a queue: guidelines, who rates, and how far they are."""
    queue = queue_of(request)
    kept = versions(workbench_of(request).data_dir, queue.id)
    return _queue_page(request, queue, kept)


def _queue_page(
    request: Request, queue: Queue, kept: list[Guidelines], *, status: int = 200, mine: str | None = None
) -> Response:
    measured = request.query_params.getlist("measured")
    return page(
        request,
        "people/queue.html.j2",
        status=status,
        title="Rate answers",
        queue=queue,
        kept=kept,
        guidelines=kept[-1],
        mine=mine,
        measured=measured,
        progress=[_progress(request, queue)],
    )


def _progress(request: Request, queue: Queue) -> TableBlock:
    """Show how many answers each rater has seen; names lead to the next answer."""
    can_rate, of = not workbench_of(request).read_only, len(queue.answers)
    raters = [Text(rater, queue.address("rate", rater=rater) if can_rate else "") for rater in queue.progress]
    seen = [f"{number} of {of}" for number in queue.progress.values()]
    columns = [TableColumn("Rater", raters, kind="name"), TableColumn("Seen", seen, kind="number")]
    return TableBlock(columns, label="Progress of the raters", kind="rows narrow")


# --- rating ----------------------------------------------------------------------------------------------------------


def _show_answer(request: Request) -> Response:
    """Answer with the next answer that a person has not rated, or the one that the address names."""
    queue, rater = queue_of(request), _rater(request.query_params.get("rater"))
    rated, order = queue.rated_by(rater), queue.order_of(rater)
    unrated = next((answer for answer in order if answer.key not in rated), None)
    wanted = request.query_params.get("answer")
    answer = queue.answer(wanted) if wanted else unrated
    kept = versions(workbench_of(request).data_dir, queue.id)
    shown: dict[str, Any] = {}
    if answer is not None:
        record = answer.record()
        completions, digests = shown_answer(record)
        shown = {
            "prompts": [prompt.prompt.parts for prompt in record.test_item.prompts],
            "answers": [completion.text for completion in completions],
            "digests": digests,
            "expected": _expected(record),
            "earlier": rated.get(answer.key),
        }
    return page(
        request,
        "people/rate.html.j2",
        title="Rate answers",
        queue=queue,
        rater=rater,
        answer=answer,
        seen=len(rated),
        skipped=sum(rating.score is None for rating in rated.values()),
        guidelines=kept[-1],
        **shown,
    )


def _expected(record: ItemRecord) -> str:
    item = record.test_item.model_dump(mode="json")
    return expected_text([item["context"], *(prompt["context"] for prompt in item["prompts"])])


def _rate(request: Request) -> Response:
    """Keep what a person said of an answer, and go on with the next."""
    queue, form = queue_of(request), form_of(request)
    rater, answer = _rater(request.query_params.get("rater")), queue.answer(str(form.get("answer")))
    if str(form.get("score")) not in _SCORES:
        raise UsageError(
            "The form says no rating from 1 to 5, and does not skip.", fix="Go back and choose one."
        )
    _, digests = shown_answer(answer.record())
    if digests != form.get("digests"):
        raise RecordError(
            "The answer has changed since it was shown.", fix="Go back, reload the page and look again."
        )
    answer.run.file.add(
        Rating(
            item_id=answer.item_id,
            answers=digests.split(","),
            rater=rater,
            score=_SCORES[str(form.get("score"))],
            reason=str(form.get("reason", "")).strip()[:_LONGEST_REASON] or None,
            guidelines=str(form.get("guidelines", "")) or None,
            order=len(queue.rated_by(rater)),
        )
    )
    return RedirectResponse(queue.address("rate", rater=rater), 303)


def _undo(request: Request) -> Response:
    """Take back a person's last rating, and show its answer again."""
    queue, rater = queue_of(request), _rater(request.query_params.get("rater"))
    key = queue.undo(rater)
    again = {} if key is None else {"answer": key}
    return RedirectResponse(queue.address("rate", rater=rater, **again), 303)


def _rater(name: str | None) -> str:
    """The name of who rates.

    Raises:
        UsageError: there is none.
    """
    clean = " ".join((name or "").split())
    if not clean or len(clean) > _LONGEST_NAME:
        raise UsageError(
            f"A rater has a name of 1 to {_LONGEST_NAME} characters.",
            fix="Go back and write one, such as 'ann'.",
        )
    return clean


# --- guidelines and measuring ----------------------------------------------------------------------------------------


def _write_guidelines(request: Request) -> Response:
    """Keep a new version of the guidelines, unless somebody else wrote one meanwhile."""
    queue, form = queue_of(request), form_of(request)
    text = str(form.get("text", "")).replace("\r\n", "\n")
    folder = workbench_of(request).data_dir
    kept, before = versions(folder, queue.id), str(form.get("before"))
    made = Guidelines(text=text, author=str(form.get("author", "")).strip())
    try:
        if (before, text) != (kept[-1].digest, kept[-1].text):
            add_version(folder, queue.id, made, before)
    except OtherVersionError:
        return _queue_page(request, queue, versions(folder, queue.id), status=409, mine=text)
    return RedirectResponse(queue.address("queue"), 303)


def _measure(request: Request) -> Response:
    """Measure the answers of the runs by their ratings, in new runs."""
    queue = queue_of(request)
    made = [record.run_id for run in queue.runs for record in rescore(run.folder.path, ratings=True)]
    return RedirectResponse(
        "&".join([queue.address("queue"), *(f"measured={run_id}" for run_id in made)]), 303
    )


routes = [
    Route("/ratings", _list_runs),
    Route("/ratings/queue", _show_queue),
    Route("/ratings/rate", _show_answer),
    Route("/ratings/rate", _rate, methods=["POST"]),
    Route("/ratings/undo", _undo, methods=["POST"]),
    Route("/ratings/guidelines", _write_guidelines, methods=["POST"]),
    Route("/ratings/measure", _measure, methods=["POST"]),
    Route("/ratings/agreement", lambda request: show_agreement(request, queue_of(request))),
    Route("/ratings/calibration", lambda request: show_calibration(request, queue_of(request))),
]

"""What the table of a data set, and programs, send and get as JSON: versions, rows, checks, and rows of items."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.item_records import item_from_json
from modelgauge.data.responses import SUTCompletion
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.dataset_test import as_asked
from modelgauge.datasets.reading import restore_members
from modelgauge.datasets.rows import make_row
from modelgauge.datasets.versions import Version, VersionsFolder
from modelgauge.errors import (
    DatasetConflictError,
    InputFileError,
    ModelGaugeError,
    UnknownNameError,
    UsageError,
)
from modelgauge.metrics.judged_cases import NO_OUTPUT, case_of
from modelgauge_workbench.datasets.merging import merged
from modelgauge_workbench.index.item_queries import item_of
from modelgauge_workbench.index.queries import whole_number
from modelgauge_workbench.runs.item import record_of
from modelgauge_workbench.runs.run import place_of, run_row
from modelgauge_workbench.safety import body_of
from modelgauge_workbench.workbench import workbench_of


def store_of(request: Request) -> VersionsFolder:
    """The versions in the folder that the workbench writes to."""
    return VersionsFolder(workbench_of(request).data_dir)


def number_of(request: Request, name: str = "version") -> int | None:
    """The number of a version that an address names; None if it names none."""
    return whole_number(request.query_params.get(name, ""))


def as_json(handler: Callable[[Request], Any]) -> Callable[[Request], Response]:
    """Answer with JSON, also where something is wrong: what, and what to do."""

    def as_answer(request: Request) -> Response:
        try:
            answer = handler(request)
            return answer if isinstance(answer, Response) else JSONResponse(answer)
        except ModelGaugeError as error:
            status = 404 if isinstance(error, UnknownNameError) else 400
            return JSONResponse({"problem": error.problem, "fix": error.fix}, status)

    return as_answer


def versions_json(request: Request) -> Any:
    """All versions of a data set."""
    found = store_of(request).versions(request.path_params["alias"])
    return {"versions": [version.model_dump(mode="json") for version in found]}


def rows_json(request: Request) -> Any:
    """A version and its rows."""
    version, rows = store_of(request).rows(request.path_params["alias"], number_of(request))
    return {"version": version.model_dump(mode="json"), "rows": rows}


def check_json(request: Request) -> Any:
    """What is wrong with rows: each with its place and the problem."""
    return {"problems": problems_of(_sent(request)["rows"])}


def save(request: Request) -> Response:
    """Keep a new version; where somebody else saved one meanwhile, answer with what both did."""
    store, alias, sent = store_of(request), request.path_params["alias"], _sent(request)
    rows, parent = sent["rows"], sent.get("parent")
    if found := problems_of(rows):
        where = f"Row {found[0]['row'] + 1} cannot be saved: {found[0]['problem']}"
        return JSONResponse({"problem": where, "fix": found[0]["fix"], "problems": found}, 400)
    dataset = EvaluationDataset()
    dataset.goldens, dataset.test_cases = restore_members(rows, alias)
    made = Version(
        number=1,
        rows=0,
        content_hash=dataset.content_hash,
        parent=parent,
        author=str(sent.get("author", "")),
        message=str(sent.get("message", "")),
    )
    try:
        return JSONResponse({"version": store.add(alias, rows, made).model_dump(mode="json")}, 201)
    except DatasetConflictError as error:
        answer: dict[str, Any] = {"problem": error.problem, "fix": error.fix}
        if "origins" in sent and store.versions(alias):  # none if it was renamed or deleted meanwhile
            answer |= _both(store, alias, parent, rows, sent["origins"])
        return JSONResponse(answer, 409)


def _both(
    store: VersionsFolder, alias: str, parent: int | None, rows: Sequence[Any], origins: Sequence[int | None]
) -> dict[str, Any]:
    latest, theirs = store.rows(alias)
    base: Sequence[Any] = [] if parent is None else store.rows(alias, parent)[1]
    if len(origins) != len(rows) or not all(origin is None or 0 <= origin < len(base) for origin in origins):
        raise UsageError("The request has no valid list of origins.", fix="Reload the page.")
    found = merged([*map(dict, base)], [*map(dict, theirs)], [*map(dict, rows)], origins)
    return {
        "latest": latest.model_dump(mode="json"),
        "theirs": theirs,
        "rows": found.rows,
        "origins": found.origins,
        "conflicts": [conflict._asdict() for conflict in found.conflicts],
    }


def _sent(request: Request) -> dict[str, Any]:
    """The JSON object of a request, with rows.

    Raises:
        UsageError: it is none.
    """
    try:
        sent = json.loads(body_of(request))
        rows, numbers = sent["rows"], [sent.get("parent"), *sent.get("origins", ())]
        if (
            isinstance(rows, list)
            and all(isinstance(row, dict) for row in rows)
            and all(type(number) in (int, type(None)) for number in numbers)
        ):
            return dict(sent)
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        pass
    raise UsageError(
        "The request says no rows.", fix='Send {"rows": [{"input": "…"}], "parent": 1, "message": "…"}.'
    )


def problems_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What keeps rows from being goldens: the place of each, the problem, and what to do.

    Args:
        rows: as JSON.
    """
    if not rows or _problem_of(rows) is None:
        return []
    alone = _wrong([row] for row in rows)
    return alone or _wrong([rows[0], row] for row in rows)  # single-turn among multi-turn


def _wrong(parts: Iterable[list[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    found = ((place, _problem_of(part)) for place, part in enumerate(parts))
    return [
        {"row": at, "problem": error.problem, "fix": error.fix} for at, error in found if error is not None
    ]


def _problem_of(rows: Sequence[Mapping[str, Any]]) -> ModelGaugeError | None:
    try:
        goldens, cases = restore_members(rows, "the table")
        EvaluationDataset(goldens, test_cases=cases)
    except (ModelGaugeError, TypeError) as error:
        fix = "Put the other kind into a data set of its own."
        return error if isinstance(error, ModelGaugeError) else InputFileError(str(error), fix=fix)
    return None


def golden_json(request: Request) -> Any:
    """Return an item of a run as a row: what was asked and expected; with `answer` in the address also its answer."""
    workbench, run = workbench_of(request), run_row(request)
    with workbench.index.reading() as db:
        item = item_of(db, run["number"], place_of(request))
    if item is None:
        raise UnknownNameError("The run has no such item.", fix="Choose one from the page of the run.")
    record = item_from_json(json.dumps(record_of(workbench, run, item)).encode(), run["name"])
    answered = [
        (interaction.prompt, completion.completion)
        for interaction in record.interactions
        for completion in interaction.response.completions
    ]
    unanswered = (record.test_item.prompts[0], SUTCompletion(text="", metadata=NO_OUTPUT))
    if request.query_params.get("answer") and answered:
        row = make_row(case_of(*answered[0]))
    else:
        row = _without_answer(make_row(as_asked(case_of(*unanswered))))
    return {"row": {**row, "additional_metadata": {"run": run["name"], "item": item["id"]}}}


def _without_answer(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what an app said."""
    turns = row.get("turns")
    if turns and len(turns) > 1 and turns[-1]["role"] == "assistant":
        row = {**row, "turns": turns[:-1]}
    return {name: value for name, value in row.items() if name not in RUNTIME_FIELDS}

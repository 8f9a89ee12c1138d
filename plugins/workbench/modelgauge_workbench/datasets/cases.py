"""Test cases: the goldens of a saved version, and what runs answered to each. Nothing here can be changed any more."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from modelgauge.datasets.versions import Row, check_alias
from modelgauge.reports.item_texts import as_text
from modelgauge.reports.pages.item_rows import SNIPPET
from modelgauge_workbench.datasets.links import runs_of_versions
from modelgauge_workbench.datasets.table import number_of, store_of
from modelgauge_workbench.index.item_queries import item_of
from modelgauge_workbench.index.queries import page_of, whole_number
from modelgauge_workbench.index.scan import find_run
from modelgauge_workbench.rendering import page
from modelgauge_workbench.workbench import Workbench, workbench_of

_PAGE = 50
_MOST_ANSWERED = 8  # runs whose answers stand beside each golden
_SAID_FIRST = ("input", "scenario", "turns")


def show_cases(request: Request) -> Response:
    """Answer with the goldens of a version and what runs answered to them; `run` and `item` choose the page of one."""
    workbench, store = workbench_of(request), store_of(request)
    alias = check_alias(request.path_params["alias"])
    version, rows = store.rows(alias, number_of(request))
    versions = store.versions(alias)
    runs = runs_of_versions(workbench, alias, versions).get(version.number, [])
    questions = [_question(row) for row in rows]
    chosen = _row_of_item(workbench, request.query_params, questions)
    number = page_of(request.query_params) if chosen is None else chosen // _PAGE + 1
    first = (number - 1) * _PAGE
    answers = _answers(workbench, runs[:_MOST_ANSWERED], questions[first : first + _PAGE], first)
    return page(
        request,
        "datasets/cases.html.j2",
        title=f"{alias}, version {version.number}",
        alias=alias,
        address=f"/datasets/{quote(alias, safe='')}",
        version=version,
        latest=versions[-1],
        runs=runs,
        chosen=chosen,
        cases=[
            _shown_case(first + place, row, found)
            for place, (row, found) in enumerate(zip(rows[first : first + _PAGE], answers, strict=True))
        ],
        most_answered=_MOST_ANSWERED,
        number=number,
        pages=max(1, -(-len(rows) // _PAGE)),
    )


def _question(row: Row) -> str:
    """What is asked in a row, as the index has it of items: its input, or what the user says last."""
    said = [turn["content"] for turn in row.get("turns") or () if turn["role"] == "user"]
    return str(row.get("input") or next(reversed(said), ""))[:SNIPPET]


def _row_of_item(workbench: Workbench, asked: Mapping[str, str], questions: Sequence[str]) -> int | None:
    """The place of the row that an item of a run is of."""
    number = whole_number(asked.get("item", ""))
    run = find_run(workbench.index, asked.get("run", ""))
    with workbench.index.reading() as db:
        item = item_of(db, run["number"], number - 1) if run and number else None
    if item is None:
        return None
    same = [place for place, question in enumerate(questions) if question == item["question"]]
    return item["place"] if item["place"] in same else next(iter(same), None)


def _answers(
    workbench: Workbench, runs: Sequence[Mapping[str, Any]], questions: Sequence[str], first: int
) -> list[list[dict[str, Any]]]:
    """What runs answered to each question: of those that ask the same, the one at its own place in the run."""
    found: list[list[dict[str, Any]]] = [[] for _ in questions]
    marks = ", ".join("?" * len(questions))
    query = f"SELECT * FROM items WHERE run = ? AND question IN ({marks}) ORDER BY place"  # noqa: S608  marks only
    with workbench.index.reading() as db:
        for run in runs:
            by_question: dict[str, list[sqlite3.Row]] = {}
            for item in db.execute(query, [run["number"], *questions]):
                by_question.setdefault(item["question"], []).append(item)
            for place, question in enumerate(questions):
                same = by_question.get(question, []) if question else []
                own = [row for row in same if row["place"] == first + place]
                found[place] += [_shown_answer(run, row) for row in own or same]
    return found


def _shown_answer(run: Mapping[str, Any], item: sqlite3.Row) -> dict[str, Any]:
    return {
        "address": f"/runs/{quote(run['key'], safe='')}/items/{item['place'] + 1}",
        "run": f"{run['answered_by']}, {run['when']}",
        "answer": item["answer"],
        "state": item["state"],
    }


def _shown_case(place: int, row: Row, answers: list[dict[str, Any]]) -> dict[str, Any]:
    title = next((row[name] for name in _SAID_FIRST if row.get(name)), "")
    fields = {name: as_text(value) for name, value in row.items() if value is not title}
    return {"place": place, "title": as_text(title), "answers": answers, "fields": fields}

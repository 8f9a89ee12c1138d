"""The routes of data sets: their list, the table of one, its versions, differences, restoring and files."""

from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.dataset_files import FILE_TYPES, file_text
from modelgauge.datasets.differences import differences
from modelgauge.datasets.versioned import restored
from modelgauge.datasets.versions import check_alias
from modelgauge.errors import ModelGaugeError, UsageError
from modelgauge.reports.item_texts import as_text
from modelgauge.runs.notes import Notes
from modelgauge_workbench.comparisons.baselines import shown_baseline
from modelgauge_workbench.datasets.cases import show_cases
from modelgauge_workbench.datasets.importing import import_json
from modelgauge_workbench.datasets.links import runs_of_versions
from modelgauge_workbench.datasets.managing import (
    address_of,
    copy_dataset,
    delete_dataset,
    rename_dataset,
    tag_dataset,
    undelete_dataset,
)
from modelgauge_workbench.datasets.table import (
    as_json,
    check_json,
    golden_json,
    number_of,
    rows_json,
    save,
    store_of,
    versions_json,
)
from modelgauge_workbench.index.queries import whole_number
from modelgauge_workbench.rendering import page
from modelgauge_workbench.safety import form_of
from modelgauge_workbench.workbench import workbench_of


def _list_datasets(request: Request) -> Response:
    """Answer with the data sets that were saved, the latest version of each."""
    store, found = store_of(request), list[dict[str, Any]]()
    for alias in store.aliases():
        try:
            known = {"alias": alias, "latest": store.version(alias), "address": address_of(alias)}
            found.append(known | {"tags": Notes.of(store.folder(alias)).tags})
        except ModelGaugeError as error:  # it is damaged; the others can be opened
            found.append({"alias": alias, "problem": f"{error.problem} {error.fix}"})
    asked = request.query_params.get("tag", "")
    return page(
        request,
        "datasets/list.html.j2",
        title="Datasets",
        found=[dataset for dataset in found if not asked or asked in dataset.get("tags", ())],
        tag=asked,
        is_any=bool(found),
        deleted=request.query_params.get("deleted", ""),
    )


def _open(request: Request) -> Response:
    """Lead to the table of the data set that a form names, new or not."""
    alias = check_alias(request.query_params.get("alias", "").strip())
    more = {
        name: request.query_params[name]
        for name in ("add", "answer", "kind")
        if request.query_params.get(name)
    }
    return RedirectResponse(address_of(alias) + (f"?{urlencode(more)}" if more else ""), 303)


def _show_table(request: Request) -> Response:
    """Answer with the table of a data set; its rows are asked for by the script."""
    store, alias = store_of(request), check_alias(request.path_params["alias"])
    there = store.versions(alias)
    latest = there[-1] if there else None
    asked = number_of(request)
    if latest and asked not in (None, latest.number):
        return RedirectResponse(f"{address_of(alias)}/cases?version={asked}", 303)
    runs = runs_of_versions(workbench_of(request), alias, there[-1:]) if latest else {}
    return page(
        request,
        "datasets/table.html.j2",
        title=alias,
        alias=alias,
        address=address_of(alias),
        version=latest,
        tags=Notes.of(store.folder(alias)).tags if latest else (),
        runs=runs.get(latest.number, []) if latest else [],
        baseline=shown_baseline(workbench_of(request), "dataset", alias),
        kind=request.query_params.get("kind", ""),
        types=FILE_TYPES,
    )


def _show_versions(request: Request) -> Response:
    """Answer with the versions of a data set, and the runs that were made with each."""
    store, alias = store_of(request), check_alias(request.path_params["alias"])
    store.version(alias)
    there = store.versions(alias)
    return page(
        request,
        "datasets/versions.html.j2",
        title=f"Versions of {alias}",
        alias=alias,
        address=address_of(alias),
        versions=there[::-1],
        runs=runs_of_versions(workbench_of(request), alias, there),
        baseline=shown_baseline(workbench_of(request), "dataset", alias),
    )


def _show_differences(request: Request) -> Response:
    """Answer with what became of the goldens of a version in another."""
    store, alias = store_of(request), check_alias(request.path_params["alias"])
    new = store.version(alias, number_of(request, "new"))
    old = store.version(alias, number_of(request, "old") or new.parent or new.number)
    folder = workbench_of(request).data_dir
    was, now = (EvaluationDataset().pull(alias, version.number, data_dir=folder) for version in (old, new))
    return page(
        request,
        "datasets/differences.html.j2",
        title=f"{alias}: versions {old.number} and {new.number}",
        alias=alias,
        address=address_of(alias),
        old=old,
        new=new,
        found=differences(was, now),
        text=as_text,
    )


def _restore(request: Request) -> Response:
    """Save an earlier version again, as the latest."""
    alias, form = check_alias(request.path_params["alias"]), form_of(request)
    number = whole_number(str(form.get("version", "")))
    if number is None:
        raise UsageError("The form names no version.", fix="Choose one from the list of versions.")
    restored(alias, number, author=str(form.get("author", "")).strip(), store=store_of(request))
    return RedirectResponse(f"{address_of(alias)}/versions", 303)


def _export(request: Request) -> Response:
    """Answer with a version as a file."""
    alias, kind = check_alias(request.path_params["alias"]), request.path_params["kind"]
    if kind not in FILE_TYPES:
        raise UsageError(f"There is no file type {kind!r}.", fix=f"Use one of: {', '.join(FILE_TYPES)}.")
    version, rows = store_of(request).rows(alias, number_of(request))
    name = quote(f"{alias}-{version.number}.{kind}")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(file_text(kind, rows), media_type="text/plain; charset=utf-8", headers=headers)


_MANAGED = {"tags": tag_dataset, "rename": rename_dataset, "copy": copy_dataset, "delete": delete_dataset}

routes = [
    Route("/datasets", _list_datasets),
    Route("/datasets-open", _open),
    Route("/datasets-undelete", undelete_dataset, methods=["POST"]),
    Route("/datasets-golden/{run}/{number}", as_json(golden_json)),
    Route("/datasets/{alias}", _show_table),
    Route("/datasets/{alias}/cases", show_cases),
    Route("/datasets/{alias}/versions", _show_versions),
    Route("/datasets/{alias}/differences", _show_differences),
    *(Route(f"/datasets/{{alias}}/{name}", done, methods=["POST"]) for name, done in _MANAGED.items()),
    Route("/datasets/{alias}/restore", _restore, methods=["POST"]),
    Route("/datasets/{alias}/rows.json", as_json(rows_json)),
    Route("/datasets/{alias}/versions.json", as_json(versions_json)),
    Route("/datasets/{alias}/versions.json", as_json(save), methods=["POST"]),
    Route("/datasets/{alias}/check.json", as_json(check_json), methods=["POST"]),
    Route("/datasets/{alias}/import.json", as_json(import_json), methods=["POST"]),
    Route("/datasets/{alias}/file.{kind}", _export),
]

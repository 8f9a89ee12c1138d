"""What people do with a run: note something, undo that, move it to the trash and back, share it as a file."""

from collections.abc import Callable, Iterator
from tempfile import SpooledTemporaryFile
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from modelgauge.comparison.pairing.baselines import Baselines, BaselineSubject
from modelgauge.reports import write_page
from modelgauge.runs.notes import LONGEST_NOTE, Notes, clean_tags
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.runs.trash import move_to_trash, restore_from_trash
from modelgauge_workbench.index.scan import folder_of, scan_run
from modelgauge_workbench.runs.run import run_row
from modelgauge_workbench.safety import form_of
from modelgauge_workbench.workbench import workbench_of

_HELD, _PIECE = 4 << 20, 1 << 18  # characters: of a page in memory, of what is sent at once


def change_notes(request: Request) -> Response:
    """Keep what a form says of a run: the fields that it has."""
    form = form_of(request)

    def changed(notes: Notes) -> Notes:
        changes = {
            "tags": clean_tags(str(form["tags"])) if "tags" in form else notes.tags,
            "note": str(form["note"]).replace("\r\n", "\n")[:LONGEST_NOTE] if "note" in form else notes.note,
            "favourite": form["favourite"] == "1" if "favourite" in form else notes.favourite,
        }
        return notes.changed(**changes)

    return _written(request, changed)


def undo_notes(request: Request) -> Response:
    """Take back the last change of what was noted."""
    return _written(request, Notes.undone)


def _written(request: Request, change: Callable[[Notes], Notes]) -> Response:
    workbench, row = workbench_of(request), run_row(request)
    path = folder_of(workbench.index, row).path
    with workbench.changing:
        change(Notes.of(path)).write(path)
    scan_run(workbench.index, row["folder"], row["name"])
    listed = form_of(request).get("list")  # the fields of the address of the list, where it was done there
    if listed is None:
        return RedirectResponse(f"/runs/{quote(row['key'], safe='')}", 303)
    asked = dict(parse_qsl(str(listed))) | {"noted": row["key"]}
    return RedirectResponse(f"/runs?{urlencode(asked)}", 303)


def pin_baseline(request: Request) -> Response:
    """Pin a run as the baseline of what a form names, or unpin it."""
    workbench, row, form = workbench_of(request), run_row(request), form_of(request)
    baselines = Baselines(workbench.data_dirs[row["folder"]])
    subject = BaselineSubject.parse(str(form.get("unpin") or form.get("subject", "")))
    if form.get("unpin"):
        baselines.unpin(subject)
    else:
        baselines.pin({subject: row["name"]})
    return RedirectResponse(f"/runs/{quote(row['key'], safe='')}", 303)


def delete_run(request: Request) -> Response:
    """Move a run to the trash of its data folder."""
    workbench, row = workbench_of(request), run_row(request)
    moved = move_to_trash(folder_of(workbench.index, row), workbench.data_dirs[row["folder"]])
    scan_run(workbench.index, row["folder"], row["name"])
    deleted = urlencode({"deleted": moved.name, "folder": row["folder"]})
    return RedirectResponse(f"/runs?{deleted}", 303)


def restore_run(request: Request) -> Response:
    """Move a run back out of the trash."""
    workbench, form = workbench_of(request), form_of(request)
    folder = (
        int(form["folder"]) if str(form.get("folder")) in map(str, range(len(workbench.data_dirs))) else 0
    )
    run = restore_from_trash(str(form.get("name", "")), workbench.data_dirs[folder])
    scan_run(workbench.index, folder, run.run_id)
    return RedirectResponse(f"/runs/{quote(run.run_id, safe='')}", 303)


def share_run(request: Request) -> Response:
    """Answer with the page of a run as one file that opens anywhere; `without_texts` leaves out what models said."""
    workbench, row = workbench_of(request), run_row(request)
    run = recorded_run(folder_of(workbench.index, row))
    without_texts = request.query_params.get("without_texts") == "1"
    file = SpooledTemporaryFile(_HELD, "w+", encoding="utf-8", newline="\n")  # noqa: SIM115  closed when it is sent
    write_page([run], file.write, redact=workbench.redact, without_texts=without_texts)
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(row['name'], safe='')}.html"}
    return StreamingResponse(_pieces(file), media_type="text/html", headers=headers)


def _pieces(file: SpooledTemporaryFile[str]) -> Iterator[str]:
    with file:
        file.seek(0)
        yield from iter(lambda: file.read(_PIECE), "")

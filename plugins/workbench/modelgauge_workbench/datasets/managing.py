"""What people do with a whole data set: tag, rename and copy it, and move it to the trash and back."""

from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from modelgauge.comparison.pairing.baselines import Baselines, BaselineSubject
from modelgauge.datasets.versions import check_alias
from modelgauge.runs.notes import Notes, clean_tags
from modelgauge_workbench.datasets.table import store_of
from modelgauge_workbench.safety import form_of
from modelgauge_workbench.workbench import workbench_of


def address_of(alias: str) -> str:
    """Return the address of the table of a data set."""
    return f"/datasets/{quote(alias, safe='')}"


def tag_dataset(request: Request) -> Response:
    """Keep the tags of a form."""
    alias, store = check_alias(request.path_params["alias"]), store_of(request)
    with workbench_of(request).changing:
        store.version(alias)
        tags = clean_tags(str(form_of(request).get("tags", "")))
        Notes.of(store.folder(alias)).changed(tags=tags).write(store.folder(alias))
    return RedirectResponse(address_of(alias), 303)


def rename_dataset(request: Request) -> Response:
    """Give a data set the name of a form. Its baseline goes with it."""
    alias, new = check_alias(request.path_params["alias"]), _name_in(request)
    if new != alias:
        store_of(request).rename(alias, new)
        subjects = (BaselineSubject("dataset", name) for name in (alias, new))
        Baselines(workbench_of(request).data_dir).share(*subjects)
    return RedirectResponse(address_of(new), 303)


def copy_dataset(request: Request) -> Response:
    """Save the latest version as a data set with the name of a form."""
    new = _name_in(request)
    store_of(request).copy(request.path_params["alias"], new)
    return RedirectResponse(address_of(new), 303)


def delete_dataset(request: Request) -> Response:
    """Move a data set to the trash."""
    deleted = store_of(request).delete(request.path_params["alias"])
    return RedirectResponse(f"/datasets?{urlencode({'deleted': deleted})}", 303)


def undelete_dataset(request: Request) -> Response:
    """Move a data set back from the trash."""
    return RedirectResponse(
        address_of(store_of(request).undelete(str(form_of(request).get("name", "")))), 303
    )


def _name_in(request: Request) -> str:
    return check_alias(str(form_of(request).get("name", "")).strip())

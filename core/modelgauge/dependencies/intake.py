"""How a raw file becomes a stored version: brought into a folder of its own, verified, unpacked, then renamed
into place.

Whatever fails on the way leaves nothing behind.
"""

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from modelgauge.dependencies.digests import content_digest, content_size
from modelgauge.dependencies.layout import Manifest, StoredVersion, data_folder
from modelgauge.dependencies.patience import Progress
from modelgauge.dependencies.request import Request
from modelgauge.dependencies.unpack import Steps, apply_steps, unpacked_name
from modelgauge.errors import DependencyError, DownloadError, ModelGaugeError


def take_copy(request: Request, file: Path) -> StoredVersion:
    """Stores a copy of a user's raw file as if it had been fetched."""
    return _take_in(request, partial(shutil.copyfile, file), what=str(file))


def take_fetched(request: Request, *, show_progress: bool) -> StoredVersion:
    """Stores what the source gives; a progress bar is shown on a terminal only."""
    return _take_in(request, partial(_fetch, request, show_progress), what=f"what {request.data.source} gave")


def take_unpacked(request: Request, file: Path, steps: Steps) -> StoredVersion:
    """Stores what a file that is read in place unpacks to; its declared checksum is the caller's business."""
    bring = partial(shutil.copyfile, file)
    return _take_in(request, bring, what=str(file), steps=steps, source=str(file), declared=False)


def _take_in(
    request: Request,
    bring: Callable[[Path], object],
    *,
    what: str,
    steps: Steps | None = None,
    source: str | None = None,
    declared: bool = True,
) -> StoredVersion:
    steps = request.data.steps() if steps is None else steps
    source = request.data.source if source is None else source
    with request.place.staging() as staging:
        raw = staging / "raw" / request.file_name
        raw.parent.mkdir()
        bring(raw)
        _sync_file(raw)
        version = content_digest(raw)
        request.check_version(version, what, declared=declared)
        whole = staging / "whole"
        produced = _produce(request, raw, whole, steps, source)
        manifest = Manifest(
            owner=request.place.owner,
            key=request.place.key,
            version=version,
            sources=(source,),
            steps=tuple(steps.names()),
            content=content_digest(produced) if steps else version,
            size=content_size(produced),
            name=None if produced.is_dir() else produced.name,
        )
        return request.place.publish(whole, manifest, steps)


def _produce(request: Request, raw: Path, whole: Path, steps: Steps, source: str) -> Path:
    folder = data_folder(whole)
    folder.mkdir(parents=True)
    name = unpacked_name(raw.name, steps)
    if steps:
        archive = f"{request.label} ({source})"
        apply_steps(raw, folder, steps, name=name, archive=archive, limits=request.data.limits)
    else:
        raw.rename(folder / name)
    return folder if steps.unpack else folder / name


def _fetch(request: Request, show_progress: bool, target: Path) -> None:
    try:
        shown = show_progress and sys.stderr is not None and sys.stderr.isatty()
        with _progress_bar(request.label) if shown else _silence() as progress:
            request.data.fetch(target, progress)
    except DownloadError as error:
        raise DownloadError(f"{request.label}: {error.problem}", fix=request.hand_over()) from error
    except ModelGaugeError:
        raise
    except Exception as error:  # an author's code may raise anything; it becomes an error that names the data
        problem = f"{request.label} could not be fetched: {type(error).__name__}: {error}."
        raise DownloadError(problem, fix=request.hand_over()) from error
    if not target.is_file():
        raise DependencyError(
            f"{request.label}: `{type(request.data).__name__}.fetch` wrote no file to its target.",
            fix="Mend that method: it writes the raw bytes to the path that it is given.",
        )


@contextmanager
def _progress_bar(title: str) -> Iterator[Progress]:
    tqdm: Any = importlib.import_module("tqdm").tqdm  # lazily: most runs fetch nothing
    with tqdm(desc=title, unit="B", unit_scale=True, unit_divisor=1024) as bar:

        def report(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report


@contextmanager
def _silence() -> Iterator[Progress]:
    yield lambda _done, _total: None


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())

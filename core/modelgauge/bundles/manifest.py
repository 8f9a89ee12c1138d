"""The form of a bundle: its manifest `bundle.json`, which files it may hold, and whether they are as the manifest says.

A bundle is a gzipped tar archive: `bundle.json`, perhaps its signature, `cache.jsonl`, and the files of each run under
`runs/RUN_ID/`.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from modelgauge.bundles.data_files import is_data_file
from modelgauge.data.base import Count, Frozen
from modelgauge.engine.run_files.folder import BUNDLE, MANIFEST, RUN_FILES, RUNS, read_json
from modelgauge.engine.run_files.ids import why_no_run_id
from modelgauge.engine.run_files.manifest import SIGNATURE
from modelgauge.errors import BundleError, InvalidDataError, RecordError
from modelgauge.files.regular import opened

ROWS = "cache.jsonl"
SIGNED_BY = f"{BUNDLE}.sig"
VERSION = 1
ASK_AGAIN = "Ask whoever sent it for the bundle again."

_LARGEST = 1 << 26  # bytes of a manifest, which is read whole


class BundledFile(Frozen):
    """The size and the SHA-256 of a file."""

    bytes: Count
    sha256: str


class RowCounts(Frozen):
    """Numbers of cache rows that the runs used, by whether they are in the bundle.

    Args:
        kept: rows that are.
        missing: rows that the cache does not have any more.
        secret: rows that hold a secret, and were left out.
    """

    kept: Count = 0
    missing: Count = 0
    secret: Count = 0


class BundleManifest(Frozen):
    """The contents of a bundle.

    Args:
        bundle_version: of this form.
        runs: their ids.
        data: the versions (SHA-256) of each run's data, by the names that its test gives them.
        redacted: whether texts were left out.
        cache_rows: counts.
        data_left_out: why data that was to be taken along is not in the bundle, by `TEST:KEY`.
        files: by their paths in the bundle.
    """

    bundle_version: Annotated[int, Field(ge=1, le=VERSION)] = VERSION
    runs: Annotated[tuple[str, ...], Field(strict=False)]
    data: dict[str, dict[str, str]]
    redacted: bool = False
    cache_rows: RowCounts = RowCounts()
    data_left_out: Annotated[dict[str, str], Field(exclude_if=lambda value: not value)] = Field(
        default_factory=dict
    )
    files: dict[str, BundledFile]

    def text(self) -> str:
        """Return the canonical text of the manifest, which is signed."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":")) + "\n"


def read_manifest(folder: Path) -> BundleManifest:
    """Read the manifest of an unpacked bundle.

    Raises:
        BundleError: there is none, it is damaged, or it is of a newer version.
    """
    path = folder / BUNDLE
    if not path.exists():
        raise BundleError(
            f"There is no {BUNDLE} in it.",
            fix="Give a file that `modelgauge bundle` wrote, or the folder of a run.",
        )
    try:
        data = _read_small(path)
        version = data.get("bundle_version") if isinstance(data, dict) else None
        is_newer = type(version) is int and version > VERSION
        made = None if is_newer else BundleManifest.load(data)
    except (InvalidDataError, RecordError) as error:
        raise BundleError(
            f"{BUNDLE} is damaged: {error.problem.replace(str(path), BUNDLE)}", fix=ASK_AGAIN
        ) from None
    if made is None:
        raise BundleError(
            f"{BUNDLE} is of version {version}; this ModelGauge reads up to {VERSION}.",
            fix="Upgrade ModelGauge: `git pull` and `pip install .` in its checkout.",
        )
    return made


def _read_small(path: Path) -> Any:
    if path.stat().st_size > _LARGEST:
        raise RecordError(f"{path.name} is larger than any that ModelGauge writes.", fix=ASK_AGAIN)
    return read_json(path)


def describe(file: Path) -> BundledFile:
    """Return the size and hash of a file."""
    with opened(file) as content:
        digest = hashlib.file_digest(content, "sha256")  # type: ignore[arg-type]  # its protocol asks for more
        return BundledFile(bytes=content.tell(), sha256=digest.hexdigest())


def problems(folder: Path, manifest: BundleManifest) -> Iterator[str]:
    """Yield the differences between the folder of an unpacked bundle and its manifest.

    Args:
        folder: with the files of the bundle and no others.
        manifest: of the bundle.
    """
    for run in manifest.runs:
        if (why := why_no_run_id(run)) is not None:
            yield f"the id of a run, {run!r}, {why}"
    held = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    allowed = {f"{RUNS}/{run}/{file}" for run in manifest.runs for file in RUN_FILES} | {ROWS}
    allowed |= {name for name in manifest.files if is_data_file(name)}
    for name in sorted(held - manifest.files.keys() - {BUNDLE, SIGNED_BY}):
        yield f"{name!r} is not in the manifest"
    for name in sorted(manifest.files.keys() - allowed):
        yield f"the manifest names {name!r}, which is not a file of a bundle"
    for name in sorted(allowed & manifest.files.keys()):
        if name not in held:
            yield f"{name!r} is missing"
        else:
            yield from _find_problems(folder / name, name, manifest.files[name])
    for run in manifest.runs:
        if f"{RUNS}/{run}/{MANIFEST}" not in manifest.files:
            yield f"run {run!r} has no {MANIFEST}"


def changed(folder: Path, manifest: BundleManifest, run: str) -> Iterator[str]:
    """Yield the files of a run that changed since the bundle was unpacked, each described in words."""
    for file in RUN_FILES:
        name = f"{RUNS}/{run}/{file}"
        listed, path = manifest.files.get(name), folder / name
        if (describe(path) if path.exists() else None) != listed:
            yield f"{file} is not what it was in the bundle: its SHA-256 is another"


def _find_problems(path: Path, name: str, listed: BundledFile) -> Iterator[str]:
    if describe(path) != listed:
        yield f"{name!r} is not what the manifest says: its SHA-256 is another"
    if path.name != MANIFEST:
        return
    try:
        data = _read_small(path)
    except RecordError as error:
        yield f"{name!r}: {error.problem.rstrip('.')}"
        return
    if not isinstance(data, dict):
        yield f"{name!r} is not the manifest of a run"
    elif SIGNATURE in data:
        yield f"{name!r} has the signature of a user's own run, which no bundle has"

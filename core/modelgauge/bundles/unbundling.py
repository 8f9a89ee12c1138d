"""Unpacking a bundle into a folder of its own, which is also the data folder of its runs, with their cache.

What a bundle holds may come from anybody: nothing is used before it is checked, and its rows enter no other cache.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from modelgauge.bundles.cache_rows import fill
from modelgauge.bundles.manifest import ASK_AGAIN, ROWS, BundleManifest, problems, read_manifest
from modelgauge.bundles.signing import who_signed
from modelgauge.cache.opening import open_cache
from modelgauge.dependencies.safety import UnpackLimits
from modelgauge.dependencies.unpack import UnpackSteps, apply_steps
from modelgauge.errors import BundleError, InputFileError, UnsafeArchiveError, UsageError
from modelgauge.files.regular import opened
from modelgauge.files.scratch import scratch_folder
from modelgauge.wording.phrases import counted

_GZIP = b"\x1f\x8b"


def check_is_bundle(file: Path) -> None:
    """Refuse a file that does not begin as bundles do.

    Raises:
        InputFileError: it cannot be read.
        BundleError: it is something else.
    """
    try:
        with opened(file, links=True) as content:
            is_one = content.read(2) == _GZIP
    except OSError as error:
        raise InputFileError(
            f"{file} cannot be read: {error.strerror}.", fix="Give a file that `modelgauge bundle` wrote."
        ) from None
    if not is_one:
        raise BundleError(f"{file} is not a bundle.", fix="Give a file that `modelgauge bundle` wrote.")


def unbundle(file: Path, folder: Path, allowed_signers: Path | None = None) -> tuple[BundleManifest, str]:
    """Unpack a bundle into a new folder, which appears whole or not at all.

    Args:
        file: the bundle.
        folder: is made; it becomes the data folder of the runs.
        allowed_signers: see `who_signed`.

    Returns:
        The manifest, and a sentence that says who signed the bundle.

    Raises:
        UsageError: the folder exists, or cannot be made.
        BundleError: the bundle is damaged, is not what its manifest says, or is not signed by one of the allowed.
    """
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} exists already.", fix="Name a new folder: -o FOLDER")
    with unpacked(file, folder.parent) as made:
        manifest = read_manifest(made)
        if found := list(problems(made, manifest)):
            more = f" So {counted(len(found) - 1, 'part is', 'parts are')} more." if len(found) > 1 else ""
            raise BundleError(f"{file} is damaged or was changed: {found[0]}.{more}", fix=ASK_AGAIN)
        signed_by = who_signed(made, allowed_signers)
        make_cache(made)
        made.rename(folder)
    return manifest, signed_by


@contextmanager
def unpacked(file: Path, beside: Path) -> Iterator[Path]:
    """Give a temporary folder with the files of a bundle, which are not checked yet.

    Args:
        file: the bundle.
        beside: the folder in which the temporary folder is made.

    Raises:
        UsageError: nothing can be written there.
        BundleError: it is not an archive, or an archive that is not safe to unpack.
    """
    check_is_bundle(file)
    with ExitStack() as stack:
        try:
            beside.mkdir(parents=True, exist_ok=True)
            made = stack.enter_context(scratch_folder(beside, "bundle"))
        except OSError as error:
            raise UsageError(
                f"{beside} cannot be written to: {error.strerror}.", fix="Give a folder in one of your own."
            ) from error
        try:
            apply_steps(file, made, UnpackSteps("gzip", "tar"), archive=str(file), limits=UnpackLimits())
            yield made
        except UnsafeArchiveError as error:
            raise BundleError(error.problem, fix=ASK_AGAIN) from error


def make_cache(folder: Path) -> None:
    """Make the cache of an unpacked bundle from its rows.

    Raises:
        BundleError: a row does not belong to its key.
    """
    rows = folder / ROWS
    if not rows.exists():
        return
    cache = open_cache(None, folder)
    try:
        fill(cache, rows)
    finally:
        cache.close()
        cache.leave()
    rows.unlink()

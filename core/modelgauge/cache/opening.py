"""Opens the cache that the options of a run name: a folder, or a server whose plugin knows the URL; copies caches."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from modelgauge.cache.backend import in_groups
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.read_only import ReadOnlyFolder
from modelgauge.cache.responses import ResponseCache
from modelgauge.errors import CacheError, InvalidOptionError, ModelGaugeError
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.first_party import how_to_install

GROUP = "modelgauge.caches"
"""The group of entry points that announce classes of backends, each under the scheme of its URLs."""


def open_cache(where: str | None, data_dir: Path) -> ResponseCache:
    """Open a cache.

    Args:
        where: a URL, or the folder of a cache; None for the cache of the data folder.
        data_dir: of the runs.

    Raises:
        InvalidOptionError: no plugin knows such a URL, or it cannot be read, or has a password in its query; or the
            folder is a file.
        CacheError: it cannot be used.
    """
    folder = _folder(where, data_dir)
    return ResponseCache(FolderBackend(folder)) if folder is not None else _open_url(str(where))


def _open_url(where: str) -> ResponseCache:
    scheme = where.partition("://")[0]
    metadata = import_module("importlib.metadata")  # which costs more than all that most commands do
    entry_points = {entry_point.name: entry_point for entry_point in metadata.entry_points(group=GROUP)}
    if scheme not in entry_points:
        raise InvalidOptionError(
            f"No plugin knows caches at {scheme}://.",
            fix=f"{did_you_mean(scheme, entry_points)}Known: {', '.join(sorted(entry_points)) or 'none'}. "
            f"{how_to_install('cache', scheme)}".rstrip(),
        )
    try:
        backend_class = entry_points[scheme].load()
    except Exception as error:
        raise CacheError(
            f"The plugin for caches at {scheme}:// cannot be imported: {type(error).__name__}: {error}.",
            fix=f"Install {entry_points[scheme].dist.name} again.",
        ) from error
    try:
        # Records keep the command line.
        if any(name == "password" for name, _ in parse_qsl(urlsplit(where).query)):
            raise InvalidOptionError(
                "The URL of --cache has a password behind its question mark.",
                fix="Leave it out; the plugin's README names the environment variable for it.",
            )
        return ResponseCache(backend_class(where))
    except ValueError as error:
        if isinstance(error, ModelGaugeError):
            raise
        raise InvalidOptionError(
            f"The URL of --cache cannot be read: {error}.",
            fix=f"Write it as {scheme}://user@host:port/database",
        ) from error


@contextmanager
def existing_cache(where: str | None, data_dir: Path) -> Iterator[ResponseCache | None]:
    """Open a cache for as long as the block runs; None if there is none yet, and no folder is made.

    A folder in which nothing can be written can be read.

    Args:
        where: as in `open_cache`.
        data_dir: as in `open_cache`.
    """
    folder = _folder(where, data_dir)
    if folder is not None and not (folder / "cache.db").exists():
        yield None
        return
    if folder is None or os.access(folder, os.W_OK):
        cache = open_cache(where, data_dir)
    else:
        cache = ResponseCache(ReadOnlyFolder(folder))
    try:
        yield cache
    finally:
        cache.close()
        cache.leave()


def _folder(where: str | None, data_dir: Path) -> Path | None:
    """Return the folder of a cache; None for a server.

    Raises:
        InvalidOptionError: it is a file.
    """
    if where is not None and "://" in where:
        return None
    folder = data_dir / "cache" if where is None else Path(where)
    if folder.is_file():
        raise InvalidOptionError(
            f"The cache cannot be in {folder}, which is a file.", fix="Give a folder, or the URL of a server."
        )
    return folder.absolute()  # what is called may change the working directory


class CopyCounts(NamedTuple):
    """The result of a copy.

    Args:
        copied: entries that were written.
        known: entries that the target had already.
        damaged: entries of the source that are not as they were written; they are in its quarantine now, or stay
            where they are if nothing can be written there.
    """

    copied: int
    known: int
    damaged: int


def copy_cache(source: str, target: str) -> CopyCounts:
    """Copy every sound entry of a cache that another cache lacks, and read it again from there.

    Args:
        source: a folder, or a URL.
        target: the same.

    Raises:
        InvalidOptionError: there is no cache at the source.
        CacheError: one of them cannot be used, or the target gives something else than was written.
    """
    nowhere = Path()
    with ExitStack() as stack:
        old = stack.enter_context(existing_cache(source, nowhere))
        if old is None:
            raise InvalidOptionError(
                f"There is no cache in {source}.", fix="Give the folder that holds cache.db, or a URL."
            )
        new = open_cache(target, nowhere)
        stack.callback(new.leave)
        stack.callback(new.close)
        damaged, known, written = old.verify().damaged, 0, 0
        for group in in_groups(old.entries()):
            there = new.get_many([entry.key.digest for entry in group])
            missing = {entry.key.digest: entry for entry in group if entry.key.digest not in there}
            new.put_many(list(missing.values()))
            back = new.get_many(missing)
            if back != {digest: entry.response for digest, entry in missing.items()}:
                raise CacheError(
                    f"{new.place} does not give back what was written to it.",
                    fix="Check its server, then copy again.",
                )
            known, written = known + len(there), written + len(missing)
        return CopyCounts(written, known, damaged)

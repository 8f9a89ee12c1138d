"""The cache that earlier runs used, for commands that use it again. The password is asked for at a terminal."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App
    from modelgauge.engine.run_files.folder import RunFolder

_REFUSED = re.compile(r"passw|auth", re.IGNORECASE)
"""Matches errors of PostgreSQL and Redis about a missing or wrong password."""


def cache_of_runs(app: App, folders: Sequence[RunFolder]) -> str | None:
    """Return the cache that `--cache` names, or the URL that runs used if it takes a password; None for the default.

    Args:
        app: of this invocation.
        folders: the folders of the runs. The URL of a run that is not the user's own is not used.

    Raises:
        CacheError: the server cannot be reached, or refuses.
        RecordError: the manifest of a run is damaged.
    """
    explicit: str | None = app.given.get("cache")
    if explicit is not None or app.as_json or not sys.stdin.isatty():
        return explicit
    from modelgauge.rerun.original import OriginalRun

    for folder in folders:
        if folder.is_bundled():
            continue
        url = OriginalRun(folder).cache(app.settings).get("cache")
        if url is not None and "://" in url:
            return _with_password(url)
    return None


def _with_password(url: str) -> str | None:
    """Ask for the password of a URL until its server accepts one. Return None if it needs none."""
    from modelgauge.cache.opening import existing_cache
    from modelgauge.config.settings import Settings
    from modelgauge.errors import CacheError

    asked: str | None = None
    while True:
        try:
            with existing_cache(asked or url, Settings.data_dir):
                return asked
        except CacheError as error:
            if not _REFUSED.search(error.problem):
                raise
            password = click.prompt(
                f"{error.problem}\nPassword", hide_input=True, default="", show_default=False, err=True
            )
            if not password:
                raise
            asked = _joined(url, password)


def _joined(url: str, password: str) -> str:
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}:{quote(password, safe='')}@{host}").geturl()

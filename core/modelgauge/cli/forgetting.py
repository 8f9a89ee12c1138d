"""The stored answers of a run, by the keys in its journal, for `modelgauge cache forget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modelgauge.bundles.cache_rows import keys_in
from modelgauge.cache.opening import existing_cache
from modelgauge.engine.run_files.folder import RUNS
from modelgauge.errors import UnknownNameError
from modelgauge.rerun.original import OriginalRun
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.visible import without_password

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from modelgauge.config.settings import Settings
    from modelgauge.engine.run_files.folder import RunFolder


class StoredAnswers(NamedTuple):
    """Answers of runs in one cache.

    Args:
        cache: as in `open_cache`.
        data_dir: the folder that holds the cache if `cache` is None.
        keys: the keys of the answers that the cache has.
    """

    cache: str | None
    data_dir: Path
    keys: list[str]

    @property
    def place(self) -> str:
        """The place of the cache, for messages."""
        return str(self.data_dir / "cache") if self.cache is None else without_password(self.cache)

    def forget(self) -> int:
        """Remove the answers, and return their number."""
        with existing_cache(self.cache, self.data_dir) as cache:
            return 0 if cache is None else cache.forget(self.keys)


def stored_answers(
    runs: Sequence[RunFolder], items: Sequence[str], settings: Settings, given: str | None
) -> list[StoredAnswers]:
    """Find the answers of runs that are still in their caches.

    Args:
        runs: the runs, whose journals name the keys.
        items: ids of items; empty for all items.
        settings: the user's settings, whose cache is used for runs that may be somebody else's.
        given: the cache that the caller names.

    Raises:
        UnknownNameError: no run has an item of that id.
        CacheError: a cache cannot be read.
        RecordError: a run is damaged.
    """
    keys: dict[tuple[str | None, Path], dict[str, None]] = {}
    known: set[str] = set()
    for run in runs:
        of_run = keys.setdefault(_find_cache(run, settings, given), {})
        for record in recorded_run(run).items().records():
            known.add(str(record.test_item.id))
            if not items or str(record.test_item.id) in items:
                of_run.update(dict.fromkeys(keys_in(record)))
    for item in items:
        if item not in known:
            raise UnknownNameError(
                f"No item '{item}' has a record in {', '.join(run.run_id for run in runs)}.",
                fix=f"{did_you_mean(item, known)}See the ids: modelgauge show {runs[0].run_id} --items",
            )
    return [StoredAnswers(*place, _there(*place, list(wanted))) for place, wanted in keys.items()]


def _find_cache(run: RunFolder, settings: Settings, given: str | None) -> tuple[str | None, Path]:
    data_dir = run.path.parent.parent if run.path.parent.name == RUNS else settings.data_dir
    if run.is_bundled():
        return None, data_dir
    used = {"cache": settings.cache, **OriginalRun(run).cache(settings)}
    return given or used["cache"], data_dir


def _there(where: str | None, data_dir: Path, keys: list[str]) -> list[str]:
    with existing_cache(where, data_dir) as cache:
        if cache is None:
            return []
        return list(cache.entries_at(keys))

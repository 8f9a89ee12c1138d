"""Copies the responses of one cache into another."""

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from modelgauge.cache.base import in_groups
from modelgauge.cache.opening import existing_facts, open_cache
from modelgauge.errors import CacheError, InvalidOptionError


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
        old = stack.enter_context(existing_facts(source, nowhere))
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

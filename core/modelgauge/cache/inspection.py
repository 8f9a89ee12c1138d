"""Looking into a cache: is it sound. Why there is no answer to a request is in `explaining.py`."""

import sqlite3
from contextlib import closing

from modelgauge.cache.keys import DamagedEntryError
from modelgauge.cache.rows import Row, sound_entry
from modelgauge.cache.store import DiskCache
from modelgauge.data.base import Frozen


class Verdict(Frozen):
    """What `verify` found.

    Args:
        sound: entries that are as they were written.
        damaged: entries that were not, and stand in the quarantine now.
        structure: what SQLite says of the file; "ok" where it is sound.
    """

    sound: int
    damaged: int
    structure: str


def verify(cache: DiskCache) -> Verdict:
    """Read every entry, check it against its key and checksum, and quarantine what is damaged.

    Where the file's structure is damaged, it is set aside as a whole, and its sound entries begin a new one.
    """
    structure = _structure(cache)
    if structure != "ok":
        cache.set_aside(structure)
    bad: list[tuple[Row, str]] = []
    sound = 0
    for row in cache.rows():
        try:
            sound_entry(row)
            sound += 1
        except DamagedEntryError as error:
            bad.append((row, str(error)))
    for row, why in bad:
        cache.quarantine_row(row, why)
    return Verdict(sound=sound, damaged=len(bad), structure=structure)


def _structure(cache: DiskCache) -> str:
    with closing(sqlite3.connect(cache.database)) as connection:
        try:
            return "; ".join(str(line) for (line,) in connection.execute("PRAGMA integrity_check(10)"))
        except sqlite3.DatabaseError as error:
            return str(error)

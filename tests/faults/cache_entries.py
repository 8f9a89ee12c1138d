"""Entries for the caches that tests damage, and how what is lost is asked for anew."""

import random

from modelgauge.cache.keys import Entry, KeyMaker

MAKER = KeyMaker("sut", {"uid": "sut"})
ENTRIES = [
    Entry(MAKER.key({"question": n}), f'"answer {n} {"é漢" * random.Random(n).randrange(200)}"')
    for n in range(60)
]


def recompute(cache):
    """Ask for every entry, and store anew what is not there; how many those were."""
    missing = []
    for entry in ENTRIES:
        found = cache.get(entry.key.digest)
        assert found in (None, entry.response)
        if found is None:
            missing.append(entry)
    cache.put_many(missing)
    return len(missing)

"""The cache of responses: `keys` says what they depend on, `store` keeps them, `leases` shares them."""

from modelgauge.cache.explaining import Difference, Explanation, Verdict, explain, verify
from modelgauge.cache.keys import DamagedEntryError, Entry, Key, KeyMaker, pack, unpack, was_redacted
from modelgauge.cache.leases import Leases
from modelgauge.cache.store import Cache, DiskCache, existing_cache
from modelgauge.cache.text_disk import TextDisk

__all__ = [
    "Cache",
    "DamagedEntryError",
    "Difference",
    "DiskCache",
    "Entry",
    "Explanation",
    "Key",
    "KeyMaker",
    "Leases",
    "TextDisk",
    "Verdict",
    "existing_cache",
    "explain",
    "pack",
    "unpack",
    "verify",
    "was_redacted",
]

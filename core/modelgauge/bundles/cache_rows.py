"""The rows of the cache in a bundle: a line of JSON for each, with key, what the key was made of, and answer."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from modelgauge.bundles.manifest import ASK_AGAIN, ROWS, RowCounts
from modelgauge.cache.backend import LARGEST, in_groups
from modelgauge.cache.keys import Entry, Key, was_redacted
from modelgauge.cache.opening import existing_cache
from modelgauge.cache.responses import ResponseCache
from modelgauge.config.redaction import Redactor
from modelgauge.data.item_records import ItemRecord
from modelgauge.errors import BundleError
from modelgauge.files.json_lines import json_lines_writer, read_json_lines
from modelgauge.files.regular import opened

CachePlace: TypeAlias = tuple[str | None, Path]
"""The place of a cache, as `existing_cache` takes it."""

_LONGEST = 8 * LARGEST  # bytes of a line: a row in which every character has an escape


def keys_in(record: ItemRecord) -> Iterator[str]:
    """Return the keys of an item's calls."""
    for interaction in record.interactions:
        yield from interaction.keys


def write_rows(file: Path, keys: Mapping[tuple[CachePlace, ...], set[str]], redactor: Redactor) -> RowCounts:
    """Write the rows of some keys; rows with a secret are left out.

    Args:
        file: is made.
        keys: by the caches that may have them; the first that has a row gives it.
        redactor: knows the secrets.
    """
    kept = missing = secret = 0
    done: set[str] = set()
    with file.open("wb") as lines:
        writer = json_lines_writer(lines, json.dumps)
        for places, own in keys.items():
            for key, entry in _entries(places, sorted(own - done)):
                if entry is None:
                    missing += 1
                    continue
                done.add(key)
                texts = (entry.key.parts, entry.response)
                if any(redactor.names_in(text) or was_redacted(text) for text in texts):
                    secret += 1
                    continue
                kept += 1
                writer.write({"key": key, "parts": entry.key.parts, "response": entry.response})
    return RowCounts(kept=kept, missing=missing, secret=secret)


def _entries(places: Iterable[CachePlace], keys: Iterable[str]) -> Iterator[tuple[str, Entry | None]]:
    """Yield the entry of each key; None if no cache has it."""
    with ExitStack() as stack:
        caches = [stack.enter_context(existing_cache(*place)) for place in dict.fromkeys(places)]
        for group in in_groups(keys):
            found: dict[str, Entry] = {}
            for cache in caches:
                lacking = [key for key in group if key not in found]
                found |= {} if cache is None else cache.entries_at(lacking)
            yield from ((key, found.get(key)) for key in group)


def fill(cache: ResponseCache, file: Path) -> None:
    """Put the rows of a file, which may be anybody's, into a cache.

    Raises:
        BundleError: a line is no row, or its key is not that of what it was made of; the message names the line.
        CacheError: the disk refuses.
    """
    with opened(file) as opened_file:
        lines = iter(lambda: opened_file.readline(_LONGEST), b"")
        for group in in_groups(read_json_lines(lines, ROWS)):
            cache.put_many([_entry(row, where) for where, row in group])


def _entry(row: Any, where: str) -> Entry:
    try:
        digest, parts, response = row["key"], row["parts"], row["response"]
        json.loads(response)
        proves_itself = hashlib.sha256(parts.encode("ascii")).hexdigest() == digest
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BundleError(f"{where} is not a row of a cache.", fix=ASK_AGAIN) from None
    if not proves_itself:
        raise BundleError(f"{where}: the key is not that of the call that stands there.", fix=ASK_AGAIN)
    return Entry(Key(digest, parts), response)

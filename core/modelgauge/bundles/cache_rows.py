"""The rows of the cache in a bundle: a line of JSON for each, with key, what the key was made of, and answer."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from modelgauge.bundles.manifest import ASK_AGAIN, ROWS, RowCounts
from modelgauge.cache.base import ResponseCache
from modelgauge.cache.database import LARGEST
from modelgauge.cache.keys import Entry, Key, was_redacted
from modelgauge.config.redaction import Redactor
from modelgauge.data.item_records import ItemRecord
from modelgauge.errors import BundleError
from modelgauge.files.regular import opened

T = TypeVar("T")

_GROUP = 500
_LONGEST = 8 * LARGEST  # bytes of a line: a row in which every character has an escape


def keys_in(record: ItemRecord) -> Iterator[str]:
    """The keys of the calls that an item took."""
    for one in record.interactions:
        yield from () if one.key is None else (one.key,)
        yield from one.other_keys
        for of_completion in one.annotation_keys:
            yield from of_completion.values()


def write_rows(
    file: Path, caches: Sequence[ResponseCache], keys: Iterable[str], redactor: Redactor
) -> RowCounts:
    """Write the rows of these keys; rows with a secret are left out.

    Args:
        file: is made.
        caches: that may have the rows.
        keys: digests.
        redactor: knows the secrets.
    """
    kept = missing = secret = 0
    with file.open("w", encoding="ascii", newline="\n") as lines:
        for group in _groups(sorted(keys)):
            entries: dict[str, Entry] = {}
            for cache in caches:
                lacking = [digest for digest in group if digest not in entries]
                entries |= cache.entries_at(lacking)
            missing += len(group) - len(entries)
            for _, entry in sorted(entries.items()):
                texts = (entry.key.parts, entry.response)
                if any(redactor.names_in(text) or was_redacted(text) for text in texts):
                    secret += 1
                    continue
                kept += 1
                row = {"key": entry.key.digest, "parts": entry.key.parts, "response": entry.response}
                lines.write(f"{json.dumps(row)}\n")
    return RowCounts(kept=kept, missing=missing, secret=secret)


def fill(cache: ResponseCache, file: Path) -> None:
    """Put the rows of a file, which may be anybody's, into a cache.

    Raises:
        BundleError: a line is no row, or its key is not that of what it was made of; the message names the line.
        CacheError: the disk refuses.
    """
    with opened(file) as lines:
        for group in _groups(enumerate(iter(lambda: lines.readline(_LONGEST), b""), start=1)):
            cache.put_many([_entry(line, f"{ROWS}, line {number}") for number, line in group])


def _entry(line: bytes, where: str) -> Entry:
    try:
        row = json.loads(line)
        digest, parts, response = row["key"], row["parts"], row["response"]
        json.loads(response)
        proves_itself = hashlib.sha256(parts.encode("ascii")).hexdigest() == digest
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BundleError(f"{where} is no row of a cache.", fix=ASK_AGAIN) from None
    if not proves_itself:
        raise BundleError(f"{where}: the key is not that of the call that stands there.", fix=ASK_AGAIN)
    return Entry(Key(digest, parts), response)


def _groups(values: Iterable[T]) -> Iterator[list[T]]:
    left = iter(values)
    while group := list(islice(left, _GROUP)):
        yield group

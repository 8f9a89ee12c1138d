"""Cache keys and entries: what is stored, as text.

A key is the SHA-256 of the canonical JSON of everything that the answer depends on. An entry holds that JSON
beside the response, so that it proves that it is the answer to its own key; a checksum guards the response.
The report of an observed app is wrapped around the response before, by `engine/bookkeeping/app_trace.py`.
"""

import hashlib
import re
from typing import Any, NamedTuple

from modelgauge.data.json_values import canonical_json
from modelgauge.wording.phrases import a_thing

KEY_SCHEMA = 1
FOUND_OUT = "completions"
"""The role of entries that say how a SUT gives several completions: `engine/calls/splitting.py` writes them."""

_HEADER = re.compile(r"mg1 ([^ \n]*) (0|[1-9][0-9]{0,17})\n", re.ASCII)
_REDACTED = re.compile(r"\[secret [\w.-]+\]", re.ASCII)


class Key(NamedTuple):
    """A cache key and the JSON it is the digest of."""

    digest: str
    parts: str


class Entry(NamedTuple):
    """A key with the JSON text of its response."""

    key: Key
    response: str


class KeyMaker:
    """Makes the keys of one object in one role.

    Args:
        role: "sut" or "annotator"; `FOUND_OUT` for what no request asked for.
        identity: what `Identified.identity` gives.
    """

    def __init__(self, role: str, identity: Any) -> None:
        self._head = f"[{KEY_SCHEMA},{canonical_json(role)},{canonical_json(identity)},"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyMaker) and self._head == other._head

    def __hash__(self) -> int:
        return hash(self._head)

    def key(self, request: Any, repeat: int = 0) -> Key:
        """Return the key of a native request. Repeats of a request have separate keys.

        Raises:
            InvalidDataError: the request is neither JSON nor a pydantic model.
        """
        parts = f"{self._head}{canonical_json(request)},{repeat}]"
        return Key(hashlib.sha256(parts.encode("ascii")).hexdigest(), parts)


def was_redacted(text: str) -> bool:
    """Return whether an earlier version may have redacted a stored text.

    Such an entry may belong to another request, or hold an answer that nobody gave: it is neither read nor written.
    """
    return "[secret " in text and _REDACTED.search(text) is not None


class DamagedEntryError(ValueError):
    """A stored value is not what was written."""


def _checksum(digest: str, response: str) -> str:
    return hashlib.sha256(f"{digest}\n{response}".encode("utf-8", "surrogatepass")).hexdigest()


def pack(entry: Entry) -> str:
    """Serialize an entry: a header with the checksum of key and response, the key's parts, the response."""
    checksum = _checksum(entry.key.digest, entry.response)
    return f"mg1 {checksum} {len(entry.key.parts)}\n{entry.key.parts}{entry.response}"


def unpack(digest: str, stored: object) -> Entry:
    """Parse the entry in a stored text.

    Raises:
        DamagedEntryError: it is not the entry of this key, or not as it was written.
    """
    if not isinstance(stored, str):
        raise DamagedEntryError(f"{a_thing(stored)} instead of a text")
    header = _HEADER.match(stored)
    if header is None:
        raise DamagedEntryError("no header")
    cut = header.end() + int(header[2])
    parts, response = stored[header.end() : cut], stored[cut:]
    if not parts.isascii() or hashlib.sha256(parts.encode("ascii")).hexdigest() != digest:
        raise DamagedEntryError("the entry of another key")
    if _checksum(digest, response) != header[1]:
        raise DamagedEntryError("a wrong checksum")
    return Entry(Key(digest, parts), response)

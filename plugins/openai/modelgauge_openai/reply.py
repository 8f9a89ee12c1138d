"""The raw reply of a server, and its text."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

COST_HEADERS = ("x-litellm-response-cost",)
"""Response headers with the cost of an answer, in US dollars.

Source: LiteLLM, "Response Headers" (https://docs.litellm.ai/docs/proxy/response_headers).
"""

_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_EVENTS = re.compile(r"\s*(data|event|id|retry)?:")
_JSON = re.compile(r"\s*[\[{]")


@dataclass(frozen=True)
class Reply:
    """The reply of a server.

    Args:
        status: of HTTP.
        headers: looked up without regard to case.
        body: as it came.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def costs(self) -> dict[str, str]:
        """The headers with the cost of the answer."""
        return {name: self.headers[name] for name in COST_HEADERS if name in self.headers}

    @cached_property
    def text(self) -> str:
        """The body, decoded by the charset of its Content-Type, else as UTF-8, UTF-16 or UTF-32.

        The byte order mark is removed. Undecodable bytes become U+FFFD.
        """
        found = _CHARSET.search(self.headers.get("Content-Type", ""))
        detected = json.detect_encoding(self.body)
        # A declared UTF does not give the byte order, so detect it.
        charset = found[1] if found and not found[1].lower().startswith("utf") else detected
        with suppress(LookupError, ValueError):
            return self.body.decode(charset)
        with suppress(ValueError):
            halves = self.body.decode(detected, "surrogatepass")
            return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self.body.decode(detected, "replace")

    def is_stream(self, *, asked: bool) -> bool:
        """Return whether the body is a stream of events, or is not JSON although a stream was asked for."""
        if _JSON.match(self.text):
            return False
        declared = self.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        return asked or declared or bool(_EVENTS.match(self.text))

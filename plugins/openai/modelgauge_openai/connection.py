"""The way to one server: a session for each event loop, and one POST a call.

Retries, deadlines and limits are the engine's: a call is one attempt, and only connecting has a deadline.
This is the only module that imports aiohttp.
"""

import asyncio
import io
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

from modelgauge import Fatal, Retry
from modelgauge.errors import CallError, InvalidOptionError
from modelgauge_openai.address import models_url, names_a_secret, proxy_for
from modelgauge_openai.errors import LATER, ChatError, refused, shortened
from modelgauge_openai.key import OpenAIKey
from modelgauge_openai.protocol import model_names
from modelgauge_openai.reply import Reply

MOST_BYTES = 64 * 2**20
"""The longest response that is read."""

_CONNECT_SECONDS = {"http": 1.0, "https": 5.0}
"""Time limits for connecting, including the TLS handshake. A server whose connection queue is full drops the first
packet, which the system sends again after 1 s, 3 s, 7 s, …: waiting longer only adds to the server's load."""

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = frozenset({"content-type", "content-length", "host"})

_MODELS_TIMEOUT = aiohttp.ClientTimeout(total=5)
_LARGE = 2**20  # from here on aiohttp wants a file, which it sends piece by piece


def checked_headers(headers: Mapping[str, str], key_header: str | None) -> dict[str, str]:
    """Further headers of each request.

    Raises:
        InvalidOptionError: one that holds a key, that this SUT writes itself, or that HTTP cannot carry.
    """
    for name, value in [*headers.items(), *([(key_header, "")] if key_header else [])]:
        is_refused = name.lower() in _OWN_HEADERS or (name in headers and names_a_secret(name))
        if is_refused or not _HEADER_NAME.fullmatch(name) or not (value.isascii() and value.isprintable()):
            raise InvalidOptionError(
                f"The header {name!r} cannot be sent.",
                fix="Names and values are printable ASCII. A key does not belong there, for it would be recorded: "
                "say where it stands by key_env, and api_key_header where it is not sent as Authorization.",
            )
    return dict(headers)


@dataclass(slots=True)
class _Opened:
    """A session, how many runs use it, and the names of the server's models, once they were asked for."""

    session: aiohttp.ClientSession
    users: int = 0
    models: list[str] | None = None
    asking_for_models: asyncio.Lock = field(default_factory=asyncio.Lock)


class Connection:
    """Sends requests to one URL.

    Args:
        owner: the SUT's uid, for messages.
        url: where each request is posted.
        key: sent as a bearer token; None: none is.
        key_header: the header that the key is sent in instead, as it is.
        headers: further headers.
        withheld: the name of a key that was found and is not sent.
    """

    def __init__(
        self,
        owner: str,
        url: str,
        key: OpenAIKey | None,
        *,
        key_header: str | None = None,
        headers: Mapping[str, str] | None = None,
        withheld: str | None = None,
    ) -> None:
        self.url = url
        self._owner = owner
        self._key = key
        self._key_header = key_header
        self._headers = dict(headers or {})
        self._withheld = withheld
        self._opened: dict[asyncio.AbstractEventLoop, _Opened] = {}

    async def open(self) -> None:
        """Make the session of the running loop, or share it with the runs that have it."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            opened = self._opened[loop] = _Opened(self._session())
        opened.users += 1

    async def close(self) -> None:
        """Give the session back; the last one closes it."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            return
        opened.users -= 1
        if opened.users == 0:
            del self._opened[loop]
            await opened.session.close()

    def _session(self) -> aiohttp.ClientSession:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": "modelgauge-plugin-openai",
            **self._headers,
        }
        if self._key is not None and self._key_header is not None:
            headers[self._key_header] = self._key.value or ""
        elif self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.value}"
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),  # the engine limits
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            proxy=proxy_for(self.url),
            timeout=aiohttp.ClientTimeout(  # the engine has deadlines
                total=None, sock_connect=_CONNECT_SECONDS[self.url.partition(":")[0]]
            ),
        )

    async def post(self, body: bytes) -> Reply:
        """Send a body, and return the reply unchanged. It is scored as it came; runs redact what they write.

        Raises:
            ChatError: there was no reply.
            CallError: `open` was not called in this loop.
        """
        opened = self._open_here()
        data = body if len(body) < _LARGE else io.BytesIO(body)
        try:
            # No redirects: the key goes where the user sends it, and nowhere else.
            async with opened.session.post(self.url, data=data, allow_redirects=False) as response:
                return Reply(response.status, response.headers, await self._read(response))
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(error) from error

    def refusal(self, reply: Reply) -> ChatError:
        """Return the error for a reply with a status other than 2xx, without the key."""
        text = reply.text if self._key is None else self._key.redact(reply.text)
        return refused(self.url, reply.status, reply.headers, text, withheld=self._withheld)

    async def models(self) -> list[str]:
        """Return the names of the server's models, requested once; empty if it does not list them.

        Raises:
            CallError: `open` was not called in this loop.
        """
        opened = self._open_here()
        async with opened.asking_for_models:
            if opened.models is None:
                opened.models = []
                with suppress(aiohttp.ClientError, OSError, ValueError, RecursionError):
                    async with opened.session.get(
                        models_url(self.url), allow_redirects=False, timeout=_MODELS_TIMEOUT
                    ) as response:
                        opened.models = model_names(json.loads(await self._read(response)))
        return opened.models

    def _open_here(self) -> _Opened:
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is None:
            raise CallError(
                f"'{self._owner}' was called while it is not open.",
                fix="Call it by run_test or Runner; or `await sut.open()` before, `await sut.close()` after.",
            )
        return opened

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        parts = []
        size = 0
        async for part in response.content.iter_any():
            size += len(part)
            if size > MOST_BYTES:
                raise ChatError(
                    f"{self.url} answered with more than {MOST_BYTES:,} bytes.",
                    fix="Ask for fewer tokens, completions or log-probabilities.",
                )
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _broken(self, error: Exception) -> ChatError:
        """Return the error for a connection that failed, before or during the answer."""
        words = shortened(str(error))
        problem = f"{self.url} gave no answer: {type(error).__name__}{f': {words}' if words else ''}."
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return ChatError(
                problem, fix="Check its certificate, or name yours in SSL_CERT_FILE.", verdict=Fatal()
            )
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return ChatError(
                problem,
                fix="Check base_url, and that the server runs. If it does, it accepts no more connections at once: "
                "lower --concurrency.",
                verdict=Retry(rate_limited=True, unreachable=True),
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            is_lost = not isinstance(error, aiohttp.ClientSSLError)
            fix = "Check base_url, and that the server runs."
            return ChatError(problem, fix=fix, verdict=Retry(unreachable=is_lost))
        return ChatError(problem, fix=LATER, verdict=Retry())

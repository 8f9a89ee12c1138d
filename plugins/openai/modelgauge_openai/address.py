"""Addresses of requests: the URL behind `base_url`, and the proxy on the way there."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from modelgauge.errors import InvalidOptionError

OFFICIAL = "https://api.openai.com/v1"
PATH = "/chat/completions"
COMPLETIONS_PATH = "/completions"

_ENDPOINT = re.compile(rf"({PATH}|{COMPLETIONS_PATH})(?=\?|$)")
_SECRET = re.compile(r"auth|key|token|secret|password|cookie|credential", re.IGNORECASE)


def endpoint_url(base_url: str, query: Mapping[str, str] | None = None, path: str = PATH) -> str:
    """Return the URL that requests are posted to.

    Args:
        base_url: the server, up to where the path begins.
        query: what stands behind the `?`, by name: Azure's `api-version`.
        path: `/chat/completions` or `/completions`.

    Raises:
        InvalidOptionError: it is no such URL, or holds what must not be recorded.
    """
    try:
        parts = urlsplit(base_url)
        problem = _problem(parts)
        secret = next(filter(names_a_secret, query or ()), None)
        if secret:
            problem = f"{secret!r} in extra_query looks like a key, and the names of SUTs are recorded"
    except ValueError as error:
        problem = str(error)
    if problem:
        # The URL itself is not quoted: where it is malformed, it may hold a password.
        raise InvalidOptionError(
            f"base_url cannot be used: {problem}.",
            fix=f"Write the server up to where {path} begins: base_url=http://localhost:8000/v1",
        )
    return base_url.rstrip("/") + path + (f"?{urlencode(query)}" if query else "")


def models_url(url: str) -> str:
    """Return the URL that lists a server's models.

    Args:
        url: that requests are posted to.
    """
    return _ENDPOINT.sub("/models", url, count=1)


def _problem(parts: SplitResult) -> str | None:
    if parts.scheme not in ("http", "https"):
        return "it begins neither with https:// nor with http://"
    if "@" in parts.netloc:
        return "it holds a user or a password, and the names of SUTs are recorded"
    if not parts.hostname or parts.port == 0:
        return "it names no server"
    if parts.query or parts.fragment:
        return "it has a part after '?' or '#', which extra_query is for"
    endpoint = _ENDPOINT.search(parts.path.rstrip("/"))
    return f"{endpoint[1]} is added to it" if endpoint else None


def names_a_secret(name: str) -> bool:
    """Return whether a header or query field has a name that suggests a secret."""
    return _SECRET.search(name) is not None


def is_official(url: str) -> bool:
    """Return whether this is OpenAI's own server, in one of its regions."""
    host = urlsplit(url).hostname or ""
    return host == "api.openai.com" or host.endswith(".api.openai.com")


def is_on_this_machine(url: str) -> bool:
    """Return whether a server is on the loopback interface."""
    return _is_loopback(urlsplit(url).hostname or "")


def proxy_for(url: str) -> str | None:
    """Return the proxy from the environment (`https_proxy`, `no_proxy`); never one for this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

"""What keeps strangers out: hosts, the token, forms of our own pages only, headers of each answer.

A page of another site can make a browser send requests here. Four things stop it: the `Host` must be a name of this
machine (a foreign name that was rebound to it is not), an `Origin` must be our own, a form must hold what only our
pages know, and browsers never send JSON from another origin, since nothing here allows it.
"""

import errno
import hashlib
import hmac
import os
import re
import secrets
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from h11 import LocalProtocolError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modelgauge.errors import SettingsError
from modelgauge.files.regular import opened
from modelgauge.files.whole import creating
from modelgauge_workbench.rendering import error_page

CSRF = "csrf"
"""The field of a form that proves that the form is ours."""
LOGIN = "/login"
_OPEN = (LOGIN, "/static/", "/report/")  # what is shown before the token is given
_SAFE = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SESSION_SECONDS = 30 * 24 * 3600
_LARGEST_FIELD = 64 << 20
_KEY_BYTES = 32
_KEY = re.compile(rb"[0-9a-f]{64}\n?")
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without any, browsers send no Origin with forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Access:
    """Who may come in, and which forms are ours.

    Args:
        token: what visitors must give; None lets in all who reach this machine by its own names. Its hash is kept.
        key_file: where the key lies that signs sessions and forms; made where there is none. None for a key that ends
            with this process.

    Raises:
        SettingsError: the key file is something else.
    """

    def __init__(self, token: str | None, key_file: Path | None = None) -> None:
        self._hash = None if token is None else _hash(token)
        self._key = secrets.token_bytes(_KEY_BYTES) if key_file is None else _key_in(key_file)

    @staticmethod
    def new_token() -> str:
        """A token that nobody guesses."""
        return secrets.token_urlsafe(24)

    @property
    def needs_token(self) -> bool:
        """Whether visitors must give a token."""
        return self._hash is not None

    @property
    def csrf(self) -> str:
        """What a form must hold."""
        return self._signed(CSRF)

    def is_token(self, given: str) -> bool:
        """Whether a text is the token."""
        return self._hash is not None and hmac.compare_digest(self._hash, _hash(given))

    def session(self) -> str:
        """The value of the cookie of somebody who gave the token."""
        begun = f"{int(time.time())}"
        return f"{begun}.{self._signed(begun)}"

    def lets_in(self, request: Request) -> bool:
        """Whether somebody gave the token: by the form, or with the request, as programs do."""
        if self._hash is None or self.is_token(
            request.headers.get("authorization", "").removeprefix("Bearer ")
        ):
            return True
        begun, _, signature = request.cookies.get(cookie_of(request), "").partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._signed(begun).encode())
        return is_ours and begun.isdigit() and time.time() - int(begun) < _SESSION_SECONDS

    def _signed(self, text: str) -> str:
        return hmac.new(self._key, f"{text} {(self._hash or b'').hex()}".encode(), "sha256").hexdigest()


class Safety:
    """Refuses what must not come in, and adds the headers of safety to what goes out.

    Args:
        app: answers what is let in.
        access: who may come in.
        read_only: whether nothing may be changed.
    """

    def __init__(self, app: ASGIApp, access: Access, *, read_only: bool) -> None:
        self._app, self._access, self._read_only = app, access, read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def safe_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "private, no-cache")
            with suppress(LocalProtocolError):  # the request was broken, and its sender has been told
                await send(message)

        request = Request(scope, receive)
        try:
            answer = self._refusal(request) or await self._refusal_of_change(request)
        except ClientDisconnect:  # nobody waits for an answer
            return
        except HTTPException as error:  # what it holds is no form, or is too large
            answer = error_page(request, error.status_code, error.detail, "Use the pages of the workbench.")
        await (answer or self._app)(scope, receive, safe_send)

    def _refusal(self, request: Request) -> Response | None:
        """Why a request is not let in at all."""
        if not self._access.needs_token and host_of(request.headers.get("host", "")) not in LOOPBACK:
            fix = "Use the address that `modelgauge serve` printed; with --token other names are allowed too."
            return error_page(request, 403, "This address is not a name of this machine.", fix)
        if "%00" in request.url.query:  # which SQLite takes for the end of a text
            return error_page(request, 400, "The address holds a character NUL.", "Take `%00` out of it.")
        if self._access.lets_in(request) or request.url.path.startswith(_OPEN):
            return None
        if request.method not in _SAFE or "text/html" not in request.headers.get("accept", ""):
            return error_page(
                request, 401, "The token is missing.", "Send the header `Authorization: Bearer TOKEN`."
            )
        wanted = quote(f"{request.url.path}?{request.url.query}".rstrip("?"))
        return RedirectResponse(f"{LOGIN}?next={wanted}", 303)

    async def _refusal_of_change(self, request: Request) -> Response | None:
        """Why a request that changes something is refused; what it holds is read for the page that answers it."""
        if request.method in _SAFE:
            return None
        if self._read_only and request.url.path != LOGIN:
            return error_page(request, 403, "This workbench is for reading.", "Start it without --read-only.")
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
        own = request.headers.get("host", "")
        if site not in ("same-origin", "none") or (origin is not None and origin.partition("://")[2] != own):
            return error_page(
                request, 403, "The request comes from another site.", "Use the pages of the workbench."
            )
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":
            request.scope["body"] = await request.body()
            return None
        form = request.scope["form"] = await request.form(max_part_size=_LARGEST_FIELD)
        if hmac.compare_digest(str(form.get(CSRF, "")).encode(), self._access.csrf.encode()):
            return None
        fix = "Go back, copy what you wrote, reload the page and do it again."
        return error_page(
            request, 403, "The form comes from another page, or from an earlier workbench.", fix
        )


def form_of(request: Request) -> Any:
    """The form of a request that changes something: Starlette's `FormData`.

    Raises:
        HTTPException: it is JSON.
    """
    if "form" not in request.scope:
        raise HTTPException(415, "This address takes a form. Use the pages of the workbench.")
    return request.scope["form"]


def body_of(request: Request) -> bytes:
    """The JSON text of a request that changes something; empty if it is a form."""
    found: bytes = request.scope.get("body", b"")
    return found


def host_of(header: str) -> str:
    """The name or address in a `Host` header, without the port."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:  # brackets without an address
        return ""


def cookie_of(request: Request) -> str:
    """The name of the cookie: browsers share cookies between the ports of a host."""
    return f"modelgauge_{request.url.port or request.url.scheme}"


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _key_in(path: Path) -> bytes:
    """Return the key from a file that only we can read. Create it if there is none.

    If the folder is not writable or the file not readable, as in somebody else's folder, return a new key.

    Raises:
        SettingsError: the file is something else.
    """
    try:
        if not path.exists():
            _make_key(path)
        with opened(path) as file:
            found, text = os.fstat(file.fileno()), file.read(2 * _KEY_BYTES + 2)
    except OSError as error:
        if error.errno in _NOT_OURS:
            return secrets.token_bytes(_KEY_BYTES)
        raise _unusable(path, f"{error.strerror}") from None
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise _unusable(path, "it belongs to another user")
    if sys.platform != "win32" and found.st_mode & 0o077:
        raise _unusable(path, "other users can read it")
    if not _KEY.fullmatch(text):
        raise _unusable(path, "it holds no key")
    return bytes.fromhex(text.decode("ascii"))


def _make_key(path: Path) -> None:
    """Create the key. If two workbenches do so at once, the first key is kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), creating(path) as written:
        written.touch(mode=0o600)
        written.write_text(secrets.token_hex(_KEY_BYTES), encoding="ascii")


def _unusable(path: Path, why: str) -> SettingsError:
    return SettingsError(
        f"The key in {path} cannot be used: {why}.", fix="Remove it; a new one will be created."
    )

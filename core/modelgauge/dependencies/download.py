"""One file over HTTP: streamed to disk, with time-outs, a stall limit, length checks, and retries.

Checksums, syncing to disk and atomic renames are in `request`.
"""

import contextlib
import http.client
import itertools
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO

from modelgauge.dependencies.safety import DownloadLimits, Progress
from modelgauge.errors import DownloadError
from modelgauge.wording.phrases import counted

_CHUNK = 1 << 18
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class _PassingError(Exception):
    """A failure that may pass, so that another try is worth it."""


def download(url: str, target: Path, *, max_bytes: int, progress: Progress, limits: DownloadLimits) -> None:
    """Write what `url` serves to `target`, byte for byte; a try that fails leaves nothing there.

    Args:
        url: http or https; redirects are followed, but never from https to http.
        target: a file that does not exist yet, in a folder that does.
        max_bytes: an answer larger than this is refused.
        progress: called after every chunk.
        limits: time-outs and retries.

    Raises:
        DownloadError: with the URL and the answer of the server or the network.
    """
    for attempt in itertools.count(1):
        try:
            with _open(url, limits) as response, target.open("wb") as file:
                _copy(url, response, file, max_bytes=max_bytes, progress=progress, limits=limits)
        except BaseException as error:
            target.unlink(missing_ok=True)
            if not isinstance(error, _PassingError):
                raise
            if attempt >= limits.tries:
                raise _failed(url, f"{error}, in try {attempt} of {limits.tries}") from error
            time.sleep(limits.backoff * 2 ** (attempt - 1))
        else:
            return


def _open(url: str, limits: DownloadLimits) -> http.client.HTTPResponse:
    request = urllib.request.Request(url, headers={"User-Agent": "modelgauge", "Accept": "*/*"})  # noqa: S310 - http(s) only: WebData checks it, and the redirect handler below does
    opener = urllib.request.build_opener(_SafeRedirects, _WebHandler)
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=limits.timeout)
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answered {error.code} {error.reason}"
        if error.code in _PASSING_STATUS:
            raise _PassingError(answer) from error
        raise _failed(url, answer) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise _failed(url, f"the server's certificate is not valid ({error.reason})") from error
        raise _PassingError(f"no connection ({error.reason})") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        # ValueError: a redirect to no address at all.
        raise _PassingError(f"the connection failed ({error!r})") from error
    return response


def _copy(
    url: str,
    response: http.client.HTTPResponse,
    file: IO[bytes],
    *,
    max_bytes: int,
    progress: Progress,
    limits: DownloadLimits,
) -> None:
    declared = response.headers.get("Content-Length", "")
    expected = int(declared) if declared.isascii() and declared.isdigit() else None
    received = 0
    window_start, window_bytes = time.monotonic(), 0
    while True:
        try:
            chunk = response.read1(_CHUNK)  # what has come, though less: a trickle is seen as one
        except (OSError, http.client.HTTPException) as error:
            raise _PassingError(f"the connection broke ({error!r})") from error
        if not chunk:
            break
        file.write(chunk)
        received += len(chunk)
        window_bytes += len(chunk)
        progress(received, expected)
        if max(received, expected or 0) > max_bytes:
            raise _failed(
                url, f"the server sends more than the {max_bytes:,} bytes that UnpackLimits(max_bytes) allows"
            )
        if time.monotonic() - window_start > limits.stall_seconds:
            if window_bytes < limits.stall_bytes:
                raise _PassingError(f"stalled: {window_bytes:,} bytes in {limits.stall_seconds:g} s")
            window_start, window_bytes = time.monotonic(), 0
    if expected is None and received == 0:  # what a connection that broke in the headers looks like
        raise _PassingError("the server sent nothing and did not say that there is nothing")
    if expected is not None and received != expected:
        raise _PassingError(f"the server announced {counted(expected, 'byte')} and sent {received:,}")


class _HTTPConnection(http.client.HTTPConnection):
    """An HTTP connection whose status line and headers share one time-out, which a socket would apply to each read."""

    def getresponse(self) -> http.client.HTTPResponse:
        late = threading.Event()
        timer = threading.Timer(self.timeout or 0.0, self._cut, [late])
        timer.daemon = True
        timer.start()
        try:
            return super().getresponse()
        finally:
            timer.cancel()
            timer.join()
            if late.is_set():  # whatever came: a broken connection, or cut headers, which look complete
                raise TimeoutError(f"timed out: no complete answer in {self.timeout:g} s")

    def _cut(self, late: threading.Event) -> None:
        late.set()
        if self.sock is not None:
            with contextlib.suppress(OSError):  # closed already, by either side
                self.sock.shutdown(socket.SHUT_RDWR)


class _HTTPSConnection(http.client.HTTPSConnection, _HTTPConnection):
    """An HTTPS connection whose status line and headers share one time-out."""


class _WebHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HTTPConnection, req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HTTPSConnection, req, context=ssl.create_default_context())


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917 - the signature is the base class's
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = urllib.parse.urlsplit(newurl).scheme.lower()
        if scheme not in {"http", "https"} or (req.type == "https" and scheme != "https"):
            with contextlib.closing(fp):
                raise _failed(req.full_url, f"it redirects to {newurl!r}, which is not as safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _failed(url: str, reason: str) -> DownloadError:
    fix = "Check the address and the network and run the command again, or get the file in another way."
    return DownloadError(f"Downloading {url} failed: {reason}.", fix=fix)

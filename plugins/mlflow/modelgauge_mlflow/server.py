"""An MLflow tracking server, by the few calls of its REST API that runs need (mlflow.org/docs/latest/rest-api.html).

MLflow's own client is left out on purpose: it takes seconds to import, brings some forty packages, and reports its use.
"""

import base64
import json
import os
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from modelgauge.errors import ModelGaugeError

_PATIENCE = 10.0  # seconds that a server may be silent


class MLflowError(ModelGaugeError):
    """A run was not sent, or not as a whole; it is kept all the same."""

    exit_code = 4


class Server:
    """A tracking server.

    Args:
        address: its URL. `MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and `MLFLOW_TRACKING_PASSWORD`, go to
            the address of `MLFLOW_TRACKING_URI` alone, so that no file of settings can send them elsewhere.
        fix: what to do where it does not answer, for messages.

    Raises:
        MLflowError: the address is none.
    """

    def __init__(self, address: str, fix: str) -> None:
        self.address, self._fix = address.rstrip("/"), fix
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise MLflowError(
                "The run was not sent: the MLflow server has no address of the form http://HOST:PORT.",
                fix=f"Set tracking_uri or MLFLOW_TRACKING_URI, passwords in MLFLOW_TRACKING_PASSWORD. {fix}",
            )
        is_own = self.address == os.environ.get("MLFLOW_TRACKING_URI", "").rstrip("/")
        self._login = _login() if is_own else ""

    def ask(self, call: str, **body: Any) -> Any:
        """Make a call of the API, without a body for reading."""
        data = json.dumps(body, allow_nan=False).encode() if body else None
        return self._send(f"mlflow/{call}", data, {"Content-Type": "application/json"})

    def store(self, artifacts: str, file: Path) -> None:
        """Store a file with a run, whose `artifact_uri` is given."""
        scheme, _, place = artifacts.partition(":/")
        if scheme != "mlflow-artifacts":
            problem = f"The numbers were sent, but no files: {self.address} keeps these at {artifacts}."
            raise MLflowError(problem, fix="Start it with --serve-artifacts, and use a new experiment.")
        path = f"mlflow-artifacts/artifacts/{quote(place.strip('/'))}/{file.name}"
        with file.open("rb") as content:
            self._send(path, content, {"Content-Length": str(file.stat().st_size)}, "PUT")

    def _send(self, path: str, data: Any, headers: dict[str, str], method: str | None = None) -> Any:
        request = Request(f"{self.address}/api/2.0/{path}", data, headers, method=method)  # noqa: S310  http or https
        if self._login:
            request.add_unredirected_header("Authorization", self._login)
        try:
            with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310  likewise
                return json.loads(answer.read() or b"{}")
        except HTTPError as error:
            with error:
                said = error.read(500).decode(errors="replace")
            why = f"{error.code} {error.reason}: {' '.join(said.split())}"
        except (OSError, HTTPException, ValueError) as error:
            why = str(getattr(error, "reason", error))
        raise MLflowError(f"The run was not sent to {self.address}: {why}.", fix=self._fix)


def _login() -> str:
    token, user, password = (
        os.environ.get(f"MLFLOW_TRACKING_{name}") for name in ("TOKEN", "USERNAME", "PASSWORD")
    )
    if user and password:
        return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    return f"Bearer {token}" if token else ""

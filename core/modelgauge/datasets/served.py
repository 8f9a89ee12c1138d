"""Versions of data sets that a workbench serves: what `modelgauge serve` answers, asked over HTTP."""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from modelgauge.config.secrets import OptionalSecret, SecretDescription
from modelgauge.datasets.versions import Row, Version, check_alias, no_version
from modelgauge.errors import DatasetConflictError, DownloadError, SettingsError, UsageError

_SECONDS = 60
_LONGEST_ANSWER = 1 << 30
_REFUSED = {
    401: "Give its token: export MODELGAUGE_WORKBENCH_TOKEN=…",
    403: "Ask who serves it: it may be for reading only, or be served under another name.",
}


class WorkbenchToken(OptionalSecret):
    """What a served workbench asks its visitors for."""

    @classmethod
    def description(cls) -> SecretDescription:
        """Where the token of a workbench is looked up."""
        return SecretDescription(
            "workbench", "token", "`modelgauge serve` shows it.", env=("MODELGAUGE_WORKBENCH_TOKEN",)
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are refused: the token is for the address that the user gave."""

    def redirect_request(self, *_: Any) -> None:
        return None


class ServedVersions:
    """The versions of data sets in the first folder of a workbench.

    Args:
        url: of the workbench.
        token: that it asks for.

    Raises:
        SettingsError: the URL is not valid.
    """

    def __init__(self, url: str, token: WorkbenchToken) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise SettingsError(
                f"{url!r} is not an address of a workbench.",
                fix="Write it as `modelgauge serve` shows it: MODELGAUGE_WORKBENCH_URL=http://127.0.0.1:8400",
            )
        self._url, self._token = url.rstrip("/"), token
        self._opener = urllib.request.build_opener(_NoRedirect)

    def versions(self, alias: str) -> list[Version]:
        """All versions, oldest first; empty if there is no data set of this alias."""
        return [Version.load(version) for version in self._ask(alias, "versions.json")["versions"]]

    def rows(self, alias: str, number: int | None = None) -> tuple[Version, list[Row]]:
        """Return a version and its rows; without a number, the latest version.

        Raises:
            UnknownNameError: there is no such version.
        """
        there = self.versions(alias)
        if not there or number not in (None, *(version.number for version in there)):
            raise no_version(alias, number, there, ())
        wanted = urlencode({"version": number or there[-1].number})
        found = self._ask(alias, f"rows.json?{wanted}")
        return Version.load(found["version"]), found["rows"]

    def add(self, alias: str, rows: Sequence[Row], made: Version) -> Version:
        """Save a new version of a data set, if the latest version is its parent.

        Raises:
            DatasetConflictError: somebody else saved a version in between.
        """
        facts = {"parent": made.parent, "author": made.author, "message": made.message}
        return Version.load(self._ask(alias, "versions.json", {**facts, "rows": rows})["version"])

    def _ask(self, alias: str, what: str, sent: Any = None) -> Any:
        """What the workbench answers.

        Raises:
            DatasetConflictError, UsageError: it refuses.
            DownloadError: it cannot be reached, or is no workbench.
        """
        address = f"{self._url}/datasets/{quote(check_alias(alias), safe='')}/{what}"
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._token.value is not None:
            headers["Authorization"] = f"Bearer {self._token.value}"
        data = None if sent is None else json.dumps(sent, allow_nan=False).encode()
        request = urllib.request.Request(address, data, headers)  # noqa: S310  http or https, see above
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return json.loads(answer.read(_LONGEST_ANSWER))
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from None
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise DownloadError(
                f"The workbench at {self._url} cannot be reached, or is none: {reason}.",
                fix="Start it by `modelgauge serve`, or correct MODELGAUGE_WORKBENCH_URL; without it, the folder of "
                "data is used.",
            ) from None

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        try:
            refusal = json.loads(error.read(_LONGEST_ANSWER))
            kind = DatasetConflictError if error.code == 409 else UsageError
            return kind(str(refusal["problem"]), fix=str(refusal["fix"]))
        except (OSError, HTTPException, ValueError, TypeError, KeyError):  # a page
            fix = _REFUSED.get(error.code, "Is it a workbench? Its terminal may say more.")
            return UsageError(f"The workbench at {self._url} refuses: {error.code} {error.reason}.", fix=fix)

"""`pull` and `push` of data sets: their versions in a folder, or in a workbench that `modelgauge serve` answers for."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit
from weakref import WeakSet

from modelgauge.config.secrets import OptionalSecret, SecretDescription, SecretStore
from modelgauge.config.settings import load_settings
from modelgauge.datasets.dataset_files import FilePath
from modelgauge.datasets.reading import restore_members
from modelgauge.datasets.rows import make_rows
from modelgauge.datasets.versions import Row, Version, VersionsFolder, check_alias, no_version
from modelgauge.errors import DatasetConflictError, DownloadError, SettingsError, UsageError
from modelgauge.interfaces.arguments import explains_arguments

_SECONDS = 60
_LONGEST_ANSWER = 1 << 30
_REFUSED = {
    401: "Give its token: export MODELGAUGE_WORKBENCH_TOKEN=…",
    403: "Ask who serves it: it may be for reading only, or be served under another name.",
}


class WorkbenchToken(OptionalSecret):
    """Token that a workbench requires from visitors."""

    @classmethod
    def description(cls) -> SecretDescription:
        """Describe where the token of a workbench is looked up."""
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
        """Return all versions, oldest first; empty if there is no data set with this alias."""
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
        """Send a request to the workbench, and return its answer.

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
            with error:
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


# --- pull and push ------------------------------------------------------------------------------------


P = ParamSpec("P")
R = TypeVar("R")

PULLED: WeakSet[Any] = WeakSet()
"""The data sets of this process that were pulled or pushed, so that a session of pytest knows what its cases are of."""


class _OnClassToo(Generic[P, R]):
    """A method that makes its object where it is called on the class."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self.__func__ = method  # as class methods call it
        self.__doc__ = method.__doc__

    def __get__(self, found: Any, owner: Any) -> Callable[P, R]:
        made = owner() if found is None else found
        return cast("Callable[P, R]", self.__func__.__get__(made, owner))


class Versioned:
    """Version control methods of data sets.

    Attributes:
        pulled: the alias and the version that it was pulled from, or pushed to, last.
    """

    name: str | None
    pulled: tuple[str, Version] | None = None

    @_OnClassToo
    @explains_arguments
    def pull(self: Any, alias: str, version: int | None = None, *, data_dir: FilePath | None = None) -> Any:
        """Replace what the data set holds by a version that was saved; on the class, make a data set of it.

        Args:
            alias: the name under which the data set was saved.
            version: its number; by default the latest.
            data_dir: the data folder that has it; by default the workbench that `MODELGAUGE_WORKBENCH_URL` names, else
                the folder of the settings.

        Returns:
            The data set.

        Raises:
            UnknownNameError: there is no such data set or version.
            DownloadError: the workbench cannot be reached.
        """
        alias = check_alias(alias)
        found, rows = open_store(data_dir).rows(alias, version)
        goldens, test_cases = restore_members(rows, f"{alias}, version {found.number}")
        self.goldens, self.test_cases = [], []  # both, so that the other kind fits
        self.goldens, self.test_cases = goldens, test_cases
        self.name, self.pulled = alias, (alias, found)
        PULLED.add(self)
        return self

    @explains_arguments
    def push(
        self: Any,
        alias: str,
        *,
        message: str = "",
        author: str = "",
        parent: int | None = None,
        data_dir: FilePath | None = None,
    ) -> Version:
        """Save the goldens and test cases as a new version.

        Nothing is overwritten: if somebody else saved a version after this data set was pulled, nothing is saved, and
        the error names both versions. Where nothing has changed, there is no new version.

        Args:
            alias: the name under which to save the data set: letters, digits, spaces, `.`, `_` and `-`.
            message: what was changed, and why.
            author: who changed it.
            parent: the number of the version that it replaces; by default the version that was pulled, or pushed,
                last.
            data_dir: see `pull`.

        Returns:
            The version.

        Raises:
            DatasetConflictError: the latest version is not the parent.
            UsageError: there is nothing to save.
            DownloadError: the workbench cannot be reached.
        """
        alias = check_alias(alias)
        if parent is None and self.pulled is not None and self.pulled[0] == alias:
            parent = self.pulled[1].number
        rows = make_rows(self.goldens, self.test_cases)
        if not rows:
            raise UsageError(
                "There are no goldens to save.", fix="Add some: dataset.add_golden(Golden(input=…))."
            )
        made = Version(
            number=1, rows=0, parent=parent, author=author, message=message, content_hash=self.content_hash
        )
        saved = open_store(data_dir).add(alias, rows, made)
        self.pulled = (alias, saved)
        PULLED.add(self)
        return saved


DatasetStore: TypeAlias = VersionsFolder | ServedVersions
"""A store of versions of data sets: a folder, or a served workbench."""


def open_store(data_dir: FilePath | None = None) -> DatasetStore:
    """Open the store for versions of data sets.

    Args:
        data_dir: a folder of data; None for what the settings say: a served workbench, else their folder.
    """
    if data_dir is not None:
        return VersionsFolder(Path(data_dir))
    settings = load_settings()
    if settings.workbench_url is None:
        return VersionsFolder(settings.data_dir)
    token = SecretStore(file=settings.secrets_file).get(WorkbenchToken)
    return ServedVersions(settings.workbench_url, token)


def restored(
    alias: str, number: int, *, message: str = "", author: str = "", store: DatasetStore | None = None
) -> Version:
    """Save an earlier version again, as the latest version.

    Args:
        alias: of the data set.
        number: of the earlier version.
        message: why; by default it names the version.
        author: who did it.
        store: where the versions are kept; None for what the settings say.

    Raises:
        UnknownNameError: there is no such version.
        DatasetConflictError: somebody saved another version at the same time.
    """
    store = store or open_store()
    earlier, rows = store.rows(alias, number)
    latest = store.versions(alias)[-1]
    message = message or f"Version {number} again"
    made = earlier.replaced(parent=latest.number, author=author, message=message, time=datetime.now(UTC))
    return store.add(alias, rows, made)

"""`pull` and `push` of data sets: their versions in a folder, or in a served workbench."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast
from weakref import WeakSet

from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import load_settings
from modelgauge.datasets.dataset_files import FilePath
from modelgauge.datasets.rows import members_of, rows_of
from modelgauge.datasets.served import ServedVersions, WorkbenchToken
from modelgauge.datasets.versions import DatasetStore, Version, VersionsFolder, check_alias
from modelgauge.errors import UsageError
from modelgauge.interfaces.arguments import explains_arguments

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
    """What data sets do with their versions.

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
            alias: what the data set was saved as.
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
        found, rows = store_of(data_dir).rows(alias, version)
        goldens, test_cases = members_of(rows, f"{alias}, version {found.number}")
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
            alias: what to save the data set as: letters, digits, spaces, `.`, `_` and `-`.
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
        rows = rows_of(self.goldens, self.test_cases)
        if not rows:
            raise UsageError(
                "There are no goldens to save.", fix="Add some: dataset.add_golden(Golden(input=…))."
            )
        made = Version(
            number=1, rows=0, parent=parent, author=author, message=message, content_hash=self.content_hash
        )
        saved = store_of(data_dir).add(alias, rows, made)
        self.pulled = (alias, saved)
        PULLED.add(self)
        return saved


def store_of(data_dir: FilePath | None = None) -> DatasetStore:
    """The store that keeps versions of data sets.

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
    store = store or store_of()
    earlier, rows = store.rows(alias, number)
    latest = store.versions(alias)[-1]
    message = message or f"Version {number} again"
    return store.add(
        alias,
        rows,
        earlier.replaced(parent=latest.number, author=author, message=message, time=datetime.now(UTC)),
    )

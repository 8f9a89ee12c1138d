"""Versions of data sets in a folder: `<data-dir>/datasets/ALIAS/v0001.jsonl`, and what they are in `versions.jsonl`.

A saved version never changes; each later save makes a new version. The rows of a version are written first, and its
line in `versions.jsonl` last, so that a killed process leaves no version, or a whole one.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from modelgauge.data.base import Count, Frozen, Text
from modelgauge.datasets.dataset_files import file_text
from modelgauge.dependencies.safety import unsafe_part
from modelgauge.engine.run_files.lines import whole_lines
from modelgauge.errors import DatasetConflictError, InvalidOptionError, RecordError, UnknownNameError
from modelgauge.files.json_lines import read_json_lines
from modelgauge.files.regular import opened, read_bytes
from modelgauge.files.whole import append_line, creating, turn
from modelgauge.runs.trash import TRASH, free_place, name_before
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import counted

DATASETS, VERSIONS = "datasets", "versions.jsonl"
LONGEST_MESSAGE = 10_000
_ALIAS = re.compile(r"\w(?:[\w .-]{0,58}[\w-])?")
_FILE = re.compile(r"v(\d{4,9})\.jsonl")

Row = Mapping[str, Any]


class Version(Frozen):
    """The facts about a version of a data set, without its rows.

    Args:
        number: from 1; later versions have greater numbers.
        content_hash: of its goldens: `EvaluationDataset.content_hash`.
        rows: how many there are.
        parent: the version that it was made from; None for the first.
        author: who saved it; empty if unknown.
        message: what was changed, and why.
        time: when it was saved.
    """

    number: Annotated[int, Field(ge=1)]
    content_hash: Text
    rows: Count
    parent: int | None = None
    author: Annotated[Text, Field(max_length=100)] = ""
    message: Annotated[Text, Field(max_length=LONGEST_MESSAGE)] = ""
    time: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))

    def __str__(self) -> str:
        by = f" by {self.author}" if self.author else ""
        return f"version {self.number}{by} of {self.time:%Y-%m-%d %H:%M}"


def check_alias(alias: object) -> str:
    """Validate the name of a data set.

    Raises:
        InvalidOptionError: it is not a valid alias.
    """
    name = unicodedata.normalize("NFC", alias) if isinstance(alias, str) else ""
    if not _ALIAS.fullmatch(name) or unsafe_part(name):
        raise InvalidOptionError(
            f"{alias!r} cannot be the alias of a data set.",
            fix="Use 1 to 60 letters, digits, spaces, '.', '_' and '-', such as 'support questions'.",
        )
    return name


def no_version(
    alias: str, number: int | None, there: Sequence[Version], known: Sequence[str]
) -> UnknownNameError:
    """Return the error for a version or data set that does not exist.

    Args:
        alias: of the data set.
        number: of the version; None for any.
        there: the versions that there are.
        known: the data sets that there are.
    """
    if there:
        listed = ", ".join(str(version.number) for version in there[-20:])
        return UnknownNameError(f"{alias!r} has no version {number}.", fix=f"Its versions are: {listed}.")
    listed = f"There are: {', '.join(known)}." if known else "Save one: modelgauge datasets push FILE ALIAS."
    return UnknownNameError(f"There is no data set {alias!r}.", fix=did_you_mean(alias, known) + listed)


class VersionsFolder:
    """The versions of all data sets in a folder of data.

    Args:
        data_dir: the folder; it need not be there.
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder, self._trash = data_dir / DATASETS, data_dir / TRASH / DATASETS

    def aliases(self) -> list[str]:
        """Return the names of data sets that have a version."""
        lists = self._folder.glob(f"*/{VERSIONS}")
        folders = [path.parent for path in lists if not path.parent.is_symlink()]
        return sorted(folder.name for folder in folders if _ALIAS.fullmatch(folder.name))

    def versions(self, alias: str) -> list[Version]:
        """Return all versions, oldest first; empty if there is no data set with this alias.

        Raises:
            RecordError: the list of versions is damaged, or the folder is a link.
        """
        path = self.folder(alias) / VERSIONS
        try:
            return [Version.load(json.loads(line)) for line in whole_lines(path)]
        except ValueError as error:  # no JSON, or no version
            raise RecordError(
                f"{path} is not a list of versions: {error}.",
                fix="Correct the file, or restore it from a backup.",
            ) from None

    def version(self, alias: str, number: int | None = None) -> Version:
        """Return a version; without a number, the latest version.

        Raises:
            UnknownNameError: there is no such version.
        """
        there = self.versions(alias)
        found = [stored for stored in there if number in (None, stored.number)]
        if not found:
            raise no_version(alias, number, there, self.aliases())
        return found[-1]

    def same(self, content_hash: str) -> list[tuple[str, Version]]:
        """Return the versions of all data sets that have the same goldens, with the alias of each.

        Data sets whose list of versions is damaged are left out.

        Args:
            content_hash: of the goldens.
        """
        found = []
        for alias in self.aliases():
            with suppress(RecordError):
                found += [(alias, made) for made in self.versions(alias) if made.content_hash == content_hash]
        return found

    def path(self, alias: str, number: int) -> Path:
        """Return the file with a version's rows."""
        return self.folder(alias) / f"v{number:04}.jsonl"

    def folder(self, alias: str) -> Path:
        """Return the folder of a data set. A link could lead anywhere, so it is neither read nor written."""
        folder = self._folder / check_alias(alias)
        if folder.is_symlink():
            raise RecordError(
                f"{folder} is a link.", fix="Put the folder itself in its place, or use another alias."
            )
        return folder

    def rows(self, alias: str, number: int | None = None) -> tuple[Version, list[Row]]:
        """Return a version and its rows; without a number, the latest version.

        Raises:
            UnknownNameError: there is no such version.
            RecordError: its file is not what was saved.
        """
        version = self.version(alias, number)
        path = self.path(alias, version.number)
        try:
            with opened(path, links=True) as file:
                rows = [row for _, row in read_json_lines(file, str(path))]
            for error in (row for row in rows if isinstance(row, ValueError)):
                raise error
        except (OSError, ValueError) as error:
            raise RecordError(f"{path} cannot be read: {error}.", fix="Restore it from a backup.") from None
        if len(rows) != version.rows:
            problem = f"{path} has {counted(len(rows), 'row')}, instead of {version.rows:,}."
            raise RecordError(problem, fix="Restore it from a backup, or use another version.")
        return version, rows

    def add(self, alias: str, rows: Sequence[Row], made: Version) -> Version:
        """Save a new version of a data set, if the latest version is its parent.

        Args:
            alias: of the data set, which is created if there is none.
            rows: of `row_of`.
            made: the version, whose number is not known yet.

        Returns:
            The version with its number; the latest version if it has the same rows.

        Raises:
            DatasetConflictError: somebody else saved a version in between.
            OSError: the disk refuses.
        """
        folder = self.folder(alias)
        text = file_text("jsonl", rows).encode()
        with self._turn(alias):
            folder.mkdir(exist_ok=True)
            there = self.versions(alias)
            latest = there[-1] if there else None
            if made.parent != (latest and latest.number):
                raise _conflict(alias, made.parent, latest)
            if latest and read_bytes(self.path(alias, latest.number)) == text:
                return latest
            # A process that was killed can have left a file that is not a version: its number is not used again.
            files = (_FILE.fullmatch(path.name) for path in folder.iterdir())
            number = max([made.parent or 0, *(int(file[1]) for file in files if file)]) + 1
            with creating(self.path(alias, number)) as written:
                written.write_bytes(text)
            version = made.replaced(number=number, rows=len(rows))
            append_line(folder / VERSIONS, version.model_dump_json().encode())
            return version

    def _turn(self, alias: str) -> AbstractContextManager[None]:
        """Wait until nobody else changes a data set, and lock it meanwhile. Its folder can be moved then."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return turn(self._folder / f".{check_alias(alias)}.lock")

    # --- data sets as wholes ----------------------------------------------------------------------------

    def copy(self, alias: str, new: str, *, author: str = "") -> Version:
        """Save the latest version of a data set as the first version of a new data set.

        Args:
            alias: of the data set.
            new: the alias of the copy.
            author: who copies it.

        Raises:
            UnknownNameError: there is no such data set.
            DatasetConflictError: there is a data set with the new alias.
        """
        version, rows = self.rows(alias)
        self._check_free(new)
        message = f"Copy of {alias}, version {version.number}"
        made = Version(number=1, rows=0, content_hash=version.content_hash, author=author, message=message)
        return self.add(new, rows, made)

    def rename(self, alias: str, new: str) -> None:
        """Give a data set another alias, with all its versions.

        Args:
            alias: of the data set.
            new: its new alias.

        Raises:
            UnknownNameError: there is no such data set.
            DatasetConflictError: there is a data set with the new alias.
            RecordError: its folder cannot be moved.
        """
        first, second = sorted((check_alias(alias), check_alias(new)))
        with self._turn(first), self._turn(second) if second != first else nullcontext():
            self.version(alias)
            self._check_free(new)
            _move(self.folder(alias), self.folder(new))

    def delete(self, alias: str) -> str:
        """Move a data set to the trash, and return its name there.

        Raises:
            UnknownNameError: there is no such data set.
            RecordError: its folder cannot be moved.
        """
        with self._turn(alias):
            self.version(alias)
            self._trash.mkdir(parents=True, exist_ok=True)
            target = free_place(self._trash, check_alias(alias))
            _move(self.folder(alias), target)
            return target.name

    def deleted(self) -> list[str]:
        """Return the names of the data sets in the trash."""
        return sorted(path.parent.name for path in self._trash.glob(f"*/{VERSIONS}"))

    def undelete(self, name: str) -> str:
        """Move a data set back from the trash, and return its alias.

        Args:
            name: of the data set in the trash, see `deleted`.

        Raises:
            UnknownNameError: it is not in the trash.
            DatasetConflictError: another data set has its alias by now.
            RecordError: its folder cannot be moved.
        """
        if name not in self.deleted():
            raise UnknownNameError(
                f"There is no data set {name!r} in the trash.", fix="Choose one of those that there are."
            )
        alias = name_before(self._trash / name)
        with self._turn(alias):
            self._check_free(alias)
            _move(self._trash / name, self.folder(alias))
        return alias

    def _check_free(self, alias: str) -> None:
        if self.folder(alias).exists():
            raise DatasetConflictError(
                f"There is a data set {alias!r} already.",
                fix="Choose another name, or rename that one first.",
            )


def _move(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError as error:
        problem = f"{folder} cannot be moved to {target}: {error.strerror}."
        raise RecordError(problem, fix="Move the folder by hand.") from error


def _conflict(alias: str, parent: int | None, latest: Version | None) -> DatasetConflictError:
    if latest is None:
        return DatasetConflictError(
            f"{alias!r} has no version {parent}, which was given as the parent: it has no versions.",
            fix="If it was renamed, push it under its new name; else push it without a parent.",
        )
    made_from = "is new" if parent is None else f"was made from version {parent}"
    return DatasetConflictError(
        f"{alias!r} has {latest} now, but your data set {made_from}. Nothing was saved.",
        fix=f"Pull version {latest.number}, make your changes there, and push again. To keep yours in its place: "
        f"parent={latest.number}; on the command line --parent {latest.number}.",
    )


def version_of_file(path: Path) -> tuple[str, int] | None:
    """Return the alias and number of the version whose rows a file contains; None for any other file."""
    found = _FILE.fullmatch(path.name)
    if found is None or not (path.parent / VERSIONS).is_file():
        return None
    return path.parent.name, int(found[1])

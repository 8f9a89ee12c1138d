"""The file that an option of a command names for its output."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TextIO

import click

from modelgauge.errors import InputFileError, RunStoppedError
from modelgauge.files.regular import real_path
from modelgauge.files.whole import replacing


class _OutputPath(click.Path):
    """A path to write to. `-` is refused: it would be a file of this name, where elsewhere it stands for stdout."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path of an argument.

        Raises:
            click.BadParameter: it is `-`.
        """
        if value == "-":
            self.fail(
                "'-' does not stand for stdout here. Give a name; ./- is a file of this name.", param, ctx
            )
        return super().convert(value, param, ctx)


OUTPUT_PATH = _OutputPath(path_type=Path)
"""The type of options that name a file or a folder to be written."""


class OutputFile:
    """A file that is proved to be writable before anything is paid, and replaced at once at the end.

    Args:
        path: where the file goes; the missing folders of its real path are made. What is not a plain file
            (`/dev/stdout`, a pipe) is written in place.
        data_dir: of runs and cache, in which nothing is replaced; None if the file may lie in their folder.
        option: that named the file, for messages.

    Raises:
        InputFileError: nothing can be written there.
    """

    def __init__(self, path: Path, data_dir: Path | None, option: str = "--output-file") -> None:
        from tempfile import TemporaryFile

        self._named = f"{option} {path}"
        path = Path(os.path.normpath(real_path(path.parent) / path.name))  # x/../y makes no x
        if path.is_dir():
            raise InputFileError(f"{self._named} is a folder.", fix="Give the name of a file in it.")
        self.path = path
        self._in_place = path.exists() and not path.is_file()
        if not self._in_place and data_dir is not None:
            self._refuse_what_is_kept(data_dir)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():  # which may be read only
                path.open("r+b").close()
            if not self._in_place:
                TemporaryFile(dir=path.parent).close()  # the folder takes new files
            elif not path.is_fifo():  # its reader would take this for the end of all that comes
                path.open("w").close()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InputFileError(
                f"{self._named} cannot be written: {reason}.",
                fix="Give a file in a folder of your own.",
            ) from error

    @contextmanager
    def replaced(self) -> Iterator[Path]:
        """Yield a temporary path; the file replaces the target if the block ends without an error.

        Raises:
            RunStoppedError: the disk refuses; the runs themselves are kept.
        """
        try:
            with nullcontext(self.path) if self._in_place else replacing(self.path) as written:
                yield written
        except OSError as error:
            whole = self._named.startswith("--output-file ")
            again = (
                "`modelgauge show RUN --items --json` prints the same" if whole else "run the command again"
            )
            raise RunStoppedError(
                f"{self._named} cannot be written: {error}.", fix=f"The runs are kept; {again}."
            ) from error

    @contextmanager
    def writing(self) -> Iterator[TextIO]:
        """Yield an open file, which replaces the target if the block ends without an error.

        Raises:
            RunStoppedError: the disk refuses; the runs themselves are kept.
        """
        with self.replaced() as written, written.open("w", encoding="utf-8", newline="\n") as file:
            yield file

    def _refuse_what_is_kept(self, data_dir: Path) -> None:
        """Refuse a link, which leads to a file that was not named, and the files of runs and caches."""
        from modelgauge.engine.run_files.folder import MANIFEST

        problem = "is a link to another file" if self.path.is_symlink() else ""
        if self.path.exists() and (
            real_path(self.path).is_relative_to(real_path(data_dir)) or (self.path.parent / MANIFEST).exists()
        ):
            problem = "would replace a file of the data folder"
        if problem:
            raise InputFileError(f"{self._named} {problem}.", fix="Give the name of a new file.")

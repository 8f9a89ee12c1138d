"""`--output-file`: one JSON file with records and all their items, written whole or not at all."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modelgauge.engine.run_files.folder import MANIFEST
from modelgauge.errors import InputFileError, RunStoppedError
from modelgauge.files.regular import real_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO


class OutputFile:
    """A file that is proved to be writable before anything is paid, and replaced at once at the end.

    Args:
        path: where the file goes; missing folders are made. What is no plain file (`/dev/stdout`, a pipe)
            is written in place.
        data_dir: of runs and cache, in which nothing is replaced.

    Raises:
        InputFileError: nothing can be written there.
    """

    def __init__(self, path: Path, data_dir: Path) -> None:
        if path.is_dir():
            raise InputFileError(f"--output-file {path} is a folder.", fix="Give the name of a file in it.")
        self.path = path
        self._in_place = path.exists() and not path.is_file()
        self._partial = path if self._in_place else path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        if not self._in_place:
            self._refuse_what_is_kept(data_dir)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():  # which may be read only
                path.open("r+b").close()
            if not path.is_fifo():  # its reader would take this for the end of all that comes
                self._opened().close()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InputFileError(
                f"--output-file {path} cannot be written: {reason}.",
                fix="Give a file in a folder of your own.",
            ) from error
        self._discard()

    @contextmanager
    def writing(self) -> Iterator[TextIO]:
        """The open file, which takes its place when the block ends without an error.

        Raises:
            RunStoppedError: the disk refuses; the runs themselves are kept.
        """
        try:
            with self._opened() as file:
                yield file
            if not self._in_place:
                self._partial.replace(self.path)
        except OSError as error:
            raise RunStoppedError(
                f"--output-file {self.path} cannot be written: {error}.",
                fix="The runs are kept; `modelgauge show RUN --items --json` prints the same.",
            ) from error
        finally:
            self._discard()

    def _opened(self) -> TextIO:
        return self._partial.open("w", encoding="utf-8", newline="\n")

    def _discard(self) -> None:
        if not self._in_place:
            self._partial.unlink(missing_ok=True)

    def _refuse_what_is_kept(self, data_dir: Path) -> None:
        """Refuse a link, which leads to a file that was not named, and the files of runs and caches."""
        problem = "is a link to another file" if self.path.is_symlink() else ""
        if self.path.exists() and (
            real_path(self.path).is_relative_to(real_path(data_dir)) or (self.path.parent / MANIFEST).exists()
        ):
            problem = "would replace a file of the data folder"
        if problem:
            raise InputFileError(f"--output-file {self.path} {problem}.", fix="Give the name of a new file.")

"""The files of a model or an adapter: where they are, and the digest or commit that identifies their content."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Self

from modelgauge.errors import InputFileError, InvalidOptionError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_READ = frozenset(
    {".safetensors", ".bin", ".json", ".model", ".txt", ".jinja", ".tiktoken", ".vocab", ".pt", ".pth"}
)
"""Suffixes of the files that weights, tokenizer, template and configuration are read from."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A folder with a model or an adapter, or one of the Hugging Face hub.

    Args:
        name: path or id.
        revision: branch, tag or commit, for an id only.
        gguf_file: a GGUF file in the folder or repository, which weights and tokenizer are read from.
        configuration: the file that such a folder has.
    """

    name: str
    revision: str | None = None
    gguf_file: str | None = None
    configuration: str = "config.json"

    @classmethod
    def of_adapter(cls, name: str) -> Self:
        """Return the files of an adapter."""
        return cls(name, configuration="adapter_config.json")

    @property
    def folder(self) -> Path | None:
        """The folder; None for an id."""
        path = Path(self.name).expanduser()
        return path if path.is_dir() else None

    def check(self) -> None:
        """Refuse a name that is neither a folder nor an id, and options that do not fit it.

        Raises:
            InputFileError: the folder or the GGUF file does not exist.
            InvalidOptionError: a revision of a folder, or a file in place of its folder.
        """
        folder = self.folder
        if folder is None:
            self._check_id()
        elif self.revision is not None:
            raise InvalidOptionError(
                f"{self.name} is a folder, and folders have no revision {self.revision!r}.",
                fix="Leave revision out. The run records a digest of the folder's files.",
            )
        elif self.gguf_file is not None and not (folder / self.gguf_file).is_file():
            raise InputFileError(
                f"{self.name} has no file {self.gguf_file}.", fix="Name a GGUF file of this folder."
            )
        elif self.gguf_file is None and not (folder / self.configuration).is_file():
            found = sorted(file.name for file in folder.glob("*.gguf"))
            raise InputFileError(
                f"{self.name} has no {self.configuration}.",
                fix=f"Name its GGUF file: ?gguf_file={found[0]}"
                if found
                else "Name a folder that has it, or an id of the Hugging Face hub.",
            )

    def _check_id(self) -> None:
        path = Path(self.name).expanduser()
        if path.is_file():
            raise InvalidOptionError(
                f"{self.name} is a file.",
                fix=f"Name its folder, and the file as an option: transformers/{path.parent}?gguf_file={path.name}",
            )
        if path.is_absolute() or self.name.startswith((".", "~")) or self.name.count("/") > 1:
            raise InputFileError(
                f"There is no folder {self.name}.",
                fix="Name a folder, or an id of the Hugging Face hub, OWNER/NAME.",
            )

    def version(self) -> str:
        """Return a digest of the folder's files, or the id and its commit.

        Raises:
            InputFileError: see `check`; or the commit cannot be found out.
        """
        self.check()
        if self.folder is None:
            return f"{self.name}@{self.commit()}" + (f"/{self.gguf_file}" if self.gguf_file else "")
        return f"sha256:{_digest(self._files(self.folder))}"

    def _files(self, folder: Path) -> Iterator[Path]:
        if self.gguf_file is not None:
            yield folder / self.gguf_file
        else:
            yield from (file for file in folder.iterdir() if file.suffix in _READ and file.is_file())

    def commit(self) -> str:
        """Return the commit of an id's revision: from the hub, or from the local cache where the hub cannot be reached.

        Raises:
            InputFileError: neither has it.
        """
        return _commit(self.name, self.revision or "main")


@lru_cache(maxsize=64)
def _commit(name: str, revision: str) -> str:
    if _COMMIT.fullmatch(revision):
        return revision
    try:
        hub = import_module("huggingface_hub")
        try:
            return str(hub.HfApi().model_info(name, revision=revision, timeout=10).sha)
        except (OSError, ValueError) as error:  # offline mode included
            problem = (
                f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
            )
            kept = Path(hub.constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs" / revision
            if kept.is_file():
                return kept.read_text(encoding="ascii").strip()
    except ImportError:
        problem = "huggingface_hub is not installed"
    raise InputFileError(
        f"Cannot find out the commit of {name} at revision {revision} ({problem.rstrip('.')}).",
        fix="Check the name and the network, name a commit (?revision=…), or name a folder with the model.",
    )


def _digest(files: Iterator[Path]) -> str:
    """Digest names and contents of files. The place of their folder does not count."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.name):
        state = file.stat()
        content = _digest_of_file(file.resolve(), state.st_size, state.st_mtime_ns)
        digest.update(f"{len(file.name)} {file.name} {content}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=1024)
def _digest_of_file(file: Path, size: int, modified: int) -> str:
    """Digest a file's content, again only if its size or time has changed."""
    del size, modified
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

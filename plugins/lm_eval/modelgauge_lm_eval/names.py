"""The names of lm-eval's tasks, groups and tags, and the file of each. Nothing of lm-eval is imported.

lm-eval's own index takes seconds, since it parses 14,000 YAML files. Names need five keys of them, which are read as
text. They are those of lm-eval's index; a test compares the two.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from modelgauge.errors import PluginError

Kind = Literal["task", "group", "tag"]
Keys = dict[str, list[str]]

_KEY = re.compile(
    r"""^["']?(task|group|class|include|tag)["']?[ \t]*:([^\n]*(?:\n[ \t]*-[ \t]+[^\n]*)*)""",
    re.MULTILINE,
)
_PART = re.compile(r"""'([^'\n]*)'|"([^"\n]*)"|([^\s,\[\]'"-][^\n,\]]*)""")
_COMMENT = re.compile(r"(?<=\s)#[^\n]*")
_IGNORED = frozenset({"__pycache__", ".ipynb_checkpoints"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A name that can be measured.

    Args:
        name: of a task, group or tag.
        kind: which of these.
        path: the file of a task or group.
        tasks: the names of the tasks that have a tag.
    """

    name: str
    kind: Kind
    path: Path | None = None
    tasks: list[str] = field(default_factory=list)


def installed_folder() -> Path:
    """Return the folder of lm-eval's own tasks.

    Raises:
        PluginError: lm-eval is not installed.
    """
    spec = find_spec("lm_eval")
    if spec is None or not spec.submodule_search_locations:
        raise PluginError(
            "lm-eval is not installed.",
            fix="pip install 'modelgauge-plugin-lm-eval[lm-eval]', or lm_eval alone.",
        )
    return Path(spec.submodule_search_locations[0]) / "tasks"


def installed_names() -> list[str]:
    """Return the names of all tasks, groups and tags of the installed lm-eval, for completion and lists.

    Raises:
        PluginError: lm-eval is not installed.
    """
    return sorted(_installed(installed_folder()))


def index(folders: Sequence[Path]) -> dict[str, Entry]:
    """Return the tasks, groups and tags in some folders by name; a later folder replaces names of an earlier one.

    Args:
        folders: that of the installed lm-eval, which is read once, and others.
    """
    installed, *others = folders
    found = dict(_installed(installed))
    for folder in others:
        found |= _read_index(folder)
    return found


@cache
def _installed(folder: Path) -> Mapping[str, Entry]:
    return _read_index(folder)


def _read_index(folder: Path) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    read: dict[str, Keys] = {}
    for path in sorted(_yaml_files(folder)):
        keys = _read_keys(path, read)
        kind: Kind = "group" if "group" in keys and "class" not in keys else "task"
        [*names] = keys.get(kind, ())
        if len(names) != 1 or names[0] in found:  # the first file counts, as in lm-eval
            continue
        found[names[0]] = Entry(names[0], kind, Path(path))
        for tag in keys.get("tag", ()) if kind == "task" else ():
            found.setdefault(tag, Entry(tag, "tag")).tasks.append(names[0])
    return found


def _yaml_files(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _IGNORED]
        yield from (f"{place}/{file}" for file in files if file.endswith(".yaml"))


def _read_keys(path: str, read: dict[str, Keys]) -> Keys:
    """Return the keys of a file that say what it is, with those of the files that it includes.

    Args:
        path: of the file.
        read: the keys of files that were read before; many files include one.
    """
    if path in read:
        return read[path]
    read[path] = {}
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  14,000 times
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return {}
    own = {key: _parts(value) for key, value in _KEY.findall(text)}
    included: Keys = {}
    for name in own.pop("include", ()):
        included |= _read_keys(os.path.normpath(Path(path).parent / name), read)
    read[path] = included | own
    return read[path]


def _parts(value: str) -> list[str]:
    """Return the texts of a YAML scalar, or of a list of scalars."""
    return ["".join(part).strip() for part in _PART.findall(_COMMENT.sub("", value))]

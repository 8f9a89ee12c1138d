"""Finds the installed distributions that announce plugins, and those that conflict with ours; imports none.

Plugins are entry points of group `modelgauge`. `importlib.metadata` would find them too, but it costs more to
import than all the plugins of a large installation, and every command asks. So plain folders on `sys.path` are
read here; where there is anything else (an archive, an egg, a finder of its own), the standard library is asked
instead.
"""

import os
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.machinery import PathFinder

GROUP = "modelgauge"
DISTRIBUTION = "modelgauge-framework"

# Another project publishes the first three; all six were names of ours before we learned of it. What is
# installed under one of them puts files where ours are, or an old checkout of ours before the new one.
_FOREIGN = frozenset(
    {
        "modelgauge",
        "modelgauge-openai",
        "modelgauge-standard-tests",
        "modelgauge-demo-annotators",
        "modelgauge-demo-suts",
        "modelgauge-demo-tests",
    }
)


@dataclass(frozen=True, slots=True)
class PluginEntryPoint:
    """One line of a distribution's entry points.

    Args:
        name: what the distribution calls the plugin.
        value: `module`, or `module:object`.
        distribution: the name of the distribution.
        version: its version, `""` where its metadata has none.
    """

    name: str
    value: str
    distribution: str
    version: str


def installed_entry_points(path: Sequence[str] | None = None) -> list[PluginEntryPoint]:
    """List the plugins registered by installed distributions, by distribution, without duplicates.

    If a distribution is installed twice, the first on the path counts, as for imports; within one folder
    (a stale leftover, say) the entry that was written last.

    Args:
        path: the folders to look in; `sys.path` when None.
    """
    folders = list(dict.fromkeys(sys.path if path is None else path))
    read = _from_standard_library if _needs_standard_library(folders) else _from_folders
    found = read(folders)
    return sorted(dict.fromkeys(found), key=lambda each: (each.distribution, each.name))


def canonical_distribution(name: str) -> str:
    """Normalize the name of a distribution (PyPA specification "Names and normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_version(distribution: str) -> str:
    """Return the version of an installed distribution; "" if it is not installed."""
    metadata = import_module("importlib.metadata")
    try:
        return str(metadata.version(distribution))
    except (metadata.PackageNotFoundError, ValueError):  # no distribution: the file of a --plugin, say
        return ""


@cache
def warn_of_foreign_distributions() -> None:
    """Warn, once in a process, of distributions that share names and files with ours, and say how to remove them."""
    entries = (entry for folder in dict.fromkeys(sys.path) for entry in _metadata_folders(folder))
    names = {_name_in(entry.name) for entry in entries if entry.name.lower().startswith(GROUP)}
    plugins = names & _FOREIGN - {GROUP}
    found = sorted((names & _FOREIGN) - (_required_by_others(plugins) if plugins else set()))
    if found:
        warnings.warn(
            f"{', '.join(found)}: installed beside {DISTRIBUTION}, which is this ModelGauge. Another project, or "
            "an old checkout, has files of the same names, so that either may run in place of the other. These "
            f"two commands leave this one:\n  pip uninstall {' '.join(found)}\n"
            f"  pip install --force-reinstall --no-deps {_sources_of_ours()}",
            stacklevel=2,
        )


def _required_by_others(plugins: Collection[str]) -> set[str]:
    """Return the plugins of the other project that an installed distribution requires, such as a bridge to them."""
    required: set[str] = set()
    for distribution in import_module("importlib.metadata").distributions():
        if canonical_distribution(distribution.name or "") not in _FOREIGN:
            names = (re.match(r"[\w.-]+", requirement) for requirement in distribution.requires or ())
            required |= {canonical_distribution(name[0]) for name in names if name}
    return required.intersection(plugins)


def _sources_of_ours() -> str:
    """Return pip arguments that reinstall our distributions: from their origin (PEP 610), or by name."""
    metadata, json = import_module("importlib.metadata"), import_module("json")
    sources = {DISTRIBUTION: DISTRIBUTION}
    for distribution in metadata.distributions():
        name = canonical_distribution(distribution.name)
        if name == DISTRIBUTION or name.startswith(f"{GROUP}-plugin-"):
            origin = json.loads(distribution.read_text("direct_url.json") or "{}")
            version_control = origin.get("vcs_info", {}).get("vcs")
            url = origin.get("url", name)
            editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
            sources[name] = f"{version_control}+{url}" if version_control else f"{editable}{url}"
    return " ".join(sources.values())


def _needs_standard_library(folders: Iterable[str]) -> bool:
    other_finders = any(
        hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path
    )
    return other_finders or any(_is_no_folder(folder) for folder in folders)


def _is_no_folder(folder: str) -> bool:
    # os.path: a Path for each entry of each command's sys.path costs more than the look.
    return folder.rstrip("/\\").endswith(".egg") or os.path.isfile(folder)  # noqa: PTH113  see above


def _from_folders(folders: Iterable[str]) -> Iterator[PluginEntryPoint]:
    seen: set[str] = set()
    for folder in folders:
        for name, path in _installed_in(folder, _read_version(folder or ".")):
            if name not in seen:
                seen.add(name)
                yield from _announced_by(path, _read_version(f"{path}/entry_points.txt"))


_Version = tuple[int, ...]
"""Fingerprint that changes when a file is rewritten, or something in a folder is installed or removed."""


def _read_version(path: str) -> _Version:
    try:
        now = os.stat(path)  # noqa: PTH116  see above
    except OSError:
        return ()  # not there: imports find nothing there either
    return now.st_dev, now.st_ino, now.st_mtime_ns, now.st_size


@lru_cache(maxsize=256)
def _installed_in(folder: str, version: _Version) -> list[tuple[str, str]]:
    """Return the distributions in a folder, each with the folder of its metadata."""
    del version
    here: dict[str, os.DirEntry[str]] = {}
    for entry in _metadata_folders(folder):
        name = _name_in(entry.name)
        if name not in here or _time_written(entry) > _time_written(here[name]):
            here[name] = entry
    return [(name, entry.path) for name, entry in here.items()]


@lru_cache(maxsize=4096)
def _announced_by(path: str, version: _Version) -> tuple[PluginEntryPoint, ...]:
    """Return the entry points of a distribution, by the folder of its metadata."""
    text = _read(path, "entry_points.txt") if version else ""
    if f"[{GROUP}]" not in text:
        return ()
    metadata = _read(path, "METADATA") or _read(path, "PKG-INFO")
    return tuple(_parse(text, metadata, otherwise=_name_in(os.path.basename(path))))  # noqa: PTH119  see above


def _metadata_folders(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder or ".") as entries:
            yield from (entry for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return  # not there, or not ours to read: imports find nothing there either


def _name_in(folder: str) -> str:
    """Return the name of a distribution from the name of its metadata folder."""
    return canonical_distribution(folder.rpartition(".")[0].partition("-")[0])


def _time_written(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def _read(folder: str, file: str) -> str:
    # os.path and open: as above, once for each installed distribution.
    path = os.path.join(folder, file)  # noqa: PTH118  see above
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123  see above
            return stream.read()
    except OSError:
        return ""  # egg-info as a plain file, metadata without this part


def _parse(entry_points: str, metadata: str, *, otherwise: str) -> Iterator[PluginEntryPoint]:
    headers = metadata.partition("\n\n")[0]
    found = dict(re.findall(r"^(Name|Version):[ \t]*(.*?)[ \t]*$", headers, re.MULTILINE))
    for plugin, value in _lines_of_group(entry_points):
        yield PluginEntryPoint(plugin, value, found.get("Name", otherwise), found.get("Version", ""))


def _lines_of_group(text: str) -> Iterator[tuple[str, str]]:
    in_group = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            in_group = line == f"[{GROUP}]"
        elif in_group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.partition("[")[0].replace(" ", "")  # without the extras of old times


def _from_standard_library(folders: list[str]) -> Iterator[PluginEntryPoint]:
    # Imported where folders alone do not tell: see the module's docstring. Its own parser of entry points is
    # not used: one malformed line of one distribution makes it raise for all.
    metadata = import_module("importlib.metadata")
    seen: set[str] = set()
    for distribution in metadata.distributions(path=folders):
        headers = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        name = next(iter(re.findall(r"^Name:[ \t]*(\S+)", headers, re.MULTILINE)), "")
        if name and canonical_distribution(name) not in seen:
            seen.add(canonical_distribution(name))
            yield from _parse(distribution.read_text("entry_points.txt") or "", headers, otherwise=name)

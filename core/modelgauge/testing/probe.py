"""The other process: what registering a plugin does, and the items of its tests under another hash seed.

It runs in a fresh interpreter, started by `fresh_process`, with a job on stdin and one JSON object on stdout.
It imports little, so that what a plugin adds can be seen; measuring a test's items imports what the test
needs.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import time
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Audit events of the standard library: https://docs.python.org/3/library/audit_events.html
_NETWORK = {"socket.connect": "connects to", "socket.getaddrinfo": "looks up", "socket.bind": "listens on"}
_PROCESSES = {
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
}
_FILES = {
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.truncate",
    "os.link",
    "os.symlink",
    "os.chmod",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_MOST_ACTS = 20


def main() -> None:
    """Do the job on stdin."""
    job = json.loads(sys.stdin.buffer.read())
    out = sys.stdout
    with redirect_stdout(io.StringIO()) as printed:
        answer = _registration(job, printed) if job["do"] == "register" else _items(job)
    out.write("\n" + json.dumps(answer))
    out.flush()


# --- registering ----------------------------------------------------------------------------------


def _registration(job: Mapping[str, Any], printed: io.StringIO) -> dict[str, Any]:
    started = time.perf_counter()
    import_module("modelgauge.plugins.hookspecs")
    base_seconds = time.perf_counter() - started
    discovery = import_module("modelgauge.plugins.discovery")
    if job["plugins"]:
        _import_public_names()
    before = set(sys.modules)
    handlers, level = list(logging.root.handlers), logging.root.level
    watch = _Watch()
    sys.addaudithook(watch)
    plugins = _discovered(discovery, job)
    watch.on = False
    if logging.root.handlers != handlers or logging.root.level != level:
        watch.acts.append("configures logging")
    if printed.getvalue():
        watch.acts.append(f"prints {printed.getvalue()[:80]!r}")
    own = [loaded for loaded in plugins.loaded if loaded.name != "builtin"]
    foreign, along = _imported(set(sys.modules) - before, job)
    return {
        "failure": next((failure.cause for failure in plugins.failures), None),
        "base_seconds": base_seconds,
        "seconds": sum(loaded.seconds for loaded in own),
        "foreign": foreign,
        "along": along,
        "acts": list(dict.fromkeys(watch.acts)),
    }


def _import_public_names() -> None:
    """What a local plugin may import: its classes stand in the one file that is loaded."""
    modelgauge = import_module("modelgauge")
    for name in modelgauge.__all__:
        getattr(modelgauge, name)


class _Watch:
    """An audit hook: it cannot be removed, so it is switched off."""

    def __init__(self) -> None:
        self.on = True
        self.acts: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or len(self.acts) >= _MOST_ACTS:
            return
        if event == "open" and _is_write(*arguments[:3]):
            self.acts.append(f"writes {arguments[0]}")
        elif event in _NETWORK:
            self.acts.append(
                f"{_NETWORK[event]} {arguments[-1] if event != 'socket.getaddrinfo' else arguments[0]}"
            )
        elif event in _PROCESSES:
            self.acts.append("starts a process")
        elif event in _FILES:
            self.acts.append(f"{event.removeprefix('os.')} {arguments[0]}")


def _is_write(path: Any, mode: Any, flags: Any) -> bool:
    if path == os.devnull:
        return False
    written = isinstance(mode, str) and any(letter in mode for letter in "wxa+")
    return written or (isinstance(flags, int) and bool(flags & _WRITING))


def _discovered(discovery: Any, job: Mapping[str, Any]) -> Any:
    entry_points = import_module("modelgauge.config.entry_points")
    return discovery.discover(
        plugins=job["plugins"],
        entry_points=[entry_points.PluginEntryPoint(*fields) for fields in job["entry_points"]],
    )


def _imported(new: set[str], job: Mapping[str, Any]) -> tuple[dict[str, list[str]], list[str]]:
    """The modules of other distributions by their top-level name, and the plugin's own ones."""
    roots = [_root(value.partition(":")[0]) for _, value, _, _ in job["entry_points"]]
    folders = [Path(plugin).resolve().parent for plugin in job["plugins"]]
    foreign: dict[str, list[str]] = {}
    along = []
    for name in sorted(new):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in {"modelgauge", "pluggy"}:
            continue
        if any(name == root or name.startswith(f"{root}.") for root in roots) or _beside(name, folders):
            along.append(name)
        elif not any(root.startswith(f"{name}.") for root in roots):
            foreign.setdefault(top, []).append(name)
    return foreign, along


def _root(module: str) -> str:
    """The package of a module: its first part that is no mere namespace."""
    parts = module.split(".")
    for length in range(1, len(parts)):
        name = ".".join(parts[:length])
        if getattr(sys.modules.get(name), "__file__", None):
            return name
    return module


def _beside(name: str, folders: Sequence[Path]) -> bool:
    """Whether a module lies in the folder of a local plugin."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if not file:
        return False
    path = Path(file).resolve()
    return any(
        folder in path.parents and "site-packages" not in path.relative_to(folder).parts for folder in folders
    )


# --- items ----------------------------------------------------------------------------------------


def _items(job: Mapping[str, Any]) -> dict[str, Any]:
    discovery = import_module("modelgauge.plugins.discovery")
    subjects = import_module("modelgauge.testing.subjects")
    collecting = import_module("modelgauge.testing.collecting")
    plugins = _discovered(discovery, job)
    answer: dict[str, Any] = {}
    for name, dependencies in job["tests"].items():
        # The job names only tests that the process which wrote it could make.
        test = plugins.tests.make(name, secrets=subjects.CanaryStore())
        paths = {key: Path(path) for key, path in dependencies.items()}
        collected = collecting.collect(test, paths)
        answer[name] = {
            "digests": collected.digests,
            "error": str(collected.error) if collected.error else None,
        }
    return answer


if __name__ == "__main__":
    main()

"""A fresh process: reports what registering a plugin does, and the items of its tests under another hash seed.

`plugin_checks` runs this file in a fresh interpreter, with a job on stdin and one JSON object on stdout. It is run as a
file and imports little, so that what a plugin adds can be seen.
"""

import gc
import io
import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
# Audit events of the standard library: https://docs.python.org/3/library/audit_events.html
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")
_CHANGES = ("mkdir", "remove", "rename", "rmdir", "truncate", "link", "symlink", "chmod")
_ACTS = {
    "socket.connect": "connects to {1}",
    "socket.getaddrinfo": "looks up {0}",
    "socket.bind": "listens on {1}",
    **dict.fromkeys(_STARTS, "starts a process"),
    **{f"os.{name}": f"{name} {{0}}" for name in _CHANGES},
}
_NO_PLUGIN = {*sys.stdlib_module_names, "modelgauge", "pluggy"}
_MOST_ACTS = 20


def main() -> None:
    """Do the job on stdin, with the path of modules that the first argument gives."""
    gc.set_threshold(20_000)  # as a command of ours has it, which imports as much
    sys.path[:] = json.loads(sys.argv[1])
    job = json.loads(sys.stdin.buffer.read())
    out = sys.stdout
    with redirect_stdout(io.StringIO()) as printed:
        answer = _registration(job, printed) if job["do"] == "register" else _items(job)
    out.write("\n" + json.dumps(answer))
    out.flush()
    gc.freeze()


def _registration(job: Mapping[str, Any], printed: io.StringIO) -> dict[str, Any]:
    started = time.perf_counter()
    import_module("modelgauge.plugins.hookspecs")
    base_seconds = time.perf_counter() - started
    import_module("modelgauge.plugins.discovery")
    if job["plugins"]:
        # A local plugin may import all public names: its classes stand in the one file that is loaded.
        modelgauge = import_module("modelgauge")
        for name in modelgauge.__all__:
            getattr(modelgauge, name)
    before = set(sys.modules)
    handlers, level = list(logging.root.handlers), logging.root.level
    watch = _AuditWatch()
    sys.addaudithook(watch)
    plugins = _discovered(job)
    watch.on = False
    if logging.root.handlers != handlers or logging.root.level != level:
        watch.acts["configures logging"] = ""
    if printed.getvalue():
        watch.acts[f"prints {printed.getvalue()[:80]!r}"] = ""
    return {
        "base_seconds": base_seconds,
        "seconds": sum(loaded.seconds for loaded in plugins.loaded if loaded.name != "builtin"),
        "foreign": _foreign(set(sys.modules) - before, job),
        "lines": watch.lines,
        "acts": watch.acts,
    }


class _AuditWatch:
    """An audit hook: it cannot be removed, so it is switched off.

    Attributes:
        acts: what was done beside registering, each with the plugin's line.
        lines: the plugin's line that first imported each module.
    """

    def __init__(self) -> None:
        self.on = True
        self.acts: dict[str, str] = {}
        self.lines: dict[str, str] = {}

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or len(self.acts) >= _MOST_ACTS:
            return
        if event == "import":
            self.lines.setdefault(arguments[0], _line())
        elif event == "open" and _is_write(*arguments[:3]):
            self.acts.setdefault(f"writes {arguments[0]}", _line())
        elif event in _ACTS:
            self.acts.setdefault(_ACTS[event].format(*arguments), _line())


def _line() -> str:
    """Return the line of the plugin's code being executed, as in a traceback."""
    frame: Any = sys._getframe(2)  # noqa: SLF001  there is no other way to the code that is being executed
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _NO_PLUGIN:
        frame = frame.f_back
    return "" if frame is None else f'File "{frame.f_code.co_filename}", line {frame.f_lineno}'


def _is_write(path: Any, mode: Any, flags: Any) -> bool:
    if path == os.devnull:
        return False
    written = isinstance(mode, str) and any(letter in mode for letter in "wxa+")
    return written or (isinstance(flags, int) and bool(flags & _WRITING))


def _discovered(job: Mapping[str, Any]) -> Any:
    entry_point = import_module("modelgauge.config.entry_points").PluginEntryPoint
    entry_points = [entry_point(*fields) for fields in job["entry_points"]]
    return import_module("modelgauge.plugins.discovery").discover(job["plugins"], entry_points)


def _foreign(new: set[str], job: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the modules of other distributions, by top-level name."""
    roots = [_root(value.partition(":")[0]) for _, value, _, _ in job["entry_points"]]
    folders = [Path(plugin).resolve().parent for plugin in job["plugins"]]
    foreign: dict[str, list[str]] = {}
    for name in sorted(new):
        top = name.partition(".")[0]
        is_own = any(f"{name}.".startswith(f"{root}.") or root.startswith(f"{name}.") for root in roots)
        if top not in _NO_PLUGIN and not is_own and not _lies_beside(name, folders):
            foreign.setdefault(top, []).append(name)
    return foreign


def _root(module: str) -> str:
    """Return the package of a module: its first part that is not just a namespace."""
    parts = module.split(".")
    parents = [".".join(parts[:length]) for length in range(1, len(parts))]
    return next((name for name in parents if getattr(sys.modules.get(name), "__file__", None)), module)


def _lies_beside(name: str, folders: list[Path]) -> bool:
    """Return whether a module lies in the folder of a local plugin."""
    file = getattr(sys.modules.get(name), "__file__", None)
    path = Path(file or "").resolve()
    return any(
        folder in path.parents and "site-packages" not in path.relative_to(folder).parts for folder in folders
    )


def _items(job: Mapping[str, Any]) -> dict[str, Any]:
    subject, report = (import_module(f"modelgauge.testing.{name}") for name in ("subject", "report"))
    plugins = _discovered(job)
    answer: dict[str, Any] = {}
    for name, dependencies in job["tests"].items():
        # The job names only tests that the process which wrote it could make.
        test = plugins.tests.make(name, secrets=subject.CanaryStore())
        made = subject.make_items(test, {key: Path(path) for key, path in dependencies.items()})
        answer[name] = made.digests if made.error is None else report.describe_error(made.error)
    return answer


if __name__ == "__main__":
    main()

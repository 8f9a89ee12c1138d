"""A process that has imported ModelGauge and pytest, and forks a child for each command that `children.py` sends.

As a script it is given the number of its end of a socket, and what else it shall import. A child behaves as an
interpreter that has just started: its working directory, environment, streams, arguments and `__main__` are those of
the command.
"""

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import children
import pytest

PACKAGES = ("modelgauge", "modelgauge_workbench")
LIBRARIES = (  # of which commands import some in functions only
    "_pytest.stepwise",
    "aiohttp",
    "concurrent.futures.thread",
    "encodings.ascii",
    "encodings.unicode_escape",
    "encodings.utf_8_sig",
    "execnet",
    "getpass",
    "jinja2",
    "jsonlines",
    "jsonschema",
    "modelgauge_openai.sut",
    "modelgauge_postgresql.cache",
    "modelgauge_redis.cache",
    "multiprocessing.synchronize",
    "numpy.ma",
    "tomllib",
    "tqdm",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
    "xdist.dsession",
    "xdist.remote",
    "xdist.scheduler",
    "xdist.workermanage",
)


class Preloading:
    """A plugin of pytest that imports what commands need, the way pytest wants its plugins' modules imported."""

    def pytest_configure(self):
        for package in map(importlib.import_module, PACKAGES):  # by pytest's importer, as all plugins are
            for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not one.name.endswith("__main__"):
                    importlib.import_module(one.name)
        from modelgauge.config.entry_points import installed_entry_points  # noqa: PLC0415  likewise
        from modelgauge.reports.pages.assets import environment  # noqa: PLC0415

        plugins = [entry_point.value for entry_point in installed_entry_points()]
        for name in (*LIBRARIES, *plugins, *sys.argv[2:]):
            importlib.import_module(name)
        for made in environment(), environment("modelgauge_workbench"):
            for name in made.list_templates(["j2"]):
                made.get_template(name)  # compiles it


def preload():
    """Run a session of pytest, so that all that sessions import is there."""
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere:
        os.chdir(folder)
        paths = sys.path[1:]
        Path("test_preloading.py").write_text("def test_preloading(tmp_path): pass\n")
        with redirect_stdout(nowhere):
            pytest.main(["-p", "no:cacheprovider", "--basetemp", "temporary"], [Preloading()])
        os.chdir("/")
    sys.path[:] = paths
    del sys.modules["test_preloading"]
    assert threading.active_count() == len([*Path("/proc/self/task").iterdir()]) == 1
    gc.collect()
    gc.freeze()  # the pages of what is there stay shared


def commands(connection):
    """Fork a child for each command that is asked for.

    Args:
        connection: to `children.py`; its end is the end of this process.

    Returns:
        In a child: what was asked for, and its streams' file descriptors.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        size, streams, *_ = socket.recv_fds(connection, 8, 3)
        if not size:
            os._exit(0)
        asked = connection.recv(int.from_bytes(size), socket.MSG_WAITALL)
        told, telling = os.pipe()
        between = os.fork()
        if not between:  # its end makes the child one of the process that asked
            pid = os.fork()
            if pid:
                os.write(telling, pid.to_bytes(8))
                os._exit(0)
            for one in (told, telling, connection.detach()):
                os.close(one)
            return json.loads(asked), streams
        os.waitpid(between, 0)
        connection.sendall(os.read(told, 8))
        for one in (told, telling, *streams):
            os.close(one)


def become(asked, streams):
    """Make this process what an interpreter finds at its start."""
    if asked["session"]:
        os.setsid()
    for number in children.IGNORABLE:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in asked["ignored"] else usual)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    for number, one in enumerate(streams):
        os.dup2(one, number)
        os.close(one)
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    unbuffered = asked["arguments"][0] == "-u" or bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        usual = getattr(sys, f"__{name}__")
        raw = io.FileIO(number, "w" if number else "r", closefd=False)
        raw.name = f"<{name}>"
        stream = io.TextIOWrapper(
            io.BufferedReader(raw) if not number else raw if unbuffered else io.BufferedWriter(raw),
            encoding or usual.encoding,
            "backslashreplace" if number == 2 else errors or ("strict" if encoding else usual.errors),
            line_buffering=not unbuffered and (number == 2 or raw.isatty()),
            write_through=unbuffered,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.path[:] = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *PATHS]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.orig_argv = [sys.executable, *asked["arguments"]]


def command():
    """Become the process of a command, once one is asked for; returns the interpreter's arguments."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    nowhere = os.dup(0)
    while True:
        asked, streams = commands(connection)
        become(asked, streams)
        if not asked["serving"]:
            return asked["arguments"]
        ours, connection = socket.socketpair()
        if os.fork():
            connection.close()
            children.ForkServer.running = children.ForkServer(ours)
            if asked["nested"]:
                subprocess.Popen = children.Nesting
            return asked["arguments"]
        ours.close()
        for stream in range(3):  # whoever reads those of the command waits for their end
            os.dup2(nowhere, stream)


def run(args):
    """Do what an interpreter does with its arguments."""
    first, *rest = args[1:] if args[0] in ("-P", "-u") else args
    if args[0] != "-P":
        folders = {"-c": "", "-m": str(Path.cwd())}
        sys.path.insert(0, folders.get(first, str(Path(first).resolve().parent)))
    if first == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    elif first == "-m":
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def end(code):
    """Do what an interpreter does at its end, and leave alone what was imported before the fork: that takes time."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for name, module in [*sys.modules.items()]:
        if isinstance(module, ModuleType) and module is not PRELOADED.get(name):
            vars(module).clear()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()  # an error is the interpreter's, which tries again
    os._exit(code)


if __name__ == "__main__":
    preload()
    PRELOADED, PATHS = dict(sys.modules), [*sys.path]
    arguments = command()
    try:
        run(arguments)
    except SystemExit as ending:
        if not isinstance(ending.code, int | None):
            raise
        end((ending.code or 0) & 0xFF)
    end(0)

"""Processes that tests start: an interpreter with arguments, as a shell would start it.

An interpreter takes a second to import ModelGauge. So, on Linux, `fork_server.py` forks the process from one that has
imported it. It is a process like any other: with its own number, streams, signals and exit code. Tests of what an
interpreter does at its start (what it imports, and when) use `subprocess` itself. With TESTS_START_INTERPRETERS=1 in
the environment nothing is forked.
"""

import atexit
import ctypes
import inspect
import json
import locale
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

PATIENCE = 120.0
IGNORABLE = (signal.SIGINT, signal.SIGTERM)  # a process that is started ignores them if this one does

FORKS = (
    sys.platform == "linux"
    and locale.getpreferredencoding(do_setlocale=False).lower() == "utf-8"
    and not os.environ.get("TESTS_START_INTERPRETERS")
)
_IMITATED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "PYTHONUTF8")
_PR_SET_CHILD_SUBREAPER = 36


def start(
    *arguments: object, kind: "type[subprocess.Popen] | None" = None, **options
) -> subprocess.Popen[str]:
    """Start an interpreter.

    Args:
        arguments: its command line, such as `"-m", "modelgauge", "list"`.
        kind: `Forked` if nothing else is said.
        options: those of `subprocess.Popen`; stdout and stderr are pipes if nothing else is said.
    """
    usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    return (kind or Forked)([sys.executable, *map(str, arguments)], **{**usual, **options})


def finish(process: subprocess.Popen[str], patience: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """Wait for the end of a process that `start` started; one that hangs fails the test."""
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"{process.args} hangs.\n{out}\n{err}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """Run an interpreter to its end, see `start`."""
    return finish(start(*arguments, **options))


def environment(*left_out: str, **added: str) -> dict[str, str]:
    """The environment without the variables whose names begin with one of some texts, and with others."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(left_out or "=")},
        **added,
    }


class ForkServer:
    """A process that forks others.

    Args:
        connection: to its `commands`.
    """

    running: Self | None = None

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._variables = _of_the_start(os.environ)
        # What a process of this one leaves behind when it ends becomes a child of this one.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    @classmethod
    def ours(cls) -> Self:
        """The one of this process; started when it is first asked for."""
        if cls.running is None:
            cls.running = cls.start()
        return cls.running

    @classmethod
    def start(cls, *modules: str) -> Self:
        """Start one, which ends with this process.

        Args:
            modules: that it imports beside those of ModelGauge and pytest.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [
                    sys.executable,
                    Path(__file__).with_name("fork_server.py"),
                    str(theirs.fileno()),
                    *modules,
                ],
                pass_fds=[theirs.fileno()],
                # Of several threads, only one would be in a forked process: numpy's libraries start some.
                env=environment(
                    "MODELGAUGE", "PYTEST", "PYTHONPATH", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1"
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(process.wait)
        atexit.register(ours.close)  # comes first, and ends it
        return cls(ours)

    def can(self, args: Sequence[str | os.PathLike[str]], env: Mapping[str, str]) -> bool:
        """Whether a command is one of Python that would find the interpreter here as its own would be."""
        program, *arguments = map(os.fspath, args)
        is_plain = bool(arguments) and (
            arguments[0] in ("-c", "-m", "-P", "-u") or not arguments[0].startswith("-")
        )
        return program == sys.executable and is_plain and _of_the_start(env) == self._variables

    def fork(self, streams: list[int], **command: object) -> int:
        """Fork a child of this process; returns its number."""
        text = json.dumps(command).encode()
        with self._lock:
            socket.send_fds(self._connection, [len(text).to_bytes(8)], streams)
            self._connection.sendall(text)
            return int.from_bytes(self._connection.recv(8, socket.MSG_WAITALL))


class Forked(subprocess.Popen):
    """A process that is forked if its command is one of Python."""

    serving = nested = False

    def _execute_child(self, *args: object) -> None:
        """Start the process; `Popen` does all that comes before and afterwards."""
        given = inspect.signature(super()._execute_child).bind(*args).arguments
        env = dict(os.environ if given["env"] is None else given["env"])
        if (
            not FORKS
            or given["preexec_fn"]
            or given["pass_fds"]
            or not ForkServer.ours().can(given["args"], env)
        ):
            super()._execute_child(*args)
            return
        pipes = [given[f"{name}{end}"] for name in ("p2c", "c2p", "err") for end in ("read", "write")]
        self.pid = ForkServer.ours().fork(
            [number if pipe == -1 else pipe for number, pipe in enumerate((pipes[0], pipes[3], pipes[5]))],
            arguments=list(map(os.fspath, given["args"][1:])),
            cwd=os.fspath(given["cwd"] or Path.cwd()),
            env=env,
            session=given["start_new_session"],
            ignored=[one for one in IGNORABLE if signal.getsignal(one) is signal.SIG_IGN],
            serving=self.serving,
            nested=self.nested,
        )
        self._child_created = True
        self._close_pipe_fds(*pipes)


class Serving(Forked):
    """A forked process with a fork server of its own, which has imported the same."""

    serving = True


class Nesting(Serving):
    """A forked process whose own ones are forked as well."""

    nested = True


def _of_the_start(env: Mapping[str, str]) -> dict[str, str]:
    """What of an environment an interpreter reads at its start, and `fork_server.py` does not imitate."""
    names = [name for name in env if name.startswith(("PYTHON", "LC_", "LANG"))]
    return {name: env[name] for name in names if name not in _IMITATED}

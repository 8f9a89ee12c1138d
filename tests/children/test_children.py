"""A forked process is like one whose interpreter has just started."""

import json
import signal
import subprocess

import children
import pytest

pytestmark = pytest.mark.skipif(not children.FORKS, reason="nothing is forked here")

KINDS = (subprocess.Popen, children.Forked, children.Nesting)

PROBE = """
import json, os, signal, sys, threading
def inherited(number):
    try:
        return os.get_inheritable(number)
    except OSError:
        return False
print(json.dumps({
    "name": __name__, "main": sys.modules["__main__"].__dict__ is globals(), "argv": sys.argv, "path": sys.path,
    "orig": sys.orig_argv, "cwd": os.getcwd(), "environment": dict(os.environ), "input": sys.stdin.read(),
    "streams": [[one.name, one.encoding, one.errors, one.line_buffering, one.write_through, one.fileno()]
        for one in (sys.stdin, sys.stdout, sys.stderr)],
    "inherited": [number for number in range(100) if inherited(number)],
    "parent": os.getppid(), "leads": os.getsid(0) == os.getpid(), "bytecode": sys.dont_write_bytecode,
    "signals": [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)],
    "threads": threading.active_count(),
}))
"""

LAST_WORDS = "import os; print('printed'); os._exit(4)"


def outcome(kind, *arguments, given="", **options):
    process = children.start(*arguments, kind=kind, stdin=subprocess.PIPE, **options)
    out, err = process.communicate(given, timeout=children.PATIENCE)
    return process.returncode, out, err


@pytest.mark.parametrize("way", ["-c", "-m", "-P", "script"])
@pytest.mark.parametrize(
    "variables", [{}, {"PYTHONIOENCODING": "ascii:replace"}, {"PYTHONUNBUFFERED": "1", "PYTHONPATH": "/a:/b"}]
)
def test_a_forked_process_finds_what_a_new_one_finds(tmp_path, monkeypatch, way, variables):
    (tmp_path / "probe.py").write_text(PROBE, encoding="utf-8")
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
    arguments = {
        "-c": ("-c", PROBE),
        "-m": ("-m", "probe"),
        "-P": ("-P", "-c", PROBE),
        "script": (tmp_path / "probe.py",),
    }[way]
    env = children.environment("PYTHONUNBUFFERED", "PYTHONPATH", PYTHONDONTWRITEBYTECODE="1", **variables)
    new, *forked = [
        outcome(kind, *arguments, "one", given="é", cwd=tmp_path, env=env, start_new_session=way == "-c")
        for kind in KINDS
    ]
    assert new[0] == 0, new
    for one in forked:
        assert json.loads(one[1]) == json.loads(new[1])
        assert one[::2] == new[::2]


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(3)",
        "import sys; sys.exit('a reason')",
        "import atexit; atexit.register(print, 'the end'); print('before')",
        "import os; os.write(1, b'x'); os._exit(4)",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import sys; sys.stdout.close()",
        "class Left:\n    def __del__(self): print('deleted')\nleft = Left()",
    ],
)
def test_a_forked_process_ends_as_a_new_one_does(code):
    new, *forked = [outcome(kind, "-c", code) for kind in KINDS]
    assert forked == [new, new]


def test_what_a_forked_process_prints_without_a_buffer_is_out_at_once():
    assert [outcome(kind, "-u", "-c", LAST_WORDS) for kind in KINDS] == [(4, "printed\n", "")] * 3


def test_a_forked_process_shows_an_error_and_dies_of_an_interrupt():
    for kind in KINDS:
        code, _, err = outcome(kind, "-c", "1/0")
        assert (code, err.splitlines()[-1]) == (1, "ZeroDivisionError: division by zero")
        code, _, err = outcome(kind, "-c", "raise KeyboardInterrupt")
        assert (code, err.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


def test_processes_of_nesting_ones_are_forked_too():
    code = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import sys; print(\"pytest\" in sys.modules)'], check=True)"
    )
    shown = [outcome(kind, "-c", code)[1].splitlines()[0] for kind in KINDS]
    assert shown == ["False", "False", "True"]

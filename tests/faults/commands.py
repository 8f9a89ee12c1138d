"""Starting `modelgauge` as a user does, in a process of its own."""

import json
import time
from pathlib import Path
from subprocess import Popen

import children

PLUGIN = str(Path(__file__).with_name("gated_plugin.py"))
PATIENCE = 60.0


def started(
    folder: Path, *arguments: str, plugin: str = PLUGIN, env=(), program=("-m", "modelgauge"), **options
) -> Popen[str]:
    """A command that runs in a folder, with a plugin of these tests; its output is read by `ended`."""
    env = children.environment("MODELGAUGE_", "OPENAI_", "COVERAGE_", **dict(env))
    return children.start(*program, "--plugin", plugin, *arguments, cwd=folder, env=env, **options)


def ended(process: Popen[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, when it has ended."""
    done = children.finish(process, PATIENCE)
    return done.returncode, done.stdout, done.stderr


def done(folder: Path, *arguments: str, **options) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    return ended(started(folder, *arguments, **options))


def until(condition, process: Popen[str]) -> None:
    """Wait for something that a command does; fail when it ends before, or never does it."""
    patience = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, ended(process)
        assert time.monotonic() < patience
        time.sleep(0.01)


def said(process: Popen[str], words: str) -> None:
    """Wait until a command has written a line with these words to stderr; `ended` has what comes after it."""
    assert process.stderr is not None
    while words not in (line := process.stderr.readline()):
        assert line, ended(process)


def calls(folder: Path) -> list[str]:
    """What the gated SUT was asked, in order."""
    log = folder / "calls"
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def runs(folder: Path) -> list[Path]:
    """The folders of runs, oldest first."""
    return sorted((folder / "run_data" / "runs").glob("*"))


def record(folder: Path) -> dict:
    """The record of a run's folder."""
    return json.loads((folder / "record.json").read_text(encoding="utf-8"))

"""Fixtures for tests of evals: a working directory of their own, and metrics whose scores are plain."""

import sys

import pytest
from pytest_sessions import outside_of_any_session

from modelgauge import Score
from modelgauge.evals.pytest_plugin import OPTIONS
from modelgauge.evals.session_options import TestRunOptions
from modelgauge.metrics import Metric


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory without settings; nothing is logged, and no session of pytest is known."""
    with outside_of_any_session(tmp_path, monkeypatch) as folder:
        yield folder


@pytest.fixture
def session(here, monkeypatch, capsys):
    """Runs `test_app.py` in a session inside this process; returns its exit code and what it printed."""

    def run(*args, source=None, **options):
        if source is not None:
            (here / "test_app.py").write_text(source, encoding="utf-8")
        if options:
            monkeypatch.setenv(OPTIONS, TestRunOptions(**options).as_json())
        off = [f"-pno:{name}" for name in ("cacheprovider", "xdist", "unraisableexception")]
        command = ["-q", *off, "--rootdir", ".", *args, "test_app.py"]
        with monkeypatch.context() as patched:
            patched.delenv("PYTEST_CURRENT_TEST")
            patched.setattr(sys, "dont_write_bytecode", True)
            patched.delitem(sys.modules, "test_app", raising=False)
            code = pytest.main(command)
            sys.modules.pop("test_app", None)
        return int(code), capsys.readouterr().out

    return run


class Match(Metric):
    """1 where the output is the expected one, else 0.5."""

    required_params = ("actual_output", "expected_output")

    def score(self, test_case):
        right = test_case.actual_output == test_case.expected_output
        return Score(1.0 if right else 0.5, reason="same" if right else "they differ")


class Length(Metric):
    """Words of the output; fewer is better."""

    higher_is_better = False
    best_score = 0.0
    required_params = ("actual_output",)

    async def score(self, test_case):
        return len(test_case.actual_output.split())


class Broken(Metric):
    """Cannot judge."""

    def score(self, test_case):
        raise ZeroDivisionError("no way to judge")


@pytest.fixture
def match():
    return Match


@pytest.fixture
def length():
    return Length


@pytest.fixture
def broken():
    return Broken

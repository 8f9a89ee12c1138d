"""The settings of this repository's tests, which the conftest.py of its root loads for them alone.

They are defaults of pytest's options, strict warnings, folders of compiled modules, files and configuration, and the
same examples of hypothesis each time, unless `--hypothesis-profile=random` tries new ones. `tiers.py` has the tiers.
"""

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

# Folders with modules that several test files import.
sys.path.extend(
    str(Path(__file__).parents[1] / folder)
    for folder in (
        "architecture",
        "children",
        "caches",
        "core/bundles",
        "core/comparison",
        "core/dependencies",
        "core/evals",
        "core/metrics",
        "core/runs",
        "docs",
        "executors",
        "faults",
        "sessions",
        "snapshots",
        "../plugins/openai/tests",
    )
)

# Where Python must write no bytecode beside sources, keep it in a folder of its own, for later processes too. Else each
# of the many processes that tests start would compile every module again.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(
        Path(__file__).parents[2] / ".pytest_cache" / "bytecode"
    )
    sys.dont_write_bytecode = False

import children
from hypothesis import HealthCheck, settings  # also caches its bytecode

OPTIONS = {"importmode": "importlib", "numprocesses": "auto", "maxprocesses": 4, "dist": "worksteal"}
"""Defaults of options of the command line."""

WARNINGS = (
    "error",
    # Python 3.14 counts fewer references to an object than Hypothesis expects.
    "ignore:It looks like `register_random` was passed",
)

# What workers of pytest-xdist import, and starts no threads: a fork would lose them.
SHARED = ("hypothesis", "scipy.stats")

pytest_plugins = ["browsers", "tiers"]  # the first has a fixture that several folders share

# Each cache that a run opens waits for the disk 16 times. Files in memory spare that, where there is room for them.
MEMORY = Path("/dev/shm")  # pytest makes a private folder in it
if sys.platform == "linux" and "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize > 2**31 and not found.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

for name, examples in {"fixed": 50, "few": 10, "random": 50}.items():
    settings.register_profile(
        name,
        derandomize=name != "random",
        # However slow or busy the machine is: no test is about time that does not say so.
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Replace the defaults of options, which the command line has not been read for yet, and of settings."""
    config = pluginmanager.get_plugin("pytestconfig")
    if config is not None:
        vars(config.option).update(OPTIONS)
    parser.addini("strict_xfail", "Whether a test fails that was expected to fail.", "bool", default=True)
    parser.addini("faulthandler_timeout", "After how many seconds a test shows its stacks.", default=300)
    # A worker of pytest-xdist that exits fails the one test that it hangs in, and another worker takes its place.
    parser.addini("faulthandler_exit_on_timeout", "Whether a process exits by then.", "bool", default=True)
    parser.addini("tmp_path_retention_policy", "Whose files are kept.", default="failed")


@pytest.hookimpl(wrapper=True)
def pytest_sessionstart(session: pytest.Session) -> Generator[None, object, object]:
    """Fork the workers of pytest-xdist from a process that has imported what they need, if they run all tests.

    They, and the processes that tests start, share what it has imported.
    """
    is_whole = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    with pytest.MonkeyPatch.context() as patch:
        if children.FORKS and is_whole and session.config.getoption("tx"):
            children.ForkServer.running = children.ForkServer.start(*SHARED)
            patch.setattr(subprocess, "Popen", children.Serving)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for garbage neither while tests are collected, nor later in what was there before the first of them.

    The rest is searched as seldom as while a run goes on.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.set_threshold(10_000, *gc.get_threshold()[1:])
        gc.collect()
        gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Make warnings errors; give this process, and those that it starts, a folder of configuration of their own.

    The key by which a user's runs are known as the user's own lies there.
    """
    for line in WARNINGS:
        config.addinivalue_line("filterwarnings", line)
    folder, patch = tempfile.TemporaryDirectory(), pytest.MonkeyPatch()
    patch.setenv("XDG_CONFIG_HOME", folder.name)
    config.add_cleanup(folder.cleanup)
    config.add_cleanup(patch.undo)


def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than there are processors: tests wait for disks, servers, browsers and clocks."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (known or 1) + 2

"""For all tests: the same examples of hypothesis each time, folders of compiled modules, files and configuration.

`--hypothesis-profile=random` tries new examples.
"""

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

# Where Python must write no bytecode beside sources, keep it in a folder of its own, for later processes too. Else each
# of the many processes that tests start would compile every module again.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(
        Path(__file__).with_name(".pytest_cache") / "bytecode"
    )
    sys.dont_write_bytecode = False

import children
from hypothesis import HealthCheck, settings  # keeps its bytecode too

# What workers of pytest-xdist import, and starts no threads: a fork would lose them.
SHARED = ("hypothesis", "scipy.stats")

pytest_plugins = ["browsers"]  # a fixture that several folders share

# Each cache that a run opens waits for the disk 16 times. Files in memory spare that, where there is room for them.
MEMORY = Path("/dev/shm")  # noqa: S108  pytest makes a folder in it that is its user's own
if sys.platform == "linux" and "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize > 2**31 and not found.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

for name in ("fixed", "random"):
    settings.register_profile(
        name,
        derandomize=name == "fixed",
        # However slow or busy the machine is: no test is about time that does not say so.
        deadline=None,
        max_examples=50,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("fixed")


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
    """Give this process, and those that it starts, a folder of configuration that nobody else uses.

    The key by which a user's runs are known as the user's own lies there.
    """
    folder, patch = tempfile.TemporaryDirectory(), pytest.MonkeyPatch()
    patch.setenv("XDG_CONFIG_HOME", folder.name)
    config.add_cleanup(folder.cleanup)
    config.add_cleanup(patch.undo)


def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than there are processors: tests wait for disks, servers, browsers and clocks."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (known or 1) + 2

"""What all tests share: Ctrl-C works in them and in processes that they start; fixtures for files and connections."""

import shutil
import signal
import sqlite3

import pytest

# A shell's background job ignores Ctrl-C, and so would the children of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """`once(folder, make)`: the value of `make()`, which also writes files in the folder.

    It is called for the first test only. The folders of later tests get copies of the files, which is much quicker than
    to run a Test again.
    """
    made = {}

    def once(folder, make):
        key = make.__code__
        if key not in made:
            value, copy = make(), tmp_path_factory.mktemp("once")
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            made[key] = value, copy
        else:
            shutil.copytree(made[key][1], folder, dirs_exist_ok=True)
        return made[key][0]

    return once


@pytest.fixture
def all_closed(monkeypatch):
    """Every connection that a test opens is closed when the test is over."""
    opened = []
    connect = sqlite3.connect

    def remembering(*given, **options):
        opened.append(connect(*given, **{**options, "check_same_thread": False}))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", remembering)
    yield
    for one in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            one.execute("SELECT 1")
    assert opened

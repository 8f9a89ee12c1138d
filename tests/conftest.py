"""What all tests share: Ctrl-C works in them, and in the processes that they start; a fixture for connections."""

import signal
import sqlite3

import pytest

# A shell's background job ignores Ctrl-C, and so would the children of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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

"""Locks on files: one holder at a time, until the file is closed."""

import errno
import sys

import pytest

from modelgauge.files.lock import Turns, lock
from modelgauge.files.regular import NotRegularError


def test_a_lock_is_held_by_one_until_it_is_closed(tmp_path):
    held = lock(tmp_path / "file", "a+b")
    assert held is not None
    assert lock(tmp_path / "file") is None
    held.close()
    with lock(tmp_path / "file") as again:
        assert lock(tmp_path / "file") is None
    assert again.closed


def test_turns_are_taken_one_after_the_other(tmp_path):
    one, other = Turns(tmp_path / "file"), Turns(tmp_path / "file")
    assert one.begin()
    assert not other.begin()
    assert lock(tmp_path / "file") is None
    one.end()
    assert other.begin()
    assert not one.begin()
    other.close()
    assert one.begin()
    one.close()


def test_a_file_that_is_not_there_is_made_only_by_who_writes(tmp_path):
    with pytest.raises(FileNotFoundError):
        lock(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    with pytest.raises(NotRegularError):
        lock(tmp_path / "link", "a+b")
    assert not (tmp_path / "other").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="flock is POSIX")
def test_where_a_file_system_has_no_locks_everybody_gets_one(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with lock(tmp_path / "file", "a+b") as one, lock(tmp_path / "file", "a+b") as other:
        assert one.fileno() != other.fileno()
    turns = Turns(tmp_path / "file")
    assert turns.begin()
    turns.end()
    turns.close()

"""Files that are replaced, and lines that are appended, wholly or not at all."""

import errno

import pytest

from modelgauge.files.regular import opened
from modelgauge.files.whole import append_whole, replacing


class Reluctant:
    """A file on a disk that takes two bytes a time, and refuses after some."""

    def __init__(self, file, most):
        self._file, self._most = file, most

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        if self._most <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._most -= 2
        return self._file.write(data[:2])


def test_a_file_takes_the_place_of_another_when_the_block_has_ended(tmp_path):
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    with replacing(path) as written:
        written.write_text("new", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_after_an_error_the_old_file_stays_alone(tmp_path):
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(OSError, match="No space"), replacing(path) as written, opened(written, "ab") as file:
        append_whole(Reluctant(file, 2), b"new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_who_replace_a_file_at_once_write_files_of_their_own(tmp_path):
    with replacing(tmp_path / "file") as one, replacing(tmp_path / "file") as other:
        assert one != other
        one.write_text("one", encoding="utf-8")
        other.write_text("other", encoding="utf-8")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "one"


def test_what_the_disk_takes_in_parts_is_appended_whole(tmp_path):
    with opened(tmp_path / "file", "a+b") as file:
        append_whole(file, b"first\n")
        append_whole(Reluctant(file, 6), b"second")
    assert (tmp_path / "file").read_bytes() == b"first\nsecond"


def test_of_what_the_disk_refuses_nothing_stays(tmp_path):
    with opened(tmp_path / "file", "a+b") as file:
        append_whole(file, b"first\n")
        with pytest.raises(OSError, match="No space"):
            append_whole(Reluctant(file, 4), b"second")
        append_whole(file, b"third")
    assert (tmp_path / "file").read_bytes() == b"first\nthird"

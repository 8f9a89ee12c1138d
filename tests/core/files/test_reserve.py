"""Room that is held on a disk."""

import errno
import os

import pytest

from modelgauge.files.reserve import Reserve


def refusing(code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    return refuse


def test_room_is_held_in_a_file_without_a_name_and_given_back_once(tmp_path):
    reserve = Reserve(tmp_path)
    reserve.grow(10)
    reserve.grow(5)
    assert list(tmp_path.iterdir()) == []
    assert reserve.release()
    assert not reserve.release()
    reserve.grow(10)
    assert not reserve.release()


def test_where_no_file_can_be_made_nothing_is_held(tmp_path):
    reserve = Reserve(tmp_path / "missing")
    reserve.grow(10)
    assert not reserve.release()


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system has no posix_fallocate")
@pytest.mark.parametrize(("code", "held"), [("ENOSPC", True), ("EDQUOT", True), ("EOPNOTSUPP", False)])
def test_a_full_disk_is_told_and_a_file_system_without_reserves_is_not(tmp_path, monkeypatch, code, held):
    reserve = Reserve(tmp_path)
    reserve.grow(10)
    monkeypatch.setattr(os, "posix_fallocate", refusing(getattr(errno, code)))
    if held:
        with pytest.raises(OSError, match=r"space|quota"):
            reserve.grow(2**21)
    else:
        reserve.grow(2**21)
    assert reserve.release() is held


def test_without_posix_fallocate_zeros_are_written(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    reserve = Reserve(tmp_path)
    reserve.grow(10)
    reserve.grow(2**21)
    assert os.fstat(reserve._file.fileno()).st_size == 2**21
    assert reserve.release()

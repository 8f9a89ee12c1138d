"""The folder of a cache that several accounts share."""

import sqlite3
import stat
import sys
from contextlib import closing
from functools import partial

import pytest

from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.cache.read_only import ReadOnlyFolder
from modelgauge.cache.responses import CacheCheck, ResponseCache
from modelgauge.errors import CacheError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")


def modes(folder):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def use(folder):
    cache = ResponseCache(FolderBackend(folder))
    cache.put_many([Entry(KeyMaker("sut", "x").key("request"), '"answer"')])
    made = modes(folder)
    cache.close()
    cache.leave()
    return made


def test_new_folder_is_private(tmp_path):
    use(tmp_path / "cache")
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o2775, 0o777, 0o750, 0o755])
def test_existing_folder_keeps_its_mode_and_shares_its_files(tmp_path, mode):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    made = use(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    for name, of_file in made.items():
        assert bool(of_file & 0o020) == bool(mode & 0o020), name
    use(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == mode


def test_read_only_folder_refuses_changes_and_leaves_damage(tmp_path):
    digest = KeyMaker("sut", "x").key("request").digest
    use(tmp_path)
    with closing(sqlite3.connect(tmp_path / "cache.db")) as connection, connection:
        connection.execute("UPDATE Cache SET value = 'other'")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    cache = ResponseCache(ReadOnlyFolder(tmp_path))
    assert cache.get(digest) is None
    assert cache.verify() == CacheCheck(sound=0, damaged=1, read_only=True)
    for change in (cache.clear, partial(cache.forget, [digest]), partial(cache.take, [digest])):
        with pytest.raises(CacheError, match=r"cannot be written.* as a user who can write in that folder"):
            change()
    cache.close()
    cache.leave()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

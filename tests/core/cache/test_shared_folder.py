"""The folder of a cache that several accounts share."""

import stat
import sys

import pytest

from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.cache.responses import ResponseCache

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

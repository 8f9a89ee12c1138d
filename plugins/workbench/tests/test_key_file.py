"""The key file: private to its owner, and refused with a clear message if it is anything else."""

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from children import run

from modelgauge.errors import SettingsError
from modelgauge_workbench.safety import Access

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes of files are of POSIX")
KEY = "0123456789abcdef" * 4


def test_key_is_made_for_its_owner_and_kept(tmp_path):
    path = tmp_path / "data" / "workbench.key"
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: Access(None, path).csrf, range(8)))
    assert len(set(made)) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["workbench.key"]


def written(path, text, mode=0o600):
    path.write_bytes(text)
    path.chmod(mode)


DAMAGES = {
    "a pipe": (os.mkfifo, "it is not a regular file"),
    "a link": (lambda path: path.symlink_to("/dev/zero"), "it is a link"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "it is a link"),
    "a folder": (Path.mkdir, "Is a directory"),
    "garbage": (lambda path: written(path, bytes(range(256))), "it holds no key"),
    "an empty key": (lambda path: written(path, b""), "it holds no key"),
    "a short key": (lambda path: written(path, KEY[:-2].encode()), "it holds no key"),
    "a long key": (lambda path: written(path, KEY.encode() * 2), "it holds no key"),
    "a key for all": (lambda path: written(path, KEY.encode(), 0o644), "other users can read it"),
    "a key for a group": (lambda path: written(path, KEY.encode(), 0o640), "other users can read it"),
}


@pytest.mark.parametrize(("damage", "why"), DAMAGES.values(), ids=DAMAGES)
def test_anything_else_in_the_place_of_the_key_is_refused(tmp_path, damage, why):
    path = tmp_path / "workbench.key"
    damage(path)
    with pytest.raises(SettingsError, match=why) as caught:
        Access(None, path)
    assert "\n" not in caught.value.problem


def test_key_of_somebody_else_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "workbench.key"
    written(path, KEY.encode())
    assert Access(None, path).csrf == Access(None, path).csrf
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(SettingsError, match="another user"):
        Access(None, path)


def test_folder_that_cannot_be_written_has_a_new_key(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("modelgauge_workbench.safety._make_key", refused)
    path = tmp_path / "workbench.key"
    assert Access(None, path).csrf != Access(None, path).csrf


def test_server_does_not_start_with_a_key_that_cannot_be_used(tmp_path):
    (tmp_path / "workbench.key").symlink_to("/dev/zero")
    done = run("-m", "modelgauge", "serve", "--port", "0", "--data-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 2
    assert (
        "cannot be used: it is a link to another file.\nRemove it; a new one will be created." in done.stderr
    )

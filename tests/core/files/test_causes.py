"""Advice for errors of the disk, by their cause."""

import errno
import sqlite3

import pytest

from modelgauge.cache import folder
from modelgauge.cache.responses import ResponseCache
from modelgauge.errors import CacheError
from modelgauge.files.causes import advice_for


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "Free the disk"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permissions"),
        (errno.EPERM, "permissions"),
    ],
)
def test_advice_names_the_cause(code, advice):
    assert advice in advice_for(OSError(code, "no"))
    assert ("Free" in advice_for(OSError(code, "no"))) == (code in (errno.ENOSPC, errno.EDQUOT))


def test_advice_for_sqlite_names_the_cause(tmp_path):
    file = tmp_path / "x.db"
    sqlite3.connect(file).close()
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    with pytest.raises(sqlite3.OperationalError) as refused:
        connection.execute("create table x(y)")
    connection.close()
    assert "permissions" in advice_for(refused.value)


def test_cache_error_without_permission_does_not_advise_freeing_space(tmp_path, monkeypatch):
    def deny(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(folder, "check_files", deny)
    with pytest.raises(CacheError, match="Correct the permissions") as refused:
        ResponseCache(folder.FolderBackend(tmp_path / "cache"))
    assert "Free the disk" not in str(refused.value)

"""Advice for errors of the disk, by their cause."""

import errno
import sqlite3

_OWN = "Correct the permissions, or write to a folder of your own: --data-dir FOLDER"
_ADVICE = {
    errno.ENOSPC: "Free the disk",
    errno.EDQUOT: "Free some of your quota on the disk",
    errno.EROFS: "The disk is mounted read-only: write elsewhere, --data-dir FOLDER",
    errno.EACCES: _OWN,
    errno.EPERM: _OWN,
}
_OF_SQLITE = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
}


def advice_for(error: BaseException) -> str:
    """Return what to do about an error of the disk, as a sentence without its full stop."""
    code = getattr(error, "errno", None)
    if isinstance(error, sqlite3.Error):
        code = _OF_SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    return _ADVICE.get(code or 0, "Free the disk, or correct what keeps it from being written")

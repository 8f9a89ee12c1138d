"""Archives that tests make, and what comes out of them."""

import gzip
import hashlib
import io
import tarfile
import zipfile

import pytest

from modelgauge.dependencies.safety import UnpackLimits
from modelgauge.dependencies.unpack import apply_steps
from modelgauge.errors import UnsafeArchiveError


def sha(content):
    return hashlib.sha256(content).hexdigest()


def member(name, content=b"", kind=tarfile.REGTYPE, linkname="", **fields):
    """One of a tar archive."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(content), kind, linkname
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar_of(*members, form=tarfile.PAX_FORMAT):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def tar_gz(**files):
    return gzip.compress(tar_of(*(member(name, content) for name, content in files.items())), mtime=0)


def entry(name, mode=0, method=zipfile.ZIP_DEFLATED):
    """One of a zip archive, under this very name."""
    info = zipfile.ZipInfo("placeholder")
    info.filename = info.orig_filename = name  # the constructor would clean it
    info.external_attr = mode << 16
    info.compress_type = method
    return info


def zip_of(*members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in members:
            archive.writestr(entry(info) if isinstance(info, str) else info, content)
    return buffer.getvalue()


def contents_of(folder):
    """The bytes of all files below a folder, by their paths in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def files_in(folder):
    return set(contents_of(folder))


def unpack(raw, folder, steps, **limits):
    """What comes out of an archive, or of a compressed file, whose only file is then `text`."""
    source = folder.with_name("text")
    source.write_bytes(raw)
    folder.mkdir()
    apply_steps(source, folder, steps, archive="the archive", limits=UnpackLimits(**limits))
    return contents_of(folder)


def refusal(raw, folder, steps, **limits):
    """With what words an archive is refused, which they name."""
    with pytest.raises(UnsafeArchiveError, match="the archive") as caught:
        unpack(raw, folder, steps, **limits)
    return str(caught.value)

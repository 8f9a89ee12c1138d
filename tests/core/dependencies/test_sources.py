"""Declarations: what they accept, and how they show themselves."""

import sys
import zipfile
from pathlib import Path

import pytest

from modelgauge.dependencies.safety import DownloadLimits, UnpackLimits
from modelgauge.dependencies.sources import ExternalData, LocalData, PackageData, WebData
from modelgauge.errors import DefinitionError, DependencyMissingError

SHA = "ab" * 32


class Own(ExternalData):
    def __init__(self, name, **options):
        super().__init__(**options)
        self.name = name
        self.client = object()

    def fetch(self, target, progress):
        target.write_text(self.name, encoding="utf-8")


def test_arguments_are_positional():
    data = WebData("https://example.org/a.tar.gz", SHA, "gzip", "tar")
    assert (data.url, data.sha256, data.decompress, data.unpack) == (
        "https://example.org/a.tar.gz",
        SHA,
        "gzip",
        "tar",
    )
    assert LocalData("a.zip", SHA, None, "zip").unpack == "zip"
    assert PackageData("package", "data/a.zst", SHA, "zstd").decompress == "zstd"


def test_checksums_count_in_either_case():
    assert WebData("http://example.org/a", SHA.upper()).sha256 == SHA


@pytest.mark.parametrize("sha256", ["", "abc", "g" * 64, "a" * 63, SHA + "\n", 5])
def test_what_is_no_checksum_is_refused(sha256):
    with pytest.raises(DefinitionError, match="sha256sum"):
        WebData("http://example.org/a", sha256)


@pytest.mark.parametrize(
    "url",
    ["", "example.org/a", "ftp://example.org/a", "file:///etc/passwd", "http://", "http:///a", "http://[", "http://a:x/",
     "http://a b/", "http://a/ä", "http://a/\n", Path("a"), None],
)  # fmt: skip
def test_what_is_no_web_address_is_refused(url):
    with pytest.raises(DefinitionError, match="web address"):
        WebData(url)


def test_passwords_in_addresses_are_refused_and_not_repeated():
    with pytest.raises(DefinitionError, match="password") as caught:
        WebData("https://me:hunter2@example.org/a")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "suggestion"),
    [
        ({"decompress": "gz"}, "Did you mean 'gzip'"),
        ({"decompress": "zst"}, "Did you mean 'zstd'"),
        ({"decompress": "gzp"}, "Did you mean 'gzip'"),
        ({"decompress": "bz2"}, "'gzip' or 'zstd'"),
        ({"unpack": "tgz"}, "Did you mean 'tar'"),
        ({"unpack": "ZIP"}, "Did you mean 'zip'"),
        ({"unpack": "tar.gz"}, "Did you mean 'tar'"),
        ({"unpack": True}, "'tar' or 'zip'"),
    ],
)
def test_unknown_steps_are_refused_with_a_suggestion(options, suggestion):
    with pytest.raises(DefinitionError, match=suggestion):
        LocalData("a", **options)


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../a", "a/../b", "a\\b", "C:/a", "a//b"])
def test_paths_that_leave_a_package_are_refused(path):
    with pytest.raises(DefinitionError, match="inside a package"):
        PackageData("package", path)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.org/data/test.jsonl.gz?raw=true#top", "test.jsonl.gz"),
        ("https://example.org/a%2F..%2Fnul", "data"),
        ("https://example.org/caf%C3%A9.csv", "café.csv"),
        ("https://example.org/", "data"),
    ],
)
def test_the_file_is_called_as_in_its_address(url, name):
    assert WebData(url).file_name == name


def test_a_class_without_fetch_cannot_be_made():
    class Forgetful(ExternalData):
        pass

    with pytest.raises(TypeError, match="fetch"):
        Forgetful()


def test_equal_declarations_are_equal():
    assert WebData("http://a/b", SHA) == WebData("http://a/b", SHA.upper())
    assert hash(WebData("http://a/b", SHA)) == hash(WebData("http://a/b", SHA))
    assert WebData("http://a/b") != WebData("http://a/c")
    assert WebData("http://a/b") != WebData("http://a/b", limits=UnpackLimits(max_members=1))
    assert WebData("http://a/b") != WebData("http://a/b", download_limits=DownloadLimits(timeout=1))
    assert LocalData("x") != "x"


def test_a_source_shows_plain_arguments_and_no_addresses_of_objects():
    assert Own("n").source == Own("n").source == "Own(name='n')"
    assert Own("n").source != Own("m").source
    assert WebData("http://a/b").source == "http://a/b"


def test_attributes_set_on_the_class_are_checked_too():
    class Declared(Own):
        unpack = "rar"

        def __init__(self):
            """Never calls the base class."""

    with pytest.raises(DefinitionError, match="rar"):
        Declared().validate()


def test_package_data_lies_in_the_package(tmp_path, monkeypatch):
    package = tmp_path / "some_data_package"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "data" / "a.txt").write_text("a", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "some_data_package", raising=False)
    data = PackageData("some_data_package", "data/a.txt")
    assert data.local_path() == package / "data" / "a.txt"
    assert data.source == "package some_data_package: data/a.txt"
    data.fetch(tmp_path / "copy", lambda done, total: None)
    assert (tmp_path / "copy").read_text(encoding="utf-8") == "a"


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(DependencyMissingError, match="Install the distribution that holds 'no_such_package'"):
        PackageData("no_such_package", "a.txt").local_path()


def test_local_data_can_be_copied(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    LocalData(tmp_path / "a").fetch(tmp_path / "copy", lambda done, total: None)
    assert (tmp_path / "copy").read_bytes() == b"a"


def test_the_file_of_a_package_and_of_a_class_of_ones_own_have_names():
    assert PackageData("package", "data/a.jsonl.gz").file_name == "a.jsonl.gz"
    assert Own("n").file_name == "data"


def test_a_package_inside_an_archive_cannot_be_read(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as archive:
        archive.writestr("some_zipped_package/__init__.py", "")
        archive.writestr("some_zipped_package/a.txt", "a")
    monkeypatch.syspath_prepend(tmp_path / "zipped.zip")
    monkeypatch.delitem(sys.modules, "some_zipped_package", raising=False)
    with pytest.raises(DependencyMissingError, match="the package is inside an archive"):
        PackageData("some_zipped_package", "a.txt").local_path()


@pytest.mark.parametrize(
    ("given", "suggestion"),
    [(".gz", "gzip"), ("GZ", "gzip"), ("zstandard", "zstd"), ("ZST", "zstd"), ("gzib", "gzip")],
)
def test_compressions_of_other_names_are_suggested(given, suggestion):
    with pytest.raises(DefinitionError, match=f"Did you mean '{suggestion}'.*'gzip' or 'zstd'"):
        LocalData("a", decompress=given)


@pytest.mark.parametrize("given", ["targz", ".tar.gz", "tgz", "tarr"])
def test_archives_of_other_names_are_suggested(given):
    with pytest.raises(DefinitionError, match=r"Did you mean 'tar'.*'tar' or 'zip'"):
        LocalData("a", unpack=given)


@pytest.mark.parametrize("url", ["http://a:0/", "http://:80/", "http://a/\x7f"])
def test_more_that_is_no_web_address(url):
    with pytest.raises(DefinitionError, match="web address"):
        WebData(url)


def test_a_declaration_hashes_by_its_class_and_plain_arguments():
    assert hash(LocalData("x")) == hash(LocalData("x"))
    assert len({Own("n"), Own("n"), Own("m")}) == 3  # whose clients differ

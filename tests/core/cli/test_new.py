"""`modelgauge new`: the tests of the packages that it writes, and the names that it refuses."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tiers import sample

KINDS = ("test", "sut", "annotator", "metric")


def pytest_in(folder, site):
    """Run the tests of a package that is announced as installed, in a process of their own."""
    about = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = site / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n", encoding="utf-8"
    )
    lines = [f"{name} = {module}" for name, module in about["entry-points"]["modelgauge"].items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[modelgauge]", *lines, ""]), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(site)])},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("kinds", sample([KINDS, ("test",)], 1), ids="+".join)
def test_tests_of_new_package_pass_as_written(run, tmp_path, kinds):
    answer = run("new", "acme-rhymes", *(f"--kind={kind}" for kind in kinds))
    assert answer.code == 0, answer.out
    written = Path("acme-rhymes")
    ended = pytest_in(written.absolute(), tmp_path / "site")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " failed" not in ended.stdout
    for kind in kinds:
        module = "benchmark" if kind == "test" else kind
        assert f"acme_rhymes/{module}.py" in answer.out
        assert (written / f"tests/test_{module}.py").is_file()


def test_json_names_files_that_exist(run):
    answer = run("new", "some/folder/acme.loud", "--json").json
    folder = Path(answer["folder"])
    assert folder == Path("some/folder/acme.loud")
    assert sorted(answer["files"]) == sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    assert "acme_loud/benchmark.py" in answer["files"]


def test_package_has_no_placeholder_left(run):
    run("new", "acme-rhymes", *(f"--kind={kind}" for kind in KINDS))
    for path in Path("acme-rhymes").rglob("*.*"):
        if path.is_file() and path.name != "README.md":
            assert "$" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Acme Rhymes", "Use small letters, digits and hyphens: acme-rhymes."),
        ("acme--rhymes", "Use small letters, digits and hyphens: acme-rhymes."),
        ("été", "Use small letters, digits and hyphens: t."),
        ("json", "Give another name: acme-json."),
        ("modelgauge", "Give another name: acme-modelgauge."),
        ("3d", "Give another name: acme-3d."),
        ("class", "Give another name: acme-class."),
        ("tests", "Give another name: acme-tests."),
        ("..", "exists already"),
    ],
)
def test_name_that_cannot_be_imported_is_refused(run, name, message):
    before = sorted(Path().iterdir())
    answer = run("new", name)
    assert answer.code == 2
    assert message in answer.err
    assert sorted(Path().iterdir()) == before


def test_existing_folder_is_kept(run):
    Path("acme-rhymes").mkdir()
    answer = run("new", "acme-rhymes")
    assert answer.code == 2
    assert "acme-rhymes exists already" in answer.err
    assert list(Path("acme-rhymes").iterdir()) == []


def test_folder_that_cannot_be_written_is_named(run):
    Path("file").write_text("", encoding="utf-8")
    answer = run("new", "file/acme-rhymes")
    assert answer.code == 2
    assert "file/acme-rhymes cannot be written" in answer.err

"""The settings of this repository's tests apply only to them: sessions in a copy of the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
READ = ("conftest.py", "pyproject.toml", "tests/settings", "tests/children")
WARNS = """
import warnings

def test_warns():
    warnings.warn("old", DeprecationWarning)
"""
OF_A_NEWCOMER = f"""
import os
import sys
from pathlib import Path

import my_app
import pytest
{WARNS}
@pytest.mark.slow
@pytest.mark.xfail
def test_pytest_is_as_elsewhere():
    folders = [Path(entry) for entry in sys.path]
    assert not any(Path(__file__).parent / "tests" in (folder, *folder.parents) for folder in folders)
    assert os.environ["XDG_CONFIG_HOME"] == "mine"
"""


@pytest.fixture
def session(tmp_path):
    """Run pytest in a checkout."""
    for name in READ:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy(REPOSITORY / name, tmp_path / name)
    own = ("PYTEST_", "XDG_CONFIG_HOME")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(own)}

    def session(*args, folder="."):
        return subprocess.run(
            [sys.executable, "-m", "pytest", *args],
            cwd=tmp_path / folder,
            env={**variables, "XDG_CONFIG_HOME": "mine"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        ).stdout

    return session


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("folder", [".", "mine"])
def test_a_test_written_in_the_checkout_has_the_defaults_of_pytest(session, tmp_path, folder) -> None:
    write(tmp_path / folder / "test_app.py", OF_A_NEWCOMER)
    write(tmp_path / folder / "my_app.py", "")
    out = session(f"{folder}/test_app.py")
    assert "1 passed, 1 xpassed, 2 warnings" in out
    assert "workers" not in out


@pytest.mark.parametrize(
    ("args", "folder", "failed"),
    [
        ((), ".", 3),
        (("tests/core/test_warns.py::test_warns",), ".", 1),
        (("plugins/acme",), ".", 1),
        ((), "demo_plugins/acme/tests", 1),
    ],
)
def test_tests_of_the_repository_are_strict_and_run_in_workers(
    session, tmp_path, args, folder, failed
) -> None:
    for place in ("tests/core", "plugins/acme/tests", "demo_plugins/acme/tests"):
        write(tmp_path / place / "test_warns.py", WARNS)
    out = session(*args, "--maxprocesses=1", folder=folder)
    assert "1 worker [" in out
    assert f"{failed} failed" in out

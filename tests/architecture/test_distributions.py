"""All distributions of the repository run on the same versions of Python, and say so."""

import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGED = sorted(REPOSITORY.glob("*plugins/*/pyproject.toml"))


def versions_of(file: Path) -> tuple[str, list[str]]:
    """The least version of Python, and the classifiers that name versions."""
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    named = [
        one for one in project.get("classifiers", []) if one.startswith("Programming Language :: Python")
    ]
    return project["requires-python"], named


def test_there_are_distributions() -> None:
    assert len(PACKAGED) >= 5
    assert versions_of(REPOSITORY / "pyproject.toml")[1]


@pytest.mark.parametrize("file", PACKAGED, ids=lambda file: file.parent.name)
def test_a_plugin_names_the_versions_of_python_that_the_library_names(file: Path) -> None:
    assert versions_of(file) == versions_of(REPOSITORY / "pyproject.toml")

"""All distributions of the repository run on the same versions of Python, and require what they import."""

import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "pyproject.toml"
# What these require themselves, and show in their own API.
COMES_WITH = {"pydantic": "pydantic_core", "jinja2": "markupsafe"}
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs" / "tutorials").glob("*.md"))]
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
    assert versions_of(ROOT)[1]


@pytest.mark.parametrize("file", PACKAGED, ids=lambda file: file.parent.name)
def test_a_plugin_names_the_versions_of_python_that_the_library_names(file: Path) -> None:
    assert versions_of(file) == versions_of(ROOT)


def imported_packages(source: str) -> set[str]:
    """The packages that a source imports, wherever in it, without the standard library's."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named.add(node.module)
    return {name.partition(".")[0] for name in named} - sys.stdlib_module_names


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def packages_required(file: Path) -> set[str]:
    """The packages in the distributions that a project requires, extras included."""
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    requirements = [*project["dependencies"], *(one for extra in extras for one in extra)]
    names = {_normalized(re.split(r"[^\w.-]", one)[0]) for one in requirements}
    ours = {name.replace("-plugin-", "-").replace("-framework", "").replace("-", "_") for name in names}
    named = {
        package
        for package, distributions in _distributions().items()
        if names & {_normalized(name) for name in distributions}
    }
    return ours | named | {COMES_WITH[name] for name in named & COMES_WITH.keys()}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("file", [ROOT, *PACKAGED], ids=lambda file: file.parent.name)
def test_a_distribution_requires_what_it_imports(file: Path) -> None:
    (folder,) = (
        (file.parent / "core").glob("modelgauge") if file == ROOT else file.parent.glob("modelgauge_*")
    )
    sources = [source.read_text(encoding="utf-8") for source in folder.rglob("*.py")]
    imported = {package for source in sources for package in imported_packages(source)}
    assert imported - {folder.name} <= packages_required(file)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_imports_what_its_readers_have(page: Path) -> None:
    blocks = re.findall(
        r"^```python([^\n]*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    written = [found[1] for title, _ in blocks if (found := re.search(r'title="([^"]+)', title))]
    files = {part.removesuffix(".py") for file in written for part in file.split("/")}
    imported = {package for _, source in blocks for package in imported_packages(source)}
    lacking = imported - files - packages_required(ROOT) - {"pytest"}
    assert {name for name in lacking if not name.startswith("modelgauge")} == set()

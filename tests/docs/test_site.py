"""The site is built strictly, and has an entry for each hook, command, option, public name and metric."""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from doc_pages import REPOSITORY
from test_reference import COMMANDS, HOOKS

from modelgauge import errors, metrics

sphinx_inventory = pytest.importorskip(
    "sphinx.util.inventory", reason="The site needs Sphinx: uv sync --group docs"
)
MODULES = [
    f"modelgauge{part}" for part in ("", ".evals", ".metrics", ".reports", ".stats", ".testing", ".text")
]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built with warnings as errors: a link that leads nowhere is one."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-d",
        folder / "doctrees",
        "-c",
        "docs",
    ]
    built = subprocess.run(
        [*command, ".", folder / "html"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def entries(site) -> dict[str, set[str]]:
    """The names that the site describes, by kind: `std:cmdoption`, `py:class` and so on."""
    inventory = sphinx_inventory.InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    return {kind: set(names) for kind, names in inventory.data.items()}


def test_every_public_name_has_its_entry(entries) -> None:
    described = {
        name.rpartition(".")[2] for kind, names in entries.items() if kind[:3] == "py:" for name in names
    }
    described |= {
        name for name, value in vars(metrics).items() if getattr(value, "__name__", name) in described
    }
    public = {name for module in MODULES for name in import_module(module).__all__}
    public |= {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert sorted(public - described) == []


def test_every_hook_has_its_entry(entries) -> None:
    assert {f"modelgauge.plugins.hookspecs.{hook}" for hook in HOOKS} <= entries["py:function"]


def test_every_option_has_its_entry(entries) -> None:
    missing = [
        f"{path} {name}"
        for path, command in COMMANDS.items()
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in parameter.opts
        if f"{path.replace(' ', '-')}.{name}" not in entries["std:cmdoption"]
    ]
    assert missing == []


def test_metrics_have_their_arguments_and_threshold(site) -> None:
    page = (site / "docs" / "reference" / "api-metrics.html").read_text(encoding="utf-8")
    section = page.partition('id="modelgauge.metrics.ExactMatchMetric"')[2].partition(
        '<dl class="py class">'
    )[0]
    assert "ignore_case" in section, "an argument of the constructor"
    assert "passes at a score of at least" in section


def test_search_finds_a_tutorial(site) -> None:
    assert "docs/tutorials/wrap-a-sut" in (site / "searchindex.js").read_text(encoding="utf-8")

"""`modelgauge new`: generates a plugin package with passing tests."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, NamedTuple

import click

from modelgauge.cli.command_options import shared_options
from modelgauge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App

_NAME = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")


class _Kind(NamedTuple):
    """A kind of plugin.

    Args:
        module: the module that holds it.
        description: the first sentence of a package that has only this.
        command: a command that uses it.
        others: its other files, by their templates.
    """

    module: str
    description: str
    command: str
    others: tuple[tuple[str, str], ...] = ()


_KINDS = {
    "test": _Kind(
        "benchmark",
        "A test for ModelGauge.",
        "modelgauge run-test --test $package --sut SUT",
        (("items", "$package/data/items.jsonl"),),
    ),
    "sut": _Kind(
        "sut", "A SUT for ModelGauge.", "modelgauge run-sut --sut $package --prompt 'Good morning!'"
    ),
    "annotator": _Kind(
        "annotator",
        "An annotator for ModelGauge.",
        "modelgauge run-annotator --annotator $package --prompt 'Why?' --completion 'Who knows?'",
    ),
    "metric": _Kind(
        "metric",
        "A metric for ModelGauge.",
        "modelgauge run-test --dataset GOLDENS.csv --metric $package --sut SUT",
    ),
}


@click.command("new")
@click.argument("path", metavar="NAME", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(list(_KINDS)),
    multiple=True,
    default=("test",),
    show_default="test",
    help="The plugin that the package holds; repeatable.",
)
@shared_options
def new(app: App, /, *, path: Path, kinds: tuple[str, ...]) -> None:
    """Write a package with a plugin of your own, to begin from.

    NAME is the name of the distribution, in small letters, such as acme-rhymes; the package is written into a new
    folder of this name. Its tests, with the checks that every plugin passes, pass as they are written.

    \b
    Examples:
      modelgauge new acme-rhymes
      modelgauge new acme-judges --kind annotator --kind metric
    """
    chosen = [kind for kind in _KINDS if kind in kinds]
    name = _checked_name(path)
    written = _contents(name, chosen)
    _write(path, written)
    commands = [f"cd {path}", "pip install -e . pytest", "pytest", *_commands(name, chosen)]
    text = "\n".join(
        [
            f"Wrote {path}:",
            *(f"  {file}" for file in written),
            "",
            "Next:",
            *(f"  {line}" for line in commands),
        ]
    )
    app.show_answer({"folder": str(path), "files": list(written), "next": commands}, text)


def _checked_name(path: Path) -> str:
    """Return the name of the distribution.

    Raises:
        UsageError: the folder exists, or the name cannot be that of a package.
    """
    name = path.name
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists already.", fix="Give another name, or remove it.")
    if not _NAME.fullmatch(name):
        small = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        raise UsageError(
            f"{name!r} cannot be the name of a package.",
            fix="Use small letters, digits and hyphens" + (f": {small}." if small else "."),
        )
    package = _make_package_name(name)
    if not package.isidentifier() or keyword.iskeyword(package) or package in ("test", "tests"):
        raise UsageError(
            f"Python cannot import a package {package!r}.", fix=f"Give another name: acme-{name}."
        )
    if package in sys.stdlib_module_names or find_spec(package) is not None:
        raise UsageError(
            f"There is a module {package!r} already, which the package would hide.",
            fix=f"Give another name: acme-{name}.",
        )
    return name


def _make_package_name(name: str) -> str:
    return re.sub(r"[-.]", "_", name)


def _commands(name: str, kinds: Sequence[str]) -> list[str]:
    return [Template(_KINDS[kind].command).substitute(package=_make_package_name(name)) for kind in kinds]


def _contents(name: str, kinds: Sequence[str]) -> dict[str, str]:
    """Return the text of each file, by its path in the folder."""
    package = _make_package_name(name)
    facts = {
        "name": name,
        "package": package,
        "stem": "".join(part.capitalize() for part in package.split("_")),
        "description": _KINDS[kinds[0]].description if len(kinds) == 1 else "Plugins for ModelGauge.",
        "command": "\n$ ".join(_commands(name, kinds)),
    }

    def read(kind: str, template: str) -> str:
        text = files("modelgauge.cli").joinpath("new_package", kind, f"{template}.txt")
        return Template(text.read_text(encoding="utf-8")).substitute(facts)

    written = {
        "pyproject.toml": read("all", "pyproject"),
        "README.md": read("all", "README"),
        f"{package}/__init__.py": read("all", "init"),
        f"{package}/register.py": read("all", "register") + "".join(read(kind, "register") for kind in kinds),
        "tests/test_conformance.py": read("all", "tests"),
    }
    for kind in kinds:
        of_kind = _KINDS[kind]
        written[f"{package}/{of_kind.module}.py"] = read(kind, "module")
        for template, path in of_kind.others:
            written[Template(path).substitute(facts)] = read(kind, template)
        written[f"tests/test_{of_kind.module}.py"] = read(kind, "tests")
    return written


def _write(folder: Path, contents: dict[str, str]) -> None:
    """Write the files into a new folder.

    Raises:
        UsageError: the disk refuses.
    """
    try:
        folder.mkdir(parents=True)
        for name, text in contents.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror or error}.", fix="Give a path where you may write."
        ) from error

"""Fixtures for tests of plugins: folders that look like installed distributions."""

import sys

import pytest


class Site:
    """A folder on `sys.path` with distributions in it, as an installer leaves them."""

    def __init__(self, folder):
        self.folder = folder

    def module(self, name, source):
        file = self.folder / f"{name}.py"
        file.write_text(source, encoding="utf-8")
        return file

    def distribution(self, name, entry_points, *, version="1.0", suffix="dist-info", group="modelgauge"):
        """Write the metadata of a distribution; `entry_points` are lines of the group."""
        metadata = self.folder / f"{name.replace('-', '_')}-{version}.{suffix}"
        metadata.mkdir(parents=True)
        file = "METADATA" if suffix == "dist-info" else "PKG-INFO"
        (metadata / file).write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: of nothing\n", encoding="utf-8"
        )
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry_points}\n", encoding="utf-8")
        return metadata

    def plugin(self, name, source, **options):
        """A distribution `NAME-plugin` with one module `NAME_register` that holds its hooks."""
        self.module(f"{name}_register", source)
        return self.distribution(f"{name}-plugin", f"{name} = {name}_register", **options)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An empty site folder; `sys.path` and imported modules are as before afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield Site(folder)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: compressed ones hold a time, and workers must collect the same tests."""
    return argname if isinstance(val, bytes) else None

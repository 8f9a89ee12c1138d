"""The settings of this repository's tests, for sessions that run any of them: `tests/settings/repository_settings.py`.

Any other test that is written in the checkout runs as it would elsewhere.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the settings. This hook comes first, before pytest reads options and the conftest.py files of folders."""
    config = pluginmanager.get_plugin("pytestconfig")
    if config is not None and _runs_repository_tests(config):
        if find_spec("hypothesis") is None:
            raise pytest.UsageError("These tests need the tools of development: uv run --group dev pytest")
        sys.path.insert(0, str(ROOT / "tests" / "settings"))
        pluginmanager.import_plugin("repository_settings")


def _runs_repository_tests(config: pytest.Config) -> bool:
    """Whether an argument of the session is in a folder of `testpaths`, or holds one."""
    folders = [ROOT / name for name in config.getini("testpaths")]
    given = config.known_args_namespace.file_or_dir or ["."]
    paths = [(config.invocation_params.dir / name.partition("::")[0]).resolve() for name in given]
    return any(
        folder in (path, *path.parents) or path in folder.parents for folder in folders for path in paths
    )

"""The two tiers of tests.

`pytest` runs the first tier: all behaviour, every promise, faults by sample. `pytest -m slow` runs the second: what
takes long, all cases of sweeps and more examples of laws. A session that names files or folders runs both in full.
"""

from collections.abc import Sequence
from typing import TypeVar

import pytest
from hypothesis import is_hypothesis_test

T = TypeVar("T")

SLOW_FILES = {
    "tests/caches/test_remote.py": "starts the servers of shared caches",
    "tests/plugins/test_third_party.py": "builds and installs distributions",
}
"""Files whose tests are in the second tier, each with the reason."""

SLOW_FIXTURES = {
    "base_urls": "starts servers of models",
    "chromium": "drives a browser",
    "cluster": "starts a cluster of Ray",
    "follow_page": "follows a page of the documentation",
    "mlflow": "starts MLflow's server",
    "site": "builds the site of the documentation",
    "smollm2": "runs a local model",
}
"""Fixtures whose tests are in the second tier, each with the reason."""

FIRST = "not slow"
"""The expression of markers that selects the first tier."""

_is_first = False


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the first tier unless something is chosen. The workers of pytest-xdist get these options too."""
    global _is_first  # noqa: PLW0603  read as test files are imported
    config.addinivalue_line("markers", "slow(reason): in the second tier, which `pytest -m slow` runs")
    option = config.option
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not option.markexpr:
        option.markexpr = FIRST
    _is_first = option.markexpr == FIRST
    if _is_first and not option.hypothesis_profile:
        option.hypothesis_profile = "few"


def sample(cases: Sequence[T], few: int) -> Sequence[T]:
    """Return the cases of a sweep: in the first tier a few, spread evenly.

    The tests of a file that imports this are in both tiers.
    """
    return cases[:: -(-len(cases) // few)] if _is_first and len(cases) > few else cases


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of the second tier, before pytest selects by markers."""
    slow_files = {config.rootpath / name: reason for name, reason in SLOW_FILES.items()}
    for item in items:
        reasons = [SLOW_FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in SLOW_FIXTURES]
        if item.path in slow_files:
            reasons.append(slow_files[item.path])
        if not _is_first and is_hypothesis_test(getattr(item, "obj", None)):
            reasons.append("tries all examples of a law")
        if not _is_first and getattr(getattr(item, "module", None), "sample", None) is sample:
            reasons.append("tries all cases of a sweep")
        if reasons:
            item.add_marker(pytest.mark.slow(reason=reasons[0]))

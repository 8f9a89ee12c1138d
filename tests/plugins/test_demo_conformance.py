"""The lessons keep every promise that they teach."""

import pytest

from modelgauge.testing import conformance


@pytest.fixture(autouse=True)
def _demo_key(monkeypatch):
    monkeypatch.setenv("DEMO_API_KEY", "any text will do")


def cases(*names):
    """Every rule for every plugin; the answers of these SUTs and annotators cost nothing."""
    parts = [conformance(name, call=True) for name in names]
    return {
        "argnames": "case",
        "argvalues": [case for part in parts for case in part["argvalues"]],
        "ids": [identifier for part in parts for identifier in part["ids"]],
    }


@pytest.mark.parametrize(
    **cases(
        "modelgauge-plugin-demo-suts", "modelgauge-plugin-demo-annotators", "modelgauge-plugin-demo-tests"
    )
)
def test_conformance(case):
    case.check()

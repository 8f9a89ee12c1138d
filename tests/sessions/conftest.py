"""A working directory for sessions of pytest in processes of their own."""

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path

"""A name of a first-party plugin that is not installed is an error that says how to install the plugin."""

import importlib.metadata

import click
import pytest

from modelgauge.cache.opening import open_cache
from modelgauge.cli.main import cli
from modelgauge.engine.executors.base import create_executor
from modelgauge.errors import ModelGaugeError
from modelgauge.plugins.registry import Registry
from modelgauge.wording.first_party import FIRST_PARTY


def ask(kind, name, folder):
    """Ask for a name as users do; return what they read."""
    asks = {
        "command": lambda: cli.resolve_command(click.Context(cli), [name]),
        "executor": lambda: create_executor(name, 1),
        "cache": lambda: open_cache(f"{name}://host", folder),
    }
    with pytest.raises((ModelGaugeError, click.UsageError)) as caught:
        asks.get(kind, lambda: Registry(kind).make(name))()
    return str(caught.value)


@pytest.mark.parametrize("plugin", FIRST_PARTY, ids=lambda plugin: f"{plugin.kind} {plugin.prefix}")
def test_a_plugin_is_suggested_if_it_is_not_installed(plugin, monkeypatch, tmp_path):
    def not_found(name):
        raise importlib.metadata.PackageNotFoundError(name)

    name = f"{plugin.prefix}something"
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.0")
    installed = ask(plugin.kind, name, tmp_path)
    monkeypatch.setattr(importlib.metadata, "version", not_found)
    suggested = ask(plugin.kind, name, tmp_path)
    assert "pip install" not in installed
    assert f"{plugin.distribution}, which is not installed: `pip install . ./{plugin.folder}`" in suggested

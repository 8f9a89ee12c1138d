"""Plugins that watch runs: the bridge from the engine's observers to the hooks."""

from collections.abc import Mapping
from typing import Any

from modelgauge.data.records import ItemRecord, TestRecord
from modelgauge.plugins.discovery import Plugins


class PluginObserver:
    """Calls the `modelgauge_run_…` and `modelgauge_item_…` hooks; a plugin that raises is kept in `plugins.failures`.

    Args:
        plugins: those that may observe.
    """

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._watches_items = plugins.observes("modelgauge_item_finished")

    def run_started(self, run: Mapping[str, Any]) -> None:
        """Tell plugins that a run starts."""
        self._plugins.notify("modelgauge_run_started", run=run)

    def item_finished(self, run_id: str, record: ItemRecord) -> None:
        """Tell plugins that an item is done."""
        if self._watches_items:
            self._plugins.notify("modelgauge_item_finished", run_id=run_id, record=record)

    def run_finished(self, record: TestRecord) -> None:
        """Tell plugins that a run has its record."""
        self._plugins.notify("modelgauge_run_finished", record=record)

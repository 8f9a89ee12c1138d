"""Fixtures for runs on several processes: a plugin file, whose SUT logs its calls."""

import re
import subprocess
from itertools import accumulate
from pathlib import Path

import pytest
from children import Forked

from modelgauge import rescore, resume, run_test
from modelgauge.config.settings import load_settings

PLUGIN = Path(__file__).with_name("counted_plugin.py")


class Counting:
    """Runs of the plugin's test on its SUT, which logs its calls in the folder.

    Args:
        folder: of the log, and of the data.
    """

    plugin = str(PLUGIN)

    def __init__(self, folder):
        self.folder = folder

    def name(self, **options):
        return "&".join(
            [f"counted?folder={self.folder}", *(f"{key}={value}" for key, value in options.items())]
        )

    def run(self, test="words", *, sut=None, options=(), **run_options):
        """Run it on two processes, if nothing else is said."""
        return run_test(test, sut or self.name(**dict(options)), **{**self.usual(), **run_options})

    def usual(self):
        settings = load_settings(plugins=[str(PLUGIN)])
        return {"executor": "processes", "workers": 2, "data_dir": self.folder, "settings": settings}

    def resume(self, record, **run_options):
        [resumed] = resume(record.run_id, **{**self.usual(), **run_options})
        return resumed

    def calls(self, what="begin"):
        """Process and prompt of each call that was logged."""
        log = self.folder / "calls"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [line.split("\t")[1:] for line in lines if line.startswith(what)]

    def rescore(self, record):
        [measured] = rescore(record.run_id, **self.usual())
        return measured

    def most_at_once(self):
        """How many calls were under way at once, at most."""
        lines = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        return max(accumulate(1 if line.startswith("begin") else -1 for line in lines))

    @staticmethod
    def items_of(record):
        """The items of a run as JSON, in the order of the test, without the times of calls."""
        items = sorted(record.iter_items(), key=lambda item: item.index)
        return [re.sub(r'"time":\[[^]]*\]', "", item.model_dump_json()) for item in items]


@pytest.fixture(autouse=True)
def forked_workers(monkeypatch):
    """Workers are forked, as other processes of tests are."""
    monkeypatch.setattr(subprocess, "Popen", Forked)


@pytest.fixture
def counting(tmp_path):
    return Counting(tmp_path)

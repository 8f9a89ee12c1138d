"""An executor of the settings: for all that workers can make by names, unless a run is given another."""

import json
import os

from modelgauge import FunctionSUT, run_test
from modelgauge.config.settings import load_settings


def options_of(record):
    """Executor and number of workers, as the run's manifest has them."""
    options = json.loads((record.folder / "run.json").read_text(encoding="utf-8"))["options"]
    return options["executor"], options["workers"]


def test_settings_name_the_executor_unless_a_run_does_or_objects_have_no_names(counting):
    settings = load_settings(
        env={"MODELGAUGE_EXECUTOR": "processes", "MODELGAUGE_WORKERS": "2"}, plugins=[counting.plugin]
    )
    usual = {"data_dir": counting.folder, "settings": settings, "caching": False}
    asked = run_test("words?number=6", counting.name(), **usual)
    assert (asked.counts.scored, options_of(asked)) == (6, ("processes", 2))
    here = str(os.getpid())
    assert here not in {process for process, _ in counting.calls()}
    alone = run_test("words?number=6", counting.name(), executor="local", **usual)
    assert options_of(alone) == ("local", None)
    assert {process for process, _ in counting.calls()[6:]} == {here}
    mine = run_test("words?number=6", FunctionSUT("mine", str.upper, version=1), **usual)
    assert (mine.counts.scored, options_of(mine)) == (6, ("local", None))

"""Hooks of this plugin: a uid for each task. Tests are imported on first use."""

from typing import Any

from modelgauge import hookimpl
from modelgauge_standard_tests.sources import BBH_TASKS


@hookimpl
def modelgauge_register_tests(register: Any) -> None:
    """BIG-Bench Hard (27 tasks, the group `bbh`) and GSM8K."""
    for task in BBH_TASKS:
        register(f"bbh_{task}", "modelgauge_standard_tests.bbh:BigBenchHard", task=task)
    register.group("bbh", [f"bbh_{task}" for task in BBH_TASKS])
    register("gsm8k", "modelgauge_standard_tests.gsm8k:GSM8K")

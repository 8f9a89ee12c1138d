"""The hook of this plugin: the provider `lm_eval`. lm-eval is imported once a task is asked."""

from typing import Any

from modelgauge import hookimpl


@hookimpl
def modelgauge_register_tests(register: Any) -> None:
    """Register `lm_eval/TASK?shots=…&limit=…`: any task, group or tag of the installed lm-eval, or of a folder."""
    register.provider(
        "lm_eval", "modelgauge_lm_eval.test:LMEvalTest", names="modelgauge_lm_eval.names:installed_names"
    )

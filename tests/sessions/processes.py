"""Sessions of pytest in processes of their own; those inside a test are the fixture `session` of `core/evals`."""

import os
import subprocess
import sys

# Hypothesis is the tests' own; at the end of each session its plugin for pytest would load all of it.
VARIABLES = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
    "PYTEST_ADDOPTS": "-p no:hypothesispytest",
}


def process_of_its_own(*command, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MODELGAUGE"))}
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        env={**env, **VARIABLES, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def in_process_of_its_own(*command, **variables):
    with process_of_its_own(*command, **variables) as process:
        output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

"""Sessions of pytest in processes of their own, and what they leave; those inside a test are the fixture `session`."""

import os
import subprocess
import sys

from modelgauge import load_record


def process_of_its_own(*command, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MODELGAUGE"))}
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        env={**env, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", **variables},
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


def records(project):
    return [load_record(run) for run in sorted((project / "run_data" / "runs").iterdir())]


def summary_of(output):
    """What a session says of its cases at its end."""
    return output.partition("= modelgauge =")[2].partition("short test summary")[0]

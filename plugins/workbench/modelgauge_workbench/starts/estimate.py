"""The estimate of a job: what `--dry-run` says that it would take; a process of its own looks, and sends nothing."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from modelgauge_workbench.starts.jobs import Job

_PATIENCE = 300  # seconds; a test may have to fetch its data


def estimate(job: Job, data_dir: Path, arguments: Sequence[str] = ()) -> None:
    """Find out what a job would take, and keep it with the job: the plans, or why there are none.

    Args:
        job: with a run file, or a run that it resumes.
        data_dir: with the cache, whose answers cost nothing; the folder of a run that is resumed has its own.
        arguments: see `Queue`.
    """
    verb, what, data_dir = job.command(data_dir.absolute())
    command = [sys.executable, "-P", "-m", "modelgauge", verb, what, "--dry-run", "--json"]
    try:
        done = subprocess.run(  # noqa: S603  the file was checked
            [*command, "--no-progress-bar", "--data-dir", str(data_dir), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        job.write(
            "plans.json",
            {"problem": f"The estimate was not ready after {_PATIENCE} seconds. Order fewer items."},
        )
        return
    said = done.stderr.decode("utf-8", "replace").strip()
    job.write(
        "plans.json",
        {"problem": said.removeprefix("Error: ")} if done.returncode else json.loads(done.stdout),
    )

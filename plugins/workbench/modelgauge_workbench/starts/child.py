"""The process of a job: `python -m modelgauge_workbench.starts.child FOLDER run …` does what `modelgauge run …` does.

It locks a file of the job for as long as it lives, and says at its end with which exit code it ended.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import IO

from modelgauge.cli.main import cli
from modelgauge.cli.program import INTERNAL, INTERRUPTED
from modelgauge.files.lock import lock
from modelgauge_workbench.register import JOB
from modelgauge_workbench.starts.jobs import Job, now

_TRIES = 100


def main(folder: str, *arguments: str) -> int:
    """Run a command as the process of a job.

    Args:
        folder: of the job; its file `process` is there, and nobody has written into it.
        arguments: of `modelgauge`.

    Returns:
        The exit code.
    """
    job = Job(Path(folder))
    held = _held(job.process)
    if held is None or job.process.stat().st_size:
        sys.stderr.write("Another process works on this job, or has done so.\n")
        return INTERNAL
    job.process.write_text(str(os.getpid()), encoding="ascii")
    os.environ[JOB] = folder
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a server that a shell runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code: int | str | None = INTERNAL
    try:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # what came meanwhile comes now
        code = cli.main(list(arguments), prog_name="modelgauge", standalone_mode=False)
    except SystemExit as ending:
        code = ending.code
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        for name in (signal.SIGINT, signal.SIGTERM):  # what is left to write is a line
            signal.signal(name, signal.SIG_IGN)
        number = code if isinstance(code, int) else INTERNAL if code else 0
        job.write("ended.json", {"exit_code": number, "ended": now()})
    return number


def _held(path: Path) -> IO[bytes] | None:
    """The lock of a file; who looks whether it is held holds it for a moment."""
    for _ in range(_TRIES):
        held = lock(path, "r+b")
        if held is not None:
            return held
        time.sleep(0.05)
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

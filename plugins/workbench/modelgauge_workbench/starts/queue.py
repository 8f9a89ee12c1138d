"""The queue: jobs that people approved run one after the other, each as a process that outlives the server."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from modelgauge.engine.run_files.folder import RUNS
from modelgauge.errors import UsageError
from modelgauge_workbench.starts.estimate import estimate
from modelgauge_workbench.starts.jobs import Job, JobState, jobs_of, now
from modelgauge_workbench.starts.order import Order, Shelf

_PAUSE = 0.3  # seconds between looks at what runs: jobs of an earlier server are not children of this one
_LOGGED = ("--no-progress-bar", "--log-level", "info")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
"""What is sent when a person cancels a job, cancels it again, and once more."""


class Queue:
    """Starts the jobs of a data folder, at most so many at once.

    Jobs that were approved when an earlier server ran are not started until a person approves them again, since they
    cost money. Jobs that go on since then are waited for.

    Args:
        data_dir: the data folder.
        shelf: what can be run; runs in its data folders can be resumed.
        arguments: for each process, behind those of the job: `--plugin`, say.
        parallel: how many jobs run at once.
    """

    def __init__(
        self, data_dir: Path, shelf: Shelf, arguments: Sequence[str] = (), parallel: int = 1
    ) -> None:
        self._data_dir, self._shelf, self._parallel = data_dir.absolute(), shelf, parallel
        self._arguments = arguments
        self._lock = threading.RLock()
        self._approved: list[Job] = []
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._signals: dict[str, int] = {}
        self._estimated: set[str] = set()
        self._thread: threading.Thread | None = None
        self._ends = threading.Event()

    def state(self, job: Job) -> JobState:
        """What became of a job."""
        with self._lock:  # a job that is being started seems killed
            child = self._children.get(job.id)
            return "running" if child is not None and child.poll() is None else job.state()

    def waits(self, job: Job) -> bool:
        """Whether a queued job starts without a further word, as soon as there is room."""
        return job in self._approved

    def ahead(self, job: Job) -> int:
        """How many jobs start before a queued one."""
        return self._approved.index(job) if job in self._approved else 0

    def approve(self, job: Job) -> None:
        """Let a job start as soon as there is room.

        Raises:
            UsageError: it has started or was withdrawn, or its run file says what no page can order.
        """
        with self._lock:
            if self.state(job) == "withdrawn":
                raise UsageError("This job was withdrawn.", fix="Put it back, and start it then.")
            if self.state(job) not in ("draft", "queued"):
                fix = "Choose 'Run again, with changes' for a new one like it."
                raise UsageError("This job has been started before.", fix=fix)
            self._check(job)
            job.note(approved=now())
            if job not in self._approved:
                self._approved.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="modelgauge-starts", daemon=True)
                self._thread.start()

    def _check(self, job: Job) -> None:
        """Refuse what no page orders, whoever wrote the files of a job."""
        run = job.resumes()
        if run is None:
            Order.of_run_file(job.run_file.read_text(encoding="utf-8"), self._shelf).run_file(self._shelf)
        elif run.parent not in [folder.absolute() / RUNS for folder in self._shelf.data_dirs]:
            raise UsageError(
                f"The run {run} lies in none of the data folders.", fix="Resume it in a terminal."
            )

    def cancel(self, job: Job) -> None:
        """Withdraw a job that has not begun; interrupt one that runs, as Ctrl-C does, and harder each further time."""
        with self._lock:
            if self.state(job) in ("draft", "queued"):
                if job in self._approved:
                    self._approved.remove(job)
                job.note(withdrawn=now())
                return
        if self.state(job) == "running":
            times = self._signals.get(job.id, 0)
            self._signals[job.id] = times + 1
            number = _SIGNALS[min(times, len(_SIGNALS) - 1)]
            child = self._children.get(job.id)
            if child is None:
                job.send(number)
            else:
                child.send_signal(number)

    def put_back(self, job: Job) -> None:
        """Undo the withdrawal of a job: it is a draft again."""
        if self.state(job) == "withdrawn":
            job.note(withdrawn=None, approved=None)

    def estimate(self, job: Job) -> None:
        """Find out in the background what a job would take.

        Raises:
            UsageError: its run file contains what a page cannot order.
        """
        self._check(job)

        def work() -> None:
            try:
                estimate(job, self._data_dir, self._arguments)
            finally:
                self._estimated.discard(job.id)

        self._estimated.add(job.id)
        threading.Thread(target=work, name="modelgauge-estimate", daemon=True).start()

    def is_estimating(self, job: Job) -> bool:
        """Whether the estimate of a job is being made."""
        return job.id in self._estimated

    def cancelled_times(self, job: Job) -> int:
        """How often a running job was cancelled."""
        return self._signals.get(job.id, 0)

    def close(self) -> None:
        """Start nothing any more. What runs goes on."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()

    # --- the thread -------------------------------------------------------------------------------------

    def _work(self) -> None:
        running = jobs_of(self._data_dir)
        while not self._ends.is_set():
            with self._lock:
                running = [job for job in running if self.state(job) == "running"]
                self._children = {
                    name: process for name, process in self._children.items() if process.poll() is None
                }
                if len(running) < self._parallel and self._approved:
                    running.append(self._approved.pop(0))
                    self._start(running[-1])
                elif not self._approved and not self._children:
                    self._thread = None
                    return
            self._ends.wait(_PAUSE)

    def _start(self, job: Job) -> None:
        try:
            job.process.open("xb").close()  # nobody else has started it, nor will
        except FileExistsError:
            return
        verb, what, data_dir = job.command(self._data_dir)
        with job.log.open("ab") as log, _deferring_interrupts():
            self._children[job.id] = subprocess.Popen(  # noqa: S603  the file was checked
                child_command(job, verb, what, "--data-dir", str(data_dir), *self._arguments, *_LOGGED),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=os.name != "nt",  # Ctrl-C of the server's terminal is not for it
            )


@contextmanager
def _deferring_interrupts() -> Iterator[None]:
    """Let a process that is started here get SIGINT only when it asks for it (`child.py`), not while it imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def child_command(job: Job, *arguments: str) -> list[str]:
    """The command line of a process that works on a job."""
    return [sys.executable, "-P", "-m", "modelgauge_workbench.starts.child", str(job.path), *arguments]

"""What the pages of this room share: what can be chosen, the queue, and the estimates that are being made."""

import threading
from collections.abc import Sequence
from pathlib import Path

from modelgauge.plugins.discovery import Plugins
from modelgauge_workbench.starts.estimate import estimate
from modelgauge_workbench.starts.jobs import Job
from modelgauge_workbench.starts.order import Shelf
from modelgauge_workbench.starts.queue import Queue


class Starts:
    """Runs that are started from pages.

    Args:
        data_dirs: runs are begun in the first of these folders, and resumed in all.
        plugins: whose names can be chosen.
        arguments: for each process of a run, such as `--plugin` with a file that the server was started with.
        parallel: how many runs go on at once.
    """

    def __init__(
        self, data_dirs: Sequence[Path], plugins: Plugins, arguments: Sequence[str] = (), parallel: int = 1
    ) -> None:
        self.data_dir = data_dirs[0]
        self.shelf = Shelf(plugins, data_dirs)
        self.queue = Queue(self.data_dir, self.shelf, arguments, parallel)
        self._arguments = arguments
        self._estimated: set[str] = set()

    def estimate(self, job: Job) -> None:
        """Find out in the background what a job would take."""
        self._estimated.add(job.id)
        threading.Thread(target=self._estimate, args=[job], name="modelgauge-estimate", daemon=True).start()

    def is_estimating(self, job: Job) -> bool:
        """Whether the estimate of a job is being made."""
        return job.id in self._estimated

    def _estimate(self, job: Job) -> None:
        try:
            estimate(job, self.data_dir, self._arguments)
        finally:
            self._estimated.discard(job.id)

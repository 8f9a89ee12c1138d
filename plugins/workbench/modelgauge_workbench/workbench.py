"""`Workbench`: what all pages share: the folders of data, the index of their runs, and what visitors may do."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from starlette.requests import Request

from modelgauge.plugins.discovery import Plugins
from modelgauge_workbench.comparisons.comparing import Comparisons
from modelgauge_workbench.index.index import Index
from modelgauge_workbench.index.watch import Watcher
from modelgauge_workbench.starts.order import Shelf
from modelgauge_workbench.starts.queue import Queue


class Workbench:
    """The data that is shown.

    Args:
        data_dirs: folders of data, at least one. What belongs to no run is written to the first.
        plugins: whose names can be run.
        arguments: for the processes of runs that are started from pages.
        parallel: how many of these go on at once.
        redact: takes secrets out of a text.
        read_only: whether visitors may only look.

    Attributes:
        index: of the runs and items in all folders.
        changing: held while a file of notes is read and written again.
        shelf: what can be run from pages.
        queue: of the runs that are started there.
        comparisons: of runs, as pages show them.
    """

    def __init__(
        self,
        data_dirs: Sequence[Path],
        plugins: Plugins,
        *,
        arguments: Sequence[str] = (),
        parallel: int = 1,
        redact: Callable[[str], str] = str,
        read_only: bool = False,
    ) -> None:
        self.data_dirs = tuple(dict.fromkeys(path.absolute() for path in data_dirs))
        self.redact = redact
        self.read_only = read_only
        self.index = Index(self.data_dirs)
        self.changing = Lock()
        self.shelf = Shelf(plugins, self.data_dirs)
        self.queue = Queue(self.data_dir, self.shelf, arguments, parallel)
        self.comparisons = Comparisons(redact)

    @property
    def data_dir(self) -> Path:
        """The folder that is written to."""
        return self.data_dirs[0]

    @property
    def key_file(self) -> Path:
        """Where the key lies by which forms prove that they come from our own pages."""
        return self.data_dir / "workbench.key"

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep the index up to date meanwhile; then close it."""
        watcher = Watcher(self.index)
        watcher.start()
        try:
            yield
        finally:
            self.queue.close()
            self.comparisons.close()
            watcher.stop()
            self.index.close()


def workbench_of(request: Request) -> Workbench:
    """The workbench that serves a request."""
    found: Workbench = request.app.state.workbench
    return found

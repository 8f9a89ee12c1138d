"""Usage of a run over all its sessions, in a small file beside the journal: calls, tokens, dollars, time.

A session is one process that works on the run: the first command, and each `resume`.
"""

import logging
import os
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import IO, Any, Self

from pydantic import ConfigDict, model_serializer

from modelgauge.data.base import Count, Frozen, UnknownFields, of_valid
from modelgauge.data.results import Spent, TotalUsage
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.calls.budget import Budget
from modelgauge.engine.run_files.folder import RunFolder, by_invocation, read_json, refused
from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.files.regular import opened

log = logging.getLogger(__name__)

_LONGEST = 160  # characters of a reason to wait
_WIDTH = 2047  # bytes, so that a later text covers an earlier one

_KEYS = (
    "ended", "seconds", "sut_calls", "annotator_calls", "judge_calls", "attempts", "tokens", "cost", "unkept", "known",
    "waiting",
)  # fmt: skip
_FIELDS = {key: "cost_usd" if key == "cost" else key for key in _KEYS}
"""The keys of the file in their order, with the fields of `Totals` and `Used` that they contain."""


class Totals(Frozen):
    """Totals of a run over all sessions, up to the last item written, and its progress.

    Args:
        used: by all calls; in the file its fields are beside the others.
        ended: whether the last session came to its end, and not to a kill.
        known: how many items there are, for who looks at a run that is going on; None while that is not known.
        waiting: why its calls wait, by session too; empty if they do not.
    """

    model_config = ConfigDict(strict=True)

    used: TotalUsage = TotalUsage()
    ended: bool = False
    known: Count | None = None
    waiting: str = ""

    @classmethod
    def load(cls, data: Any, unknown: UnknownFields | None = None) -> Self:
        """Read totals from the JSON data of their file; see `Frozen.load`."""
        if isinstance(data, dict):  # of which later versions may have more keys
            fields = {name: data[key] for key, name in _FIELDS.items() if key in data}
            used = {name: fields.pop(name) for name in TotalUsage.model_fields if name in fields}
            data = {**fields, "used": TotalUsage.load(used, unknown)}
        return super().load(data, unknown)

    @model_serializer
    def _in_file(self) -> dict[str, Any]:
        fields = {**self.__dict__, **self.used.__dict__, "seconds": round(self.used.seconds, 3)}
        return {key: fields[name] for key, name in _FIELDS.items()}


class TotalsFile:
    """The file of the totals, overwritten in place: that costs next to nothing, and a full disk does not refuse it.

    Args:
        folder: of the run.
        tally: counts what all sessions use.
        standing: returns how many items there are, and why calls wait.
    """

    def __init__(
        self, folder: RunFolder, tally: Tally, standing: Callable[[], tuple[int | None, str]]
    ) -> None:
        self._folder = folder
        self._standing = standing
        self._tally = tally
        self._file: IO[bytes] | None = None
        self._writing = Lock()
        self._ended = False
        self._begun = monotonic()

    @property
    def used(self) -> TotalUsage:
        """The usage of all sessions so far."""
        return self._tally.used(monotonic() - self._begun)

    def open(self) -> None:
        """Begin a session: make the file, or open that of the earlier sessions.

        Raises:
            RunStoppedError: the disk refuses.
        """
        path = self._folder.totals
        self._begun = monotonic()
        try:
            self._file = opened(path, "r+b" if os.path.lexists(path) else "x+b")
            self.write()
        except OSError as error:
            raise refused(path, error) from error

    def write(self, *, ended: bool = False) -> None:
        """Overwrite the file with the present totals; after a kill it has the old or the new totals.

        Called by the writer before each group, so that no call is committed that is not counted.

        Args:
            ended: whether the session has come to its end; what is written after that is of other pairs.
        """
        with self._writing:
            if self._file is None or self._ended:
                return
            self._ended = ended
            known, waiting = self._standing()
            totals = of_valid(Totals, used=self.used, ended=ended, known=known, waiting=waiting[:_LONGEST])
            self._file.seek(0)
            self._file.write(totals.model_dump_json().encode().ljust(_WIDTH) + b"\n")

    def close(self) -> None:
        """Free the file; nothing is written any more."""
        with self._writing:
            if self._file is not None:
                self._file.close()
            self._file = None


def read_totals(folder: RunFolder) -> Totals | None:
    """Read the totals of a run; None if an older version wrote none, or a kill came before the first.

    Raises:
        RecordError: the file is damaged.
    """
    path = folder.totals
    if not os.path.lexists(path) or (not path.is_symlink() and path.is_file() and not path.stat().st_size):
        return None
    try:
        return Totals.load(read_json(path))
    except (InvalidDataError, RecordError) as error:
        damage = (
            f"{path} is damaged: {error.problem}" if isinstance(error, InvalidDataError) else error.problem
        )
        fix = "Remove it: then what the run has used so far is not counted."
        raise RecordError(damage, fix=fix) from None


def count_spent(budget: Budget, folder: RunFolder) -> None:
    """Add to a budget what all runs of a command have spent, when a run is resumed: caps are the command's.

    Args:
        budget: of the session that begins.
        folder: of the run that goes on.

    Raises:
        RecordError: its totals are damaged.
    """
    read_totals(folder)  # damage of this run's own file is an error, of others a warning
    runs = [folder]
    if (budget.max_calls, budget.max_tokens, budget.max_cost) != (None, None, None):
        command = str(folder.read_manifest().get("invocation_id"))
        runs = by_invocation(folder.path.parent)[0].get(command, runs)
    spent = Spent()
    for run in runs:
        try:
            totals = read_totals(run) or Totals()
        except RecordError as error:
            log.warning("What another run of the same command has spent is not counted. %s", error)
            continue
        spent += totals.used
    budget.begin(spent)

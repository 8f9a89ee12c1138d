"""Interface of executors, which start workers and carry lines to and from them. Plugins can add executors.

The lines are the same for every executor: `messages.py` defines their form, `pool.py` is the driver's side, and
`modelgauge.workers.serving.serve` the worker's.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import parse_qsl

from modelgauge.engine.executors.processes import Processes
from modelgauge.errors import InvalidOptionError, ModelGaugeError, RunStoppedError
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.first_party import how_to_install

GROUP = "modelgauge.executors"
"""The group of entry points that announce classes of executors, each under its name."""

LOCAL = "local"
"""The name for work in the process of the run, which is no executor."""

PROCESSES = "processes"
"""The name of the executor that is built in."""


class Link(Protocol):
    """A worker, as the driver reaches it.

    Attributes:
        name: of the worker in messages: its process, and its node where there are several.
    """

    name: str

    async def send(self, lines: bytes) -> None:
        """Hand over whole lines, and wait until there is room for more. Lines for a worker that has ended are lost."""

    async def receive(self) -> bytes:
        """Wait for whole lines; none, `b""`, once the worker has ended."""
        ...

    async def end(self) -> None:
        """End the worker at once, unless it has ended: what it still does is lost."""

    def why_ended(self) -> str:
        """Say why the worker has ended, as the end of a sentence: 'by signal 9'."""
        ...


class Executor(Protocol):
    """Launcher of workers. A class under `modelgauge.executors` is called with `workers` and the options of its
    name.

    Attributes:
        workers: how many there shall be.
        least: how many of them must be ready before the first call; the others join when they are.
        hands_secrets: whether its lines go to processes of the same user on this machine, so that the secrets of the
            run may be handed down. Other workers look them up by name.
    """

    workers: int
    least: int
    hands_secrets: bool

    async def start(self) -> Link:
        """Start a worker, also in place of a dead worker.

        Raises:
            ModelGaugeError: none can be started.
        """
        ...

    async def close(self) -> None:
        """Free what the workers shared; all of them have ended."""


def create_executor(name: str, workers: int | None) -> Executor | None:
    """Create the executor named by an option; None for work in this process.

    Args:
        name: with its own options behind a question mark: `ray?address=auto`.
        workers: how many; None for the executor's own number.

    Raises:
        InvalidOptionError: there is none of that name, or it takes no such options.
    """
    own, _, query = name.partition("?")
    if own == LOCAL:
        if workers is not None or query:
            raise InvalidOptionError(
                "The run works in this process, which takes no number of workers.",
                fix="Name who starts them: --executor processes",
            )
        return None
    made = Processes if own == PROCESSES else _of_plugin(own)
    try:
        return made(workers=workers, **dict(parse_qsl(query, keep_blank_values=True)))
    except (TypeError, ValueError) as error:
        if isinstance(error, ModelGaugeError):
            raise
        raise InvalidOptionError(
            f"The executor '{own}' does not take these options: {error}.",
            fix=f"Write them as {own}?OPTION=VALUE&OPTION=VALUE; the page of its plugin has them.",
        ) from error


def behind_the_name(option: str) -> str | None:
    """Return the spelling of an executor's option that was given as an option of the command; None for others.

    Args:
        option: such as `--ray-address` or `--gpus-per-worker`.
    """
    first, _, rest = option.lstrip("-").partition("-")
    known = _entry_points()
    if first in known and rest:
        name, own = first, rest
    elif known and rest == "per-worker":
        name, own = min(known), first
    else:
        return None
    return f"Options of an executor stand behind its name: --executor '{name}?{own}=VALUE'"


def _entry_points() -> dict[str, Any]:
    """Return the entry points of executors by name."""
    metadata = import_module("importlib.metadata")  # which costs more than all that most commands do
    return {entry_point.name: entry_point for entry_point in metadata.entry_points(group=GROUP)}


def _of_plugin(name: str) -> Callable[..., Executor]:
    """Return the class of an executor that a plugin registers."""
    known = _entry_points()
    if name not in known:
        names = [LOCAL, PROCESSES, *sorted(known)]
        raise InvalidOptionError(
            f"There is no executor '{name}'.",
            fix=f"{did_you_mean(name, names)}Known: {', '.join(names)}. {how_to_install('executor', name)}".rstrip(),
        )
    try:
        made: Callable[..., Executor] = known[name].load()
    except Exception as error:
        raise RunStoppedError(
            f"The executor '{name}' cannot be imported: {type(error).__name__}: {error}.",
            fix=f"Install {known[name].dist.name} again.",
        ) from error
    return made

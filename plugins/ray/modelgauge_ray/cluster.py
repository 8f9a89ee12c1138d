"""`--executor ray`: starts workers as actors of a cluster, and carries lines to them and back."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from importlib import import_module
from typing import Any

from modelgauge.engine.loop.threads import in_thread
from modelgauge.errors import InvalidOptionError, RunStoppedError

log = logging.getLogger(__name__)

_GROUPS = {"incoming": 1, "outgoing": 1}
_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # a cluster of ours tells nobody anything
    # Else `uv run` of a driver starts its workers by `uv run` too, in environments without the plugins.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}
_PATIENCE = 5.0  # seconds for a machine to answer at all
_TRIES = 3
_LONG = 15.0  # seconds without room, after which a warning says what is waited for
_NO_ROOM = "No room for another worker in the Ray cluster: each needs %s; the cluster has %s, free are %s."
_ELSEWHERE = (
    "Workers run on other machines (%s). A cache in a folder is one for all only where they share its disk: else give "
    "--cache postgresql://… or redis://…, so that no call is paid twice."
)


class RayCluster:
    """Starts workers in a Ray cluster; each is an actor, which makes its SUT once.

    Args:
        workers: how many; None for as many as the cluster has room for when the run begins.
        address: of the cluster; by default RAY_ADDRESS, else the cluster that runs on this machine, else a new one.
        cpus: processors that the cluster reserves for each worker.
        gpus: graphics processors that it gives to each; 0.5 for two workers on one.

    Raises:
        InvalidOptionError: a number is none.
    """

    hands_secrets = False  # what Ray sends is encrypted only where its TLS is turned on
    least = 1  # the others join when there is room for them

    def __init__(
        self, workers: int | None = None, address: str | None = None, cpus: str = "1", gpus: str = "0"
    ) -> None:
        self._needs = {"CPU": _amount("cpus", cpus), "GPU": _amount("gpus", gpus)}
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)  # Ray reads them when it is imported
        self._ray: Any = import_module("ray")  # here, so that `list` and other executors never import it
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._connect(address)
        self._actor = self._ray.remote(concurrency_groups=_GROUPS)(
            import_module("modelgauge_ray.worker").RayWorker
        )
        self._address = self._ray.util.get_node_ip_address()
        self._elsewhere = self._has_warned = False
        self.workers = workers or self._room()

    def _connect(self, address: str | None) -> None:
        try:
            if address is not None and ":" in address:
                host, _, port = address.removeprefix("ray://").rpartition(":")
                socket.create_connection((host, int(port)), _PATIENCE).close()  # Ray itself tries for minutes
            self._ray.init(
                address=address, logging_level=logging.ERROR, include_dashboard=None if address else False
            )
        except Exception as error:  # a node that does not start in time raises nothing more exact
            raise RunStoppedError(
                f"The Ray cluster cannot be reached: {error}.",
                fix="Start one (ray start --head), or give its address: --executor 'ray?address=HOST:6379'.",
            ) from error

    def _room(self) -> int:
        """Return the number of workers that the cluster has room for."""
        has = self._ray.cluster_resources()
        room = [int(has.get(name, 0) / amount) for name, amount in self._needs.items() if amount]
        return max(1, min(room, default=os.cpu_count() or 1))

    async def start(self) -> RayLink:
        """Start an actor, and wait until the cluster has room for it.

        The cluster learns only after a while that a machine is lost. An actor that was to run there is tried elsewhere.
        """
        waiting = asyncio.get_running_loop().call_later(_LONG, self._warn)
        options = {"num_cpus": self._needs["CPU"], "num_gpus": self._needs["GPU"], "max_restarts": 0}
        problem: Exception | None = None
        try:
            for _ in range(_TRIES):
                try:
                    actor = self._actor.options(**options).remote()
                    where = await actor.where.remote()
                    break
                except self._ray.exceptions.RayError as error:
                    problem = error
            else:
                raise RunStoppedError(
                    f"A worker could not be started in the Ray cluster: {problem}.",
                    fix="Install ModelGauge and the same plugins on each of its machines.",
                ) from problem
        finally:
            waiting.cancel()
        if where.address != self._address and not self._elsewhere:
            self._elsewhere = True
            log.warning(_ELSEWHERE, where.address)
        return RayLink(self._ray, actor, f"Worker process {where.process} on {where.address}")

    async def close(self) -> None:
        """Leave the cluster, unless the program was in it before; one that was started for the run ends."""
        if self._is_ours:
            await in_thread(self._ray.shutdown, "ray")

    def _warn(self) -> None:
        """Say once what a worker waits for, if it is room: one that has it is only slow to start."""
        needs = {name: amount for name, amount in self._needs.items() if amount}
        free, has = self._ray.available_resources(), self._ray.cluster_resources()
        if not self._has_warned and any(free.get(name, 0) < amount for name, amount in needs.items()):
            self._has_warned = True
            log.warning(_NO_ROOM, _listed(needs, needs), _listed(has, needs), _listed(free, needs))


class RayLink:
    """An actor, as the driver reaches it.

    Args:
        ray: the module.
        actor: a `RayWorker`.
        name: what messages call it.
    """

    def __init__(self, ray: Any, actor: Any, name: str) -> None:
        self._ray, self._actor, self.name = ray, actor, name
        self._why = "by itself"

    async def send(self, lines: bytes) -> None:
        """Put lines into its queue."""
        try:
            await self._actor.put.remote(lines)
        except self._ray.exceptions.RayError as error:
            self._ended(error)

    async def receive(self) -> bytes:
        """Wait for lines."""
        try:
            while (lines := await self._actor.take.remote()) == b"":
                pass
        except self._ray.exceptions.RayError as error:
            self._ended(error)
            return b""
        return lines or b""

    async def end(self) -> None:
        """Kill the actor."""
        await in_thread(lambda: self._ray.kill(self._actor), "ray")

    def why_ended(self) -> str:
        """Return Ray's explanation of its end."""
        return self._why

    def _ended(self, error: Exception) -> None:
        lines = str(error).splitlines()
        self._why = f"({lines[0] if lines else type(error).__name__})"


def _amount(name: str, text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise InvalidOptionError(
            f"{name}={text} is not a number of processors.",
            fix=f"Write ray?{name}=1, or 0.5 for half of one.",
        )
    return amount


def _listed(amounts: Any, names: Any) -> str:
    return ", ".join(f"{amounts.get(name, 0):g} {name}" for name in names) or "nothing"

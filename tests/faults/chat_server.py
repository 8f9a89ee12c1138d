"""Servers on the loopback interface that speak the chat-completions protocol and go wrong as planned.

`ChatServer` runs in a process of its own, so that a benchmark does not share its interpreter with it;
`ThreadedChatServer` in a thread, which starts sooner. Both are context managers:

    with ChatServer(Plan(latency=0.1)) as server:
        run_test(test, f"openai/any-model?base_url={server.base_url}")
        server.stats().max_in_flight

As a script: `python chat_server.py [PLAN [PORT]]`, where PLAN is the JSON of a `Plan`; it prints its port as a line
of JSON and ends when its standard input does, so that it never outlives who started it.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.request import ProxyHandler, Request, build_opener

from aiohttp import web
from chat_app import ChatApp, PromptCount, Stats
from chat_plan import Fault, Plan

__all__ = ["ChatServer", "Fault", "Plan", "PromptCount", "Stats", "ThreadedChatServer"]

_PATIENCE = 20.0  # seconds that starting and stopping may take on a busy machine


async def serve(plan: Plan, started: Callable[[int], None], stopped: asyncio.Event, port: int = 0) -> None:
    """Serve until `stopped` is set.

    Args:
        plan: what goes wrong.
        port: where; 0 for any that is free.
        started: told the port.
        stopped: set from within the loop.
    """
    runner = web.AppRunner(
        ChatApp(plan).application(),
        access_log=None,
        handler_cancellation=True,  # a client that leaves is no call in flight
        shutdown_timeout=0,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=2048)
        await site.start()
        started(runner.addresses[0][1])
        await stopped.wait()
    finally:
        await runner.cleanup()


class _Server:
    """What both servers offer: where they are, and their counters."""

    port = 0

    @property
    def base_url(self) -> str:
        """What `?base_url=` takes."""
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> Stats:
        """What the server has seen."""
        return Stats.from_json(self._admin("stats"))

    def set_plan(self, plan: Plan) -> None:
        """Go wrong in another way from now on."""
        self._admin("plan", plan.to_json().encode())

    def reset(self) -> None:
        """Count from zero."""
        self._admin("reset", b"")

    def _admin(self, path: str, data: bytes | None = None) -> bytes:
        direct = build_opener(ProxyHandler({}))
        with direct.open(
            Request(f"http://127.0.0.1:{self.port}/admin/{path}", data=data), timeout=_PATIENCE
        ) as answer:
            content: bytes = answer.read()
            return content

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError


class ChatServer(_Server):
    """A server in a process of its own. After `stop`, `start` starts it again at the same port.

    Args:
        plan: what goes wrong; nothing, by default.
    """

    def __init__(self, plan: Plan | None = None) -> None:
        self._plan = plan or Plan()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, and wait until it listens."""
        command = [sys.executable, str(Path(__file__).resolve()), self._plan.to_json(), str(self.port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The chat server ended with code {self._process.wait(_PATIENCE)}.")
        self.port = json.loads(line)["port"]

    def stop(self) -> None:
        """End this one process."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()  # which it waits for
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class ThreadedChatServer(_Server):
    """A server in a thread with an event loop of its own.

    Args:
        plan: what goes wrong; nothing, by default.
    """

    def __init__(self, plan: Plan | None = None) -> None:
        self._plan = plan or Plan()
        self._listening = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main()), name="chat-server", daemon=True
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()

        def started(port: int) -> None:
            self.port = port
            self._listening.set()

        await serve(self._plan, started, self._stopped)

    def start(self) -> None:
        """Start the thread, and wait until it listens."""
        self._thread.start()
        if not self._listening.wait(_PATIENCE):
            raise RuntimeError("The chat server did not start.")

    def stop(self) -> None:
        """End the thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(_PATIENCE)


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""

    def announce(port: int) -> None:
        sys.stdout.write(json.dumps({"port": port}) + "\n")
        sys.stdout.flush()

    async def until_stdin_ends() -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_wait_for_end, args=(loop, stopped), daemon=True).start()
        plan = Plan.from_json(arguments[0]) if arguments else Plan()
        await serve(plan, announce, stopped, int(arguments[1]) if len(arguments) > 1 else 0)

    asyncio.run(until_stdin_ends())


def _wait_for_end(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):  # not by sys.stdin, whose lock would be held at exit
        pass
    loop.call_soon_threadsafe(stopped.set)


if __name__ == "__main__":
    main(sys.argv[1:])

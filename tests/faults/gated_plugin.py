"""A plugin for commands that are interrupted: a SUT whose calls wait for a file, and log that they began."""

import asyncio
import os
import sys
import time
from pathlib import Path

from modelgauge import (
    PromptResponseSUT,
    PromptResponseTest,
    SUTCompletion,
    SUTResponse,
    TestItem,
    TextPrompt,
    hookimpl,
)

POLL = 0.01


class Numbered(PromptResponseTest):
    """Asks `question 0`, `question 1`, …, or texts of its own."""

    def __init__(self, uid: str, number: int = 30, size: int = 0) -> None:
        super().__init__(uid)
        self.number, self.size = number, size

    def make_test_items(self, dependencies):
        padding = " x" * (self.size // 2)
        return (TestItem([TextPrompt(f"question {n}{padding}")]) for n in range(self.number))

    def measure_quality(self, item):
        return {"answered": bool(item.text)}


class Gated(PromptResponseSUT):
    """Answers questions below `free` at once, and the others when the file `open` is in the folder."""

    def __init__(self, uid: str, folder: str, free: int = 0, size: int = 0) -> None:
        super().__init__(uid)
        self.folder, self.free, self.size = Path(folder), free, size
        self.log = os.open(self.folder / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def translate_text_prompt(self, prompt):
        return prompt.text

    async def evaluate(self, request: str) -> str:
        os.write(self.log, f"{request}\n".encode())
        gate = self.folder / "open"
        waits = int(request.split()[1]) >= self.free
        while waits and not gate.exists():  # noqa: ASYNC110  another process makes the file
            await asyncio.sleep(POLL)
        return f"answer to {request}" + "é" * self.size

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


@hookimpl
def modelgauge_register_tests(register):
    register("numbered", Numbered)


class NeverOpens(Gated):
    """A SUT whose connection is never made."""

    async def open(self) -> None:
        (self.folder / "opening").touch()
        await asyncio.Event().wait()


class Stubborn(Gated):
    """A SUT that swallows its cancellation for ever."""

    async def evaluate(self, request: str) -> str:
        while True:
            try:
                return await super().evaluate(request)
            except asyncio.CancelledError:
                pass


class Forking(Gated):
    """A SUT that begins a worker, which outlives its parent until the file `quit` is in the folder, or that is gone."""

    child = None

    async def evaluate(self, request: str) -> str:
        if self.child is None:
            self.child = os.fork()
            if self.child == 0:
                self.work()
        return await super().evaluate(request)

    def work(self) -> None:
        os.closerange(1, 3)  # whoever reads what the parent writes waits for its end
        while self.folder.exists() and not (self.folder / "quit").exists():
            time.sleep(POLL)
        sys.exit()


@hookimpl
def modelgauge_register_suts(register):
    register("gated", Gated)
    register("forking", Forking)
    register("stubborn", Stubborn)
    register("never_opens", NeverOpens)

"""A plugin for runs on several processes: items with contexts, and a SUT that logs each call."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

from pydantic import BaseModel

from modelgauge import (
    InjectSecret,
    OptionalSecret,
    PromptResponseSUT,
    PromptResponseTest,
    PromptWithContext,
    Retry,
    SecretDescription,
    SUTCompletion,
    SUTResponse,
    TestItem,
    Usage,
    hookimpl,
)


class Expected(BaseModel):
    """A context that is a model."""

    word: str


class Key(OptionalSecret):
    @classmethod
    def description(cls) -> SecretDescription:
        return SecretDescription("counted", "key", "Any text.")


class Words(PromptResponseTest):
    """Asks `word 0`, `word 1`, …; as many as `different` of them are different."""

    def __init__(self, uid: str, number: int = 40, different: int = 10_000) -> None:
        super().__init__(uid)
        self.number, self.different = number, different

    def make_test_items(self, dependencies):
        for n in range(self.number):
            word = f"word {n % self.different}"
            prompt = PromptWithContext(word, context=Expected(word=word))
            yield TestItem([prompt], context={"n": n}, id=f"item {n}")

    def measure_quality(self, item):
        expected = item.interactions[0].prompt.context.word
        return {"right": item.text == expected.upper(), "length": len(item.text)}


class Counted(PromptResponseSUT):
    """Answers in capitals, and logs each call: its process and its prompt."""

    def __init__(
        self,
        uid: str,
        folder: str,
        seconds: float = 0.0,
        busy: float = 0.0,
        kills: str = "",
        slow: int = 0,
        price: float = 0.0,
        mood: str = "",
        freezes: str = "",
        key: Key | None = None,
    ) -> None:
        super().__init__(uid)
        self.folder, self.seconds, self.busy, self.kills = Path(folder), seconds, busy, kills
        self.slow, self.price, self.mood, self.key = slow, price, mood, key
        self.freezes = freezes
        self.is_slow = False

    async def open(self) -> None:
        if self.mood == "crowded" and _is_worker() and not self._take("place"):
            os._exit(3)
        if self.mood == "aging" and _is_worker() and "lying" not in sys.orig_argv[2]:
            os._exit(3)
        if self.mood == "unopened":
            raise OSError("there is no model here")
        if self.slow and _is_worker():
            self.is_slow = self._take("slow")
        if self.mood == "noisy":
            warnings.warn("the model is old", stacklevel=1)
            sys.stdout.write("loaded\n")

    def translate_text_prompt(self, prompt):
        return prompt.text

    async def evaluate(self, request: str) -> str:
        self._log("begin", request)
        if self.kills == request:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.freezes and request == "word 3" and self._take("frozen"):
            _FREEZES[self.freezes]()
        if self.mood == "failing":
            raise ValueError("no answer")
        if self.mood == "limited" and request.endswith("7") and not (self.folder / request).exists():
            (self.folder / request).touch()
            self._log("end", request)
            raise _LimitedError
        end = time.perf_counter() + self.busy
        while time.perf_counter() < end:
            pass
        await asyncio.sleep(self.slow if self.is_slow else self.seconds)
        self._log("end", request)
        return f"{request.upper()}{self.key and self.key.value}" if self.mood == "leaky" else request.upper()

    def classify_error(self, error):
        return Retry(rate_limited=True) if isinstance(error, _LimitedError) else None

    def translate_response(self, request, response):
        usage = Usage(input_tokens=2, output_tokens=3, cost_usd=self.price) if self.price else None
        is_blocked = self.mood == "blocked" and request.endswith("7")
        return SUTResponse([SUTCompletion(response, blocked=is_blocked)], usage=usage)

    def _take(self, name: str) -> bool:
        """Return whether this call is the first to ask for a file in the folder."""
        try:
            (self.folder / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _log(self, what: str, request: str) -> None:
        with (self.folder / "calls").open("a") as log:
            log.write(f"{what}\t{os.getpid()}\t{request}\n")


class _LimitedError(Exception):
    pass


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _hold_interpreter() -> None:
    ctypes.PyDLL(None).sleep(1000)  # without releasing the GIL, as a C extension can


def _leave_child() -> None:
    """Die, and leave a process behind that keeps the streams open."""
    sleeper = subprocess.Popen(["sleep", "60"])
    (Path(os.environ["COUNTED_CHILD"])).write_text(str(sleeper.pid))
    os.kill(os.getpid(), signal.SIGKILL)


def _deadlock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


_FREEZES = {"stop": _stop, "interpreter": _hold_interpreter, "deadlock": _deadlock, "child": _leave_child}


class Heavy(Counted):
    """The same in plain methods, which hold the interpreter."""

    def open(self) -> None:
        self._log("open", "")
        if self.mood == "unopened":
            raise OSError("there is no model here")

    def evaluate(self, request: str) -> str:
        self._log("begin", request)
        end = time.process_time() + self.busy
        while time.thread_time() and time.process_time() < end:
            pass
        return request.upper()


def _is_worker() -> bool:
    return "modelgauge.workers" in " ".join(sys.orig_argv)


if os.environ.get("COUNTED_PLUGIN_BREAKS") and _is_worker():
    raise RuntimeError("this plugin does not like workers")


@hookimpl
def modelgauge_register_tests(register):
    register("words", Words)


@hookimpl
def modelgauge_register_suts(register):
    register("counted", Counted, key=InjectSecret(Key))
    register("heavy", Heavy, key=InjectSecret(Key))

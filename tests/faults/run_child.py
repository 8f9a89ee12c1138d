"""Runs in processes that die at a planned moment, and a log of all that they did; `killing.py` starts them.

As a script it imports ModelGauge once, and forks a process for each order that it reads from standard input,
a line of JSON, see `Order`. It answers with the number of the signal that ended the process, or 0.
"""

import asyncio
import json
import os
import random
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import modelgauge.cache.responses as cache_responses
import modelgauge.engine.run_files.journal as journal
from modelgauge import CompletionAnnotator, PromptResponseSUT, PromptResponseTest, Runner, TestItem, resume
from modelgauge.config.settings import Settings
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.plugins.discovery import Plugins

EVENTS = ("begin", "end", "judge", "row", "commit", "committed", "line", "half", "appended", "file", "named")
"""When a process may die: as a call of the SUT begins or ends, as an annotator is called, within a
transaction, before and after a commit, before, within and after a journal line, before and after a file gets
its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a process shall do.

    Args:
        data_dir: of the run.
        log: a file, to which the events are appended.
        items: of the test.
        resumed: the run that is to be continued; None for a new one.
        event: die at an event of this kind; None: never.
        at: at which one, from 1.
        options: of the run.
    """

    data_dir: str
    log: str
    items: int = 40
    resumed: str | None = None
    event: str | None = None
    at: int = 0
    options: dict


class Log:
    """Writes events, and ends the process at the planned one."""

    def __init__(self, order):
        self.order = order
        self.file = os.open(order.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.count = 0

    def note(self, event, detail=""):
        os.write(self.file, f"{event} {detail}\n".encode())
        if event == self.order.event:
            self.count += 1
            if self.count == self.order.at:
                os.kill(os.getpid(), signal.SIGKILL)


class Questions(PromptResponseTest):
    """Asks numbered questions; half of the answers are right."""

    def __init__(self, uid, number):
        super().__init__(uid)
        self.number = number

    def make_test_items(self, dependencies):
        for n in range(self.number):
            yield TestItem([f"question {n}"], context={"even": n % 2 == 0})

    def get_annotators(self):
        return {"length": Length("length")}

    def measure_quality(self, item):
        return {"right": item.context["even"], "length": item.annotation("length", int)}


class Logged(PromptResponseSUT):
    """Answers after a moment."""

    identity_excludes = frozenset({"log"})

    def __init__(self, uid, log):
        super().__init__(uid)
        self.log = log

    def translate_text_prompt(self, prompt):
        return prompt.text

    async def evaluate(self, request: str) -> str:
        self.log.note("begin", request)
        await asyncio.sleep(random.Random(request).random() * 0.004)
        self.log.note("end", request)
        return f"answer to {request}"

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


class Length(CompletionAnnotator):
    """The length of an answer, found by a plain function in a thread."""

    identity_excludes = frozenset({"log"})
    log = None

    def translate_request(self, prompt, completion):
        return completion.text

    def annotate(self, request: str) -> int:
        Length.log.note("judge", request)
        return len(request)

    def translate_response(self, request, response):
        return response


def watch(log):
    """Note what is written, and when."""
    put_many, append = cache_responses.ResponseCache.put_many, journal.JournalFile.append
    pack, replace = cache_responses.pack, Path.replace

    def noted_pack(entry):
        log.note("row")
        return pack(entry)

    def noted_put_many(self, entries):
        log.note("commit", len(entries))
        put_many(self, entries)
        log.note("committed", len(entries))

    def noted_append(self, data):
        log.note("line", len(data))
        half = len(data) // 2
        append(self, data[:half])
        log.note("half")
        append(self, data[half:])
        log.note("appended")

    def noted_replace(self, target):
        log.note("file", target.name)
        made = replace(self, target)
        log.note("named", target.name)
        return made

    cache_responses.pack = noted_pack
    cache_responses.ResponseCache.put_many = noted_put_many
    journal.JournalFile.append = noted_append
    Path.replace = noted_replace


def perform(order):
    log = Log(order)
    Length.log = log
    watch(log)
    log.note("start")
    test, sut = Questions("questions", order.items), Logged("logged", log)
    common = {"plugins": Plugins(), **order.options}
    if order.resumed is not None:
        resume(order.resumed, order.data_dir, test=test, sut=sut, **common)
    else:
        Runner(order.data_dir, settings=Settings(), **common).run([test], [sut])
    log.note("finish")


def forked(order):
    """Do an order in a process of its own; the signal that ended it, or 0."""
    child = os.fork()
    if not child:
        try:
            perform(order)
            os._exit(0)
        finally:  # whatever was raised: a forked process must never go on as its parent
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"a run failed: {os.WEXITSTATUS(status)}")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def main():
    for line in sys.stdin:
        sys.stdout.write(f"{forked(Order(**json.loads(line)))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

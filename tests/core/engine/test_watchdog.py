"""An author's code that blocks the loop is named, from a thread."""

import asyncio
import logging
import time

import pytest

from modelgauge import FunctionSUT
from modelgauge.engine import runner as engine_runner
from modelgauge.engine.watchdog import watching_the_loop


@pytest.fixture
def impatient(monkeypatch):
    """The watchdog looks often, and is soon at the end of its patience."""
    monkeypatch.setattr(
        engine_runner, "watching_the_loop", lambda: watching_the_loop(patience=0.1, period=0.02)
    )


def told(caplog):
    return [one.getMessage() for one in caplog.records if "stood still" in one.getMessage()]


async def blocking_answer(text):
    """Does what must not be done, until somebody says so."""
    patience = time.monotonic() + 10
    while time.monotonic() < patience and not blocking_answer.told():
        pass
    return "yes"


def test_what_blocks_the_loop_is_named_once(make_test, run, impatient, caplog):
    blocking_answer.told = lambda: told(caplog)
    assert run(make_test(1), FunctionSUT("sut", blocking_answer)).counts.scored == 1
    (message,) = told(caplog)
    assert "blocking_answer (" in message or "_evaluate_async (" in message
    assert "Write it as plain `def`" in message


def test_a_loop_that_turns_is_left_alone(make_test, run, impatient, caplog):
    async def slow(text):
        await asyncio.sleep(0.3)
        return "yes"

    with caplog.at_level(logging.WARNING):
        assert run(make_test(1), FunctionSUT("sut", slow)).counts.scored == 1
    assert told(caplog) == []

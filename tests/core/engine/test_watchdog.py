"""An author's code that blocks the loop is named, from a thread."""

import asyncio
import logging
import time

import pytest

from modelgauge import FunctionSUT
from modelgauge.engine import target_pool as engine_pool
from modelgauge.engine.loop.stalls import watching_the_loop
from modelgauge.evals import DatasetTest, EvaluationDataset, Golden, apps, evaluate, observe
from modelgauge.metrics import ExactMatchMetric, Metric


@pytest.fixture
def impatient(monkeypatch):
    """The watchdog looks often, and is soon at the end of its patience."""
    for module in (engine_pool, apps):
        monkeypatch.setattr(module, "watching_the_loop", lambda: watching_the_loop(patience=0.5, period=0.02))


def told(caplog):
    return [record.getMessage() for record in caplog.records if "stood still" in record.getMessage()]


def block(caplog):
    """Does what must not be done, until somebody says so."""
    patience = time.monotonic() + 60
    while time.monotonic() < patience and not told(caplog):
        pass
    return "yes"


def only_named(caplog, name, function):
    """The one message names a function, and where it is."""
    (message,) = told(caplog)
    code = function.__code__
    line = message.partition(f": {name} ({code.co_filename}, line ")[2].partition(")")[0]
    assert int(line) > code.co_firstlineno, message
    assert "Write it as plain `def`" in message


@pytest.mark.parametrize("decorated", [lambda function: function, observe])
def test_what_blocks_the_loop_is_named_once(make_test, run, impatient, caplog, decorated):
    async def answer(text):
        return block(caplog)

    assert run(make_test(1), FunctionSUT("sut", decorated(answer))).counts.scored == 1
    only_named(caplog, answer.__qualname__, answer)


def test_an_app_that_blocks_the_loop_is_named(impatient, caplog, tmp_path):
    @observe(metrics=[ExactMatchMetric()])
    async def app(question):
        return block(caplog)

    goldens = [Golden("a", expected_output="yes")]
    assert evaluate(goldens=goldens, observed_callback=app, data_dir=tmp_path, print_results=False).success
    only_named(caplog, app.__qualname__, app.__wrapped__)


def test_a_metric_that_blocks_the_loop_is_named(run, impatient, caplog):
    class Slow(Metric):
        async def score(self, test_case):
            block(caplog)
            return 1.0

    test = DatasetTest("t", EvaluationDataset([Golden("a")]), [Slow("slow")])
    assert run(test, FunctionSUT("sut", lambda text: "yes")).counts.scored == 1
    only_named(caplog, Slow.score.__qualname__, Slow.score)


def test_a_task_of_the_authors_that_blocks_the_loop_is_named(make_test, run, impatient, caplog):
    async def part():
        return block(caplog)

    async def answer(text):
        return (await asyncio.gather(part()))[0]

    assert run(make_test(1), FunctionSUT("sut", answer)).counts.scored == 1
    only_named(caplog, part.__qualname__, part)


def test_a_loop_that_turns_is_left_alone(make_test, run, impatient, caplog):
    async def slow(text):
        await asyncio.sleep(1)
        return "yes"

    with caplog.at_level(logging.WARNING):
        assert run(make_test(1), FunctionSUT("sut", slow)).counts.scored == 1
    assert told(caplog) == []

"""Waiting for several coroutines, of which some fail."""

import asyncio

import pytest

from modelgauge.engine.bookkeeping.failures import StageError
from modelgauge.engine.loop.together import WaitingLine, all_done, wait_for_all
from modelgauge.errors import RunStoppedError


async def giving(value, ended):
    await asyncio.sleep(0)
    ended.append(value)
    if isinstance(value, Exception):
        raise value
    return value


STOPPED = RunStoppedError("No more calls.", fix="None.")


@pytest.mark.parametrize(
    "values", [[], [1], [1, 2], [StageError("sut", "x", LookupError())], [LookupError(), 2]]
)
def test_all_are_done_whatever_fails(values):
    ended = []
    assert asyncio.run(all_done([giving(value, ended) for value in values])) == values == ended


@pytest.mark.parametrize("values", [[LookupError("first"), 1], [LookupError("first"), KeyError("second"), 1]])
def test_the_first_failure_is_raised_when_all_have_ended(values):
    ended = []
    with pytest.raises(LookupError, match="first"):
        asyncio.run(wait_for_all([giving(value, ended) for value in values]))
    assert ended == values


def test_what_stops_all_calls_is_raised_before_others():
    with pytest.raises(RunStoppedError):
        asyncio.run(wait_for_all([giving(one, []) for one in (1, LookupError(), STOPPED)]))
    assert asyncio.run(wait_for_all([giving(one, []) for one in (1, 2)])) == [1, 2]


def test_a_waiting_line_gives_turns_in_the_order_of_arrival_and_passes_on_a_lost_one():
    async def run():
        line, went_on = WaitingLine(), []

        async def wait(name):
            await line.wait(line.next)
            went_on.append(name)

        tasks = [asyncio.create_task(wait(name)) for name in "abcd"]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.sleep(0)
        assert line.next()  # it is b's, which is cancelled before it can go on
        tasks[1].cancel()
        await asyncio.wait(tasks[:3])
        assert went_on == ["c"]
        line.all()
        await tasks[3]
        assert went_on == ["c", "d"]
        assert not line
        assert not line.next()

    asyncio.run(run())

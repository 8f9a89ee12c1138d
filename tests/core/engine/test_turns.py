"""When many answers come at once: what can be sent goes before what can be scored."""

import asyncio

from modelgauge import FunctionSUT
from modelgauge.engine.calls.services import AnswerTurns

PLACES = 50


def test_items_go_on_in_the_order_in_which_they_came_a_few_in_a_turn_of_the_loop():
    async def main():
        turns, told, loop_turns = AnswerTurns(), [], []

        async def one(number):
            await turns.turn()
            told.append(number)
            loop_turns.append(count)

        count = 0
        waiting = [asyncio.create_task(one(number)) for number in range(20)]
        while not all(task.done() for task in waiting):
            count += 1
            await asyncio.sleep(0)
        assert told == list(range(20))
        assert len(set(loop_turns)) == 3

    asyncio.run(main())


def test_one_that_is_cancelled_while_it_waits_holds_nobody_up():
    async def main():
        turns = AnswerTurns()
        first, second = asyncio.create_task(turns.turn()), asyncio.create_task(turns.turn())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first, second], timeout=10)
        assert (first.cancelled(), second.exception()) == (True, None)
        await asyncio.wait_for(turns.turn(), 10)  # and the next one gets its turn

    asyncio.run(main())


def test_quick_calls_call_for_no_turns_and_one_that_takes_time_does():
    turns = AnswerTurns()
    turns.note(0.001)
    assert not turns.needed
    turns.note(0.1)
    assert turns.needed


def test_when_answers_come_at_once_the_next_calls_are_sent_before_all_of_them_are_scored(make_test, run):
    events = []
    answered = None

    async def ask(text):
        nonlocal answered
        answered = answered or asyncio.Event()
        events.append("sent")
        if events.count("sent") == PLACES:
            asyncio.get_running_loop().call_later(0.01, answered.set)
        await answered.wait()
        return "yes"

    def measure(item):
        events.append("scored")
        return {"x": 1}

    record = run(
        make_test(2 * PLACES, measure=measure),
        FunctionSUT("slow", ask, max_concurrency=PLACES),
        concurrency=PLACES,
    )
    assert record.counts.scored == 2 * PLACES
    last_sent = len(events) - 1 - events[::-1].index("sent")
    assert events[:last_sent].count("scored") < PLACES  # else all of the first answers go before

"""Attempts that take too long: told by a fake clock, or by what is left of the item."""

# ruff: noqa: ASYNC110  what is waited for happens in a thread or another task

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from contextvars import ContextVar

import pytest

from modelgauge import FunctionSUT
from modelgauge.engine.loop.deadlines import Deadlines
from modelgauge.engine.loop.threads import CallPool
from modelgauge.errors import CallError, CallTimeoutError, RunStoppedError


def in_loop(main):
    return asyncio.run(main(), debug=True)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


async def turns(n=3):
    for _ in range(n):
        await asyncio.sleep(0)


def test_an_attempt_ends_when_its_time_is_up_and_not_before():
    async def main():
        clock = Clock()
        deadlines = Deadlines(clock)
        attempt = asyncio.create_task(deadlines.within(10, asyncio.Event().wait()))
        await turns()
        clock.now = 9.9
        deadlines.check()
        await turns()
        assert not attempt.done()
        assert deadlines.oldest == pytest.approx(9.9)
        clock.now = 10
        deadlines.check()
        with pytest.raises(CallTimeoutError, match="10 s"):
            await attempt
        assert deadlines.oldest is None
        deadlines.close()

    in_loop(main)


def test_an_attempt_whose_caller_is_cancelled_before_it_begins_does_not_begin():
    """As by Ctrl-C, where the code of another attempt blocks the loop: it would go on with the next."""
    begun = []

    async def main():
        async def author():
            begun.append(True)

        deadlines = Deadlines()
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **_: asyncio.Task(coro, loop=loop))  # none begins at once
        attempt = asyncio.create_task(deadlines.within(10, author()))
        await asyncio.sleep(0)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        deadlines.close()

    in_loop(main)
    assert begun == []


def test_attempts_that_keep_the_loop_leave_others_a_turn():
    async def main():
        deadlines, others = Deadlines(), []

        async def other():
            while True:
                others.append(len(done))
                await asyncio.sleep(0)

        async def blocks():
            end = time.monotonic() + 0.003
            while time.monotonic() < end:  # an author's fault
                pass

        done = []
        beside = asyncio.create_task(other())
        for _ in range(5):
            await deadlines.within(10, blocks())
            done.append(True)
        beside.cancel()
        deadlines.close()
        assert set(range(1, 5)) <= set(others)

    asyncio.run(main())


def test_what_an_author_raises_or_cancels_is_told_from_the_deadline_and_from_outside():
    async def main():
        deadlines = Deadlines(Clock())

        async def raising(error):
            await asyncio.sleep(0)
            raise error

        for error in (TimeoutError("mine"), ValueError("x")):
            with pytest.raises(type(error)) as caught:
                await deadlines.within(10, raising(error))
            assert caught.value is error
        with pytest.raises(CallError, match="its own code") as caught:
            await deadlines.within(10, raising(asyncio.CancelledError()))
        assert not isinstance(caught.value, CallTimeoutError)
        with pytest.raises(RuntimeError, match="SystemExit"):
            await deadlines.within(10, raising(SystemExit(1)))
        attempt = asyncio.create_task(deadlines.within(10, asyncio.Event().wait()))
        await turns()
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        deadlines.close()

    in_loop(main)


@pytest.mark.parametrize("how", ["answers", "raises"])
def test_an_attempt_that_swallows_its_end_leaves_the_next_one_alone(how):
    async def main():
        clock = Clock()
        deadlines = Deadlines(clock)

        async def stubborn():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if how == "raises":
                    raise ValueError("aborted") from None
            return "late"

        async def item():
            first = await asyncio.gather(deadlines.within(10, stubborn()), return_exceptions=True)
            try:
                first = [await deadlines.within(10, stubborn())]
            except CallTimeoutError as error:
                first = [error]
            assert asyncio.current_task().cancelling() == 0
            with pytest.raises(CallTimeoutError):
                await deadlines.within(10, asyncio.Event().wait())
            return first[0]

        task = asyncio.create_task(item())
        while not task.done():
            clock.now += 11
            deadlines.check()
            await turns(10)
        deadlines.close()
        assert (task.result() == "late") == (how == "answers")

    in_loop(main)


def test_an_attempt_whose_time_is_up_before_its_first_step_still_tells_its_end():
    async def main():
        clock = Clock()
        deadlines = Deadlines(clock)
        begun = []
        # With a factory of its user's, no loop begins a task at once.
        asyncio.get_running_loop().set_task_factory(
            lambda loop, made, **more: asyncio.Task(made, loop=loop, **more)
        )

        async def attempt():
            begun.append(clock.now)
            await asyncio.Event().wait()

        waiting = asyncio.create_task(deadlines.within(10, attempt()))
        await asyncio.sleep(0)  # its task is made, and has not run
        assert begun == []
        clock.now = 10
        deadlines.check()
        await turns()
        assert begun == [10]
        deadlines.check()
        with pytest.raises(CallTimeoutError, match="10 s"):
            await waiting
        deadlines.close()

    in_loop(main)


def test_an_attempt_that_goes_on_in_a_loop_is_left_behind():
    async def main():
        clock = Clock()
        deadlines = Deadlines(clock)
        tried, free = [], asyncio.Event()

        async def stubborn():
            while not free.is_set():
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    tried.append(clock.now)
            return "at last"

        attempt = asyncio.create_task(deadlines.within(10, stubborn()))
        await turns()
        for now in (10, 14.9):
            clock.now = now
            deadlines.check()
            await turns(10)
            assert not attempt.done()
        clock.now = 15
        deadlines.check()
        with pytest.raises(CallTimeoutError, match="10 s"):
            await attempt
        await turns(10)
        assert tried == [10, 15]
        assert deadlines.oldest is None
        free.set()  # it may end after all, and nobody minds
        await turns(10)
        deadlines.close()

    in_loop(main)


@pytest.mark.parametrize("cleans_up", [False, True])
def test_who_is_cancelled_waits_until_the_attempt_has_cleaned_up(cleans_up):
    async def main():
        deadlines = Deadlines(Clock())
        done = []

        async def attempt():
            try:
                await asyncio.Event().wait()
            finally:
                if cleans_up:
                    await turns(20)
                done.append(True)

        task = asyncio.create_task(deadlines.within(10, attempt()))
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == [True]
        assert deadlines.oldest is None
        deadlines.close()

    in_loop(main)


def test_nested_attempts_end_one_by_one_or_together():
    async def main():
        for inner, outer, told in ((5, 10, "5 s"), (10, 5, "5 s"), (5, 5, "5 s")):
            clock = Clock()
            deadlines = Deadlines(clock)
            attempt = asyncio.create_task(
                deadlines.within(outer, deadlines.within(inner, asyncio.Event().wait()))
            )
            await turns()
            clock.now = 5
            deadlines.check()
            with pytest.raises(CallTimeoutError, match=told):
                await attempt
            assert attempt.cancelling() == 0
            deadlines.close()

    in_loop(main)


def test_a_paused_attempt_does_not_age():
    async def main():
        clock = Clock()
        deadlines = Deadlines(clock)
        go = asyncio.Event()

        async def asking():
            with deadlines.paused():
                await go.wait()
            await asyncio.Event().wait()

        attempt = asyncio.create_task(deadlines.within(10, asking()))
        await turns()
        clock.now = 1000
        deadlines.check()
        await turns()
        assert not attempt.done()
        go.set()
        await turns()
        clock.now = 1009
        deadlines.check()
        await turns()
        assert not attempt.done()
        clock.now = 1010
        deadlines.check()
        with pytest.raises(CallTimeoutError):
            await attempt
        deadlines.close()

    in_loop(main)


@pytest.mark.parametrize("plain", [False, True])
def test_a_call_that_hangs_is_a_timeout_of_its_item(plain, make_test, run, accounted):
    end = threading.Event()

    def hang(text):
        if text == "question 1":
            end.wait()
        return "yes"

    async def hang_async(text):
        if text == "question 1":
            await asyncio.Event().wait()
        return "yes"

    try:
        record = accounted(
            run(
                make_test(3),
                FunctionSUT("sut", hang if plain else hang_async),
                attempt_timeout=1,
                max_retries=0,
            )
        )
    finally:
        end.set()
    (failed,) = record.test_item_exceptions
    assert (failed.error_type, failed.stage) == ("CallTimeoutError", "sut")
    assert record.counts.scored == 2


def test_a_deadline_starts_when_a_thread_takes_the_call_and_threads_come_back():
    async def main():
        clock = Clock()
        pool = CallPool(most_abandoned=2, clock=clock)
        ends = [threading.Event() for _ in range(2)]
        hanging = [asyncio.create_task(pool.run(lambda end: end.wait(60), end, 10)) for end in ends]
        while len([one for one in pool._running if one.started is not None]) < 2:
            await asyncio.sleep(0.001)
        clock.now = 10
        pool._check(0.01)
        await turns()
        assert not any(one.done() for one in hanging)
        clock.now = 10.5
        pool._check(0.01)
        for one in hanging:
            with pytest.raises(CallTimeoutError):
                await one
        assert pool.abandoned == 2
        with pytest.raises(RunStoppedError, match="2 calls hang"):
            await pool.run(str, 1, 10)
        for end in ends:
            end.set()
        while pool.abandoned:
            await asyncio.sleep(0.001)
        assert await asyncio.gather(*(pool.run(str, n, 10) for n in range(5))) == list("01234")
        pool.close()

    asyncio.run(main())


def test_threads_see_the_callers_context():
    seen = ContextVar("seen")

    async def main():
        pool = CallPool()

        async def call(n):
            seen.set(n)
            return await pool.run(lambda _: seen.get(), None, 60)

        assert await asyncio.gather(*(asyncio.create_task(call(n)) for n in range(10))) == list(range(10))
        pool.close()

    asyncio.run(main())


HANGS = {
    "plain": """
        def hang(text):
            time.sleep(10**6)
    """,
    "swallowing every cancellation": """
        async def hang(text):
            while True:
                try:
                    await asyncio.sleep(0.01)
                except:
                    pass
    """,
}


@pytest.mark.parametrize("how", HANGS)
def test_a_process_ends_although_a_call_hangs_for_ever(how, tmp_path):
    script = (
        textwrap.dedent("""
        import asyncio, time
        from modelgauge import FunctionSUT, PromptResponseTest, TestItem, run_test
        from modelgauge.engine.loop import deadlines

        deadlines._CLEANING_UP = 0.05

        class Asks(PromptResponseTest):
            def make_test_items(self, dependencies):
                return [TestItem(["x"])]
            def measure_quality(self, item):
                return {"ok": 1}
    """)
        + textwrap.dedent(HANGS[how])
        + textwrap.dedent("""
        record = run_test(Asks("t"), FunctionSUT("s", hang), attempt_timeout=0.05, max_retries=0)
        print(record.test_item_exceptions[0].error_type)
    """)
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.returncode) == ("CallTimeoutError", 0), done.stderr
    assert done.stderr == ""

"""Code of a SUT that stops the event loop, cancels its tasks, or exits, which fails only that SUT's item."""

import asyncio
import sys

import pytest

from modelgauge import FunctionSUT, PromptResponseTest, Runner, TestItem


class Questions(PromptResponseTest):
    def make_test_items(self, dependencies):
        return [TestItem(f"question {number}") for number in range(4)]

    def measure_quality(self, item):
        return {"length": len(item.text)}


async def stop():
    asyncio.get_running_loop().stop()


async def stop_and_wait():
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


async def close():
    asyncio.get_running_loop().close()


async def leave():
    sys.exit(5)


async def leave_in_a_task():
    await asyncio.gather(asyncio.sleep(0.001), leave())


async def interrupt():
    raise KeyboardInterrupt


async def cancel():
    raise asyncio.CancelledError


async def end_generator():
    raise GeneratorExit


async def cancel_all():
    for task in asyncio.all_tasks():
        task.cancel()


async def cancel_all_and_wait():
    await cancel_all()
    await asyncio.sleep(0.01)


HOSTILE = (
    stop,
    stop_and_wait,
    close,
    leave,
    leave_in_a_task,
    interrupt,
    cancel,
    end_generator,
    cancel_all,
    cancel_all_and_wait,
)


def hostile_sut(act):
    async def answer(text):
        if text == "question 1":
            await act()
        return "yes"

    return FunctionSUT("hostile", answer)


async def slow_answer(text):
    await asyncio.sleep(0.05)
    return "yes"


def check_one_failed(hostile, other):
    assert (hostile.counts.scored, hostile.counts.sut_errors, hostile.cancelled) == (3, 1, False)
    assert (other.counts.scored, other.counts.failed, other.cancelled) == (4, 0, False)
    assert hostile.failure is None
    assert other.failure is None


@pytest.mark.parametrize("act", HOSTILE, ids=lambda act: act.__name__)
@pytest.mark.parametrize("caller", ["script", "notebook", "thread"])
def test_hostile_call_fails_its_item_alone(tmp_path, act, caller):
    def run():
        runner = Runner(tmp_path, progress=False, caching=False)
        return runner.run([Questions("questions")], [hostile_sut(act), FunctionSUT("other", slow_answer)])

    async def run_in_loop():
        return run()

    if caller == "script":
        records = run()
    elif caller == "notebook":
        records = asyncio.run(run_in_loop())
    else:
        records = asyncio.run(asyncio.to_thread(run))
    check_one_failed(*records)


def test_time_out_of_an_authors_own_is_kept(tmp_path):
    async def answer(text):
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            return "late"

    [record] = Runner(tmp_path, progress=False).run([Questions("questions")], [FunctionSUT("slow", answer)])
    assert record.counts.scored == 4


@pytest.mark.parametrize("act", [stop_and_wait, leave], ids=lambda act: act.__name__)
def test_loop_of_the_caller_goes_on(tmp_path, act):
    async def main():
        runner = Runner(tmp_path, progress=False, caching=False)
        records = await runner.run_async(
            [Questions("questions")], [hostile_sut(act), FunctionSUT("other", slow_answer)]
        )
        loop = asyncio.get_running_loop()
        return records, loop.get_task_factory(), "stop" in vars(loop)

    records, factory, is_guarded = asyncio.run(main())
    check_one_failed(*records)
    assert (factory, is_guarded) == (None, False)

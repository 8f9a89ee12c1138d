"""Callers who wait: all calls of the main thread share a loop, and so do those from within running loops."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from modelgauge.cli.program import _interrupt
from modelgauge.engine.loop import blocking as modelgauge_blocking
from modelgauge.engine.loop.blocking import blocking
from modelgauge.errors import RunStoppedError
from modelgauge.evals import pytest_plugin


async def own_loop():
    return asyncio.get_running_loop()


def in_notebook(work):
    """Call something as a cell does, in whose thread a loop is running."""

    async def cell():
        return work()

    return asyncio.run(cell())


def in_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_all_calls_of_the_main_thread_share_a_loop():
    first = blocking(own_loop)
    assert blocking(own_loop) is first
    assert not first.is_closed()
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_all_calls_from_within_running_loops_share_another():
    first = in_notebook(lambda: blocking(own_loop))
    assert in_notebook(lambda: blocking(own_loop)) is first
    assert first is not blocking(own_loop)
    assert not first.is_closed()


def test_other_threads_close_what_they_open():
    assert in_thread(lambda: blocking(own_loop)).is_closed()


def test_a_call_within_a_call_does_not_wait_for_itself():
    async def outer():
        return blocking(own_loop)

    async def outermost():
        return blocking(outer)

    assert blocking(outermost) is not blocking(own_loop)
    assert in_notebook(lambda: blocking(outermost)).is_closed()


@pytest.mark.parametrize("call", [blocking, lambda work: in_notebook(lambda: blocking(work))])
def test_errors_come_back_and_the_next_call_works(call):
    async def fail():
        raise ValueError("x")

    for _ in range(2):
        with pytest.raises(ValueError, match="x"):
            call(fail)
    assert call(own_loop).is_closed() is False


def output_of(code):
    """What a process of its own prints on both streams."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout + done.stderr


def test_the_process_ends_without_a_word_about_loops_and_tasks():
    code = """
        import asyncio, logging
        from modelgauge.engine.loop.blocking import blocking

        logging.getLogger("asyncio").setLevel("ERROR")  # that the machine is slow is no news

        async def leave_a_task():
            asyncio.create_task(asyncio.sleep(3600))
            return asyncio.get_running_loop().run_in_executor(None, print, "from the executor")

        async def cell():
            blocking(leave_a_task)

        blocking(leave_a_task)
        asyncio.run(cell())
    """
    assert output_of(code).split("\n") == ["from the executor"] * 2 + [""]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_loops_of_its_own():
    code = """
        import asyncio, os, warnings
        from modelgauge.engine.loop.blocking import blocking

        # Python 3.12 and later warn of any fork beside a thread; here one serves the background
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

        async def slept():
            await asyncio.sleep(0.01)
            return asyncio.get_running_loop()

        async def cell():
            return blocking(slept)

        mine = blocking(slept), asyncio.run(cell())
        child = os.fork()
        theirs = blocking(slept), asyncio.run(cell())
        if not child:
            os._exit(0 if theirs[0] is not mine[0] and theirs[1] is not mine[1] else 1)
        assert theirs == mine
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert output_of(code).strip().splitlines()[-1] == "0"


def interrupt_soon():
    """Ctrl-C, in a moment."""
    threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("running", [False, True])
def test_an_interrupt_ends_the_work_and_nothing_of_it_goes_on_in_the_next_call(running):
    done = []

    async def work():
        interrupt_soon()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            done.append("written")

    async def later():
        await asyncio.sleep(0.01)
        return "later"

    def call(work):
        """In a notebook Ctrl-C comes to the waiting thread, and not to a runner of asyncio."""
        loop = asyncio.new_event_loop()
        if running:
            asyncio._set_running_loop(loop)
        try:
            return blocking(work)
        finally:
            asyncio._set_running_loop(None)
            loop.close()

    with pytest.raises(KeyboardInterrupt):
        call(work)
    assert done == ["written"]
    assert call(later) == "later"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_under_a_runner_of_asyncio_ends_the_work_too():
    ended = []

    async def work():
        interrupt_soon()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        in_notebook(lambda: blocking(work))
    assert ended == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_a_call_within_a_call_too():
    ended = []

    async def work():
        interrupt_soon()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def cell():
        # As for a call that is made by what the background serves.
        with modelgauge_blocking._background.taken:
            return blocking(work)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    assert ended == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_before_the_work_has_begun_leaves_it_undone():
    begun, busy, go_on = [], threading.Event(), threading.Event()

    async def work():
        begun.append(True)

    def hold_up():
        busy.set()
        go_on.wait(60)

    async def cell():
        blocking(no_work)
        modelgauge_blocking._background._loop.call_soon_threadsafe(hold_up)
        busy.wait(60)
        threading.Timer(1, go_on.set).start()
        interrupt_soon()
        return blocking(work)

    async def no_work():
        pass

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    assert begun == []


@pytest.mark.parametrize("caller", [lambda work: work(), in_notebook, in_thread])
def test_work_that_is_cancelled_from_within_is_stopped(caller):
    async def cancelled():
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(0)

    def work():
        with pytest.raises(RunStoppedError, match="cancelled by code"):
            blocking(cancelled)
        return blocking(own_loop)

    assert caller(work) is not None


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    "handle", [lambda *_: _interrupt(), pytest_plugin._interrupt], ids=["command", "tests"]
)
def test_a_termination_of_a_job_in_the_background_cancels_the_work_between_its_steps(handle):
    """Such a job ignores Ctrl-C. An exception in the midst of the loop would lose a step, for which others may wait."""
    ended = []

    async def work():
        def terminated():
            signal.raise_signal(signal.SIGTERM)
            ended.append("the step")

        asyncio.get_running_loop().call_soon(terminated)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("the work")

    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    before = signal.signal(signal.SIGTERM, handle)
    try:
        with pytest.raises(KeyboardInterrupt):
            blocking(work)
        signal.signal(signal.SIGTERM, handle)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, ignored)
    assert ended == ["the step", "the work"]

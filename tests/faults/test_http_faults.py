"""What a server does wrong, through modelgauge-plugin-openai: what can be scored is, and nothing is sent in vain."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from chat_server import ChatServer, Fault, Plan, ThreadedChatServer
from commands import PATIENCE, done, ended, record, runs, started, until
from killing import committed

from modelgauge import PromptResponseTest, Runner, TestItem, TextPrompt
from modelgauge.engine import target_pool as engine_pool


class Prompts(PromptResponseTest):
    def __init__(self, uid, prompts):
        super().__init__(uid)
        self.prompts = prompts

    def make_test_items(self, dependencies):
        return [TestItem([TextPrompt(prompt)]) for prompt in self.prompts]

    def measure_quality(self, item):
        return {"answered": bool(item.text)}


@pytest.fixture(autouse=True)
def nothing_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server():
    with ThreadedChatServer() as running:
        yield running


@pytest.fixture
def slept(monkeypatch):
    """The back-offs, none of which is waited for."""
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    services = engine_pool.Services
    monkeypatch.setattr(engine_pool, "Services", lambda *args: services(*args, sleep=sleep))
    return waits


@pytest.fixture
def asked(server, tmp_path):
    """`asked(*prompts, **options)`: the record of a run that asks the server."""

    def ask(*prompts, **options):
        options.setdefault("concurrency", 10)
        runner = Runner(tmp_path / "run_data", **options)
        return runner.run([Prompts("prompts", prompts)], [f"openai/m?base_url={server.base_url}"])[0]

    return ask


# --- attempts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "least", "most"),
    [("retry_after=7", 7, 10), ("retry_after_date=90", 60, 100), ("retry_after_ms=2500", 2.5, 5), ("", 0, 2)],
)
def test_a_rate_limit_is_waited_for_as_long_as_the_server_says(server, asked, slept, form, least, most):
    prompt = f"[[fault 429 times=2 {form}]]".replace(" ]]", "]]")
    assert asked(prompt).counts.scored == 1
    assert server.stats().prompts[prompt].calls == 3
    assert len(slept) == 2
    assert all(least <= wait <= most for wait in slept)


def test_every_transient_fault_is_retried_until_all_items_are_scored(asked, server, slept):
    kinds = (
        "429",
        "500",
        "502",
        "503",
        "529",
        "408",
        "409",
        "reset",
        "disconnect",
        "short_body",
        "truncated",
    )
    server.set_plan(Plan(seed=5, faults=tuple(Fault(kind, share=0.07, times=2) for kind in kinds)))
    result = asked(*(f"prompt {n}" for n in range(200)))
    stats = server.stats()
    assert result.counts.scored == 200
    assert stats.completed == 200
    assert stats.after_success == 0
    assert stats.calls == 200 + sum(stats.faults.values())
    assert set(stats.faults) == set(kinds)
    assert stats.max_in_flight <= 10


def test_a_server_that_refuses_a_share_of_all_calls_is_not_asked_one_at_a_time(asked, server, slept):
    faults = (Fault("429", share=0.1), Fault("500", share=0.02), Fault("hang", share=0.01))
    server.set_plan(Plan(faults=faults))
    result = asked(*(f"prompt {n}" for n in range(600)), concurrency=40, attempt_timeout=3.0)
    stats = server.stats()
    assert result.counts.scored == stats.completed == 600
    assert stats.after_success == 0
    assert stats.calls == 600 + sum(stats.faults.values())
    assert set(stats.faults) == {"429", "500", "hang"}
    (changes,) = result.concurrency.values()
    assert "cut in vain" in {change.why for change in changes}
    assert changes[-1].limit > 10


def test_no_retries_are_none(asked, server, slept):
    faults = ("429", "500", "reset", "truncated", "400")
    result = asked(*(f"[[fault {kind}]]" for kind in faults), "fine", max_retries=0)
    assert (result.counts.scored, result.counts.sut_errors) == (1, 5)
    assert server.stats().calls == 6
    assert slept == []


def test_retries_end_and_the_item_fails_with_its_last_error(asked, server, slept):
    result = asked("[[fault 503 times=always]]", max_retries=3)
    assert server.stats().calls == 4
    [failed] = result.test_item_exceptions
    assert (failed.stage, failed.error_type) == ("sut", "ChatError")
    assert "503" in failed.message


@pytest.mark.parametrize("kind", ["400", "422"])
def test_a_bad_request_is_sent_once(asked, server, slept, kind):
    result = asked(f"[[fault {kind} times=always]]", "fine")
    assert (result.counts.scored, result.counts.sut_errors) == (1, 1)
    assert server.stats().calls == 2
    assert slept == []


@pytest.mark.parametrize(("concurrency", "most"), [(1, 3), (2, 4), (20, 22)])
def test_a_bad_key_stops_the_sut_after_three_answers(asked, server, concurrency, most):
    server.set_plan(Plan(key="sk-right"))
    result = asked(*(f"prompt {n}" for n in range(60)), concurrency=concurrency)
    assert server.stats().calls <= most
    assert result.counts.scored == 0
    assert "401" in result.failure.message
    assert "key" in result.failure.message


def test_a_single_refusal_among_successes_stops_nothing(asked, server):
    result = asked("a", "b", *(f"[[fault 403 times=always]] {n}" for n in range(4)), concurrency=1)
    assert (result.counts.scored, result.counts.sut_errors, result.failure) == (2, 4, None)


def test_a_server_that_is_started_again_loses_no_item(tmp_path):
    test = Prompts("prompts", [f"prompt {n}" for n in range(40)])
    with ChatServer(Plan(latency=0.05, slots=4)) as server, ThreadPoolExecutor() as pool:
        runner = Runner(tmp_path / "run_data", max_retries=1)
        running = pool.submit(runner.run, [test], [f"openai/m?base_url={server.base_url}"])
        while server.stats().completed < 8:
            time.sleep(0.01)
        server.stop()
        time.sleep(1)
        server.start()
        [result] = running.result()
    assert (result.counts.scored, result.counts.failed, result.failure) == (40, 0, None)


# --- commands -----------------------------------------------------------------------------------------------

NUMBERED = """
from modelgauge import PromptResponseTest, TestItem, hookimpl

PROMPTS = {prompts!r}

class Listed(PromptResponseTest):
    def make_test_items(self, dependencies):
        return [TestItem([prompt]) for prompt in PROMPTS]

    def measure_quality(self, item):
        return {{"answered": bool(item.text)}}

@hookimpl
def modelgauge_register_tests(register):
    register("listed", Listed)
"""


def command(folder, server, *prompts):
    plugin = folder / "listed.py"
    plugin.write_text(NUMBERED.format(prompts=prompts), encoding="utf-8")
    sut = f"openai/m?base_url={server.base_url}"
    return lambda *more: done(
        folder, "run-test", "--test", "listed", "--sut", sut, "--no-progress-bar", *more, plugin=str(plugin)
    )


def test_what_never_answers_becomes_an_error_of_its_item_and_the_process_ends(tmp_path):
    with ChatServer() as server:
        run = command(tmp_path, server, "[[fault hang times=always]]", "[[fault drip times=always]]", "fine")
        code, _, err = run("--timeout", "0.5", "--max-retries", "1")
        while (stats := server.stats()).in_flight:  # the server notices a moment later that nobody listens
            time.sleep(0.01)
    assert code == 3, err
    counts = record(runs(tmp_path)[0])["counts"]
    assert (counts["scored"], counts["sut_errors"]) == (1, 2)
    assert stats.calls == 5
    assert stats.abandoned == 4


def test_a_plain_function_that_never_returns_does_not_keep_the_process(tmp_path):
    script = (
        "import threading\n"
        "from modelgauge import FunctionSUT, PromptResponseTest, TestItem, run_test\n"
        "class T(PromptResponseTest):\n"
        "    def make_test_items(self, dependencies): return [TestItem(['hang']), TestItem(['fine'])]\n"
        "    def measure_quality(self, item): return {'answered': True}\n"
        "def answer(text):\n"
        "    if text == 'hang': threading.Event().wait()\n"
        "    return text\n"
        "record = run_test(T('t'), FunctionSUT('s', answer), attempt_timeout=0.3, max_retries=0)\n"
        "[failed] = record.test_item_exceptions\n"
        "print(record.counts.scored, failed.error_type)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "1 CallTimeoutError"), ran.stderr


def test_exit_codes_say_how_many_items_failed(tmp_path):
    with ChatServer() as server:
        run = command(tmp_path, server, "[[fault 400 times=always]]", "one", "two", "three")
        assert run()[0] == 3
        assert run("--max-errors", "1")[0] == 0
        assert run("--max-errors", "25%")[0] == 0
        assert run("--max-errors", "24%")[0] == 3
        stats = server.stats()
    assert stats.after_success == 0  # the cache pays
    assert stats.prompts["[[fault 400 times=always]]"].calls == 4  # failures are not cached


def test_a_bad_key_ends_a_command_with_the_reason(tmp_path):
    with ChatServer(Plan(key="sk-right")) as server:
        run = command(tmp_path, server, *(f"prompt {n}" for n in range(50)))
        code, _, err = run("--concurrency", "5")
        stats = server.stats()
    assert code == 4
    assert "Incorrect API key provided" in err
    assert "Traceback" not in err
    assert stats.calls <= 7


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_after_a_kill_the_server_is_asked_nothing_that_was_answered_and_committed(tmp_path):
    prompts = [f"prompt {n}" for n in range(60)]
    with ChatServer(Plan(latency=0.02)) as server:
        run = command(tmp_path, server, *prompts)
        sut = f"openai/m?base_url={server.base_url}"
        for share in (10, 25, 40):
            before = committed(tmp_path / "run_data")
            counted = server.stats()
            process = started(
                tmp_path,
                *("run-test", "--test", "listed", "--sut", sut, "--concurrency", "4", "--no-progress-bar"),
                plugin=str(tmp_path / "listed.py"),
            )
            until(lambda share=share: server.stats().completed >= share, process)
            process.kill()
            ended(process)
            again = server.stats()
            for prompt in before:
                assert again.prompts[prompt].calls == counted.prompts[prompt].calls
        assert run()[0] == 0
        stats = server.stats()
    assert record(runs(tmp_path)[-1])["counts"]["scored"] == 60
    assert set(stats.prompts) == set(prompts)


def test_a_server_that_is_not_there_ends_a_command_with_its_address_and_resume_goes_on(tmp_path):
    server = ChatServer()
    with server:
        run = command(tmp_path, server, *(f"prompt {n}" for n in range(50)))
    code, out, err = run("--call-timeout", "1.5")
    assert code == 4
    assert err.count("cannot be reached: http://127.0.0.1:") == 1  # told at once
    told = " ".join(out.split())
    assert "could not be reached for 1.5 s: http" in told
    assert f"127.0.0.1:{server.port}" in told
    assert "Check base_url" in told
    [stopped] = runs(tmp_path)
    counts = record(stopped)["counts"]
    assert counts["sut_errors"] == 0
    assert record(stopped)["spent"]["attempts"] == 0
    with server:
        assert done(tmp_path, "resume", stopped.name, plugin=str(tmp_path / "listed.py"))[0] == 0
    assert record(stopped)["counts"]["scored"] == 50


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_the_wait_for_a_server(tmp_path):
    with ChatServer() as server:
        command(tmp_path, server, *(f"prompt {n}" for n in range(50)))
    sut = f"openai/m?base_url={server.base_url}"
    arguments = ("run-test", "--test", "listed", "--sut", sut, "--no-progress-bar")
    process = started(tmp_path, *arguments, plugin=str(tmp_path / "listed.py"))
    until(lambda: runs(tmp_path) and (runs(tmp_path)[0] / "run.json").exists(), process)
    time.sleep(1)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 130, err
    assert time.monotonic() - begun < 10  # no 30 s, and not the 5 that calls under way get
    assert "calls under way" not in err

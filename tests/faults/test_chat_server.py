"""The server that the fault tests rest on: each fault is what it says, and the counters are right."""

import asyncio
import json
import math
import socket
import subprocess
import sys
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp
import chat_server as module
import pytest
from chat_plan import KINDS, fault_of_call, wish_of
from chat_server import ChatServer, Fault, Plan, ThreadedChatServer


@pytest.fixture
def server():
    with ThreadedChatServer() as running:
        yield running


def ask(server, *prompts, timeout=5.0, **fields):
    """The answers to prompts, asked one after the other: status, headers and body, or what was raised."""

    async def one(session, prompt):
        body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **fields}
        try:
            async with session.post(f"{server.base_url}/chat/completions", json=body) as answer:
                return answer.status, answer.headers, await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return error

    async def all_of_them():
        limit = aiohttp.ClientTimeout(total=timeout)
        async with aiohttp.ClientSession(timeout=limit) as session:
            return [await one(session, prompt) for prompt in prompts]

    return asyncio.run(all_of_them())


def until(condition):
    """Wait for something that happens in another thread or process."""
    patience = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < patience
        time.sleep(0.01)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def ask_at_once(server, prompts, **fields):
    async def one(session, prompt):
        body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **fields}
        async with session.post(f"{server.base_url}/chat/completions", json=body) as answer:
            return answer.status

    async def all_of_them():
        async with aiohttp.ClientSession() as session:
            return await asyncio.gather(*(one(session, prompt) for prompt in prompts))

    return asyncio.run(all_of_them())


def test_it_echoes_and_counts(server):
    [(status, headers, body)] = ask(server, "two words")
    answer = json.loads(body)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "two words"}
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["completion_tokens"] == 2
    ask(server, "two words", "other")
    stats = server.stats()
    assert (stats.calls, stats.completed, stats.after_success, stats.in_flight) == (3, 3, 1, 0)
    assert stats.prompts["two words"].calls == stats.prompts["two words"].completed == 2
    assert stats.prompts["two words"].after_success == 1
    assert stats.recent[0]["body"]["messages"][0]["content"] == "two words"
    server.reset()
    assert server.stats().calls == 0


def test_directives_shape_the_answer(server):
    wish = '[[answer Paris]][[think Hm]][[reasoning I see]][[finish length]][[tool f {"a": 1}]]'
    choice = json.loads(ask(server, wish)[0][2])["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["reasoning_content"] == "I see"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert wish_of("[[think Hm]][[answer Paris]]").answer == "<think>Hm</think>\nParis"
    with pytest.raises(ValueError, match="directive"):
        wish_of("[[unheard of]]")
    with pytest.raises(ValueError, match="no fault"):
        wish_of("[[fault unheard]]")


def test_several_choices_with_log_probabilities(server):
    answer = json.loads(ask(server, "a b", n=2, logprobs=True, top_logprobs=3)[0][2])
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    content = answer["choices"][1]["logprobs"]["content"]
    assert [token["token"] for token in content] == ["a", " b"]
    assert [top["token"] for top in content[0]["top_logprobs"]] == ["a", "a~1", "a~2"]


def test_odds_of_a_token(server):
    prompt = '[[answer {"score": 8, "of": 8}]] [[odds {"7": 0.25, "8": 0.5}]]'
    answer = json.loads(ask(server, prompt, logprobs=True, top_logprobs=3)[0][2])
    content = answer["choices"][0]["logprobs"]["content"]
    assert "".join(token["token"] for token in content) == '{"score": 8, "of": 8}'
    first, second = [token["top_logprobs"] for token in content if token["token"] == " 8"]
    assert [(top["token"], round(math.exp(top["logprob"]), 9)) for top in first] == [("8", 0.5), ("7", 0.25)]
    assert [top["token"] for top in second] == [" 8", " 8~1", " 8~2"]


def test_fields_that_are_refused(server):
    server.set_plan(Plan(refuses=("response_format",)))
    assert ask(server, "a", response_format={"type": "json_object"})[0][0] == 400
    assert ask(server, "a")[0][0] == 200


@pytest.mark.parametrize(
    "kind", ["400", "401", "403", "404", "408", "409", "422", "429", "500", "502", "503", "529"]
)
def test_faults_by_status(server, kind):
    prompt = f"[[fault {kind}]]"
    first, second = ask(server, prompt, prompt)
    assert (first[0], second[0]) == (int(kind), 200)
    assert server.stats().faults == {kind: 1}


def test_retry_after_in_its_three_forms(server):
    forms = ("retry_after=1.5", "retry_after_date=90", "retry_after_ms=20")
    headers = [answer[1] for answer in ask(server, *(f"[[fault 429 {form}]]" for form in forms))]
    assert headers[0]["Retry-After"] == "1.5"
    ahead = parsedate_to_datetime(headers[1]["Retry-After"]) - parsedate_to_datetime(headers[1]["Date"])
    assert 89 <= ahead.total_seconds() <= 91
    assert headers[2]["retry-after-ms"] == "20"


def test_faults_of_the_connection(server):
    kinds = ("reset", "disconnect", "short_body")
    reset, disconnected, short = ask(server, *(f"[[fault {kind}]]" for kind in kinds))
    assert isinstance(reset, aiohttp.ClientOSError)
    assert isinstance(disconnected, aiohttp.ServerDisconnectedError)
    assert isinstance(short, aiohttp.ClientPayloadError)
    assert server.stats().completed == 0


def test_faults_of_the_body(server):
    truncated, html, empty, null = ask(
        server, *(f"[[fault {kind}]]" for kind in ("truncated", "html", "empty", "null"))
    )
    assert [answer[0] for answer in (truncated, html, empty, null)] == [200] * 4
    with pytest.raises(json.JSONDecodeError):
        json.loads(truncated[2])
    assert html[1]["Content-Type"].startswith("text/html")
    assert json.loads(empty[2])["choices"] == []
    assert json.loads(null[2])["choices"][0]["message"]["content"] is None
    assert server.stats().completed == 0


def test_who_never_gets_an_answer_leaves_and_is_counted_as_gone(server):
    answers = ask(server, "[[fault hang]]", "[[fault drip interval=0.05]]", timeout=0.2)
    assert [type(answer) for answer in answers] == [TimeoutError, TimeoutError]
    until(lambda: server.stats().in_flight == 0)
    stats = server.stats()
    assert (stats.in_flight, stats.abandoned, stats.completed) == (0, 2, 0)


def test_each_fault_has_its_number_of_calls():
    faults = wish_of("[[fault 500 times=2]] [[fault 429]] [[fault 400 times=always]]").faults
    assert [fault_of_call(faults, call).kind for call in range(5)] == ["500", "500", "429", "400", "400"]
    assert fault_of_call(faults[:2], 3) is None


def test_a_plan_befalls_its_share_of_the_prompts_the_same_ones_each_time():
    plan = Plan(faults=(Fault("429", share=0.1), Fault("500", share=0.02)), seed=3)
    prompts = [f"prompt {index}" for index in range(2000)]
    kinds = [tuple(fault.kind for fault in plan.faults_of(prompt)) for prompt in prompts]
    assert 150 < kinds.count(("429",)) < 250
    assert 20 < kinds.count(("500",)) < 65
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert [tuple(fault.kind for fault in again.faults_of(prompt)) for prompt in prompts] == kinds
    other = Plan(faults=plan.faults, seed=4)
    assert [other.faults_of(prompt) for prompt in prompts] != [plan.faults_of(prompt) for prompt in prompts]


def test_a_planned_key_and_planned_models(server):
    server.set_plan(Plan(key="sk-right", models=("other",)))
    refused = ask(server, "x")[0]
    assert (refused[0], json.loads(refused[2])["error"]["code"]) == (401, "invalid_api_key")
    server.set_plan(Plan(models=("other",)))
    unknown = ask(server, "x")[0]
    assert (unknown[0], json.loads(unknown[2])["error"]["code"]) == (404, "model_not_found")


def test_every_fault_has_a_shape(server):
    for kind in KINDS:
        if kind not in ("hang", "drip"):
            ask(server, f"[[fault {kind}]]")
    assert set(server.stats().faults) == set(KINDS) - {"hang", "drip"}


def test_a_server_in_a_process_of_its_own_counts_the_calls_in_flight():
    with ChatServer(Plan(latency=0.2)) as server:
        assert ask_at_once(server, [f"prompt {index}" for index in range(30)]) == [200] * 30
        stats = server.stats()
        process = server._process
    assert (stats.completed, stats.max_in_flight) == (30, 30)
    assert process.returncode == 0


def test_the_process_ends_with_the_one_that_started_it():
    code = (
        f"import sys, os; sys.path.insert(0, {str(Path(module.__file__).parent)!r})\n"
        "from chat_server import ChatServer\n"
        "server = ChatServer(); server.start(); print(server.port, flush=True); os._exit(9)"
    )
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    port = int(started.stdout)
    assert started.returncode == 9
    until(lambda: not listens(port))

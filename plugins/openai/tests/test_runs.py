"""Whole runs against the server: what is recorded, what is paid, and what becomes of faults."""

import asyncio
import json
import logging
from pathlib import Path

import pytest
from chat_server import ChatServer, Fault, Plan, ThreadedChatServer

from modelgauge import ChatMessage, ChatPrompt, ChatRole, Runner, SUTOptions, run_test
from modelgauge.config.secrets import SecretStore
from modelgauge_openai.sut import OpenAIChat

CANARY = "sk-canary/0123+456789=="


def completions(record):
    return [
        completion.completion
        for item in record.test_item_records
        for interaction in item.interactions
        for completion in interaction.response.completions
    ]


def test_a_run_by_name(server, asking):
    record = run_test(asking("[[answer Paris]]"), f"openai/any-model?base_url={server.base_url}")
    assert record.counts.scored == 1
    assert record.result["answered"].value == 1
    [only] = completions(record)
    assert (only.text, only.finish_reason) == ("Paris", "stop")
    usage = record.test_item_records[0].interactions[0].response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (2, 1, 0)


def test_the_same_run_again_makes_no_call(server, asking):
    prompts = [f"prompt {number}" for number in range(20)]
    name = f"openai/any-model?base_url={server.base_url}"
    first, second = (run_test(asking(*prompts), name) for _ in range(2))
    assert first.counts.sut_calls.paid == second.counts.sut_calls.cached == 20
    assert second.result == first.result
    stats = server.stats()
    assert (stats.calls, stats.completed, stats.after_success) == (20, 20, 0)


def test_chats_completions_log_probabilities_and_reasoning(server, sut, asking):
    options = SUTOptions(num_completions=2, top_logprobs=2, max_tokens=9, random=7)
    chat = ChatPrompt(
        [
            ChatMessage(role=ChatRole.system, text="Be brief."),
            ChatMessage(role=ChatRole.user, text="Hello you"),
        ],
        options,
    )
    test = asking(chat, "[[think Hm]][[answer Yes]]", "[[reasoning I see]][[answer No]]")
    several, thought, said = run_test(test, sut).test_item_records
    made = [completion.completion for completion in several.interactions[0].response.completions]
    assert [one.text for one in made] == ["Hello you"] * 2
    tops = made[1].top_logprobs
    assert [[top.token for top in position.top_tokens] for position in tops] == [
        ["Hello", "Hello~1"],
        [" you", " you~1"],
    ]
    split = thought.interactions[0].response.completions[0].completion
    assert (split.text, split.reasoning) == ("Yes", "Hm")
    beside = said.interactions[0].response.completions[0].completion
    assert (beside.text, beside.reasoning, beside.raw_text) == ("No", "I see", None)
    [sent] = [one["body"] for one in server.stats().recent if len(one["body"]["messages"]) == 2]
    assert (sent["n"], sent["max_tokens"], sent["seed"], sent["top_logprobs"]) == (2, 9, 7, 2)


def test_two_runs_at_once_in_one_loop_share_the_sut(server, sut, asking, tmp_path):
    async def both():
        runners = [Runner(tmp_path / name, concurrency=5) for name in ("a", "b")]
        tests = [
            asking(*(f"{name} {number}" for number in range(size))) for name, size in (("a", 5), ("b", 30))
        ]
        return await asyncio.gather(
            *(runner.run_async([test], [sut]) for runner, test in zip(runners, tests, strict=True))
        )

    [short], [long] = asyncio.run(both())
    assert (short.counts.scored, long.counts.scored) == (5, 30)
    assert server.stats().completed == 35


def test_prices_give_the_cost_of_each_call(server, asking):
    name = f"openai/m?base_url={server.base_url}&input_price=1000000&output_price=2000000"
    record = run_test(asking("one two three"), name)
    assert record.test_item_records[0].interactions[0].response.usage.cost_usd == pytest.approx(3 + 2 * 3)


ONCE = (
    "429 retry_after_ms=1",
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


def test_what_passes_once_it_is_tried_again_is_scored(server, sut, asking):
    prompts = [f"[[fault {fault}]]" for fault in (*ONCE, "html", "empty", "error200")]
    record = run_test(asking(*prompts), sut, concurrency=20)
    assert record.counts.scored == len(prompts)
    stats = server.stats()
    assert stats.completed == len(prompts)
    assert stats.calls == 2 * len(prompts)
    assert stats.after_success == 0


def test_no_retries_are_none(server, sut, asking):
    record = run_test(asking("[[fault 500]]", "[[fault 429]]", "fine"), sut, max_retries=0)
    assert (record.counts.scored, record.counts.sut_errors) == (1, 2)
    assert server.stats().calls == 3


def test_a_bad_request_fails_its_item_at_once_in_the_words_of_the_server(server, sut, asking):
    record = run_test(asking("[[fault 400 times=always]]", "fine"), sut)
    assert (record.counts.scored, record.counts.sut_errors) == (1, 1)
    [failed] = record.test_item_exceptions
    assert failed.error_type == "ChatError"
    assert "'messages' is too long: 9 tokens over (context_length_exceeded, request req_1)" in failed.message
    assert server.stats().prompts["[[fault 400 times=always]]"].calls == 1


def test_a_server_that_never_answers_and_one_that_drips_end_at_the_deadline(server, sut, asking):
    prompts = ("[[fault hang times=always]]", "[[fault drip times=always]]", "fine", "[[fault hang]] late")
    record = run_test(asking(*prompts), sut, attempt_timeout=1.5, max_retries=1)
    assert (record.counts.scored, record.counts.sut_errors) == (2, 2)
    assert {failed.error_type for failed in record.test_item_exceptions} == {"CallTimeoutError"}
    assert server.stats().after_success == 0


@pytest.mark.parametrize("fault", ["401", "404", "quota"])
def test_what_cannot_succeed_ends_the_run_after_three_calls(server, asking, fault):
    sut = OpenAIChat("openai/m", model="m", base_url=server.base_url)
    server.set_plan(Plan(faults=(Fault(fault, times=None),)))
    record = run_test(asking(*(f"prompt {number}" for number in range(50))), sut, concurrency=1)
    assert server.stats().calls == 3
    assert record.counts.scored == 0
    assert record.failure is not None
    assert f"answered {429 if fault == 'quota' else fault}" in record.failure.message


def test_many_prompts_with_planned_faults_all_end_scored_and_none_is_called_after_success(asking, tmp_path):
    plan = Plan(
        latency=0.005, seed=1, faults=(Fault("429", share=0.1, retry_after_ms=20), Fault("500", share=0.05))
    )
    prompts = [f"prompt {number}" for number in range(200)]
    with ChatServer(plan) as server:
        name = f"openai/any-model?base_url={server.base_url}"
        record = run_test(asking(*prompts), name, concurrency=50)
        stats = server.stats()
    assert record.counts.scored == 200
    assert stats.completed == 200
    assert stats.after_success == 0
    assert stats.calls == 200 + sum(stats.faults.values())
    assert stats.faults["429"] > 5
    assert 2 <= stats.max_in_flight <= 50


def everything_written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def shapes(secret: str) -> list[bytes]:
    return [secret.encode(), json.dumps(secret)[1:-1].replace("/", "\\/").encode(), secret[::-1].encode()]


def test_the_key_is_written_nowhere(server, asking, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    prompts = ["[[fault echo_key times=always]]", "[[fault 401]]", "[[fault reset]]", "fine"]
    runner = Runner(tmp_path / "data", secrets=SecretStore(env={"OPENAI_API_KEY": CANARY}), max_retries=1)
    [record] = runner.run([asking(*prompts)], [f"openai/m?base_url={server.base_url}"])
    assert record.counts.items == len(prompts)
    assert server.stats().recent[-1]["headers"]["Authorization"] == f"Bearer {CANARY}"
    written = everything_written(tmp_path)
    shown = caplog.text + "".join(capfd.readouterr()) + record.model_dump_json()
    shown += "".join(item.model_dump_json() for item in record.iter_items())
    assert b"fine" in written
    for shape in shapes(CANARY):
        assert shape not in written
        assert shape.decode() not in shown


def stopped_for_its_model(asking, models):
    with ThreadedChatServer(Plan(models=models)) as server:
        prompts = [f"prompt {number}" for number in range(20)]
        record = run_test(asking(*prompts), f"openai/llama3.1-8b?base_url={server.base_url}")
        assert (server.stats().calls, server.stats().lists) == (3, 1)
        return record.failure.message


def test_a_wrong_model_is_answered_with_the_nearest_of_the_servers_models(asking):
    models = ("mistral-7b", "qwen3-32b", "llama-3.1-8b-instruct", "qwen3-8b", "gemma-3")
    message = stopped_for_its_model(asking, models)
    assert "Correct the name of the model. The server has: llama-3.1-8b-instruct, " in message
    assert ", and 2 more." in message
    assert "The server has: phi. " in stopped_for_its_model(asking, ("phi",))


def test_a_server_that_lists_no_models_is_answered_as_before(asking):
    assert "Check the name of the model" in stopped_for_its_model(asking, ())


def test_models_are_asked_for_where_the_model_is_wrong_only(server, sut, asking):
    server.set_plan(Plan(faults=(Fault("401", times=None),)))
    run_test(asking("Hi"), sut)
    assert server.stats().lists == 0

"""Continuations are scored in each form in which servers give the tokens of prompts, or refused; never by chance."""

import itertools
import json
import subprocess
import sys

import pytest
from completions_server import BEGIN, Answers, completions_server, pieces, scores

from modelgauge import (
    AcceptsChatPrompt,
    ChatMessage,
    ContinuationPrompt,
    PromptResponseTest,
    ScoresContinuations,
    SUTOptions,
    TestItem,
    run_test,
)
from modelgauge.cli.checking import check
from modelgauge.errors import IncompatibleError
from modelgauge.interfaces.sut import capabilities_of
from modelgauge.text import likeliest
from modelgauge_openai.errors import ChatError
from modelgauge_openai.sut import OpenAIChat, OpenAICompletions, OpenAIModel

STYLES = ["openai", "vllm", "sglang", "sentencepiece"]
CONTEXT = "The capital of France is"
CHOICES = (" Paris", " a beautiful city, of light", " 75", "!")
SPACED = "Question: 2 + 2?\nAnswer: "


class Continuations(PromptResponseTest):
    """Asks for the scores of continuations."""

    requires_sut_capabilities = (ScoresContinuations,)

    def __init__(self, uid, *prompts):
        super().__init__(uid)
        self.prompts = prompts

    def make_test_items(self, dependencies):
        return [TestItem([prompt]) for prompt in self.prompts]

    def measure_quality(self, item):
        scored = [each.completion for each in item.interactions[0].response.completions]
        return {"choice": likeliest(scored)}


@pytest.fixture
def score(tmp_path):
    """Ask a server for the scores of a context's continuations. Return the record and what was sent."""

    def score(answers, *prompts, options="", takes_several=True):
        prompts = prompts or (ContinuationPrompt(CONTEXT, CHOICES),)
        with completions_server(answers, takes_several) as (url, asked):
            sut = f"openai/base?base_url={url}&api=completions{options}"
            return run_test(Continuations("scores", *prompts), sut), asked

    return score


def answers_of(style, **more):
    return Answers(style, begins=None if style == "openai" else BEGIN, **more)


def completions(record):
    [item] = record.test_item_records
    return [each.completion for each in item.interactions[0].response.completions]


def failure(record):
    assert record.counts.scored == 0
    assert record.counts.failed == 1
    [item] = [record.failure] if record.failure else [item.failure for item in record.iter_items()]
    return item.message


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("context", [CONTEXT, SPACED, "Go:\n\n"])
def test_log_likelihoods_equal_those_of_the_model(style, context, score):
    record, asked = score(answers_of(style), ContinuationPrompt(context, CHOICES))
    assert len(asked) == 1
    assert record.spent.tokens == sum(
        len(pieces(context + choice)) + 1 + (style != "openai") for choice in CHOICES
    )
    for choice, completion in zip(CHOICES, completions(record), strict=True):
        own, is_greedy = scores(context, choice)
        assert completion.text == choice
        assert completion.logprob == pytest.approx(sum(own))
        assert [token.logprob for token in completion.token_logprobs] == pytest.approx(own)
        assert (completion.num_tokens, completion.is_greedy) == (len(own), is_greedy)


def test_one_continuation_is_greedy_and_another_is_not(score):
    greedy = {scores(CONTEXT, f" {word}")[1] for word in ("Paris", "London", "Rome", "Bern", "Oslo")}
    assert greedy == {True, False}


def test_what_is_sent_and_what_is_kept(score):
    answers = answers_of("vllm")
    record, [sent] = score(
        answers, options='&extra_body={"add_special_tokens":true,"max_tokens":9}&omit=temperature'
    )
    assert sent == {
        "model": "base",
        "prompt": [CONTEXT + choice for choice in CHOICES],
        "max_tokens": 1,
        "logprobs": 1,
        "echo": True,
        "add_special_tokens": True,
    }
    assert len(completions(record)) == len(CHOICES)


def test_warm_run_sends_nothing_and_key_is_the_prompts_own(tmp_path):
    with completions_server(answers_of("vllm")) as (url, asked):
        sut = OpenAIModel("openai/base", "base", base_url=url, api="completions")
        assert sut.translate_continuation_prompt(ContinuationPrompt("a", [" b"])) == {
            "model": "base",
            "context": "a",
            "continuations": [" b"],
        }
        test = Continuations("scores", ContinuationPrompt(CONTEXT, CHOICES))
        first, second = (run_test(test, f"openai/base?base_url={url}&api=completions") for _ in range(2))
    assert len(asked) == 1
    assert (second.counts.sut_calls.paid, second.counts.sut_calls.cached) == (0, 1)
    assert completions(first) == completions(second)


@pytest.mark.parametrize("options", ["", "&completions=many_calls"])
def test_server_of_one_prompt_a_call_is_asked_one_by_one(options, score, no_pauses):
    record, asked = score(answers_of("sglang"), options=options, takes_several=False)
    refused = [sent for sent in asked if isinstance(sent["prompt"], list)]
    assert len(refused) == (1 if not options else 0)
    assert [sent["prompt"] for sent in asked[len(refused) :]] == [CONTEXT + choice for choice in CHOICES]
    expected = [sum(scores(CONTEXT, choice)[0]) for choice in CHOICES]
    assert [completion.logprob for completion in completions(record)] == pytest.approx(expected)
    assert record.spent.tokens == sum(len(pieces(CONTEXT + choice)) + 2 for choice in CHOICES)


def test_server_that_answers_the_first_prompt_only_is_asked_one_by_one(score, no_pauses):
    def first_only(body):
        return {**body, "choices": body["choices"][:1]}

    record, asked = score(answers_of("vllm", change=first_only))
    assert len(asked) == 1 + len(CHOICES)
    assert completions(record)[1].logprob == pytest.approx(sum(scores(CONTEXT, CHOICES[1])[0]))


def test_server_that_fails_at_several_prompts_without_a_word_is_asked_one_by_one(score, no_pauses):
    record, asked = score(
        answers_of("vllm"), takes_several={"error": {"message": "", "type": "internal_server_error"}}
    )
    assert len(asked) == 1 + len(CHOICES)
    assert completions(record)[1].logprob == pytest.approx(sum(scores(CONTEXT, CHOICES[1])[0]))


def test_refused_prompt_does_not_split_calls_of_a_server_that_took_several(score):
    prompts = [ContinuationPrompt(context, CHOICES) for context in ("One", "Two")]
    with completions_server(answers_of("vllm")) as (url, asked):
        sut = OpenAICompletions("s", "base", base_url=url)
        run_test(Continuations("scores", *prompts), sut)
        sut._sending.learn(ChatError("Too long.", fix="Shorten it.", status=400), {"prompt": ["a", "b"]})
        run_test(Continuations("scores", ContinuationPrompt("Three", CHOICES)), sut)
    assert len(asked) == 3


def test_choices_go_by_index(score):
    def turned(body):
        return {**body, "choices": body["choices"][::-1]}

    record, _ = score(answers_of("vllm", change=turned))
    expected = [sum(scores(CONTEXT, choice)[0]) for choice in CHOICES]
    assert [completion.logprob for completion in completions(record)] == pytest.approx(expected)


@pytest.mark.parametrize("generated", ["", "<|end|>", "\n"])
def test_new_token_is_none_of_the_continuation(generated, score):
    record, _ = score(answers_of("vllm", generated=generated))
    assert completions(record)[0].num_tokens == 1


def shifted(body):
    """As llama-cpp-python answers if the tokenizer adds no token: each token has the log-probability of the next."""
    for choice in body["choices"]:
        logprobs = choice["logprobs"]
        logprobs["tokens"].pop()
        del logprobs["token_logprobs"][0], logprobs["top_logprobs"][0]
        logprobs["token_logprobs"][0] = logprobs["top_logprobs"][0] = None
    return body


def test_log_probabilities_of_the_next_tokens_are_refused(score):
    record, _ = score(answers_of("openai", change=shifted))
    assert "may give each token the log-probability of the next" in failure(record)


def test_prompt_logprobs_alone_are_enough(score):
    def only_ranks(body):
        for choice in body["choices"]:
            choice["logprobs"] = None
        return body

    record, _ = score(answers_of("vllm", change=only_ranks))
    expected = [sum(scores(CONTEXT, choice)[0]) for choice in CHOICES]
    assert [completion.logprob for completion in completions(record)] == pytest.approx(expected)
    assert [c.is_greedy for c in completions(record)] == [scores(CONTEXT, choice)[1] for choice in CHOICES]


# --- without a context ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["vllm", "sglang", "sentencepiece"])
@pytest.mark.parametrize("text", ["The sky is blue.", " The sky", "\nThe sky"])
def test_rolling_score_begins_behind_the_token_that_texts_begin_with(style, text, score):
    record, _ = score(answers_of(style), ContinuationPrompt("", [text]))
    assert completions(record)[0].logprob == pytest.approx(sum(scores("", text)[0]))
    assert completions(record)[0].num_tokens == len(pieces(text))


def test_rolling_score_of_a_tokenizer_without_such_a_token_is_refused_or_begins_with_the_prefix(score):
    prompt = ContinuationPrompt("", ["The sky is blue."])
    record, _ = score(answers_of("openai"), prompt)
    assert "no log-probability for the first token of 'The sky is blue'" in failure(record)
    assert "?prefix=" in failure(record)
    record, [sent] = score(answers_of("openai"), prompt, options=f"&prefix={BEGIN}")
    assert sent["prompt"] == f"{BEGIN}The sky is blue."
    assert completions(record)[0].logprob == pytest.approx(sum(scores("", "The sky is blue.")[0]))
    record, _ = score(answers_of("openai"), ContinuationPrompt(CONTEXT, CHOICES), options=f"&prefix={BEGIN}")
    assert completions(record)[0].logprob == pytest.approx(sum(scores(CONTEXT, CHOICES[0])[0]))


# --- refusals ---------------------------------------------------------------------------------------------------------


def cut_left(body):
    """As a server that keeps the last tokens of a prompt that is too long."""
    for choice in body["choices"]:
        for column in choice["logprobs"].values():
            del column[:3]
    return body


def cut_right(body):
    for choice in body["choices"]:
        for column in choice["logprobs"].values():
            del column[-2:]
    return body


def lower(body):
    for choice in body["choices"]:
        choice["logprobs"]["tokens"] = [token.lower() for token in choice["logprobs"]["tokens"]]
    return body


def ids(body):
    for choice in body["choices"]:
        choice["logprobs"]["tokens"] = [f"token_id:{at}" for at in range(len(choice["logprobs"]["tokens"]))]
    return body


@pytest.mark.parametrize("change", [cut_left, cut_right, lower, ids])
@pytest.mark.parametrize("style", ["sglang", "openai"])
def test_tokens_that_do_not_spell_the_prompt_are_refused(change, style, score):
    record, asked = score(answers_of(style, change=change))
    assert "do not spell the prompt" in failure(record)
    assert len(asked) == 1


@pytest.mark.parametrize(("style", "name"), [("tgi", " (TGI)"), ("ollama", " (Ollama)")])
def test_server_without_log_probabilities_is_named(style, name, score):
    record, asked = score(answers_of(style))
    message = failure(record)
    assert f"/v1/completions{name} answered without log-probabilities" in message
    assert "vLLM and SGLang" in message
    assert len(asked) == 1


def test_new_tokens_alone_score_nothing(score):
    def new_only(body):
        for choice in body["choices"]:
            for name, column in choice["logprobs"].items():
                choice["logprobs"][name] = column[-1:]
            choice["text"] = " on"
        return body

    record, _ = score(answers_of("openai", change=new_only))
    assert "1 new token and of none of the prompt's" in failure(record)
    for context, continuation in itertools.product(["", " ", "x"], [" on", "on"]):
        record, _ = score(answers_of("openai", change=new_only), ContinuationPrompt(context, [continuation]))
        failure(record)


def test_answer_that_is_longer_than_allowed_is_refused(score):
    def longer(body):
        return {**body, "usage": {**body["usage"], "completion_tokens": 40}}

    record, _ = score(answers_of("openai", change=longer))
    assert "40 new tokens where 1 for each prompt was allowed" in failure(record)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("top_logprobs", None, "without the likeliest token"),
        ("top_logprobs", {}, "without the likeliest token"),
        ("token_logprobs", None, "without the log-probability of a token"),
    ],
)
def test_missing_scores_are_refused(column, value, words, score):
    def lacking(body):
        for choice in body["choices"]:
            choice["logprobs"][column][-2] = value
        return body

    record, _ = score(answers_of("openai", change=lacking))
    assert words in failure(record)


@pytest.mark.parametrize(
    "logprobs", [[], {}, {"tokens": 1}, {"tokens": ["a"]}, {"content": [1]}, {"content": {}}, "x"]
)
def test_odd_log_probabilities_are_refused(logprobs, score):
    def odd(body):
        return {**body, "choices": [{**choice, "logprobs": logprobs} for choice in body["choices"]]}

    record, _ = score(answers_of("openai", change=odd))
    assert "so it cannot score continuations" in failure(record)


def test_token_that_straddles_context_and_continuation_is_refused(score):
    record, _ = score(answers_of("vllm"), ContinuationPrompt("foo", ["bar", " bar"]))
    assert "no token begins for certain where the continuation 'bar' does" in failure(record)
    assert "begin with a space or a whole word" in failure(record)


def test_refused_answers_are_paid_and_not_kept(score):
    record, _ = score(answers_of("vllm"), ContinuationPrompt("foo", ["bar"]))
    assert record.spent.tokens == 3


def test_chat_as_a_context_is_refused_before_any_call(score):
    chat = [ChatMessage("user", "What is the capital of France?")]
    record, asked = score(answers_of("vllm"), ContinuationPrompt(chat, [" Paris"]))
    assert "scores continuations of texts only" in failure(record)
    assert asked == []


def test_model_without_log_probabilities_is_refused_before_any_call(score):
    record, asked = score(answers_of("vllm"), options="&logprobs=false")
    assert "cannot score continuations" in failure(record)
    assert asked == []


def test_server_without_text_completions_says_so(serve):
    with serve({"error": {"message": "Not Found"}}, 404) as (url, _):
        test = Continuations("scores", ContinuationPrompt("a", [" b"]))
        record = run_test(test, f"openai/base?base_url={url}&api=completions")
    assert "Or the server has no text completions: leave out api=completions." in failure(record)


@pytest.mark.parametrize("options", ["", "&completions=many_calls"])
def test_block_by_a_filter_is_no_score(options, score):
    def blocked(body):
        is_first = "Paris" in body["choices"][0]["text"] and len(body["choices"]) == 1
        return body if is_first else {"error": {"message": "It was blocked", "code": "content_filter"}}

    record, _ = score(answers_of("openai", change=blocked), options=options)
    [item] = record.iter_items()
    assert "The service blocked the answer" in item.failure.message


# --- texts, names, the command ----------------------------------------------------------------------------------------


def test_api_of_the_name_chooses_the_class(server):
    chat, text = (
        OpenAIModel("a", "m", base_url=server.base_url),
        OpenAICompletions("b", "m", base_url=server.base_url),
    )
    assert type(chat) is OpenAIChat
    assert ScoresContinuations not in capabilities_of(chat)
    assert ScoresContinuations in capabilities_of(text)
    with pytest.raises(ValueError, match="speaks the API 'chat'"):
        OpenAIChat("c", "m", base_url=server.base_url, api="completions")
    with pytest.raises(ValueError, match="no API 'responses'"):
        OpenAIModel("d", "m", base_url=server.base_url, api="responses")
    with pytest.raises(ValueError, match="Leave prefix out"):
        OpenAIModel("e", "m", base_url=server.base_url, prefix="<s>")


def test_chat_says_how_continuations_are_scored(server):
    test = Continuations("scores", ContinuationPrompt("a", [" b"]))
    with pytest.raises(IncompatibleError, match=r"needs ScoresContinuations.*add \?api=completions"):
        run_test(test, f"openai/m?base_url={server.base_url}")


def test_text_completions_say_how_chats_are_asked(asking):
    test = asking("q")
    test.requires_sut_capabilities = (AcceptsChatPrompt,)
    with pytest.raises(IncompatibleError, match="Leave out api=completions"):
        run_test(test, "openai/m?base_url=http://127.0.0.1:1/v1&api=completions")


@pytest.mark.parametrize(("style", "is_there"), [("vllm", True), ("tgi", False)])
def test_check_finds_out_whether_continuations_are_scored(style, is_there):
    with completions_server(answers_of(style)) as (url, _):
        findings = check(f"openai/base?base_url={url}&api=completions", SUTOptions()).findings
    [found] = [each for each in findings if each.ability == "log-likelihoods"]
    assert found.is_there == is_there
    assert ("Paris -" in found.detail) == is_there
    assert is_there or "answered without log-probabilities" in found.detail


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_conformance_kit_finds_no_problem(api):
    name = f"openai/m?api={api}&base_url=http://127.0.0.1:1/v1"
    command = [
        sys.executable,
        "-m",
        "modelgauge",
        "plugins",
        "check",
        "modelgauge-plugin-openai",
        "--example",
        name,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "0 problems" in done.stdout, done.stdout


def test_command_scores_continuations():
    with completions_server(answers_of("vllm")) as (url, _):
        command = [
            sys.executable,
            "-m",
            "modelgauge",
            "run-sut",
            "--sut",
            f"openai/base?base_url={url}&api=completions",
        ]
        command += ["--prompt", CONTEXT, "--continuation", " Paris", "--continuation", " London", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["response"]["completions"]
    expected = [sum(scores(CONTEXT, choice)[0]) for choice in (" Paris", " London")]
    assert [completion["logprob"] for completion in found] == pytest.approx(expected)

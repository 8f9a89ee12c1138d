"""Answers that a content filter withheld, in the forms of many services: one outcome, one call, one cache entry."""

import json
from pathlib import Path

import pytest

from modelgauge import SUTOptions, TextPrompt, run_test
from modelgauge_openai.blocking import block_in_error, blocked_reply
from modelgauge_openai.reply import Reply

pytestmark = pytest.mark.usefixtures("no_pauses")

REFUSALS = Path(__file__).parent / "fixtures" / "refusals.jsonl"
RESULT = {
    "hate": {"filtered": False, "severity": "safe"},
    "jailbreak": {"filtered": False, "detected": False},
    "violence": {"filtered": True, "severity": "medium"},
}
SAFE = {name: {**found, "filtered": False} for name, found in RESULT.items()}
AZURE = {
    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "type": None,
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": RESULT},
}
LITELLM = (
    "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - The response was filtered.\n"
    "model=azure/gpt-4o. content_policy_fallback=None. fallbacks=None."
)


def choice(text=None, reason="content_filter", **fields):
    return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason, **fields}


def chat(*choices, **fields):
    return {"id": "c", "object": "chat.completion", "choices": list(choices), **fields}


def events(*chunks, done=True):
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"] * done
    return "".join(lines).encode()


def piece(text=None, reason=None, **fields):
    delta = {} if text is None else {"content": text}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason, **fields}]}


FORMS = {
    "Azure, status 400": (400, {"error": AZURE}, "", ["violence"]),
    # https://github.com/gpt4free/g4f.dev/issues/81
    "Azure, without categories": (
        400,
        {"error": {"message": "Filtered.", "code": "content_filter"}},
        "",
        None,
    ),
    "OpenAI": (400, {"error": {"message": "Rejected.", "code": "content_policy_violation"}}, "", None),
    # https://github.com/alan-turing-institute/t0-1/issues/69
    "OpenAI, reasoning models": (
        400,
        {
            "error": {
                "message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
                "code": "invalid_prompt",
            }
        },
        "",
        None,
    ),
    # https://github.com/BerriAI/litellm/pull/16231
    "LiteLLM": (
        400,
        {
            "error": {
                "message": LITELLM,
                "type": None,
                "code": "400",
                "provider_specific_fields": {"innererror": AZURE["innererror"]},
            }
        },
        "",
        ["violence"],
    ),
    # https://github.com/meta-llama/PurpleLlama/issues/109
    "LiteLLM, words only": (400, {"error": {"message": LITELLM, "type": "None", "code": "400"}}, "", None),
    # https://github.com/BerriAI/litellm/issues/4941
    "LiteLLM, status 500": (500, {"error": {"message": LITELLM, "type": None, "code": "500"}}, "", None),
    "LiteLLM, quoting": (
        400,
        {
            "error": {
                "message": f"litellm.BadRequestError: AzureException - {{'error': {AZURE}}}",
                "code": "400",
            }
        },
        "",
        None,
    ),
    # https://github.com/BerriAI/litellm/issues/13321
    "LiteLLM, guardrail": (
        400,
        {
            "error": {
                "message": {"error": "Violated guardrail policy", "bedrock_guardrail_response": "Sorry."},
                "code": "400",
            }
        },
        "",
        None,
    ),
    # https://github.com/BerriAI/litellm/pull/39521
    "LiteLLM, guardrail of 2026": (
        400,
        {
            "error": {
                "message": "Violated guardrail policy",
                "provider_specific_fields": {
                    "bedrock_guardrail_response": "Sorry.",
                    "guardrail_mode": "pre_call",
                },
            }
        },
        "",
        None,
    ),
    "LiteLLM, detail": (400, {"detail": {"error": "Violated OpenAI moderation policy"}}, "", None),
    # https://github.com/XiaomiMiMo/MiMo-V2-Flash/issues/18
    "Xiaomi": (
        400,
        b'data:{"error":{"code":"421","message":"Moderation Block","type":"content_filter"}}\n\n',
        "",
        None,
    ),
    # https://github.com/camel-ai/owl/issues/432
    "Alibaba": (400, {"error": {"code": "data_inspection_failed", "message": "Inappropriate."}}, "", None),
    "Alibaba, flat": (400, {"code": "DataInspectionFailed", "message": "Inappropriate."}, "", None),
    # https://github.com/deepseek-ai/awesome-deepseek-integration/issues/13
    "DeepSeek": (
        400,
        {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}},
        "",
        None,
    ),
    "xAI": (
        403,
        {"code": "denied", "error": "Content violates usage guidelines. Failed check: BIO"},
        "",
        None,
    ),
    # https://openrouter.ai/docs/api/reference/errors-and-debugging
    "OpenRouter": (
        403,
        {
            "error": {
                "code": 403,
                "message": "Your input was flagged",
                "metadata": {"reasons": ["violence"], "flagged_input": "How…", "provider_name": "OpenAI"},
            }
        },
        "",
        ["violence"],
    ),
    "OpenRouter, wrapping": (
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": json.dumps({"error": AZURE})},
            }
        },
        "",
        None,
    ),
    "LiteLLM, quoting JSON": (
        400,
        {
            "error": {
                "message": f"BadRequestError: {json.dumps(json.dumps({'code': 'content_filter'}))}",
                "code": "400",
            }
        },
        "",
        None,
    ),
    # https://github.com/anthropics/claude-code/issues/6195
    "Anthropic": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Output blocked by content filtering policy",
            },
        },
        "",
        None,
    ),
    # https://portkey.ai/docs/api-reference/inference-api/error-codes
    "Portkey": (
        446,
        {"error": {"message": "The guardrail checks failed.", "type": "hooks_failed"}},
        "",
        None,
    ),
    # https://developers.cloudflare.com/ai-gateway/features/guardrails/set-up-guardrail
    "Cloudflare": (
        424,
        {
            "success": False,
            "error": [{"code": 2016, "message": "Prompt blocked due to security configurations"}],
        },
        "",
        None,
    ),
    "Cloudflare, plural": (
        424,
        {"errors": [{"code": 2017, "message": "Response blocked due to security configurations"}]},
        "",
        None,
    ),
    "OpenRouter, in a choice": (200, chat(choice("Par", "error", error=AZURE)), "Par", ["violence"]),
    "error with status 200": (200, {"error": AZURE}, "", ["violence"]),
    "errors in a list": (200, [{"error": AZURE}], "", ["violence"]),
    "null": (200, chat({"index": 0, "message": None, "finish_reason": "content_filter"}), "", None),
    "no text": (200, chat(choice()), "", None),
    "part of a text": (200, chat(choice("Par", content_filter_results=RESULT)), "Par", ["violence"]),
    "no choices": (
        200,
        chat(prompt_filter_results=[{"prompt_index": 0, "content_filter_results": RESULT}]),
        "",
        ["violence"],
    ),
    "choices null": (200, {"choices": None, "content_filter_results": RESULT}, "", ["violence"]),
    "Google, prompt": (200, chat(prompt_feedback={"block_reason": "SAFETY"}), "", ["SAFETY"]),
    # https://github.com/HKUDS/Vibe-Trading/pull/308
    "Google": (200, chat(choice(None, "PROHIBITED_CONTENT")), "", None),
    "Google, with its own reason": (200, chat(choice("Par", "content_filter: RECITATION")), "Par", None),
    # https://github.com/pydantic/pydantic-ai/pull/7817
    "Bedrock": (200, chat(choice("Sorry, I cannot.", "guardrail_intervened")), "Sorry, I cannot.", None),
    "stream": (200, events(piece("Par"), piece(None, "content_filter")), "Par", None),
    # https://github.com/experientiallabs/experiential/pull/962
    "stream without its end": (
        200,
        events(piece("Par"), piece(None, "content_filter", content_filter_results=RESULT), done=False),
        "Par",
        ["violence"],
    ),
    "stream, error": (200, events(piece("Par"), {"error": AZURE}, done=False), "Par", ["violence"]),
    "stream, no choices": (
        200,
        events({"choices": [], "prompt_filter_results": [{"content_filter_results": RESULT}]}),
        "",
        ["violence"],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_block_is_one_outcome(form, asking, serve):
    status, body, text, categories = FORMS[form]
    with serve(body, status) as (url, asked):
        name = f"openai/m?base_url={url}{'&stream=true' if form.startswith('stream') else ''}"
        first, second = (run_test(asking("Q?"), name) for _ in range(2))
    [failed] = second.test_item_exceptions
    [answer] = failed.interactions[0].response.completions
    assert (failed.stage, failed.error_type) == ("sut", "BlockedError")
    assert (answer.completion.text, answer.completion.blocked) == (text, True)
    assert answer.completion.metadata.get("categories") == categories
    assert (first.counts.blocked, second.counts.blocked, second.counts.empty) == (1, 1, 0)
    assert (len(asked), first.counts.sut_calls.paid, second.counts.sut_calls.cached) == (1, 1, 1)


def test_judging_test_gets_block_with_words_of_the_service(asking, serve):
    test = asking("Q?")
    test.judges_blocked_answers = True
    test.measure_quality = lambda item: {
        "refused": item.interactions[0].response.completions[0].completion.blocked
    }
    with serve({"error": AZURE}, 400) as (url, _):
        record = run_test(test, f"openai/m?base_url={url}")
    [item] = record.test_item_records
    assert item.measurements == {"refused": 1.0}
    metadata = item.interactions[0].response.completions[0].completion.metadata
    assert metadata == {"categories": ["violence"], "message": AZURE["message"]}


@pytest.mark.parametrize(
    ("body", "status"), [({"error": AZURE}, 400), (chat(choice(), choice("b", "stop")), 200)]
)
def test_several_completions_are_asked_for_once(body, status, ask):
    record, requests = ask(
        body, status, prompt=TextPrompt("Q?", SUTOptions(num_completions=2, top_logprobs=1))
    )
    [failed] = record.test_item_exceptions
    if status == 400:
        blocks = [each.completion.blocked for each in failed.interactions[0].response.completions]
        assert (failed.error_type, blocks, requests) == ("BlockedError", [True, True], 1)
    else:  # the other completion lacks log-probabilities
        assert (failed.error_type, requests) == ("MissingLogProbabilitiesChatError", 1)


def test_tokens_of_blocked_answer_count(ask):
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    for body, status in ((chat(choice(), usage=usage), 200), ({"error": AZURE, "usage": usage}, 400)):
        assert ask(body, status)[0].spent.tokens == 10


@pytest.mark.parametrize("line", REFUSALS.read_text("utf-8").splitlines())
def test_refusals_of_other_kinds_are_no_blocks(line):
    refusal = json.loads(line)
    assert blocked_reply(Reply(refusal["status"], {}, json.dumps(refusal["body"]).encode())) is None


@pytest.mark.parametrize(
    "error",
    [
        {"code": "content_filter_error", "message": "The contents are not filtered"},
        {"message": "Unrecognized request argument supplied: content_filter", "code": 400},
        {"message": "Too long", "innererror": {"content_filter_result": SAFE}},
        {
            "message": "Field required",
            "detail": [{"input": {"messages": [{"content": "content management policy"}]}}],
        },
        "Out of order",
        None,
        [],
        3,
    ],
)
def test_other_errors_are_no_blocks(error):
    assert block_in_error(error) is None


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (chat(choice("Paris.", "stop", content_filter_results=SAFE), prompt_filter_results=[SAFE]), "Paris."),
        (
            chat(choice("Paris.", "stop"), prompt_filter_results=[{"content_filter_results": RESULT}]),
            "Paris.",
        ),
        (
            chat(choice("Paris.", "stop", content_filter_result={"error": {"code": "content_filter_error"}})),
            "Paris.",
        ),
        (
            chat({"message": {"content": None, "refusal": "I will not."}, "finish_reason": "stop"}),
            "I will not.",
        ),
    ],
)
def test_answer_beside_filter_results_or_refusal_of_the_model_is_no_block(body, text, ask):
    [item] = ask(body)[0].test_item_records
    [answer] = item.interactions[0].response.completions
    assert (answer.completion.text, answer.completion.blocked) == (text, False)


@pytest.mark.parametrize("results", [[], [{"content_filter_results": SAFE}]])
def test_no_choices_and_nothing_filtered_is_retried(results, ask):
    record, requests = ask(chat(prompt_filter_results=results), max_retries=2)
    assert (record.counts.sut_errors, record.counts.blocked, requests) == (1, 0, 3)

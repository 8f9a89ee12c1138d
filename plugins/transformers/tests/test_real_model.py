"""A real model: scores as those of plain passes, texts as those of `generate`, in any order and any batch."""

import re
import subprocess
import sys

import pytest

from modelgauge import ChatMessage, ChatPrompt, ContinuationPrompt, SUTOptions, TextPrompt

CHOICES = [" Paris", " a beautiful city of light", " London", " in the north of Europe, says the book"]
CONTEXTS = ["The capital of France is", "The sun rises in the", "Q: What is 2+2?\nA: ", "Ice"]
TEXTS = ["The capital of France is", "Once upon a time", "def add(a, b):", "1 2 3 4 5"]


@pytest.fixture
def plain(sut):
    """The log-probabilities of the last tokens of a row, by one unbatched pass without a mask."""
    import torch

    def plain(ids, scored):
        with torch.inference_mode():
            logs = sut._model.forward.model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return [float(logs[at - 1, ids[at]]) for at in range(len(ids) - scored, len(ids))]

    return plain


def test_scores_equal_plain_passes(sut, ask, plain):
    responses = ask(*(ContinuationPrompt(context, CHOICES) for context in CONTEXTS))
    encode = sut._model.tokens.tokenizer.encode
    for context, response in zip(CONTEXTS, responses, strict=True):
        for choice, completion in zip(CHOICES, response.completions, strict=True):
            spaces = context[len(context.rstrip()) :]
            before, whole = encode(context.rstrip()), encode(context.rstrip() + spaces + choice)
            expected = plain(whole, len(whole) - len(before))
            assert completion.logprob == pytest.approx(sum(expected), abs=1e-4, rel=1e-5)
            assert [token.logprob for token in completion.token_logprobs] == pytest.approx(expected, abs=1e-4)
            assert completion.num_tokens == len(expected)


def test_context_of_choices_is_read_once(sut, ask):
    forward = sut._model.forward
    passes, tokens = forward.passes, forward.tokens
    (response,) = ask(ContinuationPrompt("The capital of France is", CHOICES))
    read = len(sut._model.tokens.encode("The capital of France is"))
    read += sum(completion.num_tokens - 1 for completion in response.completions)
    assert (forward.passes - passes, forward.tokens - tokens) == (2, read)
    assert response.usage.input_tokens == read


def test_choices_of_one_token_take_one_pass(sut, ask):
    passes = sut._model.forward.passes
    (response,) = ask(ContinuationPrompt("The capital of France is", [" Paris", " London"]))
    assert sut._model.forward.passes - passes == 1
    assert response.completions[0].logprob > response.completions[1].logprob


def test_continuation_that_the_model_would_write_is_greedy(ask):
    (written,) = ask(TextPrompt("The capital of France is", SUTOptions(max_tokens=2)))
    text = written.completions[0].text
    (scored,) = ask(ContinuationPrompt("The capital of France is", [text, " nothing of that kind"]))
    assert [completion.is_greedy for completion in scored.completions] == [True, False]


def test_long_text_without_context_is_scored_in_windows(sut, ask, plain, monkeypatch):
    tokens = sut._model.tokens
    text = "The sky is blue, and the sea is green. " * 4
    ids = [tokens.prefix, *tokens.encode(text, special=False)]
    (whole,) = ask(ContinuationPrompt("", [text]))
    assert whole.completions[0].logprob == pytest.approx(sum(plain(ids, len(ids) - 1)), abs=1e-3)
    monkeypatch.setattr(tokens, "context_size", 16)
    (parts,) = ask(ContinuationPrompt("", [text]))
    ends = [min(begin + 16, len(ids)) for begin in range(1, len(ids), 16)]
    expected = sum(
        sum(plain(ids[max(0, end - 17) : end], end - (at * 16 + 1))) for at, end in enumerate(ends)
    )
    assert parts.completions[0].logprob == pytest.approx(expected, abs=1e-3)
    assert parts.completions[0].num_tokens == len(ids) - 1


def test_texts_equal_those_of_generate_one_by_one(sut, ask):
    import torch

    model, tokenizer = sut._model.forward.model, sut._model.tokens.tokenizer
    limits = [3, 12, 7, 9]
    prompts = [
        TextPrompt(text, SUTOptions(max_tokens=most)) for text, most in zip(TEXTS, limits, strict=True)
    ]
    for text, most, response in zip(TEXTS, limits, ask(*prompts), strict=True):
        ids = torch.tensor([tokenizer.encode(text)])
        made = model.generate(ids, max_new_tokens=most, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
        assert response.completions[0].text == tokenizer.decode(made, skip_special_tokens=True)
        assert response.usage.output_tokens == len(made)
        assert response.completions[0].finish_reason == "length"


def test_order_and_size_of_batches_change_nothing(sut, ask, monkeypatch):
    drawn = SUTOptions(max_tokens=6, temperature=0.8, top_p=0.9, random=7)
    prompts = [
        *(TextPrompt(text, SUTOptions(max_tokens=6)) for text in TEXTS),
        *(TextPrompt(text, drawn) for text in TEXTS),
        *(ContinuationPrompt(context, CHOICES) for context in CONTEXTS),
    ]

    def facts(responses):
        return [
            [
                (one.text, one.finish_reason, one.logprob and round(one.logprob, 3))
                for one in response.completions
            ]
            for response in responses
        ]

    together = facts(ask(*prompts))
    assert facts(ask(*reversed(prompts))) == together[::-1]
    monkeypatch.setattr(sut._model._batches, "most", 1)
    assert facts(ask(*prompts)) == together


def test_seeds_tell_drawn_texts_apart(ask):
    options = SUTOptions(max_tokens=8, temperature=1.5, random=1, num_completions=2)
    first, again = ask(TextPrompt("Once upon", options), TextPrompt("Once upon", options))
    assert first.completions == again.completions
    texts = [completion.text for completion in first.completions]
    assert texts[0] != texts[1]
    (second,) = ask(TextPrompt("Once upon", options.replaced(random=2, num_completions=1)))
    assert second.completions[0].text == texts[1]  # seeds count up


def test_row_stops_at_its_own_sequence(ask):
    stopped, free = ask(
        TextPrompt("1 2 3 4 5", SUTOptions(max_tokens=12, stop_sequences=["8"])),
        TextPrompt("1 2 3 4 5", SUTOptions(max_tokens=12)),
    )
    assert "8" in free.completions[0].text
    assert stopped.completions[0].text == free.completions[0].text.partition("8")[0]
    assert stopped.completions[0].finish_reason == "stop"
    assert stopped.usage.output_tokens < 12


def test_chat_ends_at_the_models_own_end_and_reports_likely_tokens(ask):
    chat = ChatPrompt([ChatMessage("user", "Say the word yes.")], SUTOptions(max_tokens=100, top_logprobs=2))
    (response,) = ask(chat)
    (completion,) = response.completions
    assert completion.finish_reason == "stop"
    assert "<|im_end|>" not in completion.text
    assert len(completion.top_logprobs) == response.usage.output_tokens
    assert all(len(top.top_tokens) == 2 for top in completion.top_logprobs)


def test_chat_of_a_model_without_template_says_so(sut, ask, monkeypatch):
    monkeypatch.setattr(sut._model.tokens.tokenizer, "chat_template", None)
    with pytest.raises(Exception, match="no chat template") as raised:
        ask(ChatPrompt([ChatMessage("user", "Hello")]))
    assert type(raised.value).__name__ == "CallError"


def test_batch_is_halved_when_memory_ends(sut, ask, monkeypatch, caplog):
    import torch

    forward = sut._model.forward
    read = forward.read

    def with_little_memory(ids, mask, **more):
        if ids.shape[0] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return read(ids, mask, **more)

    prompts = [ContinuationPrompt(context, [" a long way off"]) for context in CONTEXTS]
    expected = [response.completions[0].logprob for response in ask(*prompts)]
    monkeypatch.setattr(sut._model._batches, "most", 4096)
    monkeypatch.setattr(forward, "read", with_little_memory)
    found = [response.completions[0].logprob for response in ask(*prompts)]
    assert found == pytest.approx(expected, abs=1e-4)
    assert sum("Out of memory" in record.message for record in caplog.records) == 1


def test_second_run_makes_no_call_and_loads_nothing(smollm2, tmp_path):
    command = [sys.executable, "-m", "modelgauge", "run-test", "--test", "demo_07", "--sut", smollm2]
    command += ["--data-dir", str(tmp_path / "run_data")]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path) for _ in range(2)
    )
    score = re.search(r"accuracy\s+(\S+)", first.stdout + first.stderr)
    assert score
    assert score[0] in second.stdout + second.stderr
    assert "Loading" in first.stderr
    assert "SUT 0 made, 6 cached" in second.stdout + second.stderr
    assert "Loading" not in second.stderr

"""`run-sut --continuation`: scores of texts behind a prompt."""

import json


def test_continuations_are_scored_behind_prompt_or_chat(run, here):
    scores = [
        {
            "prompt": "2 + 2 =",
            "continuation": text,
            "logprob": logprob,
            "is_greedy": logprob > -1,
            "num_tokens": 1,
        }
        for text, logprob in [(" 4", -0.1), (" 5", -7.0)]
    ]
    (here / "scores.jsonl").write_text(
        "".join(json.dumps(score) + "\n" for score in scores), encoding="utf-8"
    )
    asked = ("run-sut", "--sut", "replay/scores.jsonl", "--continuation", " 5", "--continuation", " 4")
    ended = run(*asked, "--prompt", "2 + 2 =", "--json")
    assert ended.code == 0, ended.err
    completions = ended.json["response"]["completions"]
    assert [(each["text"], each["logprob"]) for each in completions] == [(" 5", -7.0), (" 4", -0.1)]
    assert ended.json["prompt"]["continuations"] == [" 5", " 4"]
    (here / "chat.json").write_text('[{"role": "user", "content": "2 + 2?"}]', encoding="utf-8")
    refused = run(*asked, "--chat", "chat.json")
    assert "the context is a chat" in refused.err


def test_continuation_without_context_is_refused(run):
    ended = run("run-sut", "--sut", "echo", "--continuation", "yes")
    assert ended.code == 2
    assert "Give either --prompt TEXT or --chat FILE." in ended.err


def test_sut_that_scores_nothing_names_the_prompt_it_does_not_take(run):
    ended = run("run-sut", "--sut", "echo", "--prompt", "Is it?", "--continuation", "yes")
    assert ended.code == 2
    assert "'echo' takes no ContinuationPrompt" in ended.err


def test_cache_explains_call_of_continuations(run, here):
    (here / "scores.jsonl").write_text(
        '{"prompt": "a", "continuation": "b", "logprob": -1, "is_greedy": true, "num_tokens": 1}\n',
        encoding="utf-8",
    )
    asked = ("cache", "explain", "--sut", "replay/scores.jsonl", "--prompt", "a", "--json")
    one, other = (run(*asked, "--continuation", text).json["key"] for text in ("b", "c"))
    assert len({one, other, run(*asked).json["key"]}) == 3

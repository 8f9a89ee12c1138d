"""Replayed responses: any JSONL or CSV that people have."""

import asyncio
import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import ChatMessage, ContinuationPrompt, PromptResponseTest, TestItem, run_test
from modelgauge.errors import IncompatibleError, InputFileError, MissingAnswerError
from modelgauge.suts.replay import ReplaySUT


def made(folder: Path, name: str, content: str | bytes, **options: str) -> ReplaySUT:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return ReplaySUT("replay", str(path), **options)


def ask(sut: ReplaySUT, prompt: str) -> str:
    return asyncio.run(sut.evaluate(prompt))


def as_csv(rows: list[tuple[str, str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("prompt", "response"), *rows])
    return text.getvalue()


def as_jsonl(rows: list[tuple[str, str]]) -> str:
    return "".join(json.dumps({"prompt": prompt, "response": response}) + "\n" for prompt, response in rows)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.text(st.characters(exclude_categories=["Cs"])),
        min_size=1,
        max_size=3,
    )
)
@pytest.mark.parametrize(("name", "write"), [("a.csv", as_csv), ("a.jsonl", as_jsonl)])
def test_any_texts_come_back(tmp_path_factory, name, write, answers):
    folder = tmp_path_factory.mktemp("replay")
    sut = made(folder, name, write(list(answers.items())))
    assert {prompt: ask(sut, prompt) for prompt in answers} == answers


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"prompt": "p", "response": "r"}'),
        (
            "a.jsonl",
            '\ufeff{"prompt": "p", "response": "r"}\r\n\r\n{"prompt": "q", "response": "s", "more": 1}\r\n',
        ),
        ("a.json", '\n\n{"response": "r", "prompt": "p"}\n'),
        ("a.csv", "prompt,response\np,r\n"),
        ("a.CSV", "\ufeffprompt,response\r\np,r\r\n"),
        ("a.csv", ",prompt,response\n7,p,r\n"),
        ("a.jsonl", '{"prompt": "p", "response": "r", "score": NaN}'),
        ("a.csv", 'id,response,prompt\n1,r,p\n\n2,"s\nt","q, ""x"""\n'),
        ("a.csv", "prompt,response\np,r"),
        ("a.csv", "prompt,response\np,r\np,r\n"),
    ],
)
def test_files_as_people_have_them(tmp_path, name, content):
    assert ask(made(tmp_path, name, content), "p") == "r"


def test_cells_of_several_lines(tmp_path):
    sut = made(tmp_path, "a.csv", 'prompt,response\n"a\nb","c\r\nd"\n')
    assert ask(sut, "a\nb") == "c\r\nd"


def test_a_huge_cell(tmp_path):
    huge = "x" * 300_000
    limit = csv.field_size_limit()
    sut = made(tmp_path, "a.csv", as_csv([("p", huge)]))
    assert ask(sut, "p") == huge
    assert csv.field_size_limit() == limit


def test_other_columns(tmp_path):
    sut = made(tmp_path, "a.csv", "question,answer\np,r\n", prompt="question", response="answer")
    assert ask(sut, "p") == "r"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", "", "contains no responses"),
        ("a.csv", "", "is empty"),
        ("a.csv", "\n\n", "is empty"),
        ("a.csv", "prompt,response\n", "contains no responses"),
        ("a.csv", "prompt,answer\np,r\n", "line 2: no column 'response'; there are: prompt, answer"),
        ("a.jsonl", '{"prompt": "p"}', "line 1: no column 'response'; there are: prompt"),
        ("a.jsonl", '{"prompt": "p", "response": "r"}\n{"prompt": ', "line 2: this is not JSON"),
        ("a.jsonl", '["prompt"]', "line 1: this is of type list; each row must be one object"),
        ("a.jsonl", "[" * 100_000, "line 1: this is not JSON"),
        ("a.jsonl", '{"prompt": "p", "response": null}', "line 1: 'response' is None, not a text"),
        ("a.jsonl", '{"prompt": 5, "response": "r"}', "line 1: 'prompt' is an int, not a text"),
        ("a.jsonl", '{"prompt": "p", "response": "\\ud800"}', "line 1: 'response' is not a text that UTF-8"),
        ("a.csv", "prompt,response\np,r\np\n", "line 3 has 1 cell, and the first line names 2 columns"),
        (
            "a.csv",
            "prompt,response\np,r,s\n",
            "line 2 has 3 cells, and the first line names 2 columns",
        ),
        ("a.csv", "prompt,prompt\np,r\n", "the column 'prompt' is there twice"),
        ("a.csv", 'prompt,response\np,"r\n', 'line 2: a cell begins with a quote (") that is never closed'),
        ("a.csv", 'prompt,response\np,"r"s\n', "line 2: text follows a closing quote"),
        ("a.jsonl", b'{"prompt": "p", "response": "r"}\n\xff\n', "line 2: this is not utf-8"),
        ("a.csv", "prompt,response\np,r\n".encode("utf-16"), "line 1: this is not utf-8"),
    ],
)
def test_damaged_files_are_explained(tmp_path, name, content, said):
    with pytest.raises(InputFileError) as caught:
        made(tmp_path, name, content)
    assert said in caught.value.problem
    assert name in caught.value.problem
    assert caught.value.fix


@pytest.mark.parametrize("name", ["missing.jsonl", ""])
def test_a_file_that_is_not_there_is_explained(tmp_path, name):
    with pytest.raises(InputFileError, match="cannot be read"):
        ReplaySUT("replay", str(tmp_path / name))


def test_the_content_is_the_identity_and_the_path_is_not(tmp_path):
    one = made(tmp_path, "one.jsonl", as_jsonl([("p", "r")]))
    same = made(tmp_path, "two.jsonl", as_jsonl([("p", "r")]))
    other = made(tmp_path, "one.jsonl", as_jsonl([("p", "s")]))
    assert one.identity() == same.identity() != other.identity()
    assert one.initialization.arguments["model"].endswith("one.jsonl")


class Asking(PromptResponseTest):
    def make_test_items(self, dependencies):
        return [TestItem(prompt) for prompt in ("known", "unknown", "ambiguous")]

    def measure_quality(self, item):
        return {"right": item.text == "yes"}


def test_unknown_and_ambiguous_prompts_are_errors_of_their_items(tmp_path):
    rows = [("known", "yes"), ("known", "yes"), ("ambiguous", "yes"), ("ambiguous", "no"), ("unused", "x")]
    sut = made(tmp_path, "a.jsonl", as_jsonl(rows))
    record = run_test(Asking("asking"), sut, data_dir=tmp_path)
    assert [item.measurements for item in record.test_item_records] == [{"right": 1.0}]
    unknown, ambiguous = record.test_item_exceptions
    assert unknown.error_type == ambiguous.error_type == MissingAnswerError.__name__
    assert "no response for the prompt: 'unknown'" in unknown.message
    assert "different responses for one prompt: 'ambiguous'" in ambiguous.message
    assert record.counts.sut_errors == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "prompt,response,blocked\nknown,yes,\nbad,part,TRUE\nworse,,1\n"),
        (
            "a.jsonl",
            (
                '{"prompt": "known", "response": "yes"}\n{"prompt": "bad", "response": "part", "blocked": true}\n'
                '{"prompt": "worse", "response": null, "blocked": true}'
            ),
        ),
    ],
)
def test_column_says_which_responses_were_blocked(tmp_path, name, content):
    sut = made(tmp_path, name, content)
    found = {prompt: sut.translate_response(prompt, ask(sut, prompt)) for prompt in ("known", "bad", "worse")}
    assert [(response.completions[0].text, response.is_blocked) for response in found.values()] == [
        ("yes", False),
        ("part", True),
        ("", True),
    ]


def test_column_of_blocked_responses_can_have_another_name(tmp_path):
    content = "prompt,response,filtered,blocked\np,r,yes,by whom?\n"
    sut = made(tmp_path, "a.csv", content, blocked="filtered")
    assert sut.translate_response("p", "r").is_blocked
    with pytest.raises(InputFileError, match="line 2: 'blocked' is 'by whom\\?', not true or false"):
        made(tmp_path, "a.csv", content)
    with pytest.raises(InputFileError, match="no column 'filterd'"):
        made(tmp_path, "a.csv", content, blocked="filterd")


def test_prompt_that_was_blocked_once_only_is_ambiguous(tmp_path):
    sut = made(tmp_path, "a.csv", "prompt,response,blocked\np,r,\np,r,yes\n")
    with pytest.raises(MissingAnswerError):
        ask(sut, "p")


# --- log-likelihoods ------------------------------------------------------------------------------

SCORES = (
    '{"prompt": "2 + 2 =", "continuation": " 4", "logprob": -0.1, "is_greedy": true, "num_tokens": 1}\n'
    '{"prompt": "2 + 2 =", "continuation": " 5", "logprob": -7, "is_greedy": false, "num_tokens": 1}\n'
)


def scores_of(sut, context, *continuations):
    request = sut.translate_continuation_prompt(ContinuationPrompt(context, continuations))
    response = sut.translate_response(request, asyncio.run(sut.evaluate(request)))
    return [(each.text, each.logprob, each.is_greedy, each.num_tokens) for each in response.completions]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", SCORES),
        (
            "a.csv",
            "prompt,continuation,logprob,is_greedy,num_tokens\n2 + 2 =, 4,-0.1,true,1\n2 + 2 =, 5,-7,no,1\n",
        ),
    ],
)
def test_recorded_scores_come_back_in_the_order_of_the_prompt(tmp_path, name, content):
    sut = made(tmp_path, name, content)
    assert scores_of(sut, "2 + 2 =", " 5", " 4") == [(" 5", -7.0, False, 1), (" 4", -0.1, True, 1)]


def test_score_that_is_not_recorded_has_no_answer(tmp_path):
    sut = made(tmp_path, "a.jsonl", SCORES)
    with pytest.raises(MissingAnswerError, match=r"no log-likelihood of ' 6' behind the prompt|\" 6\""):
        scores_of(sut, "2 + 2 =", " 4", " 6")


def test_scores_behind_a_chat_are_refused(tmp_path):
    sut = made(tmp_path, "a.jsonl", SCORES)
    with pytest.raises(IncompatibleError, match="the context is a chat"):
        scores_of(sut, [ChatMessage("user", "2 + 2?")], "4")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"prompt": "p", "continuation": "c", "logprob": -1, "is_greedy": true}',
            "line 1: no column 'num_tokens'",
        ),
        (
            '{"prompt": "p", "continuation": "c", "logprob": "low", "is_greedy": true, "num_tokens": 1}',
            "line 1: 'logprob' is",
        ),
        (
            '{"prompt": "p", "continuation": 3, "logprob": -1, "is_greedy": true, "num_tokens": 1}',
            "line 1: 'text' is",
        ),
        (
            SCORES.splitlines()[0] + "\n" + SCORES.splitlines()[0].replace("-0.1", "-0.2"),
            "line 2: .* another score",
        ),
    ],
)
def test_damaged_scores_name_the_line(tmp_path, line, message):
    with pytest.raises(InputFileError, match=message):
        made(tmp_path, "a.jsonl", line)

"""Splitting reasoning off completions."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.text.answers import split_reasoning

PLAIN = st.text().filter(lambda text: "<" not in text and "`" not in text)


@pytest.mark.parametrize(
    ("raw", "text", "reasoning"),
    [
        pytest.param("<think>A</think>B", "B", "A", id="a block"),
        pytest.param("A</think>B", "B", "A", id="opened by the template"),
        pytest.param("  \n<think>\nA\n</think>\n\nB\n", "B", "A", id="whitespace around both is stripped"),
        pytest.param("<think>\n\n</think>\n\nB", "B", "", id="an empty block is not the lack of one"),
        pytest.param("<think>A</think>", "", "A", id="an empty answer"),
        pytest.param("<THINK>A</Think>B", "B", "A", id="any case"),
        pytest.param("<thinking>A</thinking>B", "B", "A", id="thinking"),
        pytest.param("<thinking>A</think>B", "B", "A", id="names need not match"),
        pytest.param("<thought>A</thought>B", "B", "A", id="thought"),
        pytest.param("<think>A</think>\n<think>C</think>B", "B", "A\n\nC", id="adjacent blocks are one"),
        pytest.param("<think></think><think>C</think>B", "B", "C", id="an empty block adds no blank line"),
        pytest.param("A</think><think>C</think>B", "B", "A\n\nC", id="template, then a block"),
        pytest.param(
            "<think>A <think> B</think>C", "C", "A <think> B", id="an opening tag inside is a mention"
        ),
        pytest.param("<think>A</think>Use </think>.", "Use </think>.", "A", id="closing tag in the answer"),
        pytest.param(
            "A</think>Use </think>.", "Use </think>.", "A", id="closing tag in the answer, template"
        ),
        pytest.param(
            "<think>A</think>B<think>C</think>D", "B<think>C</think>D", "A", id="a block in the answer"
        ),
        pytest.param(
            "<think>Use `</think>`?</think>B", "B", "Use `</think>`?", id="a mention in the reasoning"
        ),
        pytest.param(
            "<think>```x```</think>```B```", "```B```", "```x```", id="between code blocks, no mention"
        ),
        pytest.param("<think>B < A</think>A > B", "A > B", "B < A", id="other angle brackets"),
    ],
)
def test_reasoning_is_split_from_the_answer(raw: str, text: str, reasoning: str) -> None:
    assert split_reasoning(raw) == (text, reasoning, False)


@pytest.mark.parametrize(
    ("raw", "reasoning"),
    [
        ("<think>A", "A"),
        ("<think>", ""),
        ("<think>A</thi", "A</thi"),
        ("<think>A</think> <think>B", "A\n\nB"),
        ("<think>the tag `</think>` ends", "the tag `</think>` ends"),
    ],
)
def test_reasoning_that_does_not_end_leaves_no_answer(raw: str, reasoning: str) -> None:
    assert split_reasoning(raw) == ("", reasoning, True)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "  B \n",
        "1 < 2",
        "Write <think>reasoning</think>answer.",
        "Write `</think>` at the end.",
        "`<think>` opens it.",
        "I was thinking. <thinker> </thinkers>",
        "Sure.\n<think>",
        "<b>bold</b>",
    ],
)
def test_a_text_without_leading_reasoning_is_returned_to_the_byte(raw: str) -> None:
    assert split_reasoning(raw) == (raw, None, False)


@given(reasoning=PLAIN, answer=PLAIN, opened=st.booleans())
def test_what_is_joined_is_split_again(reasoning: str, answer: str, opened: bool) -> None:
    raw = ("<think>" if opened else "") + reasoning + "</think>" + answer
    assert split_reasoning(raw) == (answer.strip(), reasoning.strip(), False)


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "`", "<", "a", " ", "\n", "</thinking>"])).map("".join)
)
def test_the_parts_come_from_the_text_and_never_contradict_each_other(raw: str) -> None:
    text, reasoning, truncated = split_reasoning(raw)
    assert text in raw
    if reasoning is None:
        assert text == raw
        assert not truncated
    if truncated:
        assert text == ""


@pytest.mark.parametrize(
    "piece", ["<think></think>", "<think>", "</think>", "<", "`</think>`", "<think", " <think>a"]
)
def test_time_is_linear_in_the_length(piece: str) -> None:
    """Quadratic work on a megabyte would take minutes; the bound only has to tell these apart."""
    raw = piece * (1_000_000 // len(piece))
    start = time.process_time()
    split_reasoning(raw)
    assert time.process_time() - start < 10

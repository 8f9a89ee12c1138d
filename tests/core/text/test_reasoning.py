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
        pytest.param("<reasoning>A</reasoning><answer>B</answer>", "<answer>B</answer>", "A", id="reasoning"),
        pytest.param("[THINK]A[/THINK]B", "B", "A", id="Magistral"),
        pytest.param("◁think▷A◁/think▷B", "B", "A", id="Kimi"),
        pytest.param("<seed:think>A</seed:think>B", "B", "A", id="Seed"),
        pytest.param(
            "<|START_THINKING|>A<|END_THINKING|><|START_RESPONSE|>B<|END_RESPONSE|>", "B", "A", id="Cohere"
        ),
        pytest.param("<|inner_prefix|>A<|inner_suffix|>B", "B", "A", id="Apertus"),
        pytest.param("[unused16]A[unused17]B", "B", "A", id="Pangu"),
        pytest.param("<|START_THINKING|>A<|END_THINKING|>B", "B", "A", id="Cohere, answer without marks"),
        pytest.param("<|START_RESPONSE|>B<|END_RESPONSE|>", "B", "", id="Cohere, without thoughts"),
        pytest.param("A<|END_THINKING|><|START_RESPONSE|>B", "B", "A", id="Cohere, opened by the template"),
        pytest.param("<|channel>thought\nA<channel|>B<turn|>", "B", "A", id="Gemma"),
        pytest.param("<|channel>thought\n<channel|>B", "B", "", id="Gemma, without thoughts"),
        pytest.param(
            "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>",
            "B",
            "A",
            id="gpt-oss",
        ),
        pytest.param(
            "<|start|>assistant<|channel|>analysis<|message|>A<|start|>assistant<|channel|>final<|message|>B",
            "B",
            "A",
            id="gpt-oss, without ends",
        ),
        pytest.param(
            "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary to=functions.f "
            "<|constrain|>json<|message|>{}<|end|>\n<|start|>assistant<|channel|>final <|constrain|>JSON<|message|>[1]",
            "[1]",
            "A\n\n{}",
            id="gpt-oss, all channels",
        ),
        pytest.param(
            "A<|end|><|start|>assistant<|channel|>final<|message|>B",
            "B",
            "A",
            id="gpt-oss, opened by the template",
        ),
        pytest.param("<|channel|>final<|message|>B<|return|>", "B", "", id="gpt-oss, without thoughts"),
        pytest.param(
            "analysisThe user asks.assistantfinalB", "B", "The user asks.", id="gpt-oss, marks left out"
        ),
        pytest.param(
            "[THINK]A </think> [THINK] B[/THINK]C", "C", "A </think> [THINK] B", id="another family's mark"
        ),
        pytest.param("[THINK]A `[/THINK]`[/THINK]B", "B", "A `[/THINK]`", id="Magistral, a mention"),
        pytest.param("A [THINK] B</think>C", "C", "A [THINK] B", id="another family's mark, template"),
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
        ("[THINK]A</think>B", "A</think>B"),
        ("◁think▷A", "A"),
        ("<seed:think>A", "A"),
        ("<|START_THINKING|>A<|END_OF_TURN_TOKEN|>", "A"),
        ("<|channel>thought\nA", "A"),
        ("<|channel|>analysis<|message|>A<|end|>", "A"),
        (
            "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary<|message|>B",
            "A\n\nB",
        ),
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
        "Magistral writes [THINK] and [/THINK].",
        "Kimi writes ◁think▷ and ◁/think▷, Seed <seed:think> and </seed:think>.",
        "Write `[/THINK]` at the end.",
        "<answer>B</answer><reasoning>A</reasoning>",
        "Harmony begins with <|channel|>analysis<|message|>, and the answer with <|channel|>final<|message|>.",
        "Paris.<|end|>",
        "analysis of the data: assistantfinal is one word",
        "analysisWithout an end",
        "The words analysisA and assistantfinal",
        "[think] of [1]",
    ],
)
def test_a_text_without_leading_reasoning_is_returned_to_the_byte(raw: str) -> None:
    assert split_reasoning(raw) == (raw, None, False)


def test_named_marks_replace_known_ones() -> None:
    marks = ("(plan)", "(/plan)")
    assert split_reasoning("(plan)A(/plan)B", marks) == ("B", "A", False)
    assert split_reasoning("A(/plan)<think>B</think>", marks) == ("<think>B</think>", "A", False)
    assert split_reasoning("(plan)A", marks) == ("", "A", True)
    assert split_reasoning("<think>A</think>B", marks) == ("<think>A</think>B", None, False)


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
    "piece",
    [
        *(
            "<think></think>",
            "<think>",
            "</think>",
            "<",
            "`</think>`",
            "<think",
            " <think>a",
            "[THINK]",
            "`◁/think▷`",
        ),
        *(
            "<|end|>",
            "<|start|>assistant",
            "<|channel|>",
            "<|channel|>analysis",
            "<|channel|>final<|message|>",
            " ",
        ),
        *("analysisa", "assistantfinal", "<|START_THINKING|><|END_THINKING|>", "[/THINK]<think>"),
    ],
)
def test_time_is_linear_in_the_length(piece: str) -> None:
    """Quadratic work on a megabyte would take minutes; the bound only has to tell these apart."""
    raw = piece * (1_000_000 // len(piece))
    start = time.process_time()
    split_reasoning(raw)
    assert time.process_time() - start < 10

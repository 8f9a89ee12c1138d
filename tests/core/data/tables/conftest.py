"""Runs to make tables of."""

import pytest

from modelgauge import (
    ChatPrompt,
    PromptWithContext,
    SUTCompletion,
    SUTResponse,
    TestItem,
    ToolCall,
    Usage,
    run_test,
)
from modelgauge.testing import FakeAnnotator, FakeSUT, FakeTest


def _answer(prompt):
    text = prompt.messages[-1].text if isinstance(prompt, ChatPrompt) else prompt.text
    if text == "fails":
        raise ValueError("there is\nno answer")
    first = SUTCompletion(
        f"=to {text}",
        reasoning="hm",
        metadata={"trace": "a word of its own"},
        tool_calls=[ToolCall(name="find")],
    )
    return SUTResponse([first, SUTCompletion("second")], Usage(input_tokens=3, cost_usd=0.5))


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A run of four items: one of two prompts, one with a chat, one that fails, one without context."""
    items = [
        TestItem(["same", "same"], context={"target": "ü"}, id="two"),
        TestItem([PromptWithContext(ChatPrompt([{"role": "user", "text": "hi"}]), "src", "yes")], id="chat"),
        TestItem("fails", context=[1, None], id="fails"),
        TestItem("plain", id="-5"),
    ]
    judge = FakeAnnotator("judge", lambda prompt, completion: {"value": 0.25, "reason": completion.text})
    length = FakeAnnotator("length", lambda prompt, completion: len(completion.text))
    test = FakeTest(
        "made",
        items,
        lambda item: {"good": item.test_item.id != "two", "size": -1.5},
        {"judge": judge, "length": length},
    )
    return run_test(test, FakeSUT("sut", _answer), data_dir=tmp_path_factory.mktemp("data"), repeats=2)

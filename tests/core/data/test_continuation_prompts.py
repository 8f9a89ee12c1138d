"""`ContinuationPrompt`: JSON that comes back, ids of its items, and values that it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import ChatMessage, ContinuationPrompt, PromptWithContext, TestItem, TextPrompt
from modelgauge.data.items import derived_id
from modelgauge.data.prompts import parts_in, prompt_text
from modelgauge.errors import InvalidDataError

texts = st.text(st.characters(exclude_categories=["Cs"]))
chats = st.lists(st.builds(ChatMessage, st.sampled_from(["user", "assistant", "system"]), texts), min_size=1)
prompts = st.builds(
    ContinuationPrompt,
    st.one_of(texts, chats),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1),
)


@given(prompts)
def test_json_gives_the_prompt_back(prompt):
    held = PromptWithContext(prompt)
    assert PromptWithContext.model_validate_json(held.model_dump_json()) == held
    assert parts_in(held.model_dump(mode="json")["prompt"]) == prompt.parts


@given(prompts, prompts)
def test_items_of_different_prompts_have_different_ids(one, other):
    same = one.replaced(options=other.options) == other
    assert (derived_id(TestItem([one])) == derived_id(TestItem([other]))) == same


def test_ids_differ_from_those_of_a_text():
    assert derived_id(TestItem(["a"])) != derived_id(TestItem([ContinuationPrompt("a", ["b"])]))


def test_texts_are_read_and_changed_in_order():
    prompt = ContinuationPrompt([ChatMessage("user", "Who?")], ["me", "you"])
    assert prompt_text(prompt) == "[user] Who?\n[continuation] me\n[continuation] you"
    assert prompt.with_texts(str.upper).parts == (
        ("user", "WHO?"),
        ("continuation", "ME"),
        ("continuation", "YOU"),
    )
    assert prompt_text(ContinuationPrompt("", ["a"])) == "[context] \n[continuation] a"
    assert TextPrompt("a").with_texts(str.upper) == TextPrompt("A")


@pytest.mark.parametrize(
    ("context", "continuations", "message"),
    [
        ("a", "b", "continuations is one text, and must be a list"),
        ("a", [], "at least 1 item"),
        ("a", [""], "at least 1 character"),
        ([], ["b"], "at least 1 item"),
        (3, ["b"], "valid string"),
    ],
)
def test_prompt_without_texts_is_refused(context, continuations, message):
    with pytest.raises(InvalidDataError, match=message):
        ContinuationPrompt(context, continuations)

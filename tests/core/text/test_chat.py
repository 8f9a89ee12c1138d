"""Chats as text, as role/content objects and from JSON."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.data.prompts import ChatMessage, ChatPrompt, ChatRole, SUTOptions
from modelgauge.errors import InputFileError, InvalidDataError
from modelgauge.text.chat import chat_from_json, format_chat, load_chat, to_role_content

SYSTEM = ChatMessage(role=ChatRole.system, text="Be brief.")
QUESTION = ChatMessage(role=ChatRole.user, text="Hello")
REPLY = ChatMessage(role=ChatRole.assistant, text="Hi!")


def test_a_chat_as_text_keeps_system_messages_and_ends_with_the_assistant() -> None:
    chat = ChatPrompt(messages=[SYSTEM, QUESTION, REPLY, QUESTION])
    expected = "System: Be brief.\n\nUser: Hello\n\nAssistant: Hi!\n\nUser: Hello\n\nAssistant:"
    assert format_chat(chat) == expected
    assert format_chat(chat.messages) == expected


def test_labels_and_separator_are_the_callers() -> None:
    text = format_chat(
        [SYSTEM, QUESTION], user_label="Q", assistant_label="A", system_label="Rules", separator="\n"
    )
    assert text == "Rules: Be brief.\nQ: Hello\nA:"


def test_a_last_message_of_the_assistant_is_continued() -> None:
    assert format_chat([QUESTION, REPLY]) == "User: Hello\n\nAssistant: Hi!"


def test_role_content() -> None:
    expected = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    objects = to_role_content(ChatPrompt(messages=[SYSTEM, QUESTION]))
    assert objects == expected
    assert all(type(value) is str for message in objects for value in message.values())


def test_an_empty_chat_is_refused() -> None:
    for convert in (format_chat, to_role_content):
        with pytest.raises(InvalidDataError, match="at least one ChatMessage"):
            convert([])


@pytest.mark.parametrize("key", ["content", "text"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_json_with_either_key_with_or_without_an_object_around(key: str, wrapped: bool) -> None:
    messages = [{"role": "system", key: "Be brief."}, {"role": "user", key: "Hello"}]
    chat = chat_from_json(json.dumps({"messages": messages} if wrapped else messages))
    assert chat == ChatPrompt(messages=[SYSTEM, QUESTION])


@given(
    st.lists(st.builds(ChatMessage, role=st.sampled_from(ChatRole), text=st.text()), min_size=1, max_size=4)
)
def test_what_is_written_is_read_back(messages: list[ChatMessage]) -> None:
    chat = ChatPrompt(messages=messages, options=SUTOptions(max_tokens=5))
    assert chat_from_json(chat.model_dump_json()) == chat
    assert chat_from_json(json.dumps(to_role_content(messages))).messages == chat.messages


def test_unknown_fields_are_skipped_with_one_warning() -> None:
    text = '{"model": "m", "messages": [{"role": "user", "content": "Hello", "name": "Ann"}]}'
    with pytest.warns(UserWarning, match=r"chat\.json: skipped .* 'model', 'name'") as caught:
        assert chat_from_json(text, source="chat.json").messages == (QUESTION,)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1, column 1"),
        ('[\n{"role" "user"}]', "line 2, column 9"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("1" * 5_000, "cannot be read as JSON"),
        ("null", "neither a list"),
        ('{"messages": {}}', "neither a list"),
        ('{"messages": [], "options": {"temperature": "hot"}}', "options: .*temperature"),
        ("[]", "no messages"),
        ('["Hello"]', r"messages\[0\] is not an object with"),
        (
            '[{"role": "user", "text": "x"}, {"content": "y"}]',
            r"messages\[1\]: .*role: Input should be 'user'",
        ),
        ('[{"role": "developer", "content": "y"}]', r"messages\[0\]: .*role: Input should be .*'system'"),
        ('[{"role": ["user"], "content": "y"}]', "role: Input should be"),
        ('[{"role": "user"}]', "either 'content' or 'text'"),
        ('[{"role": "user", "content": "x", "text": "y"}]', "either 'content' or 'text'"),
        ('[{"role": "user", "content": null}]', "text: Input should be a valid string, not of type NoneType"),
        ('[{"role": "user", "content": "\\ud800"}]', "surrogate"),
    ],
)
def test_what_is_not_a_chat_is_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(InputFileError, match=problem) as caught:
        chat_from_json(text, source="chat.json")
    assert str(caught.value).startswith("chat.json")


_VALUES = st.none() | st.booleans() | st.integers() | st.sampled_from(["user", "system", "hello"])
_ENTRIES = st.dictionaries(st.sampled_from(["role", "text", "content"]), _VALUES)
_LISTS = st.lists(_ENTRIES | _VALUES, max_size=3)


@given(
    _VALUES | _LISTS | st.fixed_dictionaries({"messages": _LISTS | _VALUES}, optional={"options": _VALUES})
)
def test_any_json_is_a_chat_or_an_input_error(data: object) -> None:
    with contextlib.suppress(InputFileError):
        assert chat_from_json(json.dumps(data)).messages


def test_load_chat(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(b'\xef\xbb\xbf[{"role": "user", "content": "Gr\xc3\xbc\xc3\x9fe"}]')
    assert load_chat(path).messages[0].text == "Gr\u00fc\u00dfe"
    assert load_chat(str(path)) == load_chat(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"missing\.json"):
        load_chat(tmp_path / "missing.json")
    with pytest.raises(InputFileError, match="cannot be read"):
        load_chat(tmp_path)
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'[{"role": "user", "content": "Gr\xfc"}]')
    with pytest.raises(InputFileError, match=r"latin\.json is not UTF-8: byte 32 is 0xfc"):
        load_chat(latin)

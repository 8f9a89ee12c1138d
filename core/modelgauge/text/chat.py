"""Chats as one text, as the role/content objects of APIs, and from JSON.

How a model's own template marks its turns is the business of its SUT; `format_chat` is for models that take
text only.
"""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modelgauge.data.prompts import ChatMessage, ChatPrompt, ChatRole, SUTOptions
from modelgauge.errors import InputFileError, InvalidDataError
from modelgauge.files.regular import bytes_of_file

_EXAMPLE = '[{"role": "user", "content": "Hello"}]'


def format_chat(
    chat: ChatPrompt | Sequence[ChatMessage],
    *,
    user_label: str = "User",
    assistant_label: str = "Assistant",
    system_label: str = "System",
    separator: str = "\n\n",
) -> str:
    r"""Write a chat as one text that a model without a chat interface continues.

    Each message is `Label: text`; system messages keep a label of their own. The text ends with the
    assistant's label (no space after it: most tokenizers put the space on the next word), or, where the last
    message is the assistant's already, with that message, which the model then continues. Labels inside a
    message's text are not escaped.

    Args:
        chat: a chat prompt, or its messages, oldest first.
        user_label: the text before the user's messages.
        assistant_label: the text before the assistant's messages, and at the end.
        system_label: the text before system messages.
        separator: the text between messages.

    Raises:
        InvalidDataError: there is no message.
    """
    labels = {ChatRole.user: user_label, ChatRole.assistant: assistant_label, ChatRole.system: system_label}
    messages = _messages(chat)
    turns = [f"{labels[message.role]}: {message.text}" for message in messages]
    if messages[-1].role is not ChatRole.assistant:
        turns.append(f"{assistant_label}:")
    return separator.join(turns)


def to_role_content(chat: ChatPrompt | Sequence[ChatMessage]) -> list[dict[str, str]]:
    """Return the messages as the `{"role": …, "content": …}` objects that chat APIs take. Roles keep their names.

    Args:
        chat: a chat prompt, or its messages, oldest first.

    Raises:
        InvalidDataError: there is no message.
    """
    return [{"role": message.role.value, "content": message.text} for message in _messages(chat)]


def _messages(chat: ChatPrompt | Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    messages = chat.messages if isinstance(chat, ChatPrompt) else chat
    if not messages:
        raise InvalidDataError("The chat has no messages.", fix="Give at least one ChatMessage.")
    return messages


def load_chat(path: str | Path) -> ChatPrompt:
    """Read a chat from a UTF-8 JSON file; see `chat_from_json`.

    Raises:
        InputFileError: the file cannot be read, or is not a chat.
    """
    try:
        text = bytes_of_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(
            f"{path} is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}.",
            fix="Save the file as UTF-8.",
        ) from error
    return chat_from_json(text, source=str(path))


def chat_from_json(text: str, *, source: str = "The chat") -> ChatPrompt:
    """Read a chat from JSON: a list of messages, or an object with `messages` and optional `options`.

    A message is `{"role": …, "content": …}`, as APIs write it, or `{"role": …, "text": …}`, as `ChatPrompt`
    does. Other fields are skipped, with one warning.

    Args:
        text: the JSON.
        source: where it comes from, for messages: a path, say.

    Raises:
        InputFileError: it is not JSON (the message names the line), or not a chat (the message names the
            index).
    """
    skipped: set[str] = set()
    data = _json(text, source)
    listed, options = _parts(data, source, skipped)
    messages = [
        _message(entry, f"{source}, messages[{index}]", skipped) for index, entry in enumerate(listed)
    ]
    if not messages:
        raise InputFileError(f"{source} has no messages.", fix=f"Write at least one: {_EXAMPLE}")
    if skipped:
        names = ", ".join(f"'{name}'" for name in sorted(skipped)[:5])
        warnings.warn(f"{source}: skipped fields that are not a chat's: {names}.", stacklevel=2)
    return ChatPrompt(messages=messages, options=options)


def _json(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f", line {error.lineno}, column {error.colno} is not JSON: {error.msg}."
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of more than 4,300 digits
        problem = f" cannot be read as JSON: {error}."
    raise InputFileError(f"{source}{problem}", fix=f"Write a list of messages: {_EXAMPLE}")


def _parts(data: Any, source: str, skipped: set[str]) -> tuple[list[Any], SUTOptions]:
    options = SUTOptions()
    messages = data
    if isinstance(data, dict):
        messages = data.get("messages")
        skipped.update(data.keys() - {"messages", "options"})
        try:
            options = SUTOptions.load(data.get("options", {}))
        except InvalidDataError as error:
            raise InputFileError(f"{source}, options: {error.problem}", fix=error.fix) from error
    if not isinstance(messages, list):
        raise InputFileError(
            f"{source} is neither a list of messages nor an object whose 'messages' is one.",
            fix=f"Write a list of messages: {_EXAMPLE}",
        )
    return messages, options


def _message(entry: Any, where: str, skipped: set[str]) -> ChatMessage:
    fields = [name for name in ("content", "text") if isinstance(entry, dict) and name in entry]
    if len(fields) != 1:
        problem = f"{where} is not an object with either 'content' or 'text'."
        raise InputFileError(problem, fix=f"Write messages so: {_EXAMPLE}")
    skipped.update(entry.keys() - {"role", *fields})
    try:
        return ChatMessage(role=entry.get("role"), text=entry[fields[0]])
    except InvalidDataError as error:
        raise InputFileError(f"{where}: {error.problem}", fix=error.fix) from None

"""A response that comes as server-sent events, put together as the one that comes at once.

Source: OpenAI API reference, "Streaming" (https://platform.openai.com/docs/api-reference/chat-streaming).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from modelgauge_openai.protocol import chat_logprobs

_JOINED = ("content", "refusal", "reasoning_content", "reasoning")
"""Fields of a message whose pieces make one text, or one list of parts."""

_KINDS = ("function", "custom")
_OF_A_PIECE = frozenset({"index", "delta", "message", "text", "logprobs", "finish_reason"})
_MISFITS = (ValueError, TypeError, AttributeError, RecursionError)
"""Exceptions from reading an event of another form."""

_LINE_END = re.compile(r"\r?\n")  # no other line ends: U+2028, U+0085 and the like are text


@dataclass(slots=True)
class Stream:
    """The part of a streamed response that has arrived.

    Attributes:
        response: the JSON so far.
        error: an error that the server sent among the events; None if there is none.
        is_whole: whether the server ended it, by `[DONE]` or by a finish reason of each choice.
        flaw: why an event could not be read; None if all could.
    """

    response: dict[str, Any] = field(default_factory=dict)
    error: Any = None
    is_whole: bool = False
    flaw: str | None = None


def read_stream(events: str) -> Stream:
    """Assemble a response from its events. Unreadable events are noted as a flaw, and skipped."""
    stream, choices = Stream(), dict[int, dict[str, Any]]()
    for data in _data_of(events):
        if data == "[DONE]":
            stream.is_whole = True
            continue
        try:
            _add_chunk(stream, choices, json.loads(data, strict=False))
        except _MISFITS as error:
            stream.flaw = stream.flaw or str(error)
    stream.response["choices"] = [choices[index] for index in sorted(choices)]
    ended = [choice.get("finish_reason") is not None for choice in choices.values()]
    stream.is_whole = stream.is_whole or (bool(ended) and all(ended))
    return stream


def _data_of(events: str) -> Iterator[str]:
    """Yield the data of each event: a line that is complete JSON, else all lines up to an empty one."""
    data: list[str] = []
    lines = _LINE_END.split(events) if "\n" in events else events.split("\r")
    for line in [*lines, ""]:
        name, _, value = line.partition(":")
        value = value.strip() if name.strip() == "data" else ""
        if value and not data and (value == "[DONE]" or _is_whole(value)):
            yield value
        elif value:
            data.append(value)
        elif data and not line.strip():
            yield "\n".join(data)
            data = []


def _add_chunk(stream: Stream, choices: dict[int, dict[str, Any]], chunk: Any) -> None:
    if not isinstance(chunk, dict):
        raise TypeError("an event is not a JSON object")
    stream.error = stream.error or chunk.get("error")
    for piece in chunk.pop("choices", None) or ():
        _add_choice(choices.setdefault(int(piece.get("index") or 0), {}), piece)
    stream.response.update({name: value for name, value in chunk.items() if value})


def _add_choice(choice: dict[str, Any], piece: dict[str, Any]) -> None:
    message = choice.setdefault("message", {})
    text = {"content": piece.get("text")}  # of a text completion
    for name, value in (piece.get("delta") or piece.get("message") or text).items():
        if name == "tool_calls":
            _add_tool_calls(message, value if isinstance(value, list) else [value])
        elif value is not None:
            joined = name in _JOINED or isinstance(value, list)
            message[name] = _joined(message[name], value) if joined and message.get(name) else value
    _add_logprobs(choice, chat_logprobs(piece.get("logprobs")))
    choice.update({name: value for name, value in piece.items() if name not in _OF_A_PIECE and value})
    if piece.get("finish_reason") not in (None, ""):
        choice["finish_reason"] = piece["finish_reason"]


def _joined(first: Any, second: Any) -> Any:
    """Join two pieces: texts into a text, others into a list of parts."""
    if isinstance(first, str) and isinstance(second, str):
        return first + second
    parts = [part if isinstance(part, list) else [part] for part in (first, second)]
    return parts[0] + parts[1]


def _add_logprobs(choice: dict[str, Any], logprobs: Any) -> None:
    tokens, further = (
        each.get("content") if isinstance(each, dict) else None for each in (choice.get("logprobs"), logprobs)
    )
    if isinstance(tokens, list) and isinstance(further, list):
        tokens += further
    elif logprobs and not (tokens and isinstance(logprobs, dict)):
        choice["logprobs"] = logprobs


def _add_tool_calls(message: dict[str, Any], pieces: list[Any]) -> None:
    """Add pieces to the calls that they continue. A piece that continues none begins a call."""
    for piece in filter(None, pieces):
        calls = message.setdefault("tool_calls", [])
        call = _continued(calls, piece) if _is_call(piece) else None
        if call is None:
            calls.append({"index": len(calls), **piece} if isinstance(piece, dict) else piece)
            continue
        for kind in _KINDS:
            for name, value in (piece.get(kind) or {}).items():
                part = call[kind] = call.get(kind) or {}
                if value and (name != "name" or part.get(name) != value):  # some servers repeat the name
                    texts = isinstance(part.get(name), str) and isinstance(value, str)
                    part[name] = part[name] + value if texts else value


def _is_call(piece: Any) -> bool:
    return isinstance(piece, dict) and all(isinstance(piece.get(kind) or {}, dict) for kind in _KINDS)


def _continued(calls: list[Any], piece: dict[str, Any]) -> dict[str, Any] | None:
    """Return the call that a piece continues: of its index, or any if it has none; of its id, else the last.

    A piece with a name and another id continues none, nor does one with a name that follows whole arguments: some
    servers give all calls one index, or none. A new id alone is no new call: some servers give each piece one.
    """
    index, its_id = piece.get("index"), piece.get("id")
    known: list[dict[str, Any]] = [
        call for call in calls if _is_call(call) and (index is None or call.get("index") == index)
    ]
    same = [call for call in known if its_id and call.get("id") == its_id]
    if same or not known:
        return same[-1] if same else None
    last = known[-1]
    name, arguments = _function(piece)
    if not name or ((name, arguments) == (_function(last)[0], "")):
        return last
    is_other = index is None or (its_id and last.get("id")) or _is_whole(_function(last)[1])
    return None if is_other else last


def _function(call: dict[str, Any]) -> tuple[Any, Any]:
    """Return the name and the arguments of a call, or of a piece of one."""
    part = call.get("function") or call.get("custom") or {}
    return part.get("name"), part.get("arguments") or part.get("input") or ""


def _is_whole(arguments: Any) -> bool:
    if not isinstance(arguments, str):
        return True
    try:
        json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return False
    return True

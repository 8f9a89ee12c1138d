"""A response that comes as server-sent events, put together as the one that comes at once.

Source: OpenAI API reference, "Streaming" (https://platform.openai.com/docs/api-reference/chat-streaming).
"""

import json
from collections.abc import Iterator
from typing import Any

_JOINED = ("content", "refusal", "reasoning_content", "reasoning")
"""Fields of a message whose pieces make one text, or one list of parts."""


def response_of(events: bytes) -> bytes:
    """The JSON of the response that came in pieces; that of an error where the server sent one.

    Raises:
        ValueError: an event is no JSON, or the stream ended before every completion did.
    """
    response: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in _chunks(events):
        if chunk.get("error"):
            return json.dumps({"error": chunk["error"]}).encode()
        for piece in chunk.pop("choices", None) or ():
            _add_choice(choices.setdefault(int(piece.get("index") or 0), {}), piece)
        response.update({name: value for name, value in chunk.items() if value is not None})
    if not choices or any(choice.get("finish_reason") is None for choice in choices.values()):
        raise ValueError("the stream ended too early")
    response["choices"] = [choices[index] for index in sorted(choices)]
    return json.dumps(response).encode()


def _chunks(events: bytes) -> Iterator[dict[str, Any]]:
    for line in events.decode("utf-8", "replace").splitlines():
        field, _, data = line.partition(":")
        data = data.strip()
        if field == "data" and data and data != "[DONE]":
            chunk = json.loads(data)
            if not isinstance(chunk, dict):
                raise ValueError("an event of the stream is not a JSON object")
            yield chunk


def _add_choice(choice: dict[str, Any], piece: dict[str, Any]) -> None:
    message = choice.setdefault("message", {})
    for name, value in (piece.get("delta") or piece.get("message") or {}).items():
        if name == "tool_calls":
            _add_tool_calls(message.setdefault("tool_calls", []), value or [])
        elif value is not None:
            joined = name in _JOINED or isinstance(value, list)
            message[name] = message[name] + value if joined and message.get(name) else value
    for token in (piece.get("logprobs") or {}).get("content") or ():
        logprobs = choice.get("logprobs") or choice.setdefault("logprobs", {"content": []})
        logprobs["content"].append(token)
    if piece.get("finish_reason") is not None:
        choice["finish_reason"] = piece["finish_reason"]


def _add_tool_calls(calls: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> None:
    for piece in pieces:
        index = piece.get("index", len(calls))
        call = next((call for call in calls if call.get("index") == index), None)
        if call is None:
            calls.append({"index": index, **piece})
            continue
        for kind in ("function", "custom"):
            for name, text in (piece.get(kind) or {}).items():
                part = call.setdefault(kind, {})
                part[name] = (part.get(name) or "") + (text or "")

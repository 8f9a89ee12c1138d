"""An aiohttp application that speaks the chat-completions protocol, goes wrong as planned, and counts.

What goes wrong when is in `chat_plan.py`; starting and stopping a server is in `chat_server.py`.
"""

import asyncio
import json
import math
import re
import socket
import struct
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from typing import Any

from aiohttp import web
from chat_plan import Fault, Plan, Wish, fault_of_call, wish_of

_MOST_BODY = 64 * 2**20


@dataclass(slots=True)
class PromptCount:
    """Calls of one prompt: all, those that were answered whole, and those after the first of these."""

    calls: int = 0
    completed: int = 0
    after_success: int = 0


@dataclass(slots=True)
class Stats:
    """What the server has seen since it was started or reset.

    Args:
        calls: chat requests.
        completed: those that were answered whole, with status 200.
        after_success: those whose prompt had been answered before.
        abandoned: those that the client gave up.
        in_flight: those under way.
        max_in_flight: the most at once.
        lists: how often the list of models was asked for.
        faults: how often which fault was played.
        prompts: by the text of the last message.
        recent: the last requests, with `time` (when they came, in seconds), `headers`, `query` and `body`.
    """

    calls: int = 0
    completed: int = 0
    after_success: int = 0
    abandoned: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    lists: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, PromptCount] = field(default_factory=dict)
    recent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=100))

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "recent": list(self.recent)})

    @classmethod
    def from_json(cls, text: str | bytes) -> "Stats":
        data = json.loads(text)
        data["prompts"] = {prompt: PromptCount(**count) for prompt, count in data["prompts"].items()}
        data["recent"] = deque(data["recent"], maxlen=100)
        return cls(**data)


class ChatApp:
    """The handlers of one server.

    Args:
        plan: what goes wrong.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.stats = Stats()
        self._slots: asyncio.Semaphore | None = None
        self._answered: deque[float] = deque()  # when, in the last minute

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_MOST_BODY)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self.chat),
                web.get("/v1/models", self.models),
                web.get("/admin/stats", self.get_stats),
                web.post("/admin/plan", self.set_plan),
                web.post("/admin/reset", self.reset),
            ]
        )
        return app

    async def get_stats(self, request: web.Request) -> web.Response:
        return web.Response(text=self.stats.to_json(), content_type="application/json")

    async def set_plan(self, request: web.Request) -> web.Response:
        self.plan, self._slots = Plan.from_json(await request.read()), None
        return web.Response()

    async def reset(self, request: web.Request) -> web.Response:
        self.stats = Stats(in_flight=self.stats.in_flight, max_in_flight=self.stats.in_flight)
        return web.Response()

    async def models(self, request: web.Request) -> web.Response:
        self.stats.lists += 1
        if self.plan.models is None:
            return _error(404, "Not found.", None)
        return _json(200, {"object": "list", "data": [{"id": name} for name in self.plan.models]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        stats = self.stats
        body = json.loads(await request.read())
        prompt = body["messages"][-1]["content"]
        count = stats.prompts.setdefault(prompt, PromptCount())
        call = count.calls
        count.calls += 1
        count.after_success += bool(count.completed)
        stats.calls += 1
        stats.after_success += bool(count.completed)
        stats.recent.append(
            {
                "time": time.monotonic(),
                "headers": dict(request.headers),
                "query": dict(request.query),
                "body": body,
            }
        )
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        try:
            return await self._answer(request, body, prompt, call, count)
        except asyncio.CancelledError:
            stats.abandoned += 1
            raise
        finally:
            stats.in_flight -= 1

    async def _answer(
        self, request: web.Request, body: dict[str, Any], prompt: str, call: int, count: PromptCount
    ) -> web.StreamResponse:
        wish = wish_of(prompt)
        work = self._work(self.plan.latency if wish.latency is None else wish.latency)
        await (work if self.plan.slots is None else asyncio.shield(asyncio.ensure_future(work)))
        refused = self._refused(request, body)
        if refused is not None:
            return refused
        fault = fault_of_call(wish.faults or self.plan.faults_of(prompt), call)
        if fault is not None:
            self.stats.faults[fault.kind] = self.stats.faults.get(fault.kind, 0) + 1
            return await play(fault, request, body, wish)
        whole = completion({name: body[name] for name in body if name not in self.plan.ignores}, wish)
        response = _events(whole) if body.get("stream") else _json(200, whole)
        await response.prepare(request)
        await response.write_eof()
        count.completed += 1
        self.stats.completed += 1
        return response

    async def _work(self, seconds: float) -> None:
        """Work on a call, once there is a slot for it."""
        if self.plan.slots is None:
            await asyncio.sleep(seconds)
            return
        if self._slots is None:
            self._slots = asyncio.Semaphore(self.plan.slots)
        async with self._slots:
            await asyncio.sleep(seconds)

    def _is_in_time(self, most: int) -> bool:
        now = time.monotonic()
        while self._answered and self._answered[0] < now - 60:
            self._answered.popleft()
        is_in_time = len(self._answered) < most
        if is_in_time:
            self._answered.append(now)
        return is_in_time

    def _refused(self, request: web.Request, body: dict[str, Any]) -> web.Response | None:
        plan = self.plan
        if plan.at_once is not None and self.stats.in_flight > plan.at_once:
            return _error(429, "Too many requests at once.", "rate_limit_exceeded")
        if plan.per_minute is not None and not self._is_in_time(plan.per_minute):
            return _error(429, "Rate limit reached.", "rate_limit_exceeded")
        if plan.key is not None and request.headers.get("Authorization") != f"Bearer {plan.key}":
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        if plan.models is not None and body["model"] not in plan.models:
            return _error(404, f"The model `{body['model']}` does not exist.", "model_not_found")
        if plan.only_streams and not body.get("stream"):
            return _error(400, "Only streaming is supported.", "unsupported_value")
        for field_name in plan.refuses:
            if field_name in body:
                return _error(
                    400, f"'{field_name}' is not supported with this model.", "unsupported_parameter"
                )
        return None


# --- answers ------------------------------------------------------------------------------------------------


def completion(body: dict[str, Any], wish: Wish) -> dict[str, Any]:
    """A chat completion as the protocol has it."""
    prompt = body["messages"][-1]["content"]
    text = prompt if wish.answer is None else wish.answer
    choice: dict[str, Any] = {
        "message": {"role": "assistant", "content": text, **wish.message},
        "finish_reason": wish.finish,
        "logprobs": logprobs(text, body.get("top_logprobs", 0), wish.odds) if body.get("logprobs") else None,
    }
    words_in = sum(len(message["content"].split()) for message in body["messages"])
    thought = len(wish.message.get("reasoning_content", "").split())
    n = body.get("n", 1)
    words_out = n * (len(text.split()) + thought)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [{"index": index, **choice} for index in range(n)],
        "usage": {
            "prompt_tokens": words_in,
            "completion_tokens": words_out,
            "total_tokens": words_in + words_out,
            "completion_tokens_details": {"reasoning_tokens": n * thought},
        },
    }


def logprobs(text: str, most: int, odds: dict[str, float] | None = None) -> dict[str, Any]:
    """The tokens of a text: words and signs, each with the white space before it.

    The chosen one has probability 1/2, each further one half of that before.
    """
    content = []
    for token in re.findall(r"\s*(?:\w+|[^\w\s])", text):
        top = [
            {"token": token if k == 0 else f"{token}~{k}", "logprob": -0.69 * (k + 1)} for k in range(most)
        ]
        if odds and token.strip() in odds:
            likeliest = sorted(odds.items(), key=lambda one: -one[1])
            top = [{"token": one, "logprob": math.log(share)} for one, share in likeliest][:most]
            odds = None
        content.append({"token": token, "logprob": -0.69, "top_logprobs": top})
    return {"content": content}


def _events(whole: dict[str, Any]) -> web.Response:
    """The completion as server-sent events: a character of each choice at a time, the usage last."""
    head = {name: whole[name] for name in ("id", "object", "created", "model")}
    chunks: list[dict[str, Any]] = []
    for choice in whole["choices"]:
        message = dict(choice["message"])
        text, thought = message.pop("content") or "", message.pop("reasoning_content", "")
        deltas = [
            message,
            *({"reasoning_content": sign} for sign in thought),
            *({"content": sign} for sign in text),
        ]
        pieces = [{"index": choice["index"], "delta": delta, "finish_reason": None} for delta in deltas]
        pieces[0]["logprobs"] = choice["logprobs"]
        pieces.append({"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]})
        chunks += [{"choices": [piece]} for piece in pieces]
    lines = [json.dumps({**head, **chunk}) for chunk in (*chunks, {"choices": [], "usage": whole["usage"]})]
    body = ": a comment\n\n" + "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]"))
    return web.Response(text=body, content_type="text/event-stream")


# --- faults -------------------------------------------------------------------------------------------------

_MESSAGES = {
    "400": ("'messages' is too long: 9 tokens over.", "context_length_exceeded"),
    "401": ("Incorrect API key provided.", "invalid_api_key"),
    "403": ("You may not do this.", "unsupported_country"),
    "404": ("The model does not exist.", "model_not_found"),
    "408": ("Request timed out.", None),
    "409": ("Conflict.", None),
    "429": ("Rate limit reached.", "rate_limit_exceeded"),
    "500": ("The server had an error.", None),
    "503": ("The engine is overloaded.", None),
    "529": ("Overloaded.", None),
}
_PAGE = (
    "<!doctype html>\n<html><head><title>A gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n"
)


async def play(fault: Fault, request: web.Request, body: dict[str, Any], wish: Wish) -> web.StreamResponse:
    """Go wrong, instead of answering."""
    if fault.kind in _MESSAGES:
        response = _error(int(fault.kind), *_MESSAGES[fault.kind])
        response.headers.update(_retry_headers(fault))
        return response
    if fault.kind in ("reset", "disconnect", "hang"):
        return await _say_nothing(fault, request)
    if fault.kind in ("short_body", "drip"):
        return await _say_slowly(fault, request, _bytes(completion(body, wish)))
    return _said_wrongly(fault.kind, request, body, wish)


def _said_wrongly(kind: str, request: web.Request, body: dict[str, Any], wish: Wish) -> web.Response:
    good = completion(body, wish)
    match kind:
        case "422":
            detail = [{"loc": ["body", "temperature"], "msg": "must be at most 2", "type": "value_error"}]
            return _json(422, {"detail": detail})
        case "quota":
            return _error(429, "You exceeded your current quota.", "insufficient_quota")
        case "502":
            return web.Response(status=502, text=_PAGE, content_type="text/html")
        case "echo_key":
            return _error(400, f"Bad header: {request.headers.get('Authorization')}", None)
        case "error200":
            return _json(200, {"error": {"message": "Provider returned an error.", "code": 502}})
        case "redirect":
            return web.Response(status=307, headers={"Location": "http://127.0.0.1:9/v1/chat/completions"})
        case "truncated":
            whole = _bytes(good)
            return web.Response(body=whole[: len(whole) // 2], content_type="application/json")
        case "html":
            return web.Response(text=_PAGE, content_type="text/html")
        case "empty":
            return _json(200, {**good, "choices": []})
        case "null":
            for choice in good["choices"]:
                choice["message"]["content"] = None
            return _json(200, good)
    raise ValueError(kind)


async def _say_nothing(fault: Fault, request: web.Request) -> web.StreamResponse:
    transport = request.transport
    if fault.kind == "hang":
        await asyncio.Event().wait()  # until the client leaves: then this handler is cancelled
    if transport is not None:
        connection = transport.get_extra_info("socket")
        if fault.kind == "reset" and connection is not None:
            form = "hh" if sys.platform == "win32" else "ii"
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack(form, 1, 0))
        transport.abort()
    return web.Response()


async def _say_slowly(fault: Fault, request: web.Request, whole: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(whole)
    await response.prepare(request)
    if fault.kind == "drip":
        for byte in whole:
            await response.write(bytes([byte]))
            await asyncio.sleep(fault.interval)
        return response
    await response.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def _retry_headers(fault: Fault) -> dict[str, str]:
    headers = {}
    if fault.retry_after is not None:
        headers["Retry-After"] = f"{fault.retry_after:g}"
    if fault.retry_after_date is not None:
        headers["Retry-After"] = formatdate(time.time() + fault.retry_after_date, usegmt=True)
    if fault.retry_after_ms is not None:
        headers["retry-after-ms"] = f"{fault.retry_after_ms:g}"
    return headers


def _error(status: int, message: str, code: str | None) -> web.Response:
    return _json(status, {"error": {"message": message, "type": "error", "param": None, "code": code}})


def _json(status: int, value: Any) -> web.Response:
    headers = {"x-request-id": "req_1"}
    return web.Response(status=status, body=_bytes(value), content_type="application/json", headers=headers)


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()

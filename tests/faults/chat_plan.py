"""What the chat server does to which call: what prompts ask for, and a plan for all others.

A prompt asks by directives in its own text, in double brackets, so that a test needs no other channel:

    [[fault 429 retry_after=0.05 times=2]] [[answer Paris]] [[latency 0.1]] [[think Hm]] [[reasoning Hm]]
    [[refusal No]] [[finish length]] [[tool search {"query": "x"}]] [[odds {"8": 0.6, "7": 0.3}]]

Nothing here knows HTTP; how a fault looks on the wire is in `chat_app.py`.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any

KINDS = (
    "400",  # with the server's own message
    "401",  # a key that is not known
    "403",
    "404",  # an unknown model
    "408",
    "409",
    "422",  # as FastAPI writes it
    "429",  # with or without Retry-After
    "quota",  # a 429 that no waiting mends
    "500",
    "502",  # an HTML page of a gateway
    "503",
    "529",
    "echo_key",  # a 400 that quotes the Authorization header
    "error200",  # status 200, but the body is an error
    "redirect",  # to another server
    "reset",  # the connection is reset before the answer
    "disconnect",  # it is closed before the answer
    "short_body",  # it is closed within the answer
    "truncated",  # a whole body, but its JSON is cut off
    "drip",  # a byte every `interval` seconds
    "hang",  # no answer, ever
    "html",  # status 200 and a page
    "empty",  # no choices
    "null",  # a choice without content
)

_DIRECTIVE = re.compile(r"\[\[(\w+)(?: (.*?))?\]\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong.

    Args:
        kind: one of `KINDS`.
        times: the first so many calls of a prompt go wrong; None: all of them.
        share: of all prompts, for a fault of a plan.
        retry_after: seconds, sent as a number.
        retry_after_date: seconds, sent as an HTTP date.
        retry_after_ms: milliseconds, sent in the header of that name.
        interval: seconds between the bytes of `drip`.
    """

    kind: str
    times: int | None = 1
    share: float = 1.0
    retry_after: float | None = None
    retry_after_date: float | None = None
    retry_after_ms: float | None = None
    interval: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"There is no fault {self.kind!r}; there are: {', '.join(KINDS)}.")


@dataclass(frozen=True, slots=True)
class Plan:
    """What the server does beyond what prompts ask for.

    Args:
        latency: seconds before each answer.
        slots: calls that are worked on at once; the others wait, and what was given up is worked on as well. None: all.
        at_once: calls that are worked on at once; the others get a 429. None: all.
        per_minute: calls that are answered in any minute; the others get a 429 that does not say how long. None: all.
        faults: each befalls its share of the prompts; no prompt has two of them.
        seed: which prompts they befall.
        key: the API key that is asked for; None: none is.
        models: those that there are; None: all.
        refuses: fields of requests that are refused with a 400, as by servers that do not have them.
        ignores: fields of requests that are ignored, as by other servers that do not have them.
        only_streams: whether requests that do not ask for a stream are refused.
    """

    latency: float = 0.0
    slots: int | None = None
    at_once: int | None = None
    per_minute: int | None = None
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    key: str | None = None
    models: tuple[str, ...] | None = None
    refuses: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    only_streams: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> "Plan":
        data = json.loads(text)
        data["faults"] = tuple(Fault(**one) for one in data.get("faults", ()))
        data["models"] = tuple(data["models"]) if data.get("models") is not None else None
        data["refuses"], data["ignores"] = tuple(data.get("refuses", ())), tuple(data.get("ignores", ()))
        return cls(**data)

    def faults_of(self, prompt: str) -> tuple[Fault, ...]:
        """The fault that befalls a prompt, if one does; the same one in each run."""
        if not self.faults:
            return ()
        digest = hashlib.sha256(f"{self.seed}\n{prompt}".encode()).digest()
        place = int.from_bytes(digest[:8], "big") / 2**64
        for fault in self.faults:
            place -= fault.share
            if place < 0:
                return (fault,)
        return ()


@dataclass(slots=True)
class Wish:
    """What one prompt asks for.

    Args:
        answer: the text of the completion; None: the prompt itself.
        latency: seconds before the answer; None: what the plan says.
        faults: one after the other, each for its number of calls.
        message: further fields of the assistant's message.
        finish: the reason why the completion ends.
        odds: for the first of these tokens in the answer, the probabilities of all that could stand there.
    """

    answer: str | None = None
    latency: float | None = None
    faults: list[Fault] = field(default_factory=list)
    message: dict[str, Any] = field(default_factory=dict)
    finish: str = "stop"
    odds: dict[str, float] = field(default_factory=dict)


def wish_of(prompt: str) -> Wish:
    """Read the directives of a prompt.

    Raises:
        ValueError: one is malformed.
    """
    wish = Wish()
    if "[[" not in prompt:
        return wish
    thought = ""
    for name, argument in _DIRECTIVE.findall(prompt):
        match name:
            case "fault":
                wish.faults.append(_fault(argument))
            case "answer":
                wish.answer = argument
            case "think":
                thought = f"<think>{argument}</think>\n"
            case "latency":
                wish.latency = float(argument)
            case "finish":
                wish.finish = argument
            case "odds":
                wish.odds = json.loads(argument)
            case "reasoning":
                wish.message["reasoning_content"] = argument
            case "refusal":
                wish.message.update(refusal=argument, content=None)
            case "tool":
                wish.message.update(tool_calls=[_tool_call(argument)], content=None)
            case _:
                raise ValueError(f"There is no directive {name!r}.")
    if thought:
        wish.answer = thought + (wish.answer or "")
    return wish


def fault_of_call(faults: tuple[Fault, ...] | list[Fault], call: int) -> Fault | None:
    """The fault of the n-th call of a prompt, counted from 0."""
    for fault in faults:
        if fault.times is None or call < fault.times:
            return fault
        call -= fault.times
    return None


def _fault(argument: str) -> Fault:
    kind, *options = argument.split()
    given: dict[str, Any] = {}
    for option in options:
        name, _, value = option.partition("=")
        given[name] = (None if value == "always" else int(value)) if name == "times" else float(value)
    return Fault(kind, **given)


def _tool_call(argument: str) -> dict[str, Any]:
    name, _, arguments = argument.partition(" ")
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}

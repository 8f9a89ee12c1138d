"""What the kit asks: prompts, completions and replies that real life brings sooner or later. Data only."""

from typing import NamedTuple

from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import AnyPrompt, ChatMessage, ChatPrompt, ChatRole, SUTOptions, TextPrompt
from modelgauge.data.responses import SUTCompletion

PLAIN = "What is the capital of France?"
OTHER = "Name three prime numbers."
UNICODE = "Ünïcödé — 你好 🙂 \u202eright to left\u202c"
LONG = "A long story. " * 1_500

TEXTS = {
    "a plain": PLAIN,
    "another": OTHER,
    "a unicode": UNICODE,
    "an empty": "",
    "a long": LONG,
    "a control-character": "tab\t, return\r\n, bell\x07.",
}

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}

OPTIONS: dict[str, SUTOptions] = {
    "num_completions": SUTOptions(num_completions=2),
    "max_tokens": SUTOptions(max_tokens=17),
    "temperature": SUTOptions(temperature=0.3),
    "top_p": SUTOptions(top_p=0.4),
    "top_k_per_token": SUTOptions(top_k_per_token=5),
    "stop_sequences": SUTOptions(stop_sequences=("\n\n", "###")),
    "presence_penalty": SUTOptions(presence_penalty=0.6),
    "frequency_penalty": SUTOptions(frequency_penalty=0.7),
    "random": SUTOptions(random="seed"),
    "top_logprobs": SUTOptions(top_logprobs=3),
    "response_schema": SUTOptions(response_schema=SCHEMA),
}

ALL_OPTIONS = SUTOptions(
    num_completions=2,
    max_tokens=17,
    temperature=0.3,
    top_p=0.4,
    top_k_per_token=5,
    stop_sequences=("\n\n", "###"),
    presence_penalty=0.6,
    frequency_penalty=0.7,
    random="seed",
    top_logprobs=3,
    response_schema=SCHEMA,
)


class Sample(NamedTuple):
    """A prompt, and how messages call it: "a plain text prompt"."""

    label: str
    prompt: AnyPrompt


def text_samples() -> list[Sample]:
    """Text prompts of every kind, and the plain one with all options."""
    samples = [Sample(f"{label} text prompt", TextPrompt(text)) for label, text in TEXTS.items()]
    return [*samples, Sample("a text prompt with all options", TextPrompt(PLAIN, ALL_OPTIONS))]


def chat_samples() -> list[Sample]:
    """The same as chats, and one with every role."""
    every_role = [
        ChatMessage(role=ChatRole.system, text="Answer briefly."),
        ChatMessage(role=ChatRole.user, text=OTHER),
        ChatMessage(role=ChatRole.assistant, text="2, 3, 5"),
        ChatMessage(role=ChatRole.user, text="Three more, please."),
    ]
    samples = [Sample(f"{label} chat", ChatPrompt(_chat(text))) for label, text in TEXTS.items()]
    return [
        *samples,
        Sample("a chat of every role", ChatPrompt(every_role)),
        Sample("a chat with all options", ChatPrompt(_chat(PLAIN), ALL_OPTIONS)),
    ]


def _chat(text: str) -> list[ChatMessage]:
    return [ChatMessage(role=ChatRole.user, text=text)]


class Judged(NamedTuple):
    """A completion to judge, and how messages call it."""

    label: str
    prompt: PromptWithContext
    completion: SUTCompletion


def judged_samples() -> list[Judged]:
    """Completions of every kind, for annotators."""
    asked = PromptWithContext(PLAIN)
    samples = [Judged(f"{label} completion", asked, SUTCompletion(text)) for label, text in TEXTS.items()]
    truncated = SUTCompletion(
        "", reasoning="Let me think", raw_text="<think>Let me think", truncated_reasoning=True
    )
    in_context = PromptWithContext(ChatPrompt(_chat(PLAIN)), source_id="q1", context={"answer": "Paris"})
    return [
        *samples,
        Judged("a completion cut off in its reasoning", asked, truncated),
        Judged("a completion of a chat with context", in_context, SUTCompletion("Paris")),
    ]


REPLIES: dict[str, str] = {
    "a plain": "Yes. The answer is (A), which is 42.",
    "an empty": "",
    "a blank": " \n\t ",
    "a unicode": UNICODE,
    "an odd": '"}]{"answer": null}] \\boxed{} #### A: ((((',
    "a very long": "no idea 7 " * 2_000,
    "a cut-off reasoning": "<think>First I have to consider whether",
}

"""Data of the kit: prompts, completions and replies that real life brings sooner or later."""

from typing import Any, NamedTuple

from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import (
    ChatMessage,
    ChatPrompt,
    ChatRole,
    ContinuationPrompt,
    SUTOptions,
    TextPrompt,
)
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

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

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
OPTIONS = {name: SUTOptions(**{name: getattr(ALL_OPTIONS, name)}) for name in SUTOptions.model_fields}


class SampleInput(NamedTuple):
    """Arguments of a method that translates.

    Args:
        label: the sample's name in messages: "a plain text prompt".
        method: the method.
        arguments: of the method.
    """

    label: str
    method: str
    arguments: tuple[Any, ...]


def _chat(*texts: str) -> ChatPrompt:
    """Return a chat in which user and assistant take turns."""
    roles = (ChatRole.user, ChatRole.assistant)
    return ChatPrompt([ChatMessage(role=roles[place % 2], text=text) for place, text in enumerate(texts)])


_SYSTEM = ChatMessage(role=ChatRole.system, text="Answer briefly.")
_EVERY_ROLE = ChatPrompt([_SYSTEM, *_chat(OTHER, "2, 3, 5", "Three more, please.").messages])
_ASKED = PromptWithContext(PLAIN)
_CUT_OFF = SUTCompletion(
    "", reasoning="Let me think", raw_text="<think>Let me think", truncated_reasoning=True
)
_IN_CONTEXT = PromptWithContext(_chat(PLAIN), source_id="q1", context={"answer": "Paris"})

_BY_METHOD: dict[str, dict[str, tuple[Any, ...]]] = {
    "translate_text_prompt": {
        **{f"{label} text prompt": (TextPrompt(text),) for label, text in TEXTS.items()},
        "a text prompt with all options": (TextPrompt(PLAIN, ALL_OPTIONS),),
    },
    "translate_chat_prompt": {
        **{f"{label} chat": (_chat(text),) for label, text in TEXTS.items()},
        "a chat of every role": (_EVERY_ROLE,),
        "a chat with all options": (_chat(PLAIN).with_options(ALL_OPTIONS),),
    },
    "translate_continuation_prompt": {
        "a plain context with continuations": (ContinuationPrompt(PLAIN, (" Paris", " Rome and Milan")),),
        "another context with a continuation": (ContinuationPrompt(OTHER, (" 2, 3, 5",)),),
        "an empty context with a continuation": (ContinuationPrompt("", (PLAIN,)),),
        "a chat with continuations": (ContinuationPrompt(_chat(PLAIN).messages, ("Paris", "Rome")),),
        "a unicode context with continuations": (ContinuationPrompt(UNICODE, (UNICODE, LONG)),),
    },
    "translate_request": {
        **{f"{label} completion": (_ASKED, SUTCompletion(text)) for label, text in TEXTS.items()},
        "a completion cut off in its reasoning": (_ASKED, _CUT_OFF),
        "a completion of a chat with context": (_IN_CONTEXT, SUTCompletion("Paris")),
    },
}
SAMPLES = [
    SampleInput(label, method, given)
    for method, all_given in _BY_METHOD.items()
    for label, given in all_given.items()
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

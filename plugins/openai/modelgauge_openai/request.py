"""From our prompts and options to requests of the protocol."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from modelgauge import ChatPrompt, SUTOptions, TextPrompt
from modelgauge.errors import InvalidOptionError
from modelgauge_openai.protocol import ChatRequest, Message
from modelgauge_openai.schema import response_format

MaxTokensField = Literal["max_tokens", "max_completion_tokens"]

_SEEDS = 2**31  # servers read a seed as an int of 32 or 64 bits


@dataclass(frozen=True, slots=True)
class RequestMaker:
    """Makes the requests of one model at one server.

    Args:
        model: its name there.
        max_tokens_field: the name of the limit of tokens there.
        takes_top_k: whether `top_k`, which is not in the protocol, is sent.
        has_logprobs: whether log-probabilities can be asked for.
        has_structured_output: whether an answer of a JSON Schema can be asked for.
        extra: fields of each request, in place of what a prompt asks for.
        omit: fields that are not sent, though a prompt asks for them.
    """

    model: str
    max_tokens_field: MaxTokensField
    takes_top_k: bool
    has_logprobs: bool = True
    has_structured_output: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    omit: frozenset[str] = frozenset()

    def of_text(self, prompt: TextPrompt) -> ChatRequest:
        """The text as the only message, the user's."""
        return self._request([{"role": "user", "content": prompt.text}], prompt.options)

    def of_chat(self, prompt: ChatPrompt) -> ChatRequest:
        """The messages, one for one."""
        messages: list[Message] = [
            {"role": message.role.value, "content": message.text} for message in prompt.messages
        ]
        return self._request(messages, prompt.options)

    def _request(self, messages: list[Message], options: SUTOptions) -> ChatRequest:
        self._check(options)
        asked: dict[str, Any] = {
            "n": options.num_completions,
            self.max_tokens_field: options.max_tokens,
            "temperature": options.temperature,
            "top_p": options.top_p,
            "top_k": options.top_k_per_token,
            "stop": None if options.stop_sequences is None else list(options.stop_sequences),
            "presence_penalty": options.presence_penalty,
            "frequency_penalty": options.frequency_penalty,
            "seed": None if options.random is None else seed_of(options.random),
            "logprobs": None if options.top_logprobs is None else True,
            "top_logprobs": options.top_logprobs,
            "response_format": (
                None if options.response_schema is None else response_format(options.response_schema)
            ),
        }
        request = ChatRequest(model=self.model, messages=messages)
        fields = {name: value for name, value in asked.items() if value is not None and name not in self.omit}
        request.update({**fields, **self.extra})  # type: ignore[typeddict-item]  # with those that it does not know
        return request

    def _check(self, options: SUTOptions) -> None:
        """Refuse what the model or its server does not have.

        Raises:
            InvalidOptionError: an option asks for it.
        """
        if options.top_k_per_token is not None and not self.takes_top_k:
            raise InvalidOptionError(
                f"'{self.model}' cannot be asked for top_k_per_token={options.top_k_per_token}: OpenAI has no "
                "such option.",
                fix="Leave top_k_per_token out, or ask a server that has it: ?base_url=…",
            )
        if options.top_logprobs is not None and not self.has_logprobs:
            raise InvalidOptionError(
                f"'{self.model}' is taken to have no log-probabilities, so it cannot be asked for top_logprobs.",
                fix="Leave top_logprobs out; or, if the model has them, say so in its name: ?logprobs=true",
            )
        if options.response_schema is not None and not self.has_structured_output:
            raise InvalidOptionError(
                f"'{self.model}' is said to have no structured output (structured_output=false), so it cannot be "
                "asked for a response_schema.",
                fix="Leave response_schema out; or, if the model has structured output, leave that option out.",
            )


def seed_of(random: int | str) -> int:
    """The protocol's seed: an int as it is; for a text, an int that is the same on every machine."""
    if isinstance(random, int):
        return random
    return int.from_bytes(hashlib.sha256(random.encode()).digest()[:8], "big") % _SEEDS

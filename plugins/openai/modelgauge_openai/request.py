"""From our prompts and options to requests of the protocol."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from modelgauge import ChatPrompt, ContinuationPrompt, SUTOptions, TextPrompt
from modelgauge.errors import InvalidOptionError
from modelgauge_openai.protocol import ChatRequest, CompletionRequest, Message
from modelgauge_openai.schema import response_format

Completions = Literal["auto", "one_call", "many_calls"]
MaxTokensField = Literal["max_tokens", "max_completion_tokens"]

MOST_TOKENS = 512
"""Most tokens of a text completion whose prompt sets no limit: a base model ends few texts by itself, and where servers
have a limit of their own, it is often 16."""

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
        """Return the text as the only message, from the user."""
        return self._of_messages([{"role": "user", "content": prompt.text}], prompt.options)

    def of_chat(self, prompt: ChatPrompt) -> ChatRequest:
        """Return the messages, one for one."""
        messages: list[Message] = [
            {"role": message.role.value, "content": message.text} for message in prompt.messages
        ]
        return self._of_messages(messages, prompt.options)

    def _of_messages(self, messages: list[Message], options: SUTOptions) -> ChatRequest:
        self._check(options)
        asked = {
            **self._asked(options, options.max_tokens),
            "logprobs": None if options.top_logprobs is None else True,
            "top_logprobs": options.top_logprobs,
            "response_format": (
                None if options.response_schema is None else response_format(options.response_schema)
            ),
        }
        request = ChatRequest(model=self.model, messages=messages)
        request.update(self._fields(asked))  # type: ignore[typeddict-item]  # with those that it does not know
        return request

    def of_prompt(self, prompt: TextPrompt) -> CompletionRequest:
        """Return a request for the completion of a text."""
        options = prompt.options
        self._check(options)
        asked = {
            **self._asked(options, options.max_tokens or MOST_TOKENS),
            "logprobs": options.top_logprobs,
        }
        request = CompletionRequest(model=self.model, prompt=prompt.text)
        request.update(self._fields(asked))  # type: ignore[typeddict-item]  # with those that it does not know
        return request

    def of_continuations(self, prompt: ContinuationPrompt, prefix: str) -> CompletionRequest:
        """Return a request for the log-likelihoods of continuations.

        Args:
            prompt: its options have no meaning here, since nothing is sampled.
            prefix: stands before continuations without a context.

        Raises:
            InvalidOptionError: the context is a chat, or the model has no log-probabilities.
        """
        if not isinstance(prompt.context, str):
            raise InvalidOptionError(
                f"'{self.model}' scores continuations of texts only, since text completions know no chat template.",
                fix="Let the test send its context as a text; or run the model by transformers/MODEL, which has its "
                "template.",
            )
        self._check_logprobs("score continuations")
        context = prompt.context if prompt.context.strip() else prefix + prompt.context
        request = CompletionRequest(
            model=self.model, context=context, continuations=list(prompt.continuations)
        )
        request.update(self._fields({}))  # type: ignore[typeddict-item]  # with those that it does not know
        return request

    def _asked(self, options: SUTOptions, max_tokens: int | None) -> dict[str, Any]:
        """Return the fields of both APIs; None in those that nobody asked for."""
        return {
            "n": options.num_completions,
            self.max_tokens_field: max_tokens,
            "temperature": options.temperature,
            "top_p": options.top_p,
            "top_k": options.top_k_per_token,
            "stop": None if options.stop_sequences is None else list(options.stop_sequences),
            "presence_penalty": options.presence_penalty,
            "frequency_penalty": options.frequency_penalty,
            "seed": None if options.random is None else seed_of(options.random),
        }

    def _fields(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields to send: those that are asked for and not omitted, and those of each request."""
        fields = {name: value for name, value in asked.items() if value is not None and name not in self.omit}
        return {**fields, **self.extra}

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
        if options.top_logprobs is not None:
            self._check_logprobs("be asked for top_logprobs", "Leave top_logprobs out; or, if ")
        if options.response_schema is not None and not self.has_structured_output:
            raise InvalidOptionError(
                f"'{self.model}' is said to have no structured output (structured_output=false), so it cannot be "
                "asked for a response_schema.",
                fix="Leave response_schema out; or, if the model has structured output, leave that option out.",
            )

    def _check_logprobs(self, what: str, fix: str = "If ") -> None:
        if not self.has_logprobs:
            raise InvalidOptionError(
                f"'{self.model}' is taken to have no log-probabilities, so it cannot {what}.",
                fix=f"{fix}the model has them, say so in its name: ?logprobs=true",
            )


def seed_of(random: int | str) -> int:
    """Return the protocol's seed: an int unchanged; for a text, an int that is the same on every machine."""
    if isinstance(random, int):
        return random
    return int.from_bytes(hashlib.sha256(random.encode()).digest()[:8], "big") % _SEEDS

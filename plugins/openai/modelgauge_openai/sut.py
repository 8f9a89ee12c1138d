"""The SUT: a model behind the chat-completions protocol, at OpenAI or at any server that speaks it.

Requests are made in `request.py`, sent in `connection.py`, read by the models of `protocol.py`, and turned
into ours in `response.py`; what goes wrong is put into words in `errors.py`.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from modelgauge import (
    ChatPrompt,
    Fatal,
    ProducesPerTokenLogProbabilities,
    ProducesStructuredOutput,
    PromptResponseSUT,
    Retry,
    SUTCapability,
    SUTResponse,
    TextPrompt,
)
from modelgauge.errors import InvalidOptionError, MissingSecretError, SettingsError
from modelgauge_openai.address import OFFICIAL, chat_url, is_official
from modelgauge_openai.connection import Connection
from modelgauge_openai.errors import ChatError, check_answer, unreadable
from modelgauge_openai.key import OpenAIKey
from modelgauge_openai.protocol import ChatRequest, ChatResponse, received
from modelgauge_openai.request import MaxTokensField, RequestMaker
from modelgauge_openai.response import Prices, sut_response

_REASONS = re.compile(r"o\d|gpt-5(?!.*-chat)")  # models of OpenAI that refuse to tell log-probabilities


class OpenAIChat(PromptResponseSUT[ChatRequest, ChatResponse]):
    """A model behind the chat-completions protocol.

    Args:
        uid: the name in records, `openai/MODEL`.
        model: its name at the server.
        api_key: needed at OpenAI; elsewhere sent where there is one.
        base_url: the server, up to where `/chat/completions` begins.
        send_key: False keeps the key from the server.
        max_tokens_field: what the server calls the limit of tokens; by default `max_completion_tokens` at
            OpenAI and `max_tokens` elsewhere.
        structured_output: False where the model or its server refuses `response_format`: then judges are asked
            in words only.
        logprobs: whether the model has log-probabilities; by default it does, unless it is one of OpenAI's
            reasoning models, by its name.
        extra_body: further fields of each request, by name: `{"reasoning_effort": "low"}`.
        input_price: US dollars a million input tokens; with `output_price`, the usage tells what a call cost.
        output_price: US dollars a million output tokens.

    Raises:
        InvalidOptionError: a URL, a price or a field that cannot be.
        MissingSecretError: OpenAI is to be asked without a key.
        SettingsError: the key cannot be sent.
    """

    capabilities: ClassVar[tuple[type[SUTCapability], ...]] = (
        ProducesPerTokenLogProbabilities,
        ProducesStructuredOutput,
    )
    cache_identity: ClassVar[str | None] = "modelgauge_openai:OpenAIChat"
    identity_excludes: ClassVar[frozenset[str]] = frozenset({"input_price", "output_price"})

    def __init__(
        self,
        uid: str,
        model: str,
        *,
        api_key: OpenAIKey | None = None,
        base_url: str = OFFICIAL,
        send_key: bool = True,
        max_tokens_field: MaxTokensField | None = None,
        structured_output: bool = True,
        logprobs: bool | None = None,
        extra_body: dict[str, Any] | None = None,
        input_price: float | None = None,
        output_price: float | None = None,
    ) -> None:
        super().__init__(uid)
        url = chat_url(base_url)
        official = is_official(url)
        key = _checked(api_key) if send_key else None
        if official and key is None:
            raise _missing_key()
        self._connection = Connection(uid, url, key)
        self._prices = _prices(input_price, output_price)
        has_logprobs = logprobs if logprobs is not None else not (official and _REASONS.match(model))
        has = {ProducesPerTokenLogProbabilities: has_logprobs, ProducesStructuredOutput: structured_output}
        self.capabilities = tuple(one for one in has if has[one])  # type: ignore[misc]  # they are the model's
        self._requests = RequestMaker(
            model=model,
            max_tokens_field=max_tokens_field or ("max_completion_tokens" if official else "max_tokens"),
            takes_top_k=not official,
            has_logprobs=has_logprobs,
            has_structured_output=structured_output,
            extra=_extra(extra_body or {}, structured_output=structured_output),
        )

    async def open(self) -> None:
        """Make a session for the running loop."""
        await self._connection.open()

    async def close(self) -> None:
        """Close it."""
        await self._connection.close()

    def translate_text_prompt(self, prompt: TextPrompt) -> ChatRequest:
        """The text as the user's message."""
        return self._requests.of_text(prompt)

    def translate_chat_prompt(self, prompt: ChatPrompt) -> ChatRequest:
        """The messages as they are."""
        return self._requests.of_chat(prompt)

    async def evaluate(self, request: ChatRequest) -> ChatResponse:
        """Send one request, once.

        Raises:
            ChatError: it was not answered; `classify_error` says whether another attempt is worth it.
        """
        body = await self._connection.post(to_json(request))
        try:
            response = received(body)
        except ValidationError as error:
            raise unreadable(self._connection.url, error, body) from None
        check_answer(self._connection.url, request, response)
        return response

    def translate_response(self, request: ChatRequest, response: ChatResponse) -> SUTResponse:
        """Each choice as a completion, and the usage of all together."""
        del request
        return sut_response(response, self._prices)

    def expected_cost(self, request: ChatRequest) -> float | None:
        """The most that a request is likely to cost, where prices are given and the answer's length is bounded.

        Input tokens are taken as a quarter of the characters, the provider's own rule of thumb for English text.
        """
        most_tokens = request.get("max_completion_tokens") or request.get("max_tokens")
        if self._prices is None or most_tokens is None:
            return None
        characters = sum(len(str(message["content"])) for message in request["messages"])
        answers = most_tokens * (request.get("n") or 1)
        return (characters / 4 * self._prices.input + answers * self._prices.output) / 1e6

    def classify_error(self, error: BaseException) -> Retry | Fatal | None:
        """What is known of an error since it was raised."""
        return error.verdict if isinstance(error, ChatError) else None


def _checked(api_key: OpenAIKey | None) -> OpenAIKey | None:
    """The key as it can stand in a header; None where there is none.

    Raises:
        SettingsError: it cannot.
    """
    key = (api_key.value or "").strip() if api_key is not None else ""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise SettingsError(
            f"The key {OpenAIKey.description().name} holds characters that no HTTP header can carry.",
            fix="Copy it again, without white space and quotes.",
        )
    return OpenAIKey(key) if key else None


def _missing_key() -> MissingSecretError:
    about = OpenAIKey.description()
    return MissingSecretError(
        f"OpenAI answers with a key only, and {about.name} was found nowhere.",
        fix=(
            f"Set {' or '.join(about.variables)}, or write under [{about.scope}] in secrets.toml: "
            f'{about.key} = "…". {about.instructions} Other servers are asked by ?base_url=…'
        ),
    )


def _extra(fields: Mapping[str, Any], *, structured_output: bool) -> dict[str, Any]:
    """Fields that may be added to a request.

    Raises:
        InvalidOptionError: one that this SUT writes itself, that would change the form of the answer, or that JSON
            cannot hold.
    """
    own = ChatRequest.__optional_keys__ | {"stream"}
    taken = sorted(set(fields) & (own if structured_output else own - {"response_format"}))
    if taken:
        raise InvalidOptionError(
            f"extra_body cannot hold {', '.join(taken)}.",
            fix="Sampling is asked for by SUTOptions; model and messages come with the name and the prompt; "
            "response_format is free with structured_output=false.",
        )
    try:
        from_json(to_json(dict(fields)), allow_inf_nan=False)
    except ValueError as error:
        raise InvalidOptionError(
            f"extra_body holds what JSON does not: {error}.",
            fix="Give texts, finite numbers, lists and dicts.",
        ) from None
    return dict(fields)


def _prices(input_price: float | None, output_price: float | None) -> Prices | None:
    """The prices; None where none are given.

    Raises:
        InvalidOptionError: one alone, or one below zero.
    """
    if input_price is None and output_price is None:
        return None
    if input_price is None or output_price is None or min(input_price, output_price) < 0:
        raise InvalidOptionError(
            f"The prices input_price={input_price}, output_price={output_price} tell no cost.",
            fix="Give both, in US dollars a million tokens: ?input_price=2.5&output_price=10",
        )
    return Prices(input_price, output_price)

"""The base of the SUTs: a model at OpenAI, or at any server that speaks its protocol.

Requests are made in `request.py`, fitted to the server in `sending.py` and sent in `connection.py`. The server's reply
(`reply.py`, `streaming.py`) is read by the models of `protocol.py`, checked in `answers.py`, and turned into ours in
`response.py`; `blocking.py` finds out whether a content filter withheld it. `errors.py` says what goes wrong.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic_core import from_json, to_json

from modelgauge import (
    Fatal,
    ProducesPerTokenLogProbabilities,
    ProducesStructuredOutput,
    PromptResponseSUT,
    Retry,
    SUTResponse,
    TextPrompt,
)
from modelgauge.errors import CallError, InvalidOptionError
from modelgauge_openai.address import OFFICIAL, endpoint_url, is_official
from modelgauge_openai.answers import check_answer
from modelgauge_openai.blocking import blocked_reply
from modelgauge_openai.connection import Connection, checked_headers
from modelgauge_openai.errors import ChatError, name_models
from modelgauge_openai.key import OpenAIKey, key_to_send
from modelgauge_openai.protocol import ChatRequest, ChatResponse, CompletionRequest
from modelgauge_openai.reply import Reply
from modelgauge_openai.request import Completions, MaxTokensField, RequestMaker
from modelgauge_openai.response import Prices, costs_in, sut_response, usage_of
from modelgauge_openai.sending import Sending

Api = Literal["chat", "completions"]

_OF_EACH = {"model", "messages", "prompt", "context", "continuations", "n"}
_OF_THE_FORM = _OF_EACH | {"logprobs", "top_logprobs", "echo", "stream", "stream_options"}
_REASONS = re.compile(r"o\d|gpt-5(?!.*-chat)")  # models of OpenAI that refuse to tell log-probabilities


class OpenAIModel(PromptResponseSUT[Any, ChatResponse]):
    """A model behind one of the APIs of the protocol. Made directly, it is an object of the subclass for its `api`.

    Class attributes:
        own_api: the API of a subclass.
        path: of the API, behind `base_url`.

    Args:
        uid: the name in records, `openai/MODEL`.
        model: its name at the server.
        api: "chat" (the default), or "completions" for base models, which complete texts and score continuations.
        api_key: sent to the server that `base_url` names. A key that was looked up because the SUT was made by its
            name goes to OpenAI and to this machine only, unless `send_key`, `key_env` or `key` says otherwise.
        base_url: the server, up to where `/chat/completions` or `/completions` begins.
        send_key: True sends the key that was looked up to any server, False sends none.
        key_env: the environment variable that holds the server's key.
        key: the secret that is the server's key, SCOPE.NAME.
        api_key_header: the header that the key is sent in as it is, instead of `Authorization: Bearer …`.
        extra_headers: further headers of each request, by name.
        extra_query: what stands behind the `?` of the server's URL, by name: Azure's `api-version`.
        max_tokens_field: what the server calls the limit of tokens; by default `max_completion_tokens` at
            OpenAI and `max_tokens` elsewhere, and the other one where the server refuses it.
        structured_output: False if the model or its server refuses `response_format`: then judges are asked
            in words only. "auto": once the server has refused it.
        completions: how several completions of a prompt are asked for: by "one_call" with `n`, or by "many_calls";
            "auto": by many once the server has refused `n`, or has answered with one completion. Continuations of a
            context likewise.
        prefix: the text of the token that texts begin with, for a model whose tokenizer adds none: it comes before
            continuations without a context. For text completions.
        logprobs: whether the model has log-probabilities; by default it does, unless it is one of OpenAI's
            reasoning models, by its name.
        omit: fields that the server refuses, and that are not sent though a prompt asks for them: `("seed",)`.
        stream: True if the server only streams.
        extra_body: fields that are sent with each request, by name, in place of what its prompt asks for:
            `{"reasoning_effort": "low", "temperature": 1}`.
        input_price: US dollars a million input tokens; with `output_price`, the usage tells what a call cost.
        output_price: US dollars a million output tokens.

    Raises:
        InvalidOptionError: a URL, a price, a header or a field that cannot be.
        MissingSecretError: OpenAI is to be asked without a key, or a key that was named is nowhere.
        SettingsError: the key cannot be sent.
    """

    own_api: ClassVar[Api]
    path: ClassVar[str]
    options_in_uid: ClassVar[frozenset[str]] = frozenset({"server"})
    identity_excludes: ClassVar[frozenset[str]] = frozenset(
        {"input_price", "output_price", "send_key", "key_env", "key", "api_key_header"}
        | {"stream", "server", "completions", "api"}
    )

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make an object of the subclass for the API, as `pathlib.Path` does for the system."""
        if cls is not OpenAIModel:
            return super().__new__(cls, *args, **kwargs)
        apis = {each.own_api: each for each in reversed(cls.__subclasses__())}
        api = kwargs.get("api") or "chat"
        if api not in apis:
            raise InvalidOptionError(
                f"There is no API {api!r}.", fix=f"Give one of {', '.join(sorted(apis))}."
            )
        return super().__new__(apis[api], *args, **kwargs)

    def __init__(
        self,
        uid: str,
        model: str,
        *,
        api: Api | None = None,
        api_key: OpenAIKey | None = None,
        base_url: str = OFFICIAL,
        send_key: bool | None = None,
        key_env: str | None = None,
        key: str | None = None,
        api_key_header: str | None = None,
        extra_headers: dict[str, str] | None = None,
        extra_query: dict[str, str] | None = None,
        max_tokens_field: MaxTokensField | None = None,
        structured_output: bool | Literal["auto"] = True,
        completions: Completions = "auto",
        prefix: str = "",
        logprobs: bool | None = None,
        omit: tuple[str, ...] = (),
        stream: bool = False,
        extra_body: dict[str, Any] | None = None,
        input_price: float | None = None,
        output_price: float | None = None,
    ) -> None:
        super().__init__(uid)
        self._check_api(api, prefix)
        url = endpoint_url(base_url, extra_query, self.path)
        official = is_official(url)
        sent_key, withheld = key_to_send(url, api_key, key_env=key_env, key=key, send_key=send_key)
        headers = checked_headers(extra_headers or {}, api_key_header)
        self._connection = Connection(
            uid, url, sent_key, key_header=api_key_header, headers=headers, withheld=withheld
        )
        self.completions, self._prefix = completions, prefix
        self._prices = _prices(input_price, output_price)
        may_tell = logprobs if logprobs is not None else not (official and _REASONS.match(model))
        has_logprobs = may_tell and "logprobs" not in omit
        has_schema = bool(structured_output) and "response_format" not in omit
        has = {ProducesPerTokenLogProbabilities: has_logprobs, ProducesStructuredOutput: has_schema}
        self.capabilities = tuple([each for each in type(self).capabilities if has[each]])  # type: ignore[misc]  # they are the model's
        self._requests = RequestMaker(
            model=model,
            max_tokens_field=max_tokens_field or ("max_completion_tokens" if official else "max_tokens"),
            takes_top_k=not official,
            has_logprobs=has_logprobs,
            has_structured_output=has_schema,
            extra=_extra(extra_body or {}, structured_output=has_schema),
            omit=_fields(omit),
        )
        self._sending = Sending(
            stream=stream,
            with_usage="stream_options" not in omit,
            may_rename=max_tokens_field is None,
            may_drop=structured_output == "auto",
            completions=completions,
        )

    def _check_api(self, api: Api | None, prefix: str) -> None:
        """Refuse an API that the class is not for, and a prefix where it has no meaning.

        Raises:
            InvalidOptionError: one of the two was given.
        """
        if api not in (None, self.own_api):
            raise InvalidOptionError(
                f"{type(self).__name__} speaks the API {self.own_api!r}, not {api!r}.",
                fix=f"Make OpenAIModel(…, api={api!r}), or leave api out.",
            )
        if prefix and self.own_api != "completions":
            raise InvalidOptionError(
                "prefix stands before scored texts, and only text completions score any.",
                fix="Leave prefix out, or add ?api=completions.",
            )

    async def open(self) -> None:
        """Make a session for the running loop."""
        await self._connection.open()

    async def close(self) -> None:
        """Close it."""
        await self._connection.close()

    async def list_models(self) -> list[str]:
        """Return the names of the server's models; empty if it does not list them."""
        return await self._connection.models()

    def translate_text_prompt(self, prompt: TextPrompt) -> Any:
        """Return the API's own request for a text. Each subclass defines it."""
        raise NotImplementedError

    async def evaluate(self, request: Any) -> ChatResponse:
        """Send one request, once.

        Raises:
            ChatError: it was not answered; `classify_error` says whether another attempt is worth it.
            EmptyAnswerError: the answer has no text and took no token.
            InvalidResponseError: the content has no text that is understood.
            SingleCompletionError: the server gives one completion a call.
        """
        may_be_single = self._sending.may_split

        def checked(response: ChatResponse) -> ChatResponse:
            check_answer(self._connection.url, request, response, may_be_single=may_be_single)
            return response

        return await self._ask(self._sending.of(request), checked)

    async def _ask(
        self, sent: Mapping[str, Any], check: Callable[[ChatResponse], ChatResponse]
    ) -> ChatResponse:
        """Post a request, and return what a check leaves of its response.

        Raises:
            CallError: there is no response, or the check refused it.
        """
        reply = response = None
        try:
            reply = await self._connection.post(to_json(sent))
            response = self._response(reply)
            return check(response)
        except CallError as error:
            read = response or (reply and costs_in(reply))  # a refused answer is paid too
            error.usage = read and usage_of(read, self._prices)
            if isinstance(error, ChatError):
                self._sending.learn(error, sent)
                if error.refused_field == "model":
                    name_models(error, sent["model"], await self._connection.models())
            raise

    def _response(self, reply: Reply) -> ChatResponse:
        """Convert a reply to a response, even if the service reports a block as an error.

        Raises:
            ChatError: it is another error, or not a response.
        """
        try:
            if reply.status // 100 != 2:
                raise self._connection.refusal(reply)
            return self._sending.response(self._connection.url, reply)
        except ChatError:
            blocked = blocked_reply(reply)
            if blocked is None:
                raise
            return blocked

    def translate_response(self, request: Any, response: ChatResponse) -> SUTResponse:
        """Return each choice as a completion, and the usage of all together."""
        return sut_response(response, self._prices, request.get("n", 1))

    def _cost_of(self, characters: int, most_tokens: int | None) -> float | None:
        """Return the most that a request is likely to cost, where prices are given and the answer's length is bounded.

        Input tokens are taken as a quarter of the characters, the provider's own rule of thumb for English text.
        """
        if self._prices is None or most_tokens is None:
            return None
        return (characters / 4 * self._prices.input + most_tokens * self._prices.output) / 1e6

    def classify_error(self, error: BaseException) -> Retry | Fatal | None:
        """Return the classification made when the error was raised."""
        return error.verdict if isinstance(error, ChatError) else None


def _fields(omit: tuple[str, ...]) -> frozenset[str]:
    """Validate the fields that are not sent.

    Raises:
        InvalidOptionError: one that a request cannot do without, or that this SUT does not send.
    """
    asked = ChatRequest.__optional_keys__ | CompletionRequest.__optional_keys__ | {"stream_options", "echo"}
    known = asked - _OF_EACH
    unknown = sorted(set(omit) - known)
    if unknown:
        raise InvalidOptionError(
            f"omit cannot hold {', '.join(unknown)}.",
            fix=f"Fields that can be left out: {', '.join(sorted(known))}.",
        )
    return frozenset(omit) | ({"top_logprobs"} if "logprobs" in omit else set())


def _extra(fields: Mapping[str, Any], *, structured_output: bool) -> dict[str, Any]:
    """Validate the fields that are sent with each request, overriding those of its prompt.

    Raises:
        InvalidOptionError: one that would change the form of the answer, or that JSON cannot hold.
    """
    taken = sorted(set(fields) & (_OF_THE_FORM | ({"response_format"} if structured_output else set())))
    if taken:
        raise InvalidOptionError(
            f"extra_body cannot hold {', '.join(taken)}.",
            fix="Completions and log-probabilities are asked for by SUTOptions; model and messages come with the name "
            "and the prompt, a stream with stream=true; response_format is free with structured_output=false.",
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
    """Return the prices; None if none are given.

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

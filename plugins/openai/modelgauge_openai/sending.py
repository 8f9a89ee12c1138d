"""Adaptation of requests to servers: names of fields, rejected fields, streaming.

The cache uses the request before adaptation, because it does not affect the answer.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from modelgauge import Retry
from modelgauge.errors import SingleCompletionError
from modelgauge_openai.answers import unreadable
from modelgauge_openai.errors import LATER, ChatError, reported
from modelgauge_openai.protocol import ChatResponse, Request, received
from modelgauge_openai.reply import Reply
from modelgauge_openai.request import Completions
from modelgauge_openai.streaming import read_stream

_MAY_BE_ABOUT_PROMPTS = frozenset({400, 422, 500, 501})
"""Statuses by which servers refuse several prompts without a word about them, as llama-cpp-python does."""

_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class Sending:
    """Form in which requests are sent, adapted after a server's rejections.

    Args:
        stream: whether to ask for server-sent events.
        with_usage: whether to ask for the usage among them.
        may_rename: whether the limit of tokens may get its other name once the server refused the one.
        may_drop: whether `response_format` may be left out once the server refused it.
        completions: how several completions are asked for; with "auto", one by one once the server refused to give
            several.
    """

    def __init__(
        self, *, stream: bool, with_usage: bool, may_rename: bool, may_drop: bool, completions: Completions
    ) -> None:
        self._stream = stream
        self._with_usage = with_usage
        self._may = {"max_tokens": may_rename, "response_format": may_drop}
        self.may_split = completions == "auto"
        self._refused: set[str] = set()
        self._takes_prompts = False if completions == "many_calls" else None if self.may_split else True

    def of(self, request: Request) -> dict[str, Any]:
        """Return the request in the form to send."""
        if not (self._refused or self._stream):
            return dict(request)
        sent = {
            _OTHER_NAME.get(name, name) if name in self._refused else name: value
            for name, value in request.items()
            if name in _OTHER_NAME or name not in self._refused
        }
        if self._stream:
            sent["stream"] = True
            if self._with_usage:
                sent["stream_options"] = {"include_usage": True}
        return sent

    def calls(self, prompts: Sequence[str]) -> list[Sequence[str]]:
        """Return the prompts of each call: all of them in one, unless the server takes one a call."""
        return [[prompt] for prompt in prompts] if self._takes_prompts is False else [prompts]

    def learn_from_scores(self, prompts: Sequence[str]) -> None:
        """Note that the server takes several prompts a call, once it scored some."""
        if len(prompts) > 1:
            self._takes_prompts = True

    def learn(self, error: ChatError, sent: Mapping[str, Any]) -> None:
        """Note a field that the server refused; the same call is worth another attempt without it.

        Raises:
            SingleCompletionError: the server refused to give several completions.
        """
        refused = error.refused_field
        if refused == "n" and self.may_split and sent.get("n", 1) > 1:
            raise SingleCompletionError(error.problem, fix="Ask for them one by one.") from error
        is_about_prompts = refused == "prompt" or (refused is None and error.status in _MAY_BE_ABOUT_PROMPTS)
        if is_about_prompts and self._takes_prompts is None and isinstance(sent.get("prompt"), list):
            self._takes_prompts = False
            error.verdict = Retry(after=0.0)
        if refused is None or not self._may.get(refused):
            return
        names = [name for name in (_OTHER_NAME if refused == "max_tokens" else (refused,)) if name in sent]
        if names and not {_OTHER_NAME.get(names[0])} & self._refused:
            self._refused.update(names)
            error.verdict = Retry(after=0.0)

    def response(self, url: str, reply: Reply) -> ChatResponse:
        """Read a reply of status 200, whole or as a stream, whatever was asked for.

        Raises:
            ChatError: it is not a complete response.
        """
        text = reply.text
        if reply.is_stream(asked=self._stream):
            stream = read_stream(text)
            if stream.error:
                raise reported(url, stream.response)
            if stream.flaw or not stream.is_whole:
                raise ChatError(
                    f"{url} answered with a stream that cannot be read: {stream.flaw or 'it ended too early'}.",
                    fix=LATER,
                    verdict=None if stream.is_whole else Retry(),
                )
            text = json.dumps(stream.response)
        try:
            return received(text, reply.costs)
        except ValidationError as error:
            raise unreadable(url, error, text) from None

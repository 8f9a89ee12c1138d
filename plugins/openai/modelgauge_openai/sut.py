"""The SUTs: a model behind the chat-completions API, or behind that of text completions; see `model.py`."""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from modelgauge import (
    AcceptsChatPrompt,
    ChatPrompt,
    ContinuationPrompt,
    ProducesPerTokenLogProbabilities,
    ProducesStructuredOutput,
    ScoresContinuations,
    SUTCapability,
    SUTResponse,
    TextPrompt,
)
from modelgauge.errors import CallError
from modelgauge_openai.address import COMPLETIONS_PATH, PATH
from modelgauge_openai.blocking import block_in
from modelgauge_openai.errors import ChatError
from modelgauge_openai.model import Api, OpenAIModel
from modelgauge_openai.protocol import ChatRequest, ChatResponse, CompletionRequest, chat_choice
from modelgauge_openai.reply import Reply
from modelgauge_openai.response import added, sut_response, usage_of
from modelgauge_openai.scoring import cut_to_continuations, joined, prompts_of, scores_in, scoring_body

__all__ = ["OpenAIChat", "OpenAICompletions", "OpenAIModel"]


class OpenAIChat(OpenAIModel):
    """A model behind the chat-completions API. Its arguments are those of `OpenAIModel`."""

    own_api: ClassVar[Api] = "chat"
    path = PATH
    capabilities: ClassVar[tuple[type[SUTCapability], ...]] = (
        ProducesPerTokenLogProbabilities,
        ProducesStructuredOutput,
    )
    capability_fixes: ClassVar[Mapping[type[SUTCapability], str]] = {
        ScoresContinuations: "Ask the server's text completions, which may score continuations: add ?api=completions."
    }
    cache_identity: ClassVar[str | None] = "modelgauge_openai:OpenAIChat"

    def translate_text_prompt(self, prompt: TextPrompt) -> ChatRequest:
        """Return the text as the user's message."""
        return self._requests.of_text(prompt)

    def translate_chat_prompt(self, prompt: ChatPrompt) -> ChatRequest:
        """Return the messages unchanged."""
        return self._requests.of_chat(prompt)

    def expected_cost(self, request: ChatRequest) -> float | None:
        """Return the likely maximum cost of a request, if prices are given and the answer's length is bounded."""
        most = request.get("max_completion_tokens") or request.get("max_tokens")
        characters = sum(len(str(message["content"])) for message in request["messages"])
        return self._cost_of(characters, most and most * (request.get("n") or 1))


class OpenAICompletions(OpenAIModel):
    """A model behind the API of text completions, which also scores continuations. Its arguments are those of
    `OpenAIModel`; those about chats have no effect."""

    own_api: ClassVar[Api] = "completions"
    path = COMPLETIONS_PATH
    capabilities: ClassVar[tuple[type[SUTCapability], ...]] = (ProducesPerTokenLogProbabilities,)
    capability_fixes: ClassVar[Mapping[type[SUTCapability], str]] = {
        AcceptsChatPrompt: "Leave out api=completions, by which the model continues texts."
    }
    cache_identity: ClassVar[str | None] = "modelgauge_openai:OpenAICompletions"

    def translate_text_prompt(self, prompt: TextPrompt) -> CompletionRequest:
        """Return the text unchanged, for the model to continue."""
        return self._requests.of_prompt(prompt)

    def translate_continuation_prompt(self, prompt: ContinuationPrompt) -> CompletionRequest:
        """Return the context and the continuations."""
        return self._requests.of_continuations(prompt, self._prefix)

    async def evaluate(self, request: CompletionRequest) -> ChatResponse:
        """Send one request; of continuations, one for each if the server takes one prompt a call.

        Raises:
            ChatError: as for a chat; or it is not certain which log-probabilities are those of a continuation.
            CallError: as for a chat.
        """
        if "continuations" not in request:
            return await super().evaluate(request)
        responses: list[ChatResponse] = []
        try:
            for prompts in self._sending.calls(prompts_of(request)):
                sent = scoring_body(request, prompts, self._requests.omit)
                cut = partial(cut_to_continuations, self._connection.url, request, prompts)
                response = await self._ask(sent, cut)
                if block_in(response) is not None:
                    return response
                responses.append(response)
                self._sending.learn_from_scores(prompts)
        except CallError as error:
            if responses:  # these are paid too
                error.usage = added(usage_of(joined(responses), self._prices), error.usage)
            raise
        return joined(responses)

    def _response(self, reply: Reply) -> ChatResponse:
        """Convert a reply to a response in the form of a chat's.

        Raises:
            ChatError: it is an error, or not a response.
        """
        try:
            response = super()._response(reply)
        except ChatError as error:
            if reply.status in (404, 405):
                error.fix = f"{error.fix} Or the server has no text completions: leave out api=completions."
            raise
        if response.choices is not None:
            response.choices = [*map(chat_choice, response.choices)]
        return response

    def translate_response(self, request: CompletionRequest, response: ChatResponse) -> SUTResponse:
        """Return each choice as a completion or the score of a continuation, and the usage of all together."""
        if "continuations" not in request:
            return super().translate_response(request, response)
        if block_in(response) is not None:
            return sut_response(response, self._prices, len(request["continuations"]))
        return scores_in(request, response, usage_of(response, self._prices))

    def expected_cost(self, request: CompletionRequest) -> float | None:
        """Return the likely maximum cost of a request, if prices are given and the answer's length is bounded."""
        if "continuations" in request:
            prompts = prompts_of(request)
            return self._cost_of(sum(map(len, prompts)), len(prompts))
        most = request.get("max_tokens")
        return self._cost_of(len(request["prompt"]), most and most * (request.get("n") or 1))

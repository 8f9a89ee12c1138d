"""Log-likelihoods of continuations, by the log-probabilities that a server gives for the tokens of a prompt.

A prompt is a context with a continuation. It is sent with `echo` and `logprobs`, and what is kept of the answer are the
tokens of the continuation. What is not certain is refused: some servers ignore `echo`, and the log-probability of a new
token would be a score by chance.
"""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from modelgauge import Fatal, SUTCompletion, SUTResponse, TokenProbability, Usage
from modelgauge_openai.blocking import block_in
from modelgauge_openai.errors import ChatError, MissingLogProbabilitiesChatError, shortened
from modelgauge_openai.protocol import ChatResponse, Choice, CompletionRequest
from modelgauge_openai.spelling import Reading, first_token, readings

_WHAT_WORKS = (
    "vLLM and SGLang give log-probabilities of prompts. Or run the model without a server: --sut transformers/FOLDER, "
    "which reads GGUF files too."
)
_SERVERS = {  # by what they write as `system_fingerprint`
    "llama.cpp": re.compile(r"b\d+-"),
    "Ollama": re.compile("fp_ollama"),
    "TGI": re.compile(r"\d+\.\d+\.\d+\S*-(native|sha-\w+)"),
}


class Token(NamedTuple):
    """A token of a prompt: its text, its log-probability, and that of the likeliest token in its place."""

    text: str
    logprob: float | None
    best: float | None


def prompts_of(request: CompletionRequest) -> list[str]:
    """Return the context with each of the continuations."""
    return [request["context"] + continuation for continuation in request["continuations"]]


def scoring_body(
    request: CompletionRequest, prompts: Sequence[str], omit: Collection[str] = ()
) -> dict[str, Any]:
    """Return what is sent to score prompts. One token is generated, since not every server takes a limit of 0.

    Args:
        request: the request, as in the cache.
        prompts: those of this call; a single one is sent as a text, which every server takes.
        omit: fields that the server refuses.
    """
    fields = {"max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True}
    return {
        **{name: value for name, value in request.items() if name not in ("context", "continuations")},
        "prompt": prompts[0] if len(prompts) == 1 else list(prompts),
        **{name: value for name, value in fields.items() if name not in omit},
    }


def cut_to_continuations(
    url: str, request: CompletionRequest, prompts: Sequence[str], response: ChatResponse
) -> ChatResponse:
    """Return a response whose choices have the tokens of the continuations, and nothing else.

    Args:
        url: where the response came from.
        request: the request, as in the cache.
        prompts: those of this call.
        response: a choice for each prompt, with the log-probabilities of all tokens.

    Raises:
        ChatError: tokens are missing, or it is not certain which of them are those of the continuation.
    """
    if block_in(response) is not None:
        return response
    scored = _Scored(_name(url, response), request["context"])
    choices = sorted(response.choices or (), key=_index)
    if len(choices) != len(prompts):
        raise ChatError(
            f"{scored.server} answered with {len(choices)} choices to {len(prompts)} prompts.",
            fix="?completions=many_calls asks for one continuation at a time.",
            refused_field="prompt",
        )
    usage = response.usage if isinstance(response.usage, dict) else {}
    new = usage.get("completion_tokens")
    if isinstance(new, int) and new > len(prompts):
        raise scored.refusal(f"with {new:,} new tokens where 1 for each prompt was allowed")
    pairs = zip(prompts, choices, strict=True)
    cut = [Choice(logprobs={"tokens": [*map(list, scored.tokens(*pair))]}) for pair in pairs]
    return response.model_copy(update={"choices": cut})


def _index(choice: Choice) -> int:
    index = (choice.model_extra or {}).get("index")
    return index if isinstance(index, int) else 0


def _name(url: str, response: ChatResponse) -> str:
    """Return the URL, with the program where the response shows it."""
    mark = str((response.model_extra or {}).get("system_fingerprint"))
    name = next((name for name, pattern in _SERVERS.items() if pattern.match(mark)), None)
    return f"{url} ({name})" if name else url


@dataclass(frozen=True, slots=True)
class _Scored:
    """Reads the answers for one context.

    Args:
        server: that gave them, for messages.
        context: before the continuations.
    """

    server: str
    context: str

    def tokens(self, prompt: str, choice: Choice) -> list[Token]:
        """Return the tokens of a continuation.

        Raises:
            ChatError: there are none, one has no score, or it is not certain where they begin.
        """
        forms = list(_forms_of(choice))
        if not forms:
            raise self.refusal("without log-probabilities")
        for tokens, new in forms:
            states = readings([token.text for token in tokens[: len(tokens) - new]], prompt)
            if states:
                scored = tokens[self._beginning(prompt, states) : len(tokens) - new]
                self._check(prompt, scored, is_whole=len(scored) == len(tokens) - new)
                return scored
        raise self._misspelt(prompt, [token.text for token in forms[0][0]])

    def _beginning(self, prompt: str, states: Reading) -> int:
        """Return the place of the continuation's first token.

        Spaces at the end of the context go to the continuation, as in lm-evaluation-harness, unless a token has them
        together with what comes before.

        Raises:
            ChatError: no token begins where the continuation does.
        """
        for character in (len(self.context.rstrip()), len(self.context)):
            place = first_token(states, character)
            if place is not None:
                return place
        continuation = shortened(prompt[len(self.context) :], 40)
        raise ChatError(
            f"At {self.server}, no token begins for certain where the continuation {continuation!r} does.",
            fix="Let the continuation begin with a space or a whole word.",
        )

    def _check(self, prompt: str, scored: Sequence[Token], *, is_whole: bool) -> None:
        """Refuse tokens without a score.

        Raises:
            ChatError: a log-probability is missing.
        """
        if is_whole:
            raise ChatError(
                f"{self.server} gives no log-probability for the first token of {shortened(prompt, 40)!r}, since no "
                "token comes before it.",
                fix="Name the token that texts of this model begin with, such as ?prefix=<|endoftext|>",
            )
        if any(token.logprob is None for token in scored):
            raise self.refusal("without the log-probability of a token of the continuation")
        if any(token.best is None for token in scored):
            raise self.refusal("without the likeliest token in each place")

    def _misspelt(self, prompt: str, tokens: Sequence[str]) -> ChatError:
        if len(tokens) == 1:
            return self.refusal("with the log-probability of 1 new token and of none of the prompt's")
        if readings(tokens, prompt):
            return self.refusal(
                "without the new token that was asked for, and may give each token the log-probability of the next"
            )
        shown = ", ".join(repr(shortened(token, 20)) for token in tokens[:4])
        return ChatError(
            f"{self.server} answered with the log-probabilities of {len(tokens):,} tokens that do not spell the prompt "
            f"of {len(prompt):,} characters. They begin with {shown}.",
            fix="Check that the server neither cuts nor changes prompts: this one may be longer than it allows.",
        )

    def refusal(self, what: str) -> ChatError:
        """Return the error of a server that does not give the log-probabilities of prompts."""
        return MissingLogProbabilitiesChatError(
            f"{self.server} answered {what}, so it cannot score continuations.",
            fix=_WHAT_WORKS,
            verdict=Fatal(),
        )


# --- the forms in which servers give the tokens of a prompt ----------------------------------------------------------


def _forms_of(choice: Choice) -> Iterator[tuple[list[Token], int]]:
    """Yield the tokens of a choice in each form that it has, and how many of them are new.

    One new token was asked for. Where it is missing, llama-cpp-python gives each token the log-probability of the next:
    it does so if the tokenizer begins texts with no token of its own.
    """
    held: dict[str, Any] = choice.model_extra or {}
    forms = ((_from_content, choice.logprobs, 1), (_from_ranks, held.get("prompt_logprobs"), 0))
    for read, value, new in forms:
        with suppress(TypeError, LookupError, AttributeError, ValueError):
            tokens = read(value)
            if tokens:
                yield tokens, new


def _from_content(logprobs: Any) -> list[Token]:
    """Read a list of tokens, each with its `top_logprobs`: the form that `chat_logprobs` brings all others into."""
    return [
        Token(str(token["token"]), _number(token["logprob"]), _best(token.get("top_logprobs") or ()))
        for token in logprobs["content"]
    ]


def _from_ranks(prompt_logprobs: Any) -> list[Token]:
    """Read vLLM's `prompt_logprobs`: in each place the token of the prompt, then the likeliest one, by their ids."""
    places = [[*(place or {"": {}}).values()] for place in prompt_logprobs]
    return [
        Token(place[0].get("decoded_token") or "", _number(place[0].get("logprob")), _best(place))
        for place in places
    ]


def _number(logprob: Any) -> float | None:
    return None if logprob is None else float(logprob)


def _best(tokens: Any) -> float | None:
    return max(
        (float(token["logprob"]) for token in tokens if token.get("logprob") is not None), default=None
    )


# --- what is kept, and what it says -----------------------------------------------------------------------------------


def joined(responses: Sequence[ChatResponse]) -> ChatResponse:
    """Return the responses of several calls as one: all choices, and the sums of what they cost."""
    if len(responses) == 1:
        return responses[0]
    return ChatResponse(
        choices=[choice for response in responses for choice in response.choices or ()],
        usage=_sums([response.usage for response in responses]),
        response_headers=_sums([response.response_headers for response in responses]),
    )


def _sums(parts: Sequence[Any]) -> dict[str, float] | None:
    """Return the sums of the numbers that all parts have, by name; None if a part is missing."""
    if not all(isinstance(part, dict) for part in parts):
        return None
    sums = {}
    for name in parts[0]:
        with suppress(TypeError, ValueError):
            sums[name] = sum(float(part.get(name)) for part in parts)
    return sums


def scores_in(request: CompletionRequest, response: ChatResponse, usage: Usage | None) -> SUTResponse:
    """Return a completion with its score for each continuation."""
    pairs = zip(request["continuations"], response.choices or (), strict=True)
    return SUTResponse([_completion(text, choice.logprobs["tokens"]) for text, choice in pairs], usage)


def _completion(continuation: str, tokens: Sequence[tuple[str, float, float]]) -> SUTCompletion:
    return SUTCompletion(
        continuation,
        logprob=math.fsum(logprob for _, logprob, _ in tokens),
        is_greedy=all(logprob >= best for _, logprob, best in tokens),
        num_tokens=len(tokens),
        token_logprobs=[TokenProbability(token=token, logprob=logprob) for token, logprob, _ in tokens],
    )

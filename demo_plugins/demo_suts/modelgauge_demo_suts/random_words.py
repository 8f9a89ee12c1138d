"""Lesson 4: a SUT as it looks in real life, with a key, native models, options and errors.

The system behind it is pretended: `answer` below stands where a provider's HTTP call or SDK would stand.
"""

import random

from pydantic import BaseModel

from modelgauge import (
    Fatal,
    PromptResponseSUT,
    RequiredSecret,
    SecretDescription,
    SUTCompletion,
    SUTResponse,
    TextPrompt,
    Usage,
)

VOCABULARY = ("amber", "boat", "cloud", "dune", "ember", "fern", "gull", "harbour", "island", "juniper")


class DemoApiKey(RequiredSecret):
    """The key of the pretended service. Injected by the registration, looked up only when the SUT is made."""

    @classmethod
    def description(cls) -> SecretDescription:
        return SecretDescription("demo", "api_key", "This one is pretended: any text will do.")


class WordsRequest(BaseModel):
    """The native request: all that the answer depends on, since equal requests share one cached answer."""

    prompt: str
    seed: str
    replies: int
    max_words: int
    stop: list[str]


class WordsResponse(BaseModel):
    """The native response, kept in the cache as it came."""

    replies: list[str]
    words_used: int


class KeyRefusedError(Exception):
    """The service does not know the key."""


def answer(request: WordsRequest, key: str) -> WordsResponse:
    """Pretend to be a service: return random words, the same ones for the same request.

    Raises:
        KeyRefusedError: the key is "expired".
    """
    if key == "expired":
        raise KeyRefusedError("Your key has expired.")
    source = random.Random(f"{request.seed}\n{request.prompt}")  # noqa: S311 - reproducible, not secret
    replies = [" ".join(source.choices(VOCABULARY, k=request.max_words)) for _ in range(request.replies)]
    for stop in request.stop:
        replies = [reply.partition(stop)[0].rstrip() for reply in replies]
    return WordsResponse(replies=replies, words_used=sum(len(reply.split()) for reply in replies))


class RandomWordsSUT(PromptResponseSUT[WordsRequest, WordsResponse]):
    """Says random words.

    Of `SUTOptions` it honours `num_completions`, `max_tokens` (a word is a token), `stop_sequences` and
    `random`.

    Args:
        uid: the name it is registered under.
        api_key: the secret itself, never a text; its value appears in no record and in no cache key.
        num_words: how many words to say where the prompt does not set `max_tokens`.
        seed: what the words depend on where the prompt does not set `random`.
    """

    def __init__(self, uid: str, api_key: DemoApiKey, num_words: int = 5, seed: int = 0) -> None:
        super().__init__(uid)
        self.api_key = api_key
        self.num_words = num_words
        self.seed = seed

    def translate_text_prompt(self, prompt: TextPrompt) -> WordsRequest:
        options = prompt.options
        return WordsRequest(
            prompt=prompt.text,
            seed=str(self.seed if options.random is None else options.random),
            replies=options.num_completions or 1,
            max_words=options.max_tokens or self.num_words,
            stop=list(options.stop_sequences or ()),
        )

    def evaluate(self, request: WordsRequest) -> WordsResponse:
        return answer(request, key=self.api_key.value)

    def translate_response(self, request: WordsRequest, response: WordsResponse) -> SUTResponse:
        return SUTResponse(
            completions=[SUTCompletion(reply) for reply in response.replies],
            usage=Usage(output_tokens=response.words_used),
        )

    def classify_error(self, error: BaseException) -> Fatal | None:
        """Give up after a rejected key, which fails every call; leave other errors to the engine."""
        return Fatal() if isinstance(error, KeyRefusedError) else None

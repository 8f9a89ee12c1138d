"""Lesson 5: a SUT that says how likely a text is behind another.

A `ContinuationPrompt` has a context and continuations, and asks for the probability of each of them. One call answers
them all, so that a model reads the context once. The response has a completion for each continuation, in their order,
with its text, `logprob` (the natural logarithm of its probability), `is_greedy` (whether the model itself would have
written it) and `num_tokens`.

The model here counts which word follows which in a few sentences. A word that it has not seen counts as one more.
"""

import math
from collections import Counter
from itertools import pairwise
from typing import Any

from modelgauge import ContinuationPrompt, PromptResponseSUT, SUTCompletion, SUTResponse, TokenProbability

CORPUS = """
the cat sat on the mat . the dog sat on the sofa . the cat sat on the sofa . the bird flew over the house .
the sun rises in the east . the sun sets in the west . ice is cold . fire is hot . water is wet .
"""


class BigramsSUT(PromptResponseSUT[dict[str, Any], list[list[float]]]):
    """Scores continuations by the pairs of words in a few sentences. It writes no texts."""

    def __init__(self, uid: str) -> None:
        super().__init__(uid)
        words = CORPUS.split()
        self._pairs, self._words = Counter(pairwise(words)), Counter(words)

    def translate_continuation_prompt(self, prompt: ContinuationPrompt) -> dict[str, Any]:
        context = prompt.context if isinstance(prompt.context, str) else prompt.context[-1].text
        return {"context": context, "continuations": list(prompt.continuations)}

    def evaluate(self, request: dict[str, Any]) -> list[list[float]]:
        before = (request["context"].lower().split() or ["."])[-1]
        return [self._logprobs(before, text.lower().split()) for text in request["continuations"]]

    def translate_response(self, request: dict[str, Any], response: list[list[float]]) -> SUTResponse:
        before = (request["context"].lower().split() or ["."])[-1]
        return SUTResponse(
            [
                SUTCompletion(
                    text,
                    logprob=math.fsum(logprobs),
                    is_greedy=self._greedy(before, text.lower().split()),
                    num_tokens=len(logprobs),
                    token_logprobs=[
                        TokenProbability(token=word, logprob=logprob)
                        for word, logprob in zip(text.split(), logprobs, strict=True)
                    ],
                )
                for text, logprobs in zip(request["continuations"], response, strict=True)
            ]
        )

    def _logprobs(self, before: str, words: list[str]) -> list[float]:
        """Return the logarithm of each word's probability after the previous word, with one added to each count."""
        kinds = len(self._words) + 1  # the last for all words that were not seen
        return [
            math.log((self._pairs[pair] + 1) / (self._words[pair[0]] + kinds))
            for pair in pairwise([before, *words])
        ]

    def _greedy(self, before: str, words: list[str]) -> bool:
        """Return whether each word is the most frequent one after the previous word."""
        return all(
            self._pairs[pair] and self._pairs[pair] == max(self._pairs[pair[0], word] for word in self._words)
            for pair in pairwise([before, *words])
        )

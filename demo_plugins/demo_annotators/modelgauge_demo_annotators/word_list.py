"""Lesson 2: an annotator with data of its own. It finds the words of a list in a completion.

The list is shipped in the package, and whoever runs the annotator can give another one instead:
`WordListAnnotator("mine", words=["yes", "no"])`, or by name `demo_word_list?words=yes,no`.
"""

import re
from importlib import resources

from pydantic import BaseModel

from modelgauge import CompletionAnnotator, PromptWithContext, SUTCompletion


class WordListRequest(BaseModel):
    """The native request.

    The list is in it because the answer depends on it: a new list never gets a cached answer to the old one.
    """

    text: str
    words: list[str]


class FoundWords(BaseModel):
    """The annotation: the words of the list that occur in the completion, in the order of the list."""

    words: list[str]


class WordListAnnotator(CompletionAnnotator[FoundWords]):
    """Finds whole words, in any case of letters.

    Args:
        uid: the name it is registered under.
        words: what to look for; None for the list in `words.txt`.
    """

    def __init__(self, uid: str, words: list[str] | None = None) -> None:
        super().__init__(uid)
        self.words = shipped_words() if words is None else words

    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> WordListRequest:
        return WordListRequest(text=completion.text, words=self.words)

    def annotate(self, request: WordListRequest) -> list[str]:
        return [word for word in request.words if occurs(word, request.text)]

    def translate_response(self, request: WordListRequest, response: list[str]) -> FoundWords:
        return FoundWords(words=response)


def shipped_words() -> list[str]:
    """Return the words of `words.txt`, beside this module, one per line."""
    file = resources.files("modelgauge_demo_annotators") / "words.txt"
    return file.read_text(encoding="utf-8").splitlines()


def occurs(word: str, text: str) -> bool:
    """Return whether a text contains a word or phrase, and not as part of a longer word."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None

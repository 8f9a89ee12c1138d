"""Metrics that compare the output with a text: match, containment, edit distance, overlap of tokens.

The n-gram scores that other packages compute (BLEU, ROUGE, chrF) are in `ngrams.py`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Unpack

from modelgauge.config.options import YES_NO, one_of
from modelgauge.data.estimates import Score
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.errors import InvalidDataError, InvalidOptionError
from modelgauge.metrics.base import Metric
from modelgauge.metrics.definition import MetricSettings
from modelgauge.text.answers import normalize_answer
from modelgauge.wording.phrases import counted


class ReferenceMetric(Metric):
    """Base of metrics that compare the output with the expected output: scores from 0 to 1, without a judge."""

    required_params: Sequence[str] = ("actual_output", "expected_output")
    score_range = (0.0, 1.0)
    asks_nobody = True


class ExactMatchMetric(ReferenceMetric):
    """1 if the output equals the expected output, else 0. Whitespace around the two does not count.

    Args:
        uid: see `Metric`, also for the settings.
        ignore_case: capitals do not count.
        threshold: 1 by default.
    """

    threshold = 1.0

    def __init__(
        self, uid: str | None = None, *, ignore_case: bool = False, **settings: Unpack[MetricSettings]
    ) -> None:
        super().__init__(uid, **settings)
        self.ignore_case = YES_NO.check("ExactMatchMetric.ignore_case", ignore_case)

    async def score(self, test_case: LLMTestCase) -> Score:
        """Return 1 if the output equals the expected output."""
        actual = _folded(test_case.actual_output or "", ignore_case=self.ignore_case).strip()
        expected = _folded(test_case.expected_output or "", ignore_case=self.ignore_case).strip()
        same = actual == expected
        return Score(float(same), f"The output is {'' if same else 'not '}the expected one.")


class PatternMatchMetric(ReferenceMetric):
    """1 if the whole output matches a regular expression, else 0. Whitespace around it does not count.

    Args:
        uid: see `Metric`, also for the settings.
        pattern: in the syntax of Python's `re`.
        ignore_case: capitals do not count.
        threshold: 1 by default.

    Raises:
        InvalidOptionError: the pattern is not a regular expression.
    """

    required_params = ("actual_output",)
    threshold = 1.0

    def __init__(
        self,
        uid: str | None = None,
        *,
        pattern: str,
        ignore_case: bool = False,
        **settings: Unpack[MetricSettings],
    ) -> None:
        super().__init__(uid, **settings)
        YES_NO.check("PatternMatchMetric.ignore_case", ignore_case)
        try:
            self.pattern = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        except (re.error, TypeError) as error:
            raise InvalidOptionError(
                f"pattern={pattern!r} is not a regular expression: {error}.",
                fix="Correct it; a literal text is escaped by re.escape.",
            ) from None

    async def score(self, test_case: LLMTestCase) -> Score:
        """Return 1 if the whole output matches the pattern."""
        found = self.pattern.fullmatch((test_case.actual_output or "").strip())
        matches = "matches" if found else "does not match"
        return Score(float(found is not None), f"The output {matches} {self.pattern.pattern!r}.")


class ContainsMetric(ReferenceMetric):
    """1 if the output contains the expected texts, else 0.

    Args:
        uid: see `Metric`, also for the settings.
        texts: what to look for; without it, the case's expected output, and a case where that is empty has no
            score.
        require: `all` of the texts, or `any` one of them.
        ignore_case: capitals do not count.
        threshold: 1 by default.

    Raises:
        InvalidOptionError: `texts` is empty or holds anything but non-empty texts, or `require` is another word.
    """

    threshold = 1.0

    def __init__(
        self,
        uid: str | None = None,
        *,
        texts: str | Sequence[str] | None = None,
        require: Literal["all", "any"] = "all",
        ignore_case: bool = False,
        **settings: Unpack[MetricSettings],
    ) -> None:
        super().__init__(uid, **settings)
        self.texts = None if texts is None else _texts(texts)
        self.require = one_of("all", "any").check("ContainsMetric.require", require)
        self.ignore_case = YES_NO.check("ContainsMetric.ignore_case", ignore_case)
        if self.texts is not None:
            self.required_params = ("actual_output",)

    async def score(self, test_case: LLMTestCase) -> Score:
        """Return 1 if the output contains the texts, or one of them."""
        if self.texts is None and not test_case.expected_output:
            raise InvalidDataError(
                f"{self.name} looks for the expected output, and that is empty: every output contains it.",
                fix="Give the case an expected_output, or the metric texts=[…].",
            )
        wanted = self.texts if self.texts is not None else (test_case.expected_output or "",)
        output = _folded(test_case.actual_output or "", ignore_case=self.ignore_case)
        missing = [text for text in wanted if _folded(text, ignore_case=self.ignore_case) not in output]
        enough = not missing if self.require == "all" else len(missing) < len(wanted)
        reason = (
            f"Not in the output: {', '.join(map(repr, missing))}." if missing else "The output contains all."
        )
        return Score(float(enough), reason, {"wanted": list(wanted), "missing": missing})


class LevenshteinMetric(ReferenceMetric):
    """Similarity of output and expected output: 1 - distance / length of the longer text.

    The distance counts insertions, deletions and substitutions of code points (Levenshtein 1966). Two empty
    texts are alike.
    """

    def score(self, test_case: LLMTestCase) -> Score:
        """Return 1 - distance / length of the longer text."""
        actual, expected = test_case.actual_output or "", test_case.expected_output or ""
        distance = edit_distance(actual, expected)
        longest = max(len(actual), len(expected))
        value = 1.0 if longest == 0 else (longest - distance) / longest
        return Score(
            value, f"{counted(distance, 'edit')} for {counted(longest, 'character')}.", {"distance": distance}
        )


class TokenF1Metric(ReferenceMetric):
    """The F1 of the words that output and expected output share, as in SQuAD.

    Texts are put into lower case, without punctuation and the articles a, an, the; words count as often as
    they occur. Two texts without words are alike. Source: Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions
    for Machine Comprehension of Text", section 6.1.
    """

    async def score(self, test_case: LLMTestCase) -> Score:
        """Return the F1 of the words that output and expected output share."""
        texts = (test_case.actual_output or "", test_case.expected_output or "")
        actual, expected = (Counter(normalize_answer(text).split()) for text in texts)
        common = (actual & expected).total()
        if not actual or not expected:
            value = precision = recall = float(actual == expected)
        else:
            precision, recall = common / actual.total(), common / expected.total()
            value = 2 * common / (actual.total() + expected.total())
        reason = f"{common} words in common; precision {precision:.3f}, recall {recall:.3f}."
        return Score(value, reason, {"precision": precision, "recall": recall})


def edit_distance(first: str, second: str) -> int:
    """Return the Levenshtein distance of two texts, in code points.

    Works on one row of the table as the bits of two integers: Hyyrö 2003, "A bit-vector algorithm for
    computing Levenshtein and Damerau edit distances", figure 8.
    """
    if len(first) > len(second):
        first, second = second, first
    if not first:
        return len(second)
    places: dict[str, int] = {}
    for place, character in enumerate(first):
        places[character] = places.get(character, 0) | 1 << place
    mask, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    more, less = mask, 0  # where the column grows by one from row to row, and where it shrinks
    distance = len(first)
    for character in second:
        same = places.get(character, 0)
        zero = (((same & more) + more) ^ more) | same | less
        right_more, right_less = less | ~(zero | more) & mask, more & zero
        distance += bool(right_more & last) - bool(right_less & last)
        right_more, right_less = (right_more << 1 | 1) & mask, right_less << 1 & mask
        more, less = right_less | ~(zero | right_more) & mask, right_more & zero
    return distance


def _texts(given: Any) -> tuple[str, ...]:
    """Return the texts to look for. An empty text is rejected because every output contains it."""
    texts = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else ()
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise InvalidOptionError(
            f"ContainsMetric.texts is {given!r}.",
            fix="Give at least one text, and none that is empty: texts=['yes'].",
        )
    return texts


def _folded(text: str, *, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text

"""The n-gram scores of machine translation and summarization, as other packages compute them.

They need an extra: `pip install "modelgauge-framework[metrics]"`, without which they cannot be made. The
packages are imported when they are first used.
"""

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Unpack

from modelgauge.config.options import YES_NO, one_of, whole_number
from modelgauge.data.estimates import Score
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.errors import InvalidDataError, InvalidOptionError, UsageError
from modelgauge.metrics.definition import MetricSettings
from modelgauge.metrics.text_metrics import ReferenceMetric
from modelgauge.stats.exact import find_fraction
from modelgauge.wording.did_you_mean import known_names

_USUAL_TOKENIZER = "13a"
_ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_OF_ROUGE = re.compile("[a-z0-9]")  # the only characters that ROUGE sees, in lower case


class BLEUMetric(ReferenceMetric):
    """BLEU of one sentence, 0 to 1, as sacrebleu computes it: exponential smoothing, effective order.

    Sources: Papineni et al. 2002; Post 2018, "A Call for Clarity in Reporting BLEU Scores".

    Args:
        uid: see `Metric`, also for the settings.
        tokenize: a tokenizer of sacrebleu: `13a`, `intl`, `zh`, `ja-mecab`, `char`, …
        lowercase: capitals do not count.

    Raises:
        InvalidOptionError: there is no such tokenizer.
    """

    def __init__(
        self,
        uid: str | None = None,
        *,
        tokenize: str = _USUAL_TOKENIZER,
        lowercase: bool = False,
        **settings: Unpack[MetricSettings],
    ) -> None:
        super().__init__(uid, **settings)
        check_extra("sacrebleu", self.name)
        if tokenize != _USUAL_TOKENIZER:  # known to exist, so sacrebleu is not imported yet
            known = extra_module("sacrebleu.metrics.bleu", self.name).BLEU.TOKENIZERS
            if tokenize not in known:
                fix = known_names(str(tokenize), map(str, known))
                raise InvalidOptionError(f"There is no tokenize={tokenize!r}.", fix=fix)
        self.tokenize = tokenize
        self.lowercase = YES_NO.check("BLEUMetric.lowercase", lowercase)

    def score(self, test_case: LLMTestCase) -> Score:
        """Return the BLEU of the output against the expected output."""
        module = extra_module("sacrebleu", self.name)
        found = module.sentence_bleu(
            test_case.actual_output,
            [test_case.expected_output],
            tokenize=self.tokenize,
            lowercase=self.lowercase,
            use_effective_order=True,
        )
        return _share(found, "BLEU")


class ChrFMetric(ReferenceMetric):
    """Sentence-level chrF, 0 to 1, as in sacrebleu: character 6-grams, beta 2.

    Sources: Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation"; 2017 for chrF++.

    Args:
        uid: see `Metric`, also for the settings.
        word_order: n-grams of words in addition to those of characters; 2 makes it chrF++.

    Raises:
        InvalidOptionError: `word_order` is not one of these numbers.
    """

    def __init__(
        self, uid: str | None = None, *, word_order: int = 0, **settings: Unpack[MetricSettings]
    ) -> None:
        super().__init__(uid, **settings)
        check_extra("sacrebleu", self.name)
        values = whole_number(ge=0)._replace(wanted="0, or 2 for chrF++")
        self.word_order = values.check("ChrFMetric.word_order", word_order)

    @classmethod
    def default_uid(cls) -> str:
        """Return the uid `chrf`, in one word."""
        return super().default_uid().replace("chr_f", "chrf")

    def score(self, test_case: LLMTestCase) -> Score:
        """Return the chrF of the output against the expected output."""
        module = extra_module("sacrebleu", self.name)
        found = module.sentence_chrf(
            test_case.actual_output, [test_case.expected_output], word_order=self.word_order
        )
        return _share(found, "chrF")


class ROUGEMetric(ReferenceMetric):
    """ROUGE F1 of two texts, 0 to 1, as Google's rouge-score computes it.

    It sees the letters a to z and digits only. Where the expected output has none of them, as in another script,
    there is no score. Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries".

    Args:
        uid: see `Metric`, also for the settings.
        rouge_type: `rouge1`, `rouge2`, `rougeL`, or `rougeLsum` for texts with a sentence a line.
        use_stemmer: words with one stem are one word (Porter's stemmer).

    Raises:
        InvalidOptionError: there is no such type.
    """

    def __init__(
        self,
        uid: str | None = None,
        *,
        rouge_type: str = "rougeL",
        use_stemmer: bool = False,
        **settings: Unpack[MetricSettings],
    ) -> None:
        super().__init__(uid, **settings)
        check_extra("rouge_score", self.name)
        self.rouge_type = one_of(*_ROUGE_TYPES).check("ROUGEMetric.rouge_type", rouge_type)
        self.use_stemmer = YES_NO.check("ROUGEMetric.use_stemmer", use_stemmer)

    def score(self, test_case: LLMTestCase) -> Score:
        """Return the ROUGE F1 of the output against the expected output."""
        module = extra_module("rouge_score.rouge_scorer", self.name)
        if not _OF_ROUGE.search((test_case.expected_output or "").lower()):
            raise InvalidDataError(
                f"{self.name} sees the letters a to z and digits only, and the expected output has none.",
                fix="Compare by a metric of characters: ChrFMetric, or LevenshteinMetric.",
            )
        scorer = module.RougeScorer([self.rouge_type], use_stemmer=self.use_stemmer)
        found = scorer.score(test_case.expected_output, test_case.actual_output)[self.rouge_type]
        precision, recall = find_fraction(found.precision), find_fraction(found.recall)
        value = 2 * precision * recall / (precision + recall) if precision + recall else 0
        parts = {"precision": float(precision), "recall": float(recall)}
        reason = f"{self.rouge_type}: precision {found.precision:.3f}, recall {found.recall:.3f}."
        return Score(float(value), reason, parts)


def check_extra(name: str, metric: str) -> None:
    """Refuse a metric whose package (of the extra `metrics`) is missing, without importing the package.

    Raises:
        UsageError: it is not installed.
    """
    if sys.modules.get(name) is None and find_spec(name) is None:
        raise _missing(name, metric)


def extra_module(name: str, metric: str) -> Any:
    """Import a module of the extra `metrics`.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise _missing(error.name, metric) from error


def _missing(package: str | None, metric: str) -> UsageError:
    return UsageError(
        f"{metric} needs {package}, which is not installed.",
        fix='pip install "modelgauge-framework[metrics]"',
    )


def _share(found: Any, name: str) -> Score:
    """Scale a score of sacrebleu from 0 to 100 down to 0 to 1."""
    value = min(1.0, float(found.score) / 100)
    return Score(value, f"{name} {found.score:.1f} of 100.")

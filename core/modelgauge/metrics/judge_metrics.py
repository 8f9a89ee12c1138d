"""The judge metrics that come with ModelGauge: of one answer, of the retrieval behind it, and of a conversation.

Each is a declaration; see `judge_base.py`. `GEval` is in `g_eval.py`. The definitions are DeepEval's
(deepeval.com/docs, the page of each metric), after RAGAS (Es et al. 2023, "Ragas: Automated Evaluation of Retrieval
Augmented Generation"); the wording of the questions is our own.
"""

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Unpack

from modelgauge.config.options import whole_number
from modelgauge.data.test_cases import ConversationalTestCase
from modelgauge.metrics.definition import MetricSettings, say_once
from modelgauge.metrics.judge_base import Extract, Judge, JudgeMetric, Procedure, take_texts
from modelgauge.metrics.questions import TEMPLATES
from modelgauge.stats.exact import find_fraction


def average_precision(worths: Sequence[float]) -> float:
    """Return how far the good items come first: the mean of the precision up to each good item.

    Σ_k (precision at k · v_k) / Σ_k v_k for v_k in {0, 1}; 0 where none is good. It is called weighted
    cumulative precision, too (deepeval.com/docs/metrics-contextual-precision); see Manning et al. 2008,
    "Introduction to Information Retrieval", section 8.4.
    """
    good = total = Fraction(0)
    for place, worth in enumerate(map(find_fraction, worths), start=1):
        good += worth
        total += good / place * worth
    return float(total / good) if good else 0.0


class _ShareMetric(JudgeMetric):
    """Base of judge metrics whose score is a share: 0 to 1."""

    score_range = (0.0, 1.0)


_UNLESS_NO = {"yes": 1.0, "no": 0.0, "idk": 1.0}


class AnswerRelevancyMetric(_ShareMetric):
    """The share of the statements of the output that answer the input; those that support an answer count.

    An output without any statement scores 1. (deepeval.com/docs/metrics-answer-relevancy)
    """

    required_params = ("input", "actual_output")
    procedure = Procedure(
        extract=Extract(TEMPLATES / "statements_of_output.md", shows=("actual_output",)),
        judge=Judge(TEMPLATES / "answer_relevancy.md", shows=("input",), verdicts=_UNLESS_NO),
    )


class FaithfulnessMetric(_ShareMetric):
    """The share of the claims of the output that the retrieval context does not contradict.

    An output without any claim scores 1. (deepeval.com/docs/metrics-faithfulness)
    """

    required_params = ("actual_output", "retrieval_context")
    procedure = Procedure(
        extract=Extract(TEMPLATES / "claims_of_output.md", shows=("actual_output",)),
        judge=Judge(TEMPLATES / "faithfulness.md", shows=("retrieval_context",), verdicts=_UNLESS_NO),
    )


class ContextualPrecisionMetric(_ShareMetric):
    """Contextual precision: relevant retrieved texts should come before irrelevant ones; see `average_precision`.

    Nothing retrieved scores 0. (deepeval.com/docs/metrics-contextual-precision)
    """

    required_params = ("input", "actual_output", "expected_output", "retrieval_context")
    procedure = Procedure(
        extract=take_texts("retrieval_context"),
        judge=Judge(TEMPLATES / "contextual_precision.md", shows=("input", "expected_output")),
        reduce=average_precision,
        empty=0.0,
    )


class ContextualRecallMetric(_ShareMetric):
    """The share of the statements of the expected output that the retrieved texts support.

    Nothing retrieved, or an expected output without any statement, scores 0.
    (deepeval.com/docs/metrics-contextual-recall)
    """

    required_params = ("actual_output", "expected_output", "retrieval_context")
    procedure = Procedure(
        extract=Extract(TEMPLATES / "statements_of_expected_output.md", shows=("expected_output",)),
        judge=Judge(TEMPLATES / "contextual_recall.md", shows=("retrieval_context",)),
        empty=0.0,
        needs=("retrieval_context",),
    )


class ContextualRelevancyMetric(_ShareMetric):
    """The share of the statements of the retrieved texts that are relevant to the input.

    Nothing retrieved, or texts without any statement, score 0. (deepeval.com/docs/metrics-contextual-relevancy)
    """

    required_params = ("input", "actual_output", "retrieval_context")
    procedure = Procedure(
        extract=Extract(TEMPLATES / "statements_of_context.md", shows=("retrieval_context",)),
        judge=Judge(TEMPLATES / "contextual_relevancy.md", shows=("input",)),
        empty=0.0,
        needs=("retrieval_context",),
    )


class HallucinationMetric(_ShareMetric):
    """The share of the texts of the context that the output contradicts. Lower is better.

    DeepEval from 4.2 on has the share of the other texts, for which higher is better; the log warns of this once.
    (deepeval.com/docs/metrics-hallucination)
    """

    required_params = ("actual_output", "context")
    higher_is_better = False
    best_score = 0.0
    worst_score = 1.0
    procedure = Procedure(
        extract=take_texts("context"),
        judge=Judge(
            TEMPLATES / "hallucination.md", shows=("actual_output",), verdicts={"yes": 0.0, "no": 1.0}
        ),
        empty=0.0,
    )

    def _seal(self) -> None:
        super()._seal()
        say_once(
            "HallucinationMetric is the share of the texts that the output contradicts, so lower is better, as in "
            "DeepEval before 4.2. DeepEval from 4.2 on counts the other texts: a threshold of 0.7 there is 0.3 here."
        )


# --- conversations ---------------------------------------------------------------------------------------


def windows(metric: Any, case: ConversationalTestCase) -> Sequence[str]:
    """Return the conversation up to each turn of the assistant: at most `metric.window_size` turns."""
    lines = [
        json.dumps({"role": turn.role, "content": turn.content}, ensure_ascii=False) for turn in case.turns
    ]
    return [
        "\n".join(lines[max(0, end - metric.window_size) : end])
        for end, turn in enumerate(case.turns, start=1)
        if turn.role == "assistant"
    ]


class _TurnMetric(_ShareMetric):
    """Base of metrics that judge each turn of the assistant given the turns before it.

    Args:
        uid: see `Metric`, also for the settings.
        window_size: how many turns the judge sees, the judged one included.

    Raises:
        InvalidOptionError: the window is smaller than one turn.
    """

    test_case_type = ConversationalTestCase

    def __init__(
        self, uid: str | None = None, *, window_size: int = 10, **settings: Unpack[MetricSettings]
    ) -> None:
        super().__init__(uid, **settings)
        turns = whole_number(ge=1)._replace(wanted="the number of turns, 1 or more")
        self.window_size = turns.check(f"{type(self).__name__}.window_size", window_size)


class TurnRelevancyMetric(_TurnMetric):
    """The share of the assistant's turns that are relevant to the conversation before them.

    A conversation in which the assistant says nothing scores 1. Takes `window_size`: how many turns the judge
    sees, the judged one included. (deepeval.com/docs/metrics-turn-relevancy)
    """

    required_params = ("turns",)
    procedure = Procedure(extract=windows, judge=Judge(TEMPLATES / "turn_relevancy.md", one_by_one=True))


ConversationRelevancyMetric = TurnRelevancyMetric
ConversationRelevancy = TurnRelevancyMetric


class RoleAdherenceMetric(_TurnMetric):
    """The share of the assistant's turns that keep to the case's `chatbot_role`.

    A conversation in which the assistant says nothing scores 1. Takes `window_size`, as
    `TurnRelevancyMetric` does. (deepeval.com/docs/metrics-role-adherence)
    """

    required_params = ("turns", "chatbot_role")
    procedure = Procedure(
        extract=windows,
        judge=Judge(TEMPLATES / "role_adherence.md", shows=("chatbot_role",), one_by_one=True),
    )

"""Metrics: each loaded when it is first used.

What a metric is stands in `base.py`; how judge metrics are declared, in `judge_base.py`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.data.estimates import Score as Score
    from modelgauge.data.test_cases import LLMTestCaseParams as LLMTestCaseParams
    from modelgauge.data.test_cases import MultiTurnParams as MultiTurnParams
    from modelgauge.data.test_cases import SingleTurnParams as SingleTurnParams
    from modelgauge.data.test_cases import TurnParams as TurnParams
    from modelgauge.metrics.app_metrics import CostMetric as CostMetric
    from modelgauge.metrics.app_metrics import JsonCorrectnessMetric as JsonCorrectnessMetric
    from modelgauge.metrics.app_metrics import LatencyMetric as LatencyMetric
    from modelgauge.metrics.app_metrics import ToolCallParams as ToolCallParams
    from modelgauge.metrics.app_metrics import ToolCorrectnessMetric as ToolCorrectnessMetric
    from modelgauge.metrics.base import Metric as Metric
    from modelgauge.metrics.definition import MetricSettings as MetricSettings
    from modelgauge.metrics.g_eval import GEval as GEval
    from modelgauge.metrics.g_eval import Rubric as Rubric
    from modelgauge.metrics.judge_base import Combination as Combination
    from modelgauge.metrics.judge_base import Extract as Extract
    from modelgauge.metrics.judge_base import Judge as Judge
    from modelgauge.metrics.judge_base import JudgeMetric as JudgeMetric
    from modelgauge.metrics.judge_base import Procedure as Procedure
    from modelgauge.metrics.judge_metrics import AnswerRelevancyMetric as AnswerRelevancyMetric
    from modelgauge.metrics.judge_metrics import ContextualPrecisionMetric as ContextualPrecisionMetric
    from modelgauge.metrics.judge_metrics import ContextualRecallMetric as ContextualRecallMetric
    from modelgauge.metrics.judge_metrics import ContextualRelevancyMetric as ContextualRelevancyMetric
    from modelgauge.metrics.judge_metrics import ConversationRelevancy as ConversationRelevancy
    from modelgauge.metrics.judge_metrics import ConversationRelevancyMetric as ConversationRelevancyMetric
    from modelgauge.metrics.judge_metrics import FaithfulnessMetric as FaithfulnessMetric
    from modelgauge.metrics.judge_metrics import HallucinationMetric as HallucinationMetric
    from modelgauge.metrics.judge_metrics import RoleAdherenceMetric as RoleAdherenceMetric
    from modelgauge.metrics.judge_metrics import TurnRelevancyMetric as TurnRelevancyMetric
    from modelgauge.metrics.judged_cases import TestCase as TestCase
    from modelgauge.metrics.judged_cases import case_of as case_of
    from modelgauge.metrics.judges import judging_by_default as judging_by_default
    from modelgauge.metrics.ngrams import BLEUMetric as BLEUMetric
    from modelgauge.metrics.ngrams import ChrFMetric as ChrFMetric
    from modelgauge.metrics.ngrams import ROUGEMetric as ROUGEMetric
    from modelgauge.metrics.text_metrics import ContainsMetric as ContainsMetric
    from modelgauge.metrics.text_metrics import ExactMatchMetric as ExactMatchMetric
    from modelgauge.metrics.text_metrics import LevenshteinMetric as LevenshteinMetric
    from modelgauge.metrics.text_metrics import PatternMatchMetric as PatternMatchMetric
    from modelgauge.metrics.text_metrics import TokenF1Metric as TokenF1Metric
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)

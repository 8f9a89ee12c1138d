"""Evals: test cases, data sets and metrics for people who test their own LLM app.

The public names, each loaded when it is first used. Metrics are in `modelgauge.metrics`. Some classes have two names,
since DeepEval renamed them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.data.responses import ToolCall as ToolCall
    from modelgauge.data.spans import Span as Span
    from modelgauge.data.spans import Trace as Trace
    from modelgauge.data.test_cases import ConversationalGolden as ConversationalGolden
    from modelgauge.data.test_cases import ConversationalTestCase as ConversationalTestCase
    from modelgauge.data.test_cases import Golden as Golden
    from modelgauge.data.test_cases import LLMTestCase as LLMTestCase
    from modelgauge.data.test_cases import LLMTestCaseParams as LLMTestCaseParams
    from modelgauge.data.test_cases import MultiTurnParams as MultiTurnParams
    from modelgauge.data.test_cases import SingleTurnParams as SingleTurnParams
    from modelgauge.data.test_cases import Turn as Turn
    from modelgauge.data.test_cases import TurnParams as TurnParams
    from modelgauge.datasets.dataset import EvaluationDataset as EvaluationDataset
    from modelgauge.datasets.dataset_test import DatasetTest as DatasetTest
    from modelgauge.evals.asserting import assert_test as assert_test
    from modelgauge.evals.evaluate_options import AsyncConfig as AsyncConfig
    from modelgauge.evals.evaluate_options import CacheConfig as CacheConfig
    from modelgauge.evals.evaluate_options import DisplayConfig as DisplayConfig
    from modelgauge.evals.evaluate_options import ErrorConfig as ErrorConfig
    from modelgauge.evals.evaluation import evaluate as evaluate
    from modelgauge.evals.inputs import log_hyperparameters as log_hyperparameters
    from modelgauge.evals.results import EvaluationResult as EvaluationResult
    from modelgauge.evals.results import MetricData as MetricData
    from modelgauge.evals.results import TestResult as TestResult
    from modelgauge.metrics.app_metrics import ToolCallParams as ToolCallParams
    from modelgauge.observe.tracing import collect_traces as collect_traces
    from modelgauge.observe.tracing import in_this_trace as in_this_trace
    from modelgauge.observe.tracing import observe as observe
    from modelgauge.observe.tracing import update_current_span as update_current_span
    from modelgauge.observe.tracing import update_current_trace as update_current_trace
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)

"""Evals: test cases, data sets and metrics for people who test their own LLM app.

The public names, each loaded when it is first used. Metrics are in `modelgauge.metrics`. Some names stand for
one class, since the documents that people come from renamed it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from modelgauge.evals.configs import AsyncConfig as AsyncConfig
    from modelgauge.evals.configs import CacheConfig as CacheConfig
    from modelgauge.evals.configs import DisplayConfig as DisplayConfig
    from modelgauge.evals.configs import ErrorConfig as ErrorConfig
    from modelgauge.evals.evaluation import evaluate as evaluate
    from modelgauge.evals.hyperparameters import log_hyperparameters as log_hyperparameters
    from modelgauge.evals.results import EvaluationResult as EvaluationResult
    from modelgauge.evals.results import MetricData as MetricData
    from modelgauge.evals.results import TestResult as TestResult
    from modelgauge.metrics.tools import ToolCallParams as ToolCallParams
    from modelgauge.observe.tracing import collect_traces as collect_traces
    from modelgauge.observe.tracing import observe as observe
    from modelgauge.observe.tracing import update_current_span as update_current_span
    from modelgauge.observe.tracing import update_current_trace as update_current_trace

_MODULES = {
    "data.responses": ("ToolCall",),
    "data.spans": ("Span", "Trace"),
    "data.test_cases": (
        "ConversationalGolden",
        "ConversationalTestCase",
        "Golden",
        "LLMTestCase",
        "LLMTestCaseParams",
        "MultiTurnParams",
        "SingleTurnParams",
        "Turn",
        "TurnParams",
    ),
    "evals.asserting": ("assert_test",),
    "evals.configs": ("AsyncConfig", "CacheConfig", "DisplayConfig", "ErrorConfig"),
    "datasets.dataset_test": ("DatasetTest",),
    "datasets.dataset": ("EvaluationDataset",),
    "evals.evaluation": ("evaluate",),
    "evals.hyperparameters": ("log_hyperparameters",),
    "evals.results": ("EvaluationResult", "MetricData", "TestResult"),
    "observe.tracing": ("collect_traces", "observe", "update_current_span", "update_current_trace"),
    "metrics.tools": ("ToolCallParams",),
}
_HOME = {name: f"modelgauge.{module}" for module, names in _MODULES.items() for name in names}

__all__ = [
    "AsyncConfig",
    "CacheConfig",
    "ConversationalGolden",
    "ConversationalTestCase",
    "DatasetTest",
    "DisplayConfig",
    "ErrorConfig",
    "EvaluationDataset",
    "EvaluationResult",
    "Golden",
    "LLMTestCase",
    "LLMTestCaseParams",
    "MetricData",
    "MultiTurnParams",
    "SingleTurnParams",
    "Span",
    "TestResult",
    "ToolCall",
    "ToolCallParams",
    "Trace",
    "Turn",
    "TurnParams",
    "assert_test",
    "collect_traces",
    "evaluate",
    "log_hyperparameters",
    "observe",
    "update_current_span",
    "update_current_trace",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    home = _HOME.get(name)
    if home is None:
        raise import_module("modelgauge.wording.did_you_mean").missing_name(__name__, name)
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]

"""ModelGauge: run any test on any AI system.

The public names, each loaded when it is first used: importing this package imports nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelgauge.api import Runner as Runner
    from modelgauge.api import list_items as list_items
    from modelgauge.api import load_record as load_record
    from modelgauge.api import load_records as load_records
    from modelgauge.api import run_test as run_test
    from modelgauge.config.secrets import InjectSecret as InjectSecret
    from modelgauge.config.secrets import OptionalSecret as OptionalSecret
    from modelgauge.config.secrets import RequiredSecret as RequiredSecret
    from modelgauge.config.secrets import SecretDescription as SecretDescription
    from modelgauge.data.estimates import Estimate as Estimate
    from modelgauge.data.estimates import Score as Score
    from modelgauge.data.items import PromptWithContext as PromptWithContext
    from modelgauge.data.items import TestItem as TestItem
    from modelgauge.data.measured import MeasuredTestItem as MeasuredTestItem
    from modelgauge.data.measured import PromptInteractionAnnotations as PromptInteractionAnnotations
    from modelgauge.data.measured import SUTCompletionAnnotations as SUTCompletionAnnotations
    from modelgauge.data.measured import SUTResponseAnnotations as SUTResponseAnnotations
    from modelgauge.data.measured import TestItemAnnotations as TestItemAnnotations
    from modelgauge.data.prompts import ChatMessage as ChatMessage
    from modelgauge.data.prompts import ChatPrompt as ChatPrompt
    from modelgauge.data.prompts import ChatRole as ChatRole
    from modelgauge.data.prompts import Prompt as Prompt
    from modelgauge.data.prompts import SUTOptions as SUTOptions
    from modelgauge.data.prompts import TextPrompt as TextPrompt
    from modelgauge.data.records import RunFailure as RunFailure
    from modelgauge.data.records import TestItemExceptionRecord as TestItemExceptionRecord
    from modelgauge.data.records import TestItemRecord as TestItemRecord
    from modelgauge.data.records import TestRecord as TestRecord
    from modelgauge.data.responses import SUTCompletion as SUTCompletion
    from modelgauge.data.responses import SUTResponse as SUTResponse
    from modelgauge.data.responses import TokenProbability as TokenProbability
    from modelgauge.data.responses import ToolCall as ToolCall
    from modelgauge.data.responses import TopTokens as TopTokens
    from modelgauge.data.responses import Usage as Usage
    from modelgauge.data.results import CallCounts as CallCounts
    from modelgauge.data.results import Counts as Counts
    from modelgauge.data.thresholds import Threshold as Threshold
    from modelgauge.dependencies import ExternalData as ExternalData
    from modelgauge.dependencies import LocalData as LocalData
    from modelgauge.dependencies import PackageData as PackageData
    from modelgauge.dependencies import WebData as WebData
    from modelgauge.interfaces.annotator import CompletionAnnotator as CompletionAnnotator
    from modelgauge.interfaces.capabilities import AcceptsChatPrompt as AcceptsChatPrompt
    from modelgauge.interfaces.capabilities import AcceptsTextPrompt as AcceptsTextPrompt
    from modelgauge.interfaces.capabilities import (
        ProducesPerTokenLogProbabilities as ProducesPerTokenLogProbabilities,
    )
    from modelgauge.interfaces.capabilities import ProducesStructuredOutput as ProducesStructuredOutput
    from modelgauge.interfaces.capabilities import SUTCapability as SUTCapability
    from modelgauge.interfaces.retry import Fatal as Fatal
    from modelgauge.interfaces.retry import Retry as Retry
    from modelgauge.interfaces.sut import PromptResponseSUT as PromptResponseSUT
    from modelgauge.interfaces.test import PromptResponseTest as PromptResponseTest
    from modelgauge.plugins.hookspecs import hookimpl as hookimpl
    from modelgauge.plugins.registry import Register as Register
    from modelgauge.rerun.rescoring import rescore as rescore
    from modelgauge.rerun.resuming import resume as resume
    from modelgauge.stats.measured import MeasuredItems as MeasuredItems
    from modelgauge.suts.function import FunctionSUT as FunctionSUT

_MODULES = {
    "api": ("Runner", "list_items", "load_record", "load_records", "run_test"),
    "data.estimates": ("Estimate", "Score"),
    "data.items": ("PromptWithContext", "TestItem"),
    "data.measured": (
        "MeasuredTestItem",
        "PromptInteractionAnnotations",
        "SUTCompletionAnnotations",
        "SUTResponseAnnotations",
        "TestItemAnnotations",
    ),
    "data.prompts": ("ChatMessage", "ChatPrompt", "ChatRole", "Prompt", "SUTOptions", "TextPrompt"),
    "data.records": (
        "RunFailure",
        "TestItemExceptionRecord",
        "TestItemRecord",
        "TestRecord",
    ),
    "data.responses": (
        "SUTCompletion",
        "SUTResponse",
        "TokenProbability",
        "ToolCall",
        "TopTokens",
        "Usage",
    ),
    "data.results": ("CallCounts", "Counts"),
    "data.thresholds": ("Threshold",),
    "dependencies": ("ExternalData", "LocalData", "PackageData", "WebData"),
    "plugins.hookspecs": ("hookimpl",),
    "interfaces.annotator": ("CompletionAnnotator",),
    "interfaces.capabilities": (
        "AcceptsChatPrompt",
        "AcceptsTextPrompt",
        "ProducesPerTokenLogProbabilities",
        "ProducesStructuredOutput",
        "SUTCapability",
    ),
    "interfaces.retry": ("Fatal", "Retry"),
    "interfaces.sut": ("PromptResponseSUT",),
    "interfaces.test": ("PromptResponseTest",),
    "plugins.registry": ("Register",),
    "rerun.rescoring": ("rescore",),
    "rerun.resuming": ("resume",),
    "config.secrets": ("InjectSecret", "OptionalSecret", "RequiredSecret", "SecretDescription"),
    "stats.measured": ("MeasuredItems",),
    "suts.function": ("FunctionSUT",),
}
_HOME = {name: f"modelgauge.{module}" for module, names in _MODULES.items() for name in names}

__all__ = [
    "AcceptsChatPrompt",
    "AcceptsTextPrompt",
    "CallCounts",
    "ChatMessage",
    "ChatPrompt",
    "ChatRole",
    "CompletionAnnotator",
    "Counts",
    "Estimate",
    "ExternalData",
    "Fatal",
    "FunctionSUT",
    "InjectSecret",
    "LocalData",
    "MeasuredItems",
    "MeasuredTestItem",
    "OptionalSecret",
    "PackageData",
    "ProducesPerTokenLogProbabilities",
    "ProducesStructuredOutput",
    "Prompt",
    "PromptInteractionAnnotations",
    "PromptResponseSUT",
    "PromptResponseTest",
    "PromptWithContext",
    "Register",
    "RequiredSecret",
    "Retry",
    "RunFailure",
    "Runner",
    "SUTCapability",
    "SUTCompletion",
    "SUTCompletionAnnotations",
    "SUTOptions",
    "SUTResponse",
    "SUTResponseAnnotations",
    "Score",
    "SecretDescription",
    "TestItem",
    "TestItemAnnotations",
    "TestItemExceptionRecord",
    "TestItemRecord",
    "TestRecord",
    "TextPrompt",
    "Threshold",
    "TokenProbability",
    "ToolCall",
    "TopTokens",
    "Usage",
    "WebData",
    "hookimpl",
    "list_items",
    "load_record",
    "load_records",
    "rescore",
    "resume",
    "run_test",
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
    return [*__all__, "errors"]

"""ModelGauge: run any test on any AI system.

The public names, each loaded when it is first used: importing this package imports none of them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.api import Runner as Runner
    from modelgauge.api import list_items as list_items
    from modelgauge.api import load_record as load_record
    from modelgauge.api import load_records as load_records
    from modelgauge.api import run_test as run_test
    from modelgauge.cache.backend import CacheBackend as CacheBackend
    from modelgauge.cache.backend import CacheStats as CacheStats
    from modelgauge.comparison.compare import compare as compare
    from modelgauge.comparison.difference import MeasurementComparison as MeasurementComparison
    from modelgauge.comparison.judges.calibration import Calibration as Calibration
    from modelgauge.comparison.judges.calibration import calibrate_judge as calibrate_judge
    from modelgauge.comparison.judges.label_sheets import sample_answers as sample_answers
    from modelgauge.comparison.plan import ComparisonPlan as ComparisonPlan
    from modelgauge.comparison.plan import plan_comparison as plan_comparison
    from modelgauge.comparison.result import Comparison as Comparison
    from modelgauge.config.secrets import InjectSecret as InjectSecret
    from modelgauge.config.secrets import OptionalSecret as OptionalSecret
    from modelgauge.config.secrets import RequiredSecret as RequiredSecret
    from modelgauge.config.secrets import SecretDescription as SecretDescription
    from modelgauge.data.annotations import Interaction as Interaction
    from modelgauge.data.annotations import MeasuredTestItem as MeasuredTestItem
    from modelgauge.data.annotations import PromptInteractionAnnotations as PromptInteractionAnnotations
    from modelgauge.data.annotations import SUTCompletionAnnotations as SUTCompletionAnnotations
    from modelgauge.data.annotations import SUTResponseAnnotations as SUTResponseAnnotations
    from modelgauge.data.annotations import TestItemAnnotations as TestItemAnnotations
    from modelgauge.data.estimates import Estimate as Estimate
    from modelgauge.data.estimates import Score as Score
    from modelgauge.data.item_records import TestItemExceptionRecord as TestItemExceptionRecord
    from modelgauge.data.item_records import TestItemRecord as TestItemRecord
    from modelgauge.data.items import PromptWithContext as PromptWithContext
    from modelgauge.data.items import TestItem as TestItem
    from modelgauge.data.prompts import ChatMessage as ChatMessage
    from modelgauge.data.prompts import ChatPrompt as ChatPrompt
    from modelgauge.data.prompts import ChatRole as ChatRole
    from modelgauge.data.prompts import ContinuationPrompt as ContinuationPrompt
    from modelgauge.data.prompts import Prompt as Prompt
    from modelgauge.data.prompts import SUTOptions as SUTOptions
    from modelgauge.data.prompts import TextPrompt as TextPrompt
    from modelgauge.data.records import TestRecord as TestRecord
    from modelgauge.data.responses import SUTCompletion as SUTCompletion
    from modelgauge.data.responses import SUTResponse as SUTResponse
    from modelgauge.data.responses import TokenProbability as TokenProbability
    from modelgauge.data.responses import ToolCall as ToolCall
    from modelgauge.data.responses import TopTokens as TopTokens
    from modelgauge.data.responses import Usage as Usage
    from modelgauge.data.results import CallCounts as CallCounts
    from modelgauge.data.results import Counts as Counts
    from modelgauge.data.results import RunFailure as RunFailure
    from modelgauge.data.results import Threshold as Threshold
    from modelgauge.dependencies.safety import DownloadLimits as DownloadLimits
    from modelgauge.dependencies.safety import UnpackLimits as UnpackLimits
    from modelgauge.dependencies.sources import ExternalData as ExternalData
    from modelgauge.dependencies.sources import LocalData as LocalData
    from modelgauge.dependencies.sources import PackageData as PackageData
    from modelgauge.dependencies.sources import WebData as WebData
    from modelgauge.interfaces.annotator import CompletionAnnotator as CompletionAnnotator
    from modelgauge.interfaces.sut import AcceptsChatPrompt as AcceptsChatPrompt
    from modelgauge.interfaces.sut import AcceptsTextPrompt as AcceptsTextPrompt
    from modelgauge.interfaces.sut import Fatal as Fatal
    from modelgauge.interfaces.sut import (
        ProducesPerTokenLogProbabilities as ProducesPerTokenLogProbabilities,
    )
    from modelgauge.interfaces.sut import ProducesStructuredOutput as ProducesStructuredOutput
    from modelgauge.interfaces.sut import PromptResponseSUT as PromptResponseSUT
    from modelgauge.interfaces.sut import Retry as Retry
    from modelgauge.interfaces.sut import ScoresContinuations as ScoresContinuations
    from modelgauge.interfaces.sut import SUTCapability as SUTCapability
    from modelgauge.interfaces.test import PromptResponseTest as PromptResponseTest
    from modelgauge.plugins.hookspecs import hookimpl as hookimpl
    from modelgauge.plugins.registry import Register as Register
    from modelgauge.rerun.again import rescore as rescore
    from modelgauge.rerun.again import resume as resume
    from modelgauge.rerun.merging import merge as merge
    from modelgauge.stats.measured import MeasuredItems as MeasuredItems
    from modelgauge.suts.function import FunctionSUT as FunctionSUT
    from modelgauge.suts.function import ScoringFunctionSUT as ScoringFunctionSUT
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)

"""What is run: one test on one SUT, as objects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from modelgauge.data.items import PromptWithContext
from modelgauge.data.responses import SUTResponse
from modelgauge.engine.calls.callee import Asked, Owner
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.identity import Initialization
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.interfaces.test import PromptResponseTest


@dataclass(frozen=True, slots=True)
class RecordedSUT:
    """A SUT that answered before this run; it is named, and not asked.

    Args:
        uid: its name.
        initialization: how it was made.
        answer: gives what it answered to each prompt, where that is not in the journal of an earlier run.
        again: what goes on with a run that stopped, where `modelgauge resume` cannot make its answers again.
        left_out: how many further answers there are, that `max_test_items` left out before the run.
    """

    uid: str
    initialization: Initialization
    answer: Callable[[PromptWithContext], SUTResponse] | None = None
    again: str | None = None
    left_out: int = 0


class Callee(NamedTuple):
    """An object that is called, and the SUTs that it asks in its turn, by its own names."""

    owner: Owner
    asked: Asked | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One test and one SUT with all that the test needs: objects, no names.

    Args:
        test: asks and measures.
        sut: answers, or stands for the one whose recorded answers are measured.
        annotators: by the test's own names.
        judge_suts: for each of these names, the SUTs that the annotator asks.
        dependencies: where the test's data is.
        dependency_versions: content hashes of the data.
    """

    test: PromptResponseTest
    sut: PromptResponseSUT[Any, Any] | RecordedSUT
    annotators: Mapping[str, CompletionAnnotator[Any]] = field(default_factory=dict)
    judge_suts: Mapping[str, Asked] = field(default_factory=dict)
    dependencies: Mapping[str, Path] = field(default_factory=dict)
    dependency_versions: Mapping[str, str] = field(default_factory=dict)

    def called(self) -> list[Callee]:
        """The objects that are called for this pair: the SUT, the annotators, and those that they ask."""
        suts = [] if isinstance(self.sut, RecordedSUT) else [Callee(self.sut)]
        annotators = [Callee(one, self.judge_suts.get(name)) for name, one in self.annotators.items()]
        judges = [Callee(one) for asked in self.judge_suts.values() for one in asked.values()]
        return [*suts, *annotators, *judges]

"""The interface of tests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, get_args

from pydantic import BaseModel

from modelgauge import stats
from modelgauge.data.annotations import TestItemAnnotations
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.records import DatasetReference
from modelgauge.data.results import Direction, Threshold
from modelgauge.dependencies.sources import ExternalData
from modelgauge.errors import DefinitionError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.identity import Identified, interface_method
from modelgauge.interfaces.sut import AcceptsTextPrompt, SUTCapability, check_capabilities
from modelgauge.stats.measured import MeasuredItems


class PromptResponseTest(Identified):
    """Asks a SUT prompts, and judges the responses.

    Subclass it in a plugin or a notebook; only `make_test_items` and `measure_quality` are required.

    Class attributes:
        requires_sut_capabilities: what a SUT must be able to do; a pair that does not fit is an error before
            any call.
        measurement_ranges: for each measurement its lowest and highest possible value, `math.inf` where there is no
            end. No interval leaves it; where both ends are known, a result has bounds although items failed.
            Measurements given as bool imply (0, 1).
        measurement_directions: which values of a measurement are better, "higher" or "lower". Comparisons then say
            "better" and "worse". Measurements with a threshold have a direction already.
        dataset: the data set that the items are of, if the test knows it; the record names it.
        thresholds: for each measurement that an item must reach. Each item then has the measurements `NAME.passed`
            and `passed`, for all; they are computed if `measure_quality` does not return them. An item without the
            measurement does not pass. A run in which an item does not pass exits with 1.
        record_notes: what else a reader of the record should know of the items.
        judges_blocked_answers: True if the test can judge an answer that the service of the SUT blocked. The
            completion then has `blocked`. By default such an item fails with `BlockedError`, and no annotator is asked.
        executes_answers: True if `measure_quality` runs code that the SUT wrote. A run of the test then needs
            `--allow-code`.
        measure_in_thread: True if `measure_quality` takes long: then it runs in threads, in as many at once as the
            machine has processors.
    """

    __test__: ClassVar[bool] = False

    requires_sut_capabilities: ClassVar[tuple[type[SUTCapability], ...]] = (AcceptsTextPrompt,)
    measurement_ranges: Mapping[str, tuple[float, float]] = {}
    measurement_directions: Mapping[str, Direction] = {}
    dataset: DatasetReference | None = None
    thresholds: Mapping[str, Threshold] = {}
    record_notes: Sequence[str] = ()
    judges_blocked_answers: bool = False
    executes_answers: bool = False
    measure_in_thread: bool = False
    required_methods: ClassVar[tuple[str, ...]] = ("make_test_items", "measure_quality")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_capabilities(cls, "requires_sut_capabilities", cls.requires_sut_capabilities)
        for name, direction in cls.measurement_directions.items():
            if direction not in get_args(Direction):
                raise DefinitionError(
                    f"{cls.__qualname__}.measurement_directions has {direction!r} for '{name}'.",
                    fix=f'Say which values are better: {{"{name}": "higher"}} or {{"{name}": "lower"}}.',
                )

    def get_dependencies(self) -> Mapping[str, ExternalData]:
        """External data that the test needs, by the author's own names."""
        return {}

    @interface_method
    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterable[TestItem]:
        """Make the items: the same items in the same order each time. May be a generator.

        All of it happens in one thread: what is opened here (a database, say) is read and closed there.

        Args:
            dependencies: where the data of `get_dependencies` is on this machine. Data that is declared `when_used` is
                fetched when its path is first read.
        """
        raise NotImplementedError

    def get_annotators(self) -> Mapping[str, CompletionAnnotator[Any] | str]:
        """Return the annotators that judge each completion, by names of the author's choice: objects, or uids."""
        return {}

    @interface_method
    def choose_annotators(self, prompt: PromptWithContext) -> Collection[str]:
        """Return the names of the annotators that judge the completions of a prompt; by default all of them.

        Pure and quick.
        """
        raise NotImplementedError

    @interface_method
    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Return the measurements of an item: numbers by name. Pure and quick.

        An exception leaves the item unscored, which the result shows; it never counts as a score.
        """
        raise NotImplementedError

    @interface_method
    def measure_in_part(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Return what can be measured although annotators failed: nothing, unless a test defines this.

        The item still counts as failed, and its record says why; the measurements returned here count in
        `mean_of_each` and in `items.having(name)`. Leave out what depends on an annotation that is missing. Pure and
        quick.
        """
        raise NotImplementedError

    def aggregate_measurements(self, items: MeasuredItems) -> Mapping[str, Any] | BaseModel:
        """Return the result: by default the mean of each measurement, with its error bar.

        Where nothing was measured it is not called, and the result is empty; where only failed items were measured in
        part, `items` is empty, and `items.having(name)` is not. Items are read from the journal, where secrets are
        redacted; `measure_quality` gets the texts unchanged.
        """
        return stats.mean_of_each(items)

"""Some items of a test, run by the engine on fake SUTs that reply in every way a real one will some day."""

import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelgauge.api import Runner
from modelgauge.config.settings import Settings
from modelgauge.data.items import TestItem
from modelgauge.data.measured import TestItemAnnotations
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.records import TestItemExceptionRecord, TestItemRecord, TestRecord
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.plugins.discovery import Plugins
from modelgauge.stats.measured import MeasuredItems
from modelgauge.testing.fakes import FakeSUT, Reply
from modelgauge.testing.samples import REPLIES

_MOST_ITEMS = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run of the trial.

    Args:
        label: how messages call it: "a very long reply", "one item".
        record: of the run.
        scored: its scored items.
        failed: its other items.
    """

    label: str
    record: TestRecord
    scored: tuple[TestItemRecord, ...]
    failed: tuple[TestItemExceptionRecord, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """How a test measures and aggregates.

    Args:
        replies: one run for each kind of reply, all items answered; without the declared ranges, since the
            engine scores nothing that is outside of them.
        sizes: runs of all items, of items that the SUT failed to answer in part, and of one item alone.
    """

    replies: tuple[Outcome, ...]
    sizes: tuple[Outcome, ...]


class _Sampled(PromptResponseTest):
    """A test with some of its items: all the rest is the test's own."""

    def __init__(
        self,
        uid: str,
        test: PromptResponseTest,
        items: Sequence[TestItem],
        annotators: Mapping[str, Any],
        ranges: Mapping[str, tuple[float, float]],
    ) -> None:
        super().__init__(uid)
        self._test, self._items, self._annotators = test, items, annotators
        self.requires_sut_capabilities = test.requires_sut_capabilities  # type: ignore[misc]  # the class's, of another class
        self.measurement_ranges = ranges
        self.measure_in_thread = test.measure_in_thread

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterable[TestItem]:
        del dependencies
        return self._items

    def get_annotators(self) -> Mapping[str, Any]:
        return self._annotators

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        return self._test.measure_quality(item)

    def aggregate_measurements(self, items: MeasuredItems) -> Any:
        return self._test.aggregate_measurements(items)


class NoReplyError(Exception):
    """What a fake SUT raises where a trial wants an item without an answer."""


def run_trial(
    test: PromptResponseTest, items: Sequence[TestItem], annotators: Mapping[str, Any], plugins: Plugins
) -> Trial:
    """Run some items of a test on fake SUTs.

    Args:
        test: the test.
        items: its items, at least one.
        annotators: by the test's names.
        plugins: where annotators that are named are found.
    """
    chosen = _spread(items)
    needs = test.requires_sut_capabilities
    suts = {f"{label} reply": FakeSUT(_uid(label), reply, needs) for label, reply in REPLIES.items()}
    suts["a single completion"] = FakeSUT("fake_single", _single, needs)
    unanswered = {id_of_prompts(item) for item in chosen[::2]}
    gap = FakeSUT("fake_gaps", _refusing(unanswered), needs)
    plain = next(iter(suts.values()))
    ranges = {name: bounds for name, bounds in test.measurement_ranges.items() if is_range(bounds)}
    without_ranges = _Sampled(test.uid, test, chosen, annotators, {})
    whole = _Sampled(test.uid, test, chosen, annotators, ranges)
    single = _Sampled(test.uid, test, chosen[:1], annotators, ranges)
    with tempfile.TemporaryDirectory(prefix="modelgauge-check-", ignore_cleanup_errors=True) as folder:
        runner = quiet_runner(Path(folder), plugins)
        replies = _outcomes(list(suts), runner.run(without_ranges, list(suts.values())))
        sizes = _outcomes(["all items", "every other item"], runner.run(whole, [plain, gap]))
        alone = _outcomes(["one item"], runner.run(single, plain))
    return Trial(tuple(replies), (*sizes, *alone))


def quiet_runner(folder: Path, plugins: Plugins, **options: Any) -> Runner:
    """A runner that keeps to a folder, and that no plugin observes."""
    return Runner(
        folder,
        plugins=without_observers(plugins),
        settings=Settings(data_dir=folder),
        **{"caching": False, "max_retries": 0, **options},
    )


def without_observers(plugins: Plugins) -> Plugins:
    """The names of these plugins without their hooks: what a check runs is nobody else's business."""
    bare = Plugins()
    for registry, filled in zip(bare.registries, plugins.registries, strict=True):
        registry.add(filled)
    return bare


def is_range(bounds: Any) -> bool:
    """Whether these are a lowest and a highest value."""
    if not isinstance(bounds, Sequence) or len(bounds) != 2:
        return False
    return (
        all(isinstance(one, int | float) for one in bounds)
        and bounds[0] <= bounds[1]
        and math.inf not in (bounds[0], -bounds[1])
    )


def _outcomes(labels: Sequence[str], records: Sequence[TestRecord]) -> list[Outcome]:
    return [_outcome(label, record) for label, record in zip(labels, records, strict=True)]


def _outcome(label: str, record: TestRecord) -> Outcome:
    items = sorted(record.iter_items(), key=lambda item: item.index)
    scored = tuple(item for item in items if isinstance(item, TestItemRecord))
    failed = tuple(item for item in items if isinstance(item, TestItemExceptionRecord))
    return Outcome(label, record, scored, failed)


def _spread(items: Sequence[TestItem]) -> list[TestItem]:
    """Some items from all over the test, so that its groups are among them."""
    step = max(1, len(items) // _MOST_ITEMS)
    return list(items[::step][:_MOST_ITEMS])


def _uid(label: str) -> str:
    return "fake_" + label.replace(" ", "_").replace("-", "_")


def id_of_prompts(item: TestItem) -> str:
    """What tells the prompts of an item apart from another's."""
    return item.prompts[0].prompt.model_dump_json()


def _single(_: AnyPrompt) -> Reply:
    """One completion, however many were asked for: SUTs that do not know the option give as many."""
    return SUTResponse(completions=(SUTCompletion(REPLIES["a plain"]),))


def _refusing(unanswered: set[str]) -> Any:
    def reply(prompt: AnyPrompt) -> Reply:
        return (
            NoReplyError("unanswered for the check")
            if prompt.model_dump_json() in unanswered
            else REPLIES["a plain"]
        )

    return reply

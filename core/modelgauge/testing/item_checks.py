"""The promises of tests: data, annotators, items, and measurements of replies of every kind."""

import copy
import math
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple
from unittest import SkipTest

from modelgauge.data.base import typed
from modelgauge.data.item_records import TestItemExceptionRecord, TestItemRecord
from modelgauge.data.items import TestItem
from modelgauge.data.json_values import check_exact
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.records import TestRecord
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.dependencies.sources import WebData
from modelgauge.errors import DefinitionError, InvalidDataError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.testing.fakes import FakeSUT, Replies, Reply
from modelgauge.testing.report import Caution, Problem, describe_error, format_traceback
from modelgauge.testing.samples import REPLIES
from modelgauge.testing.subject import MOST_ITEMS, Subject, make_items, quiet_runner
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import a_thing, counted

_MOST_MEASURED = 8


# --- data, annotators and items -------------------------------------------------------------------


def test_checksums(subject: Subject) -> None:
    """Data from the web has a checksum, so that everybody measures with the same data."""
    declared = subject.object.get_dependencies()
    if not declared:
        raise SkipTest("it needs no data")
    for key, data in declared.items():
        if isinstance(data, WebData) and data.sha256 is None:
            fix = 'Give WebData(…, sha256="…"), which `sha256sum FILE` prints.'
            raise Caution(f"Dependency {key!r} has no checksum.", fix, "get_dependencies")


def test_annotators(subject: Subject) -> None:
    """Every annotator that it names is installed."""
    named: Mapping[str, object] = subject.object.get_annotators()
    if not named:
        raise SkipTest("it names none")
    plugins = subject.plugins
    for key, value in named.items():
        if isinstance(value, str) and value not in plugins.of_annotator(value):
            near = did_you_mean(value, [*plugins.annotators.uids, *plugins.metrics.uids])
            fix = f"{near}Correct the uid, or require the plugin that has it."
            raise Problem(f"{key!r} is {value!r}, which no plugin registers.", fix, "get_annotators")
        if not isinstance(value, str | CompletionAnnotator):
            fix = "Give the uid of an annotator, or an annotator object."
            raise Problem(f"{key!r} is {a_thing(value)}.", fix, "get_annotators")


def test_items(subject: Subject) -> str:
    """make_test_items makes test items, at least one."""
    if subject.data.error is not None:
        missing = " ".join(describe_error(subject.data.error).split())
        fetch = f"`modelgauge dependencies fetch --test {subject.name}` fetches what is on the web"
        raise SkipTest(f"its data is missing: {missing}. {fetch}.")
    items, _, error = subject.items
    if error is None and not items:
        fix = "Yield a TestItem for each question of the data."
        raise Problem("make_test_items made no items.", fix, "make_test_items")
    # The rules item-ids and item-json report the others.
    if error is not None and not isinstance(error, DefinitionError | InvalidDataError):
        what = f"make_test_items raised {describe_error(error)} after item {len(items)}."
        raise Problem(what, "Fix what raises.", format_traceback(error), "make_test_items")
    return f"Items looked at: {'the first ' if len(items) == MOST_ITEMS else ''}{len(items):,}."


def test_item_ids(subject: Subject) -> None:
    """No two items are given the same id."""
    error = subject.items.error
    if isinstance(error, DefinitionError):
        raise Problem(error.problem, error.fix, "make_test_items")


def test_item_order(subject: Subject) -> None:
    """A test makes the same items in the same order every time, in every process."""
    if subject.items.error is not None:
        raise SkipTest("it makes no whole list of items")
    fix = "Sort what comes from sets and folders, and draw with random.Random(seed)."
    for when, digests in (
        ("when they are made again", make_items(subject.make(), subject.data.value).digests),
        ("in a process with another hash seed", subject.items_elsewhere(subject.name)),
    ):
        if isinstance(digests, str):
            what = f"make_test_items raised {digests} {when}."
            raise Problem(what, "Fix what raises.", "make_test_items")
        pairs = enumerate(zip_longest(subject.items.digests, digests or subject.items.digests))
        different = next((place for place, (one, other) in pairs if one != other), None)
        if different is not None:
            raise Problem(f"Item {different} is another one {when}.", fix, "make_test_items")


def test_item_json(subject: Subject) -> None:
    """Items come back from JSON as they were, and do not change once they are made."""
    items, texts, error = subject.items
    if isinstance(error, InvalidDataError):
        raise Problem(error.problem, error.fix, format_traceback(error), "make_test_items")
    for item, text in zip(items, texts, strict=True):
        if item.model_dump_json() != text:
            fix = "Give each item a context of its own: copy the dict that you fill for each row."
            raise Problem(f"Item {item.id!r} changed after it was made.", fix, "make_test_items")
        try:
            check_exact(item.context, "context")
            for prompt in item.prompts:
                check_exact(prompt.context, "context")
            back = TestItem.model_validate_json(text)
            if item.context is not None:
                typed(back.context, type(item.context))
        except ValueError as refused:  # ours, or pydantic's
            why = getattr(refused, "problem", f"it cannot be read back: {refused}.")
            fix = getattr(refused, "fix", "Make it by TestItem(…).")
            raise Problem(f"Item {item.id!r}: {why}", fix, "make_test_items") from refused


# --- measurements ---------------------------------------------------------------------------------


def test_measure_total(subject: Subject) -> str:
    """measure_quality gives numbers for every answer, however empty, odd, long or cut off."""
    replies = _trial(subject).replies
    for label, _, _, failed in replies:
        for record in failed:
            who = "measure_quality" if record.stage == "measure" else f"{record.stage} {record.source_uid!r}"
            what = (
                f"{who} raised {record.error_type} on {label}, item {record.test_item.id!r}: {record.message}"
            )
            fix = "Give a number for every answer, 0 for one that says nothing."
            raise Problem(what, fix, record.traceback, "measure_quality")
    return f"Measured {counted(len(replies), 'kind')} of replies."


def test_measure_names(subject: Subject) -> None:
    """An item has the same measurements whatever the SUT answers."""
    first: dict[Any, tuple[str, str]] = {}
    for label, _, scored, _ in _trial(subject).replies:
        for item in scored:
            item_id, names = item.test_item.id, _names_text(item.measurements)
            before, first_names = first.setdefault(item_id, (label, names))
            if names != first_names:
                what = f"Item {item_id!r} has {first_names} on {before}, and {names} on {label}."
                fix = "Return every measurement each time: what is left out shrinks the denominator."
                raise Problem(what, fix, "measure_quality")
    if not first:
        raise SkipTest("nothing could be measured")


def test_measure_range(subject: Subject) -> None:
    """Measurements lie within the declared measurement_ranges, and exist where measurement_directions names them."""
    ranges: Mapping[str, Any] = subject.object.measurement_ranges
    directions: Mapping[str, Any] = subject.object.measurement_directions
    if not ranges and not directions:
        raise SkipTest("it declares none")
    for name, bounds in ranges.items():
        if not _is_range(bounds):
            fix = "Give its lowest and highest value: (0, 1)."
            raise Problem(f"The range of {name!r} is {bounds!r}.", fix)
    measured = [item.measurements for run in _trial(subject).replies for item in run.scored]
    if not measured:
        raise SkipTest("nothing could be measured")
    names = {name for values in measured for name in values}
    for kind, declared in (("range", ranges), ("direction", directions)):
        for name in declared:
            if name not in names:
                what = f"A {kind} is declared for {name!r}, which measure_quality does not return."
                raise Problem(what, f"It returns: {_names_text(names)}.")
    for name, (low, high) in ranges.items():
        for value in (values[name] for values in measured if name in values):
            if not low <= value <= high:
                what = f"{name!r} is {value:g}, outside of ({low:g}, {high:g})."
                fix = "Correct the range, or what is measured: bounds are computed from it."
                raise Problem(what, fix, "measure_quality")


def test_aggregate(subject: Subject) -> None:
    """aggregate_measurements makes a result of all items, of some, and of a single item."""
    runs = [run for run in _trial(subject).sizes if run.scored]
    if not runs:
        raise SkipTest("nothing could be measured")
    for label, record, scored, failed in runs:
        of = f"{label} ({len(scored)} scored, {len(failed)} not)"
        if (failure := record.failure) is not None:
            what = f"aggregate_measurements raised {failure.error_type} for {of}: {failure.message}"
            fix = "Aggregate the items that are there; items.failed holds those that are not."
            raise Problem(what, fix, failure.traceback, "aggregate_measurements")
        if not record.result:
            what = f"aggregate_measurements returned nothing for {of}."
            fix = 'Return named numbers or Estimates: {"accuracy": mean(items, "accuracy")}.'
            raise Problem(what, fix, "aggregate_measurements")


class _Run(NamedTuple):
    """A run of some items on a fake SUT; the label says on which: "a very long reply", "one item"."""

    label: str
    record: TestRecord
    scored: Sequence[TestItemRecord]
    failed: Sequence[TestItemExceptionRecord]


class _Trial(NamedTuple):
    """Runs of some items of a test.

    Args:
        replies: one run for each kind of reply, all items answered; without the declared ranges, since the engine
            scores nothing that is outside of them.
        sizes: runs of all items, of items that the SUT failed to answer in part, and of one item alone.
    """

    replies: list[_Run]
    sizes: list[_Run]


class _NoReplyError(Exception):
    """Raised by a fake SUT that is to leave an item without an answer."""


@lru_cache(maxsize=1)  # the checks of one test follow upon each other
def _trial(subject: Subject) -> _Trial:
    """Return the test's results for replies of every kind."""
    items, needs = subject.items.items, subject.object.requires_sut_capabilities
    if not items:
        raise SkipTest("it makes no items")
    step = max(1, len(items) // _MOST_MEASURED)  # from all over, so from all groups
    some = items[::step][:_MOST_MEASURED]
    unanswered = [item.prompts[0].prompt for item in some[::2]]
    plain = REPLIES["a plain"]

    def gaps(prompt: AnyPrompt) -> Reply:
        return _NoReplyError("unanswered for the check") if prompt in unanswered else plain

    replies: dict[str, Replies] = {f"{label} reply": reply for label, reply in REPLIES.items()}
    # SUTs that do not know `num_completions` give one completion, however many were asked for.
    replies["a single completion"] = SUTResponse(completions=(SUTCompletion(plain),))
    if subject.object.judges_blocked_answers:
        replies["a blocked reply"] = SUTCompletion("", blocked=True)
    annotators = _annotators(subject)
    ranges = subject.object.measurement_ranges
    declared = {name: bounds for name, bounds in ranges.items() if _is_range(bounds)}
    with tempfile.TemporaryDirectory(prefix="modelgauge-check-", ignore_cleanup_errors=True) as folder:
        runner = quiet_runner(folder, subject.plugins, caching=False)

        def run(
            items: Sequence[TestItem], ranges: Mapping[str, Any], replies: Mapping[str, Replies]
        ) -> list[_Run]:
            test = copy.copy(subject.object)
            vars(test).update(make_test_items=lambda _: items, get_annotators=lambda: annotators)
            vars(test).update(get_dependencies=dict, measurement_ranges=ranges)
            suts = [FakeSUT(f"fake_{place}", reply, needs) for place, reply in enumerate(replies.values())]
            records = zip(replies, runner.run(test, suts), strict=True)
            return [
                _Run(label, record, record.test_item_records, record.test_item_exceptions)
                for label, record in records
            ]

        sizes = run(some, declared, {"all items": plain, "every other item": gaps})
        return _Trial(run(some, {}, replies), [*sizes, *run(some[:1], declared, {"one item": plain})])


def _annotators(subject: Subject) -> dict[str, Any]:
    annotators = {**subject.object.get_annotators(), **subject.annotators}
    named = [name for name in annotators.values() if isinstance(name, str)]
    if any(name not in subject.plugins.of_annotator(name) for name in named):
        raise SkipTest("see annotators")
    if not subject.call and annotators.keys() - subject.annotators.keys():
        which = ", ".join(annotators)
        raise SkipTest(f"it reads annotations of {which}, and annotators are called only with --call")
    return annotators


def _is_range(bounds: Any) -> bool:
    """Return whether these are a lowest and a highest value."""
    if not isinstance(bounds, Sequence) or len(bounds) != 2:
        return False
    low, high = bounds
    are_numbers = all(isinstance(bound, int | float) for bound in bounds)
    return are_numbers and low <= high and low != math.inf and high != -math.inf


def _names_text(names: Any) -> str:
    return ", ".join(map(repr, sorted(names))) or "none"

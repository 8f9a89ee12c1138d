"""Rules about a test's data, annotators and items."""

from collections.abc import Iterator, Mapping, Sequence

from modelgauge.data.base import typed
from modelgauge.data.items import TestItem
from modelgauge.data.json_values import check_exact
from modelgauge.dependencies import WebData
from modelgauge.errors import DefinitionError, InvalidDataError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.testing.collecting import MOST_ITEMS
from modelgauge.testing.rule import NotApplicableError, Note, problem, remark, rule, told, warning
from modelgauge.testing.test_subject import TestSubject
from modelgauge.wording.articles import a_thing
from modelgauge.wording.did_you_mean import did_you_mean


@rule("checksums", "Data from the web has a checksum, so that everybody measures with the same data.")
def checksums(subject: TestSubject) -> Iterator[Note]:
    declared = subject.sound.get_dependencies()
    if not declared:
        raise NotApplicableError("it needs no data")
    for key, data in declared.items():
        if isinstance(data, WebData) and data.sha256 is None:
            yield warning(
                f"Dependency {key!r} has no checksum.",
                fix='Give WebData(…, sha256="…"), which `sha256sum FILE` prints.',
            )


@rule("annotators", "Every annotator that it names is installed.")
def annotators(subject: TestSubject) -> Iterator[Note]:
    named: Mapping[str, object] = subject.sound.get_annotators()
    if not named:
        raise NotApplicableError("it names none")
    plugins = subject.plugins()
    for key, one in named.items():
        if isinstance(one, CompletionAnnotator):
            continue
        if not isinstance(one, str):
            yield problem(
                f"{key!r} is {a_thing(one)}.",
                fix="Give the uid of an annotator, or an annotator object.",
            )
        elif one not in plugins.of_annotator(one):
            known = [*plugins.annotators.uids, *plugins.metrics.uids]
            yield problem(
                f"{key!r} is {one!r}, which no plugin registers.",
                fix=f"{did_you_mean(one, known)}Correct the uid, or require the plugin that has it.",
            )


@rule("items", "make_test_items makes test items, at least one.")
def items_made(subject: TestSubject) -> Iterator[Note]:
    if subject.missing_data is not None:
        raise NotApplicableError(f"its data is missing: {subject.missing_data}")
    made = subject.collected
    if made.error is not None and not _belongs_elsewhere(made.error):
        yield problem(
            f"make_test_items raised {told(made.error)} after item {len(made.items)}.",
            fix="Mend what raises.",
        )
    elif made.error is None and not made.items:
        yield problem("make_test_items made no items.", fix="Yield a TestItem for each question of the data.")
    else:
        more = "the first " if len(made.items) == MOST_ITEMS else ""
        yield remark(f"Items looked at: {more}{len(made.items):,}.")


@rule("item-ids", "No two items are given the same id.")
def item_ids(subject: TestSubject) -> Iterator[Note]:
    error = subject.collected.error
    if isinstance(error, DefinitionError):
        yield problem(error.problem, fix=error.fix)


@rule("item-order", "The same items come in the same order every time, in every process.")
def item_order(subject: TestSubject) -> Iterator[Note]:
    if subject.collected.error is not None:
        raise NotApplicableError("it makes no whole list of items")
    first = subject.collected.digests
    different = _first_difference(first, subject.collected_again.digests)
    where = "when they are made again"
    if different is None and (elsewhere := subject.elsewhere) is not None:
        if elsewhere["error"]:
            yield problem(
                f"In another process make_test_items raised {elsewhere['error']}", fix="Mend what raises."
            )
            return
        different = _first_difference(first, elsewhere["digests"])
        where = "in a process with another hash seed"
    if different is not None:
        yield problem(
            f"Item {different} is another one {where}.",
            fix="Sort what comes from sets and folders, and draw with random.Random(seed).",
        )


@rule("item-json", "Items come back from JSON as they were, and do not change once they are made.")
def item_json(subject: TestSubject) -> Iterator[Note]:
    error = subject.collected.error
    if isinstance(error, InvalidDataError):
        yield problem(error.problem, fix=error.fix)
        return
    for item, text in zip(subject.items, subject.collected.texts, strict=True):
        if item.model_dump_json() != text:
            yield problem(
                f"Item {item.id!r} changed after it was made.",
                fix="Give each item a context of its own: copy the dict that you fill anew for each row.",
            )
            return
        refused = _not_exact(item, text)
        if refused is not None:
            yield problem(f"Item {item.id!r}: {refused.problem}", fix=refused.fix)
            return


RULES = (checksums, annotators, items_made, item_ids, item_order, item_json)


def _belongs_elsewhere(error: BaseException) -> bool:
    """Whether item-ids or item-json reports an error."""
    return isinstance(error, DefinitionError | InvalidDataError)


def _first_difference(first: Sequence[str], second: Sequence[str]) -> int | None:
    """The place, from 0, where two lists differ."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return None if len(first) == len(second) else min(len(first), len(second))


def _not_exact(item: TestItem, text: str) -> InvalidDataError | None:
    try:
        check_exact(item.context, "context")
        for prompt in item.prompts:
            check_exact(prompt.context, "context")
        back = TestItem.model_validate_json(text)
        typed(back.context, type(item.context)) if item.context is not None else None
    except InvalidDataError as error:
        return error
    except ValueError as error:  # pydantic's
        return InvalidDataError(f"it cannot be read back: {error}.", fix="Make it by TestItem(…).")
    return None

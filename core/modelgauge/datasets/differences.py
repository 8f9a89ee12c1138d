"""Differences between data sets, in any order of members, and between a data set and the cases of a run."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from modelgauge.data.json_values import canonical_json
from modelgauge.data.records import DatasetReference
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.datasets.dataset import EvaluationDataset, reference_to
from modelgauge.datasets.rows import Member, make_rows
from modelgauge.datasets.versioned import PULLED
from modelgauge.datasets.versions import Version
from modelgauge.metrics.judged_cases import turns_asked
from modelgauge.wording.phrases import counted

Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One golden that is in both data sets, and is not the same.

    Args:
        old: its row in the old data set.
        new: its row in the other.
    """

    old: Row
    new: Row

    @property
    def fields(self) -> list[str]:
        """The fields that differ, in order."""
        names = [*self.old, *(name for name in self.new if name not in self.old)]
        # As text: 1 and True are equal values, and not the same.
        return [
            name for name in names if canonical_json(self.old.get(name)) != canonical_json(self.new.get(name))
        ]


@dataclass(frozen=True)
class DatasetDifferences:
    """The differences between the goldens of two data sets.

    Args:
        added: rows that only the new data set has.
        removed: rows that only the old data set has.
        changed: rows of both, joined by their name, else by what is asked.
        unchanged: how many are equal.
        is_order_other: the goldens are equal and their order differs; a run on a part of them measures other goldens,
            so the content hash differs.
    """

    added: list[Row]
    removed: list[Row]
    changed: list[Change]
    unchanged: int
    is_order_other: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def differences(old: EvaluationDataset, new: EvaluationDataset) -> DatasetDifferences:
    """Compare the goldens and test cases of two data sets: equal rows are matched first, then by name, then by input.

    Args:
        old: what was.
        new: what is.
    """
    before, after = (make_rows(dataset.goldens, dataset.test_cases) for dataset in (old, new))
    same, others, removed, added = joined(before, after)
    changed = [Change(one, other) for one, other in others]
    other = not (removed or added or changed) and [row for row, _ in same] != before
    return DatasetDifferences(added, removed, changed, len(same), other)


Pairs = list[tuple[Row, Row]]


def joined(old: Sequence[Row], new: Sequence[Row]) -> tuple[Pairs, Pairs, list[Row], list[Row]]:
    """Match rows: equal rows first, then by name, then by the question.

    Args:
        old: what was.
        new: what is.

    Returns:
        The equal pairs, the changed pairs, the rows of the old that have none, and those of the new.
    """
    same, old, new = _matched_by(old, new, canonical_json)
    named, old, new = _matched_by(old, new, lambda row: row.get("name"))
    asked, old, new = _matched_by(old, new, lambda row: row.get("input", row.get("scenario")))
    return same, [*named, *asked], list(old), list(new)


def _matched_by(
    old: Sequence[Row], new: Sequence[Row], key: Callable[[Row], Hashable]
) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    """Pair members with the same key, in the order of the new members; return the pairs and the rest. None is not a
    key.
    """
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for place in range(len(old) - 1, -1, -1):  # so that pop gives the first
        waiting[key(old[place])].append(place)
    waiting.pop(None, None)
    pairs, rest, taken = [], [], set()
    for row in new:
        if places := waiting.get(key(row)):
            taken.add(place := places.pop())
            pairs.append((old[place], row))
        else:
            rest.append(row)
    return pairs, [row for place, row in enumerate(old) if place not in taken], rest


# --- from the cases that a run judged ---------------------------------------------------------------

_ASKED_AND_KNOWN = (
    *("input", "expected_output", "context", "expected_tools"),
    *("scenario", "expected_outcome", "user_description", "chatbot_role"),
)
"""The inputs and references of members, of which a case of a golden has the same; its turns go on from there."""


class DatasetLink(NamedTuple):
    """A data set as a record names it.

    Args:
        reference: name and content hash.
        notes: how the judged cases differ from what the hash is of; none where they are all of it.
    """

    reference: DatasetReference
    notes: tuple[str, ...] = ()


def link_to(dataset: EvaluationDataset, judged: Sequence[Member]) -> DatasetLink:
    """Return the reference to a data set for a record of judged members, or of cases made from them.

    The hash is of the data set as it is now. Goldens can have been edited since cases were made of them, and the cases
    can be of some goldens only, or of none. Notes say so; inputs and references are compared.

    Args:
        dataset: where they are from.
        judged: test cases or goldens.
    """
    reference = reference_to(dataset)
    if dataset.goldens:
        return DatasetLink(reference, tuple(_of_goldens(dataset.goldens, judged)))
    return DatasetLink(reference, tuple(_of_how_many(len(judged), len(dataset.test_cases), "test case")))


def _of_goldens(goldens: Sequence[Member], judged: Sequence[Member]) -> Iterable[str]:
    there = Counter(map(_beginning, goldens))
    matched = Counter(
        next((beginning for beginning in _beginnings(member) if beginning in there), "") for member in judged
    )
    strangers = matched.pop("", 0)
    yield from _of_how_many((matched & there).total(), len(goldens), "golden")
    if strangers:
        yield (
            f"{counted(strangers, 'test case matches', 'test cases match')} no golden of the data set as it is now: "
            "inputs or references differ from those of its hash."
        )


def _of_how_many(number: int, of: int, what: str) -> Iterable[str]:
    if number < of:
        yield f"The cases are of {number:,} of the {counted(of, what)} of the data set whose hash is recorded."


def _beginning(golden: Member) -> str:
    turns = getattr(golden, "turns", None)
    return _identity(golden, len(turns_asked(turns)) if turns else 0)


def _beginnings(member: Member) -> Iterable[str]:
    """Yield the goldens from which a member can come: a conversation may have started with any number of its turns."""
    if not isinstance(member, ConversationalTestCase):
        return (_beginning(member),)
    return (_identity(member, number) for number in range(len(member.turns), -1, -1))


class SavedGoldens:
    """Finds the saved versions whose goldens ask what a case asks, among the data sets that this process has pulled."""

    def __init__(self) -> None:
        self._read: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()

    def find_versions(self, case: Member) -> list[DatasetReference]:
        """Return the versions that contain the case, each with a number; empty if the case has its own input.

        Args:
            case: a test case, or a golden.
        """
        asked = set(_asked_first(case))
        saved = [known for known in map(self._known, tuple(PULLED)) if known.reference.version]
        return [known.reference for known in saved if not known.questions.isdisjoint(asked)]

    def _known(self, dataset: Any) -> "_Known":
        _, version = dataset.pulled
        read = self._read.get(dataset)
        if read is None or read.version is not version:
            questions = frozenset(map(_question, dataset.goldens or dataset.test_cases))
            read = self._read[dataset] = _Known(version, reference_to(dataset), questions)
        return read


class _Known(NamedTuple):
    """A data set as it was when the first case was looked for in it."""

    version: Version
    reference: DatasetReference
    questions: frozenset[str]


def _question(golden: Member) -> str:
    """Return the question of a golden, without its references."""
    return golden.input if isinstance(golden, Golden | LLMTestCase) else _beginning(golden)


def _asked_first(member: Member) -> Iterable[str]:
    return (member.input,) if isinstance(member, Golden | LLMTestCase) else _beginnings(member)


def _identity(member: Member, turns: int) -> str:
    known: dict[str, Any] = {
        name: value for name in _ASKED_AND_KNOWN if (value := getattr(member, name, None)) is not None
    }
    if isinstance(member, ConversationalGolden | ConversationalTestCase):
        known["turns"] = [[turn.role, turn.content] for turn in (member.turns or ())[:turns]]
    return canonical_json(known)

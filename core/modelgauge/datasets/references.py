"""What a record says of the data set that its cases are from, and where they are not all of it, or not it at all."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from modelgauge.data.json_values import canonical_json
from modelgauge.data.records import DatasetReference
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.rows import Member
from modelgauge.metrics.judged_cases import turns_asked
from modelgauge.reports.layout import counted

_ASKED_AND_KNOWN = (
    "input",
    "expected_output",
    "context",
    "expected_tools",
    "scenario",
    "expected_outcome",
    "user_description",
    "chatbot_role",
)
"""The inputs and references of members, of which a case of a golden has the same; its turns go on from there."""


class Link(NamedTuple):
    """A data set as a record names it.

    Args:
        reference: name and content hash.
        notes: how the judged cases differ from what the hash is of; none where they are all of it.
    """

    reference: DatasetReference
    notes: tuple[str, ...] = ()


def reference_to(dataset: EvaluationDataset) -> DatasetReference:
    """What a record says of a data set."""
    return DatasetReference(name=dataset.name or "dataset", digest=dataset.content_hash)


def link_to(dataset: EvaluationDataset, judged: Sequence[Member]) -> Link:
    """What a record says of a data set some of whose members, or cases made of them, are judged.

    The hash is of the data set as it is now. Goldens can have been edited since cases were made of them, and the cases
    can be of some goldens only, or of none. Notes say so; inputs and references are compared.

    Args:
        dataset: where they are from.
        judged: test cases or goldens.
    """
    reference = reference_to(dataset)
    if dataset.goldens:
        return Link(reference, tuple(_of_goldens(dataset.goldens, judged)))
    return Link(reference, tuple(_of_how_many(len(judged), len(dataset.test_cases), "test case")))


def _of_goldens(goldens: Sequence[Member], judged: Sequence[Member]) -> Iterable[str]:
    there = Counter(map(_beginning, goldens))
    matched: Counter[str] = Counter()
    strangers = 0
    for member in judged:
        asked = next((one for one in _beginnings(member) if one in there), None)
        if asked is None:
            strangers += 1
        else:
            matched[asked] += 1
    yield from _of_how_many(sum((matched & there).values()), len(goldens), "golden")
    if strangers:
        matches = "matches" if strangers == 1 else "match"
        yield (
            f"{counted(strangers, 'test case')} {matches} no golden of the data set as it is now: their inputs or "
            "references are others than those that its hash is of."
        )


def _of_how_many(number: int, of: int, what: str) -> Iterable[str]:
    if number < of:
        yield f"The cases are of {number:,} of the {counted(of, what)} of the data set whose hash is recorded."


def _beginning(golden: Member) -> str:
    turns = getattr(golden, "turns", None)
    return _key(golden, len(turns_asked(turns)) if turns else 0)


def _beginnings(member: Member) -> Iterable[str]:
    """What goldens a member can be of: a conversation can have begun with any number of its turns."""
    if not isinstance(member, ConversationalTestCase):
        return (_beginning(member),)
    return (_key(member, number) for number in range(len(member.turns), -1, -1))


def _key(member: Member, turns: int) -> str:
    said: dict[str, Any] = {
        name: value for name in _ASKED_AND_KNOWN if (value := getattr(member, name, None)) is not None
    }
    if isinstance(member, ConversationalGolden | ConversationalTestCase):
        said["turns"] = [[turn.role, turn.content] for turn in (member.turns or ())[:turns]]
    return canonical_json(said)

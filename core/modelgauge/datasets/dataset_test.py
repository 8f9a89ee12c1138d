"""`DatasetTest`: a data set and metrics as a test like any other, for any SUT.

How recorded answers are judged, without a SUT, is in `evals/given_test.py`; how files become data sets, in
`dataset.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, overload

from modelgauge.data.base import of_valid
from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.json_values import class_name
from modelgauge.data.prompts import AnyPrompt, ChatMessage, ChatPrompt, ChatRole, TextPrompt
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase, Turn
from modelgauge.data.thresholds import PASSED
from modelgauge.datasets.dataset import EvaluationDataset, reference_to
from modelgauge.datasets.judged_test import JudgedTest, keyed
from modelgauge.datasets.rows import Member
from modelgauge.errors import InvalidDataError
from modelgauge.interfaces.identity import Initialization
from modelgauge.interfaces.sut import AcceptsChatPrompt, AcceptsTextPrompt
from modelgauge.metrics.base import Metric
from modelgauge.metrics.judged_cases import Origin, check_case, turns_asked
from modelgauge.wording.phrases import a_thing, quoted


class ItemsOfNumber:
    """Items that are made one by one and have a known number, so that a stopped run knows how many are left.

    Args:
        number: how many there are.
        made: makes them.
    """

    def __init__(self, number: int, made: Callable[[], Iterator[TestItem]]) -> None:
        self._number, self._made = number, made

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[TestItem]:
        return self._made()


class DatasetTest(JudgedTest):
    """Asks a SUT the inputs of a data set, and judges its answers by metrics.

    Each metric gives two measurements, its score under the metric's name and `NAME.passed`; an item has `passed` where
    all its metrics passed. A metric whose threshold is None gives its score alone. The fields of a member that describe
    an earlier answer (the answer itself, a last turn of the assistant, tools called, cost, time) are not judged, since
    the answer is not this SUT's. Its retrieval context may belong to the input, so it is judged unless the SUT returns
    its own.

    Args:
        uid: the name in records.
        dataset: its goldens are asked; where it has none, the inputs of its test cases. A list of either will do.
        metrics: at least one.

    Raises:
        InvalidDataError: there is no data set, it is empty, a golden of a conversation has no turns, or there is no
            metric.
        MissingParameterError: members lack what a metric needs and no SUT can say, or are of another kind.
    """

    def __init__(
        self, uid: str, dataset: EvaluationDataset | Sequence[Member], metrics: Sequence[Metric]
    ) -> None:
        super().__init__(uid)
        dataset = _make_dataset(dataset)
        self.metrics = keyed(metrics)
        self._declare(self.metrics)
        self.members: list[Member] = list(dataset.goldens or dataset.test_cases)
        if not self.members:
            raise InvalidDataError(
                "The data set is empty.", fix="Add goldens: dataset.add_golden(Golden(input=…))."
            )
        check_references(self.members, self.metrics.values())
        for number, member in enumerate(self.members, 1):
            _check_begun(member, f", number {number:,} of the data set,")
        self.dataset = reference_to(dataset)
        kind = AcceptsChatPrompt if dataset.is_multi_turn else AcceptsTextPrompt
        self.requires_sut_capabilities = (kind,)  # type: ignore[misc]  # it depends on the data

    @property
    def initialization(self) -> Initialization:
        """The initialization, with goldens from a list named like those of a data set instead of listed."""
        made = super().initialization
        if not isinstance(made.arguments.get("dataset"), list):
            return made
        dataset = {"$opaque": class_name(EvaluationDataset)}
        return made.replaced(arguments={**made.arguments, "dataset": dataset}, opaque=("dataset",))

    def measurement_names(self) -> list[str]:
        """Return the names of all measurements that its items can have."""
        return [*self.metrics, *(f"{name}.{PASSED}" for name in self.thresholds), PASSED]

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterable[TestItem]:
        """Yield one item for each golden, with the golden as its context."""
        del dependencies
        return ItemsOfNumber(len(self.members), self._items)

    def _items(self) -> Iterator[TestItem]:
        ids = item_ids(self.members)
        for member, item_id in zip(self.members, ids, strict=True):
            member.check()  # it may have been edited since the test was made
            yield TestItem(PromptWithContext(make_prompt(member), context=as_asked(member)), id=item_id)


def _make_dataset(given: object) -> EvaluationDataset:
    """Return a data set; a list of members is converted."""
    if isinstance(given, EvaluationDataset):
        return given
    if isinstance(given, Member):
        given = [given]
    if isinstance(given, str | PathLike):
        raise InvalidDataError(
            f"A DatasetTest got {str(given)!r}, not a data set.",
            fix=f"Read the file: EvaluationDataset.from_file({str(given)!r}).",
        )
    if not isinstance(given, list | tuple) or not all(isinstance(member, Member) for member in given):
        raise InvalidDataError(
            f"A DatasetTest got {a_thing(given)} that is neither a data set nor a list of goldens.",
            fix="Give EvaluationDataset(goldens=[Golden(input=…)]), or the list alone.",
        )
    are_goldens = all(isinstance(golden, Golden | ConversationalGolden) for golden in given)
    return EvaluationDataset(given) if are_goldens else EvaluationDataset(test_cases=given)


def check_references(members: Sequence[Member], metrics: Iterable[Metric]) -> None:
    """Refuse metrics that would fail once the answers are paid: what a SUT does not say must be there.

    Raises:
        MissingParameterError: it is not; the message names metric, parameter and member.
    """
    for metric in metrics:
        first = members[0]  # all are of one kind
        check_case(_without_answer(first), metric.test_case_type, (), metric.name, _origin(first))
        needed = [name for name in metric.required_params if name not in (*RUNTIME_FIELDS, "turns")]
        for member in members:
            if any(getattr(member, name, None) is None for name in needed):
                case = _without_answer(member)
                check_case(case, metric.test_case_type, needed, metric.name, _origin(member))


def _origin(member: Member) -> Origin:
    is_golden = isinstance(member, Golden | ConversationalGolden)
    return Origin("golden", type(member).__name__) if is_golden else Origin()


def _without_answer(member: Member) -> LLMTestCase | ConversationalTestCase:
    """Return the test case of a member as far as it is known before a SUT has answered."""
    if isinstance(member, Golden):
        return member.to_test_case()
    if isinstance(member, ConversationalGolden):
        # The scenario stands for turns that are not there, so that messages have a title; nobody is asked it.
        return member.to_test_case(member.turns or [Turn("user", member.scenario or "")])
    return member


def item_ids(members: Sequence[Any]) -> list[str | None]:
    """Return the id of each member's item: its name if no other member has it, else None."""
    times = Counter(member.name for member in members)
    return [member.name if member.name and times[member.name] == 1 else None for member in members]


_OF_AN_ANSWER = ("actual_output", "tools_called", "token_cost", "completion_time")


@overload
def as_asked(member: LLMTestCase | Golden) -> Golden: ...
@overload
def as_asked(member: ConversationalTestCase | ConversationalGolden) -> ConversationalGolden: ...
def as_asked(member: Member) -> Golden | ConversationalGolden:
    """Return a member without the answer, tool calls, time and cost of another app."""
    kind: type[Golden | ConversationalGolden]
    kind = Golden if isinstance(member, Golden | LLMTestCase) else ConversationalGolden
    held = {name: getattr(member, name, None) for name in kind.model_fields}
    if isinstance(member, kind) and all(held.get(name) is None for name in _OF_AN_ANSWER):
        return member
    held |= {name: None for name in _OF_AN_ANSWER if name in held}
    return of_valid(kind, **held)  # which has been checked, and warned of, where it was made


def _check_begun(member: Member, which: str = "") -> None:
    """Refuse a golden of a conversation that has no turns, so that there is nothing to ask."""
    if isinstance(member, ConversationalGolden) and not member.turns:
        raise InvalidDataError(
            f"The golden {quoted(member.name or member.scenario or '', _LONGEST_TITLE)}{which} has a scenario and no "
            "turns: a scenario describes a conversation, and is nothing that a user says.",
            fix='Give turns, up to what the SUT is to answer: ConversationalGolden(…, turns=[Turn("user", "…")]); in a '
            'file it is the column turns: [{"role": "user", "content": "…"}].',
        )


_LONGEST_TITLE = 60


def make_prompt(member: Member) -> AnyPrompt:
    """Return the prompt for a SUT: the input, or the conversation up to the missing answer.

    Raises:
        InvalidDataError: the conversation has no turns.
    """
    if isinstance(member, LLMTestCase | Golden):
        return TextPrompt(member.input)
    _check_begun(member)
    asked = turns_asked(member.turns or ())
    return ChatPrompt([ChatMessage(role=ChatRole(turn.role), text=turn.content) for turn in asked])

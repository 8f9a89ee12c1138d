"""`DatasetTest`: a data set and metrics as a test like any other, for any SUT.

How recorded answers are judged, without a SUT, is in `evals/given_test.py`; how files become data sets, in
`dataset.py`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, overload

from modelgauge.data.annotations import PromptInteractionAnnotations, TestItemAnnotations
from modelgauge.data.base import of_valid
from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.estimates import Score
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.json_values import class_name
from modelgauge.data.prompts import AnyPrompt, ChatMessage, ChatPrompt, ChatRole, TextPrompt
from modelgauge.data.results import PASSED, Direction, Threshold
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase, Turn
from modelgauge.datasets.dataset import EvaluationDataset, reference_to
from modelgauge.datasets.rows import Member
from modelgauge.errors import InvalidDataError
from modelgauge.interfaces.identity import Initialization, overrides
from modelgauge.interfaces.sut import AcceptsChatPrompt, AcceptsTextPrompt
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.metrics.base import Metric
from modelgauge.metrics.judged_cases import Origin, check_case, turns_asked
from modelgauge.metrics.names import names_apart
from modelgauge.stats.exact import exact_mean
from modelgauge.wording.phrases import a_thing, quoted


class ItemsOfNumber:
    """Items that are made one by one, and whose number is known, so that a stopped run knows how many are left.

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


class DatasetTest(PromptResponseTest):
    """Asks a SUT the inputs of a data set, and judges what it answers by metrics.

    Each metric gives two measurements, its score under the metric's name and `NAME.passed`; an item has
    `passed` where all its metrics passed. A metric whose threshold is None gives its score alone. What a member says of
    an earlier answer (the answer itself, a last turn of the assistant, tools called, cost, time) is not this SUT's, and
    is not judged; what was retrieved is, unless the SUT returns its own, since it may be given with the input.

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
        dataset = _dataset_of(dataset)
        self.metrics = keyed(metrics)
        self.members: list[Member] = list(dataset.goldens or dataset.test_cases)
        if not self.members:
            raise InvalidDataError(
                "The data set is empty.", fix="Add goldens: dataset.add_golden(Golden(input=…))."
            )
        check_references(self.members, self.metrics.values())
        for number, member in enumerate(self.members, 1):
            _check_begun(member, f", number {number:,} of the data set,")
        self.dataset = reference_to(dataset)
        self.thresholds = thresholds_of(self.metrics)
        self.measurement_ranges, self.measurement_directions = (
            ranges_of(self.metrics),
            directions_of(self.metrics),
        )
        kind = AcceptsChatPrompt if dataset.is_multi_turn else AcceptsTextPrompt
        self.requires_sut_capabilities = (kind,)  # type: ignore[misc]  # it depends on the data

    @property
    def initialization(self) -> Initialization:
        """How it was made; goldens that were given as a list are named like those of a data set, not listed."""
        made = super().initialization
        if not isinstance(made.arguments.get("dataset"), list):
            return made
        dataset = {"$opaque": class_name(EvaluationDataset)}
        return made.replaced(arguments={**made.arguments, "dataset": dataset}, opaque=("dataset",))

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterable[TestItem]:
        """One item for each golden, with the golden as context."""
        del dependencies
        return ItemsOfNumber(len(self.members), self._items)

    def _items(self) -> Iterator[TestItem]:
        ids = item_ids(self.members)
        for member, item_id in zip(self.members, ids, strict=True):
            member.check()  # it may have been edited since the test was made
            yield TestItem(PromptWithContext(prompt_of(member), context=as_asked(member)), id=item_id)

    def get_annotators(self) -> Mapping[str, Metric]:
        """The metrics, by name."""
        return self.metrics

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """The scores, and whether they are good enough."""
        measured = self.measure_in_part(item)
        if not measured:
            raise self._nothing_judged(item)
        return measured

    def measure_in_part(self, item: TestItemAnnotations) -> dict[str, float]:
        """The scores of the metrics that gave one, and whether the item passed where all of them did.

        Not where one is missing, though another is below its threshold: of such items the share that passed would
        count the failed ones only.
        """
        measured: dict[str, float] = {}
        names: set[str] = set()
        is_whole = True
        for interaction in item.interactions:
            component = self.component(interaction.prompt)
            found = _scores(interaction)
            chooses = overrides(type(self), "choose_annotators")
            for key in dict.fromkeys(self.choose_annotators(interaction.prompt)) if chooses else self.metrics:
                metric, scores = self.metrics[key], found[key]
                # One metric has one name in all items; that of a component, numbered only where names meet.
                name = key if component is None else self._name_of_part(component, metric, names)
                names.add(name)
                if len(scores) < len(interaction.response.completions):
                    is_whole = is_whole and metric.threshold is None
                    continue
                measured[name] = exact_mean(score.value for score in scores)
                if metric.threshold is not None:
                    measured[f"{name}.{PASSED}"] = all(metric.is_successful(score) for score in scores)
        verdicts = [measured[key] for name in names if (key := f"{name}.{PASSED}") in measured]
        # Where only others of this test have thresholds, an item has nothing to fail.
        if measured and is_whole and (verdicts or self.thresholds):
            measured[PASSED] = all(verdicts)
        return measured

    def _nothing_judged(self, item: TestItemAnnotations) -> InvalidDataError:
        """The error of an item without a score."""
        return InvalidDataError(
            f"Nothing judged '{item.test_item.id}'.", fix="Let choose_annotators choose at least one metric."
        )

    def _name_of_part(self, component: str, metric: Metric, taken: Collection[str] = ()) -> str:
        """The name of the measurement of a component, which no measurement of the whole has."""
        return _free_name(f"{component}.{metric.name}", {*self._of_whole(), *taken})

    def _of_whole(self) -> Collection[str]:
        """The names of the metrics that judge an item as a whole."""
        return self.metrics

    def component(self, prompt: PromptWithContext) -> str | None:
        """The name of the part of the app that a prompt belongs to; None for the app as a whole."""
        del prompt
        return None


def _dataset_of(given: object) -> EvaluationDataset:
    """A data set, or a list of its members as one."""
    if isinstance(given, EvaluationDataset):
        return given
    if isinstance(given, Member):
        given = [given]
    if isinstance(given, str | PathLike):
        raise InvalidDataError(
            f"A DatasetTest got {str(given)!r}, not a data set.",
            fix=f"Read the file: EvaluationDataset.from_file({str(given)!r}).",
        )
    if not isinstance(given, list | tuple) or not all(isinstance(one, Member) for one in given):
        raise InvalidDataError(
            f"A DatasetTest got {a_thing(given)} that is no data set and no list of goldens.",
            fix="Give EvaluationDataset(goldens=[Golden(input=…)]), or the list alone.",
        )
    are_goldens = all(isinstance(one, Golden | ConversationalGolden) for one in given)
    return EvaluationDataset(given) if are_goldens else EvaluationDataset(test_cases=given)


def _scores(interaction: PromptInteractionAnnotations) -> defaultdict[str, list[Score]]:
    """The scores by metric, one for each completion."""
    found: defaultdict[str, list[Score]] = defaultdict(list)
    for completion in interaction.response.completions:
        for key in completion.annotations:
            found[key].append(completion.get_annotation(key, Score))
    return found


def keyed(metrics: Sequence[Metric], parts: Sequence[Metric] = ()) -> dict[str, Metric]:
    """Metrics by their names; metrics of one name get their arguments added to it, else a number.

    Args:
        metrics: of cases as a whole.
        parts: those of components, which change no name of the others.

    Raises:
        InvalidDataError: there is none, or something among them is no metric.
    """
    if isinstance(metrics, Metric | str):
        metrics = [metrics]  # a uid is refused below
    if not metrics and not parts:
        raise InvalidDataError(
            "There is no metric, so nothing can pass or fail.", fix="Give at least one: metrics=[…]."
        )
    made: dict[str, Metric] = {}
    for group in (metrics, parts):
        ours = [one for one in {id(one): one for one in group}.values() if one not in made.values()]
        for metric in ours:
            _check_metric(metric)
        for name, metric in zip(names_apart(ours), ours, strict=True):
            made[_free_name(name, made)] = metric
    return made


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
    """The test case of a member, as far as it is known before a SUT has answered."""
    if isinstance(member, Golden):
        return member.to_test_case()
    if isinstance(member, ConversationalGolden):
        # The scenario stands for turns that are not there, so that messages have a title; nobody is asked it.
        return member.to_test_case(member.turns or [Turn("user", member.scenario or "")])
    return member


def thresholds_of(metrics: Mapping[str, Metric]) -> dict[str, Threshold]:
    """The thresholds of scores, by the names of their measurements."""
    return {
        name: Threshold(value=one.threshold, higher_is_better=one.higher_is_better)
        for name, one in metrics.items()
        if one.threshold is not None
    }


def ranges_of(metrics: Mapping[str, Metric]) -> dict[str, tuple[float, float]]:
    """The known ranges of scores, by the names of their measurements."""
    return {name: one.score_range for name, one in metrics.items() if one.score_range is not None}


def directions_of(metrics: Mapping[str, Metric]) -> dict[str, Direction]:
    """Which scores are the better ones, by the names of their measurements."""
    return {name: "higher" if one.higher_is_better else "lower" for name, one in metrics.items()}


def _check_metric(metric: object) -> None:
    if isinstance(metric, Metric):
        return
    if isinstance(metric, str):
        raise InvalidDataError(
            f"Among the metrics is the uid {metric!r}, and a DatasetTest looks up no names.",
            fix="Give metrics: [ExactMatchMetric()]; evaluate(…) takes uids, and so does the command line: "
            "modelgauge run-test --dataset FILE --metric UID.",
        )
    if isinstance(metric, type) and issubclass(metric, Metric):
        raise InvalidDataError(
            f"Among the metrics is the class {metric.__name__}.",
            fix=f"Make an object of it: {metric.__name__}().",
        )
    raise InvalidDataError(
        f"Among the metrics is a value of type {type(metric).__name__}.",
        fix="Give metrics: [ExactMatchMetric()]; one of your own is a subclass of Metric with score.",
    )


def _free_name(name: str, taken: Collection[str]) -> str:
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}~{number}"
    return free


def item_ids(members: Sequence[Any]) -> list[str | None]:
    """The ids of the items of members: names that only one member has; else None."""
    times = Counter(member.name for member in members)
    return [member.name if member.name and times[member.name] == 1 else None for member in members]


_OF_AN_ANSWER = ("actual_output", "tools_called", "token_cost", "completion_time")


@overload
def as_asked(member: LLMTestCase | Golden) -> Golden: ...
@overload
def as_asked(member: ConversationalTestCase | ConversationalGolden) -> ConversationalGolden: ...
def as_asked(member: Member) -> Golden | ConversationalGolden:
    """What is known of a member before a SUT answers: nothing that somebody else answered, called or paid."""
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


def prompt_of(member: Member) -> AnyPrompt:
    """What a SUT is asked: the input, or the conversation up to the answer that is missing.

    Raises:
        InvalidDataError: nobody has said anything in the conversation.
    """
    if isinstance(member, LLMTestCase | Golden):
        return TextPrompt(member.input)
    _check_begun(member)
    asked = turns_asked(member.turns or ())
    return ChatPrompt([ChatMessage(role=ChatRole(turn.role), text=turn.content) for turn in asked])

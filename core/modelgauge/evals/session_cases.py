"""The cases of a session of pytest and their outcomes, also of processes that died."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from modelgauge.data.item_records import Failure, ItemRecord
from modelgauge.data.results import TotalUsage
from modelgauge.data.thresholds import has_passed
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.joined_facts import agreed, joined_annotators, numbered, union
from modelgauge.evals.display import CaseDisplay
from modelgauge.stats.exact import exact_mean

T = TypeVar("T")

OUTSIDE = "no test"
"""Test name for cases judged outside a test, for example during collection."""

PROVISIONAL = 1 << 22
"""The first provisional index. At the end of the session, such cases get indexes in the order of the tests."""

_UNJUDGED_TYPE = "NotJudged"
_CUT_SHORT = "Its process ended before it could say why."
_UNJUDGED = "It was begun and not judged: it was interrupted, or its process ended."


@dataclass(slots=True)
class SessionCase:
    """A test case that one call of `assert_test` judged, or was to judge.

    Args:
        index: its number in the session, which its line in the journal has.
        order: of cases: the place of the test, and the number of the call in its process.
        test: the id of the test that called it.
        repeated: the same, without the repeat.
        repeat: which of the times it is that the test is run, from 0.
        item: its record; None if it was not judged, since its process ended.
        declared: thresholds, ranges and directions of its measurements, by their names.
        notes: what a reader should know of it.
        display: what is shown of it, as JSON; None if its process died before the case was judged.
    """

    index: int
    order: tuple[int, int]
    test: str
    repeated: str
    repeat: int
    item: ItemRecord | None = None
    declared: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    display: dict[str, Any] | None = None

    def shown(self, redact: Callable[[str], str]) -> CaseDisplay:
        """Return the title, verdict and metrics of the case for the summary.

        Args:
            redact: takes secrets out of a JSON text.
        """
        display = self._display()
        written = json.dumps(display)
        if (clean := redact(written)) != written:
            display = json.loads(clean)
        return CaseDisplay.of_plain(display).shortened()

    def _display(self) -> dict[str, Any]:
        if self.item is not None and self.display is not None:
            return self.display
        error: str | None = _UNJUDGED
        if self.item is not None and self.item.failure is not None:
            error = self.item.failure.reason
        elif self.item is not None:
            error = _CUT_SHORT if has_passed(self.item.measurements) is False else None
        return asdict(CaseDisplay(self.test, error is None, (), error))


@dataclass(slots=True)
class Cases:
    """All cases of a session, in the order of its tests, and what its processes reported.

    Args:
        listed: the cases.
        manifests: what judged them, and what it was made of.
        hyperparameters: that were logged.
        data_sets: the saved versions whose goldens the cases are of: name, digest and version of each.
        used: by all calls.
        secrets: descriptions of those that were looked up.
    """

    listed: list[SessionCase]
    manifests: list[dict[str, Any]]
    hyperparameters: dict[str, Any]
    data_sets: list[dict[str, Any]]
    used: TotalUsage
    secrets: list[dict[str, Any]]

    @classmethod
    def of(cls, events: Iterable[Mapping[str, Any]], items: Iterable[ItemRecord]) -> "Cases":
        """Read what all processes left.

        Args:
            events: of their logs.
            items: of their journals.
        """
        cases: dict[int, SessionCase] = {}
        manifests, secrets, data_sets = (list[dict[str, Any]]() for _ in range(3))
        hyperparameters: dict[str, Any] = {}
        used: dict[int, Any] = {}  # of each process, what it reported last
        for event in events:
            if "used" in event:
                used[event["process"]] = event["used"]
            match event:
                case {"made": made}:
                    manifests.append(made)
                case {"hyperparameters": logged}:
                    hyperparameters.update(logged)
                case {"data_set": reference} if reference not in data_sets:
                    data_sets.append(reference)
                case {"secret": secret}:
                    secrets.append(secret)
                case _:
                    _note(event, cases)
        for item in items:
            if item.index in cases:  # of a case that was refused the later line says why
                cases[item.index].item = item
        for case in cases.values():
            if case.item is None:
                case.notes.append(f"{case.test}: {_UNJUDGED}")
        in_order = sorted(cases.values(), key=lambda case: (case.order, case.index))
        total = sum(map(TotalUsage.load, used.values()), TotalUsage())
        return cls(in_order, manifests, hyperparameters, data_sets, total, secrets)

    @property
    def notes(self) -> list[str]:
        """Notes for the reader of the record."""
        return [note for case in self.listed for note in case.notes]

    def declared(self, what: str) -> dict[str, Any]:
        """Return the thresholds, ranges or directions of measurements, except those that differ from case to case.

        Args:
            what: which of these.
        """
        return agreed(case.declared.get(what, {}) for case in self.listed)

    def by_id(self) -> dict[str, list[SessionCase]]:
        """Return the repeats of each case by its id: the test's name, numbered if the test judges several cases."""
        calls: Counter[str] = Counter()
        found: dict[str, list[SessionCase]] = {}
        for case in self.listed:
            calls[case.test] += 1
            found.setdefault(numbered(case.repeated, calls[case.test]), []).append(case)
        return found

    def items(self) -> Iterator[ItemRecord]:
        """Return the items in order, with repeats joined. An unjudged case has none.

        Their indexes are those of their cases, or higher where cases with provisional indexes come before them.
        """
        least = 0
        for item_id, cases in self.by_id().items():
            if any(case.item is not None for case in cases):
                known = cases[0].index
                index = max(least, known) if known < PROVISIONAL else least
                least = index + 1
                yield renamed(_join_item(cases), index, item_id).replaced(
                    replaces=tuple([case.index for case in cases])
                )

    def manifest(self) -> dict[str, Any]:
        """Return what judged the cases, what it was made of, and which saved goldens they are of, for a manifest."""
        return {
            **joined_annotators(self.manifests),
            "inputs": union(manifest["inputs"] for manifest in self.manifests),
            "plugins": union(manifest["plugins"] for manifest in self.manifests),
            "data_sets": self.data_sets,
        }

    def tally(self, items: Iterable[ItemRecord]) -> Tally:
        """Count the cases by outcome, also those that were not judged, and their calls.

        Args:
            items: of those that were judged.
        """
        tally = Tally(before=self.used, items=len(self.by_id()))
        for item in items:
            tally.count(item)
        return tally


def _note(event: Mapping[str, Any], cases: dict[int, SessionCase]) -> None:
    """Take over what a process reported of a case."""
    match event:
        case {"begin": index, "order": order, "test": test, "repeated": repeated, "repeat": repeat}:
            cases[index] = SessionCase(index, tuple(order), test, repeated, repeat)
        case {"end": index, "shown": shown, "declared": declared, "notes": notes}:
            cases[index].display, cases[index].declared = shown, declared
            cases[index].notes.extend(notes)
        case {"skipped": index}:
            del cases[index]


def renamed(item: ItemRecord, index: int, item_id: str) -> ItemRecord:
    """Return an item with a different position and id."""
    return item.replaced(index=index, test_item=item.test_item.replaced(id=item_id), digests=None)


def _join_item(repeats: Sequence[SessionCase]) -> ItemRecord:
    """Join the repeats of a case, at least one of which was judged, into one item."""
    judged = [(case.repeat, case.item) for case in repeats if case.item is not None]
    if len(repeats) == 1:
        return judged[0][1]
    left = [
        Failure(
            repeat=case.repeat,
            stage="measure",
            source_uid="assert_test",
            error_type=_UNJUDGED_TYPE,
            message=_UNJUDGED,
            traceback="",
        )
        for case in repeats
        if case.item is None
    ]
    return _joined_item([repeat for repeat, _ in judged], [item for _, item in judged], left)


def _joined_item(
    repeats: Sequence[int], items: Sequence[ItemRecord], unjudged: Sequence[Failure]
) -> ItemRecord:
    """Join the item of a case that was judged several times: scored by the repeats that did not fail, if any."""
    scored = [record for record in items if record.is_scored]
    measured: Sequence[ItemRecord] = scored or items
    # A part of an app may have been called in some repeats alone; but of what failed nobody knows.
    names = dict.fromkeys(name for record in measured for name in record.measurements)
    kept = [name for name in names if scored or all(name in record.measurements for record in items)]
    holding = {name: [record for record in measured if name in record.measurements] for name in kept}
    of_all: dict[str, Any] = {
        "interactions": tuple(
            interaction.replaced(repeat=repeat)
            for repeat, item in zip(repeats, items, strict=True)
            for interaction in item.interactions
        ),
        "measurements": {
            name: exact_mean([record.measurements[name] for record in held]) for name, held in holding.items()
        },
        "binary": tuple(
            name for name, held in holding.items() if all(name in record.binary for record in held)
        ),
        "redacted": any(record.redacted for record in items),
    }
    if not scored:
        return items[0].replaced(**of_all)
    failed = [
        failure.replaced(repeat=repeat)
        for repeat, item in zip(repeats, items, strict=True)
        for failure in item.failures
    ]
    each = tuple(dict(record.measurements) for record in scored)
    return scored[0].replaced(**of_all, repeat_measurements=each, failures=(*failed, *unjudged))

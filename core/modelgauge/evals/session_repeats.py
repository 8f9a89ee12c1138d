"""Repeats of a case in a session of pytest, as one item: like that of a prompt which is asked several times."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelgauge.data.records import ItemRecord, TestItemExceptionRecord
from modelgauge.evals.session_parts import Part
from modelgauge.exact import exact_mean


def cases_of(parts: Sequence[Part]) -> dict[str, list[Part]]:
    """The parts of each case by its id: the test's name, numbered where the test judges several cases.

    Args:
        parts: of a session, in order.
    """
    calls: Counter[str] = Counter()
    cases: dict[str, list[Part]] = {}
    for part in parts:
        calls[part.test] += 1
        number = calls[part.test]
        case = part.repeat.test if number == 1 else f"{part.repeat.test}~{number}"
        cases.setdefault(case, []).append(part)
    return cases


def items_of(cases: Mapping[str, Sequence[Part]]) -> Iterator[ItemRecord]:
    """The items of cases, in order; none of a case of which a repeat was not judged to its end.

    Args:
        cases: as `cases_of` gives them.
    """
    for index, (case, parts) in enumerate(cases.items()):
        items = [part.item for part in parts if part.item is not None]
        if len(items) == len(parts):
            item = items[0] if len(items) == 1 else _joined(parts, items)
            yield item.replaced(index=index, test_item=item.test_item.replaced(id=case))


def _joined(parts: Sequence[Part], items: Sequence[ItemRecord]) -> ItemRecord:
    """The item of a case that was judged several times: a failed one, where one of its repeats failed."""
    failure = next((one for one in items if isinstance(one, TestItemExceptionRecord)), None)
    # A part of an app may have been called in some repeats alone; but of what failed nobody knows.
    names = list(dict.fromkeys(name for one in items for name in one.measurements))
    if failure is not None:
        names = [name for name in names if all(name in one.measurements for one in items)]
    values: dict[str, float] = {}
    for name in names:
        held = [one.measurements[name] for one in items if name in one.measurements]
        values[name] = exact_mean(held)
    of_all: dict[str, Any] = {
        "interactions": tuple(
            one.replaced(repeat=part.repeat.number)
            for part, item in zip(parts, items, strict=True)
            for one in item.interactions
        ),
        "measurements": values,
        "binary": tuple(
            name for name in names if all(name in one.binary for one in items if name in one.measurements)
        ),
    }
    if failure is not None:
        return failure.replaced(**of_all)
    return items[0].replaced(**of_all, repeat_measurements=tuple(dict(one.measurements) for one in items))

"""Repeats of a case in a session of pytest, as one item: like that of a prompt which is asked several times."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelgauge.data.records import ItemRecord, RepeatFailure, TestItemRecord
from modelgauge.evals.session_parts import Part, renamed
from modelgauge.stats.exact import exact_mean


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
            yield renamed(item, index, case)


def _joined(parts: Sequence[Part], items: Sequence[ItemRecord]) -> ItemRecord:
    """The item of a case that was judged several times: scored by the repeats that did not fail, if there are any."""
    repeats = [part.repeat.number for part in parts]
    scored = [one for one in items if isinstance(one, TestItemRecord)]
    measured: Sequence[ItemRecord] = scored or items
    # A part of an app may have been called in some repeats alone; but of what failed nobody knows.
    names = dict.fromkeys(name for one in measured for name in one.measurements)
    kept = [name for name in names if scored or all(name in one.measurements for one in items)]
    holding = {name: [one for one in measured if name in one.measurements] for name in kept}
    of_all: dict[str, Any] = {
        "interactions": tuple(
            one.replaced(repeat=repeat)
            for repeat, item in zip(repeats, items, strict=True)
            for one in item.interactions
        ),
        "measurements": {
            name: exact_mean([one.measurements[name] for one in held]) for name, held in holding.items()
        },
        "binary": tuple(name for name, held in holding.items() if all(name in one.binary for one in held)),
        "redacted": any(one.redacted for one in items),
    }
    if not scored:
        return items[0].replaced(**of_all)
    facts = RepeatFailure.model_fields.keys() - {"repeat"}
    failed = [
        RepeatFailure(repeat=repeat, **{name: getattr(failure, name) for name in facts})
        for repeat, item in zip(repeats, items, strict=True)
        for failure in item.failures
    ]
    each = tuple(dict(one.measurements) for one in scored)
    return scored[0].replaced(**of_all, repeat_measurements=each, failed_repeats=tuple(failed))

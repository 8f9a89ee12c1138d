"""Runs made by hand of what was measured, for plans and for the calibration of judges."""

from modelgauge.data.annotations import (
    Interaction,
    SUTCompletionAnnotations,
    SUTResponseAnnotations,
)
from modelgauge.data.item_records import TestItemExceptionRecord, TestItemRecord
from modelgauge.data.items import TestItem
from modelgauge.data.records import TestRecord
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.results import CallCounts, Counts, Spent


def measured_run(
    sut, values, *, test="exam", run_id=None, cost=None, cached=0, repeats=1, prompts=None, **fields
):
    """The record of a run.

    Args:
        sut: its uid.
        values: by item id a value of `right`, a dict of measurements, a list of the values of repeats, or None for an
            item that failed.
        test: its uid.
        run_id: by default made of the SUT.
        cost: dollars that were paid in all.
        cached: how many of the answers were not paid.
        repeats: how often each item was asked.
        prompts: what was asked, by item id; by default something else for each.
        fields: of the record.
    """
    asked = {item: (prompts or {}).get(item, f"question {item}") for item in values}
    items = [_item(place, item, value, asked[item]) for place, (item, value) in enumerate(values.items())]
    answers = len(items) * repeats
    made = TestRecord(
        run_id=run_id or f"20260131-120000-{sut}",
        invocation_id="20260131-120000-000000",
        run_timestamp="2026-01-31T12:00:00Z",
        test_uid=test,
        test_initialization={},
        sut_uid=sut,
        sut_initialization={},
        repeats=repeats,
        counts=Counts(items=len(items), sut_calls=CallCounts(paid=answers - cached, cached=cached)),
        spent=None if cost is None else Spent(attempts=answers, cost_usd=cost),
        **fields,
    )
    return made.with_items(lambda: items)


def _item(place, item_id, value, prompt):
    item = TestItem([prompt], id=item_id)
    if value is None:
        return TestItemExceptionRecord(
            index=place,
            test_item=item,
            stage="sut",
            source_uid="s",
            error_type="E",
            message="m",
            traceback="",
        )
    several = value if isinstance(value, list) else [value]
    each = [one if isinstance(one, dict) else {"right": one} for one in several]
    mean = {name: sum(one[name] for one in each) / len(each) for name in each[0]}
    return TestItemRecord(
        index=place,
        test_item=item,
        interactions=[_answer(item, item_id, repeat) for repeat in range(len(each))],
        measurements=mean,
        repeat_measurements=each if len(each) > 1 else (),
    )


def _answer(item, item_id, repeat):
    completion = SUTCompletion(f"answer {item_id}" + f", repeat {repeat}" * (repeat > 0))
    return Interaction(
        prompt=item.prompts[0],
        response=SUTResponseAnnotations(completions=[SUTCompletionAnnotations(completion=completion)]),
        repeat=repeat,
    )

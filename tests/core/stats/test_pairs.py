import pytest

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.errors import InvalidDataError, UnknownNameError
from modelgauge.stats import MeasuredItems, pairs_of


def _run(values, failed=()):
    """Items by id, each with measurement x and its id's baseline letter as context."""
    items = [
        MeasuredTestItem(
            test_item=TestItem([PromptWithContext("q")], id=name, context=name[0]),
            measurements={"y": 0} if value is None else {"x": value},
        )
        for name, value in values.items()
    ]
    return MeasuredItems.of(items, failed=[TestItem(["q"], id=name) for name in failed])


def test_runs_are_joined_by_item_id():
    baseline = _run({"a1": 1, "b1": 2, "a2": 3, "c1": None}, failed=["d1"])
    candidate = _run({"a2": 30, "d1": 40, "a1": 10, "c1": 5}, failed=["b1"])
    pairs = pairs_of(baseline, candidate, "x", cluster=lambda item: item.context)
    assert pairs.ids == ("a1", "a2")
    assert pairs.baseline.tolist() == [1, 3]
    assert pairs.candidate.tolist() == [10, 30]
    assert pairs.clusters == ("a", "a")
    assert pairs.only_baseline == ("b1",)
    assert pairs.only_candidate == ("d1", "c1")
    assert pairs_of(baseline, candidate, "x").clusters is None


def test_pairs_that_share_answers_are_clustered():
    run = _run({"a1": 1, "b1": 2, "a2": 3, "c1": 4, "d1": 5})
    shared = MeasuredItems.of(run, shared=["p", "p", "q", "r", "s"])
    assert pairs_of(shared, run, "x").clusters == (0, 0, 1, 2, 3)
    assert pairs_of(shared, run, "x", cluster=lambda item: item.context).clusters == (0, 0, 0, 1, 2)
    assert pairs_of(shared[2:], run, "x").clusters is None
    assert pairs_of(shared, _run({"z": 1}), "x").clusters is None


def test_what_cannot_be_joined():
    with pytest.raises(UnknownNameError):
        pairs_of(_run({"a": 1}), _run({"a": 1}), "z")
    twice = MeasuredItems.of([*_run({"a": 1}), *_run({"a": 2})])
    with pytest.raises(InvalidDataError, match="1 item has the id of another"):
        pairs_of(twice, _run({"a": 1}), "x")

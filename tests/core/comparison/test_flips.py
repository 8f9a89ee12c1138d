"""Flipped items: which, in which order, with what, and how little memory they take."""

import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.comparison.item_pairs import ItemPairs, PairedSide
from modelgauge.data.annotations import (
    Interaction,
    SUTCompletionAnnotations,
    SUTResponseAnnotations,
)
from modelgauge.data.item_records import TestItemRecord
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import ChatPrompt
from modelgauge.data.responses import SUTCompletion


def record_of(place, side, *, prompts=("q",), answers=("a",)):
    item = TestItem(prompts, id=f"{side}{place}")
    completions = [
        SUTCompletionAnnotations(
            completion=SUTCompletion(f"{answer} of {side}{place}"), annotations={"judge": place}
        )
        for answer in answers
    ]
    interactions = [
        Interaction(prompt=prompt, response=SUTResponseAnnotations(completions=completions))
        for prompt in item.prompts
    ]
    return TestItemRecord(index=place, test_item=item, interactions=interactions, measurements={})


class Frame(NamedTuple):
    """The records of a run that no file holds."""

    records: Callable[[Iterable[int]], Iterator[TestItemRecord]]


def flips_of(baseline, candidate, *, direction=None, **made):
    n = len(baseline)
    return ItemPairs(
        test="a test",
        candidate="B",
        matched_by="id",
        n_only_baseline=0,
        n_only_candidate=0,
        before=PairedSide(
            np.arange(n),
            {"score": np.array(baseline, dtype=float)},
            frame=Frame(lambda places: (record_of(place, "a", **made) for place in map(int, places))),
        ),
        after=PairedSide(
            np.arange(n)[::-1].copy(),  # in another order there
            {"score": np.array(candidate, dtype=float)},
            frame=Frame(lambda places: (record_of(place, "b", **made) for place in map(int, places))),
        ),
        directions={} if direction is None else {"score": direction},
    )


def read(*given, **options):
    return flips_of(*given, **options).flips("score")


def test_lost_items_come_first_and_the_worst_of_them_before_others():
    found = list(read([0, 1, 1, 5, 0, 0, np.nan, 1], [1, 1, 0, 0, 9, 2, 1, np.nan]))
    assert [(one.item_id, one.baseline_value, one.candidate_value, one.won) for one in found] == [
        ("a3", 5, 0, False),
        ("a2", 1, 0, False),
        ("a4", 0, 9, True),
        ("a5", 0, 2, True),
        ("a0", 0, 1, True),
    ]
    assert [one.candidate_item_id for one in found] == ["b4", "b5", "b3", "b2", "b7"]


def test_of_many_only_so_many_lost_and_won_ones_are_read():
    paired = flips_of([0, 1, 1, 5, 0, 0], [1, 1, 0, 0, 9, 2])
    assert [one.item_id for one in paired.flips("score", 1)] == ["a3", "a4"]
    assert [one.item_id for one in paired.flips("score", 2)] == ["a3", "a2", "a4", "a5"]


def test_where_lower_is_better_less_is_won():
    found = list(read([0, 3], [1, 1], direction="lower"))
    assert [(one.item_id, one.won) for one in found] == [("a0", False), ("a1", True)]


@given(st.lists(st.tuples(*[st.sampled_from([0, 0.5, 1, 2, np.nan])] * 2), max_size=20))
def test_all_that_differ_are_there_once(pairs):
    paired = flips_of([one for one, _ in pairs], [other for _, other in pairs])
    found = list(paired.flips("score"))
    differing = [f"a{at}" for at, (one, other) in enumerate(pairs) if one < other or one > other]
    assert sorted(one.item_id for one in found) == sorted(differing)
    gains = [one.candidate_value - one.baseline_value for one in found]
    assert gains == sorted(gain for gain in gains if gain < 0) + sorted(
        (gain for gain in gains if gain > 0), reverse=True
    )
    assert list(paired.flips("score")) == found  # they can be read again


def test_a_flip_has_prompts_answers_and_annotations():
    chat = ChatPrompt([{"role": "system", "text": "Be brief."}, {"role": "user", "text": "Why?"}])
    (one,) = read([1], [0], prompts=(PromptWithContext("What?"), chat), answers=("x", "y"))
    assert one.prompts == ("What?", "[system] Be brief.\n[user] Why?")
    assert one.baseline_answers == ("x of a0", "y of a0") * 2
    assert one.candidate_answers == ("x of b0", "y of b0") * 2
    assert one.baseline_annotations == ({"judge": 0},) * 4
    assert json.loads(one.model_dump_json())["test"] == "a test"


def test_a_run_that_has_fewer_records_than_places_is_no_silence():
    paired = flips_of([1, 1], [0, 0])
    paired = replace(paired, after=replace(paired.after, frame=Frame(lambda _: iter([]))))
    with pytest.raises(ValueError, match="shorter"):
        list(paired.flips("score"))


def test_records_are_read_one_by_one_however_many_items_there_are():
    n = 1_000_000
    paired = flips_of(np.zeros(n), np.ones(n))
    tracemalloc.start()
    found = paired.flips("score")
    for _ in range(100):
        next(found)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64e6  # some arrays of a million numbers

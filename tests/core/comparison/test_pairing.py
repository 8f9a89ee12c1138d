"""Which items of two runs are paired, and what is known of them."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import folder, item, record

from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_runs import paired_runs
from modelgauge.data.results import GIVEN, Counts, RunFailure, Sample, Threshold
from modelgauge.engine.run_files.journal import JournalFile
from modelgauge.errors import RecordError
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import ExactMatchMetric


def pair(baseline, candidate, **options):
    """The paired items of two runs."""
    return paired_runs(baseline, [candidate], CompareOptions(**options)).items[0]


def places(items):
    return list(zip(items.before.places.tolist(), items.after.places.tolist(), strict=True))


def case(name, *, text="q", **fields):
    return {"name": name, "input": text, **fields}


def test_items_are_paired_by_their_ids_first():
    before = record("a", item(0, 1.0, source="x"), item(1, 0.0, source="y"), item(2, 0.0))
    after = record("b", item(0, 0.0, item_id="i1", source="x"), item(1, None, item_id="i0", source="y"))
    items = pair(before, after)
    assert (items.matched_by, places(items)) == ("id", [(0, 1), (1, 0)])
    assert (items.n_only_baseline, items.n_only_candidate) == (1, 0)
    assert items.before.values["right"].tolist() == [1, 0]
    assert [math.isnan(value) for value in items.after.values["right"]] == [True, False]
    assert (items.before.failed.tolist(), items.after.failed.tolist()) == (
        [False, False],
        [True, False],
    )


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        ("source", lambda n: {"source": f"s{n}", "prompt": f"another question {n}"}),
        ("name", lambda n: {"context": case(f"n{n}"), "prompt": f"another question {n}"}),
        ("input", lambda n: {}),
    ],
)
def test_items_of_other_ids_are_paired_by_the_first_key_that_pairs_any(key, fields):
    alike = {"source": {"source": "s1"}, "name": {"context": case("n1")}, "input": {"prompt": "question 1"}}[
        key
    ]
    before = record("a", *(item(n, item_id=f"before{n}", **fields(n)) for n in range(3)))
    after = record("b", item(0, item_id="after", **{"prompt": "something else", **alike}))
    items = pair(before, after, allow="targets")
    assert (items.matched_by, places(items)) == (key, [(1, 0)])
    assert pair(before, after, match=key, allow="targets").matched_by == key


def test_a_key_that_items_of_a_run_share_pairs_none():
    before = record("a", *(item(n, item_id=f"a{n}", source="one", prompt=f"q{n}") for n in range(3)))
    after = record("b", *(item(n, item_id=f"b{n}", source="one", prompt=f"q{n}") for n in range(3)))
    assert pair(before, after).matched_by == "input"
    with pytest.raises(RecordError, match="items of run 20260131-120000-a share one source id, such as 'a0'"):
        pair(before, after, match="source")


def test_where_only_shared_keys_would_pair_items_the_error_says_so():
    before = record("a", *(item(n, item_id=f"a{n}", prompt="q") for n in range(2)))
    after = record("b", item(0, item_id="b0", prompt="q"))
    with pytest.raises(
        RecordError, match=r"cannot be paired: items of run 20260131-120000-a share one input"
    ):
        pair(before, after)


def test_items_are_paired_by_a_field_of_their_contexts():
    before = record("a", *(item(n, item_id=f"a{n}", context={"number": n}) for n in range(3)))
    after = record("b", *(item(n, item_id=f"b{n}", context={"number": 2 - n}) for n in range(3)))
    items = pair(before, after, match="number")
    assert (items.matched_by, places(items)) == ("number", [(0, 2), (1, 1), (2, 0)])
    with pytest.raises(
        RecordError, match=r"has the field 'nmber' .* Did you mean 'number'\? Its fields are: 'number'"
    ):
        pair(before, after, match="nmber")


def test_a_key_that_no_item_has_is_an_error():
    before, after = record("a", item(0)), record("b", item(0))
    with pytest.raises(RecordError, match="No item of run 20260131-120000-a has a source id"):
        pair(before, after, match="source")


def test_runs_without_a_common_item_are_an_error():
    before = record("a", item(0))
    after = record("b", item(5))
    with pytest.raises(RecordError, match=r"have no item in common, by id, source id, name or input\."):
        pair(before, after)
    chosen = [
        made.replaced(sample=Sample(size=1, total=9, seed=seed)) for seed, made in enumerate((before, after))
    ]
    with pytest.raises(RecordError, match="they measured 1 of 9 items by seed 0 and 1 of 9 items by seed 1"):
        pair(*chosen)


@given(st.integers(0, 10**6))
def test_pairs_are_those_of_the_ids_in_the_order_of_the_baseline(seed):
    drawn = random.Random(seed)
    ids = [drawn.sample(range(40), drawn.randint(1, 30)) for _ in range(2)]
    runs = [
        record(sut, *(item(n, float(one), item_id=f"i{one}") for n, one in enumerate(own)))
        for sut, own in zip("ab", ids, strict=True)
    ]
    both = [one for one in ids[0] if one in ids[1]]
    if not both:
        with pytest.raises(RecordError):
            pair(*runs, match="id")
        return
    items = pair(*runs, match="id")
    assert items.before.values["right"].tolist() == items.after.values["right"].tolist() == both
    assert items.n_only_baseline == len(ids[0]) - len(both)
    assert items.n_only_candidate == len(ids[1]) - len(both)
    read = [
        [one.test_item.id for one in side(at)]
        for side, at in (
            (items.before.frame.records, items.before.places),
            (items.after.frame.records, items.after.places),
        )
    ]
    assert read[0] == read[1] == [f"i{one}" for one in both]


def test_clusters_of_either_run_count_and_are_numbered_in_the_order_of_the_items():
    topics = "bacbdefgh"
    items = [item(n, context={"topic": one}) for n, one in enumerate(topics)]
    shared = [item(n, context={"topic": topics[n]}, prompt="q") for n in (1, 4)]
    before = record("a", *items, cluster="topic")
    after = record("b", *(item for item in items if item.index not in (1, 4)), *shared)
    assert pair(before, after).clusters.tolist() == [0, 1, 2, 0, 1, 3, 4, 5, 6]
    alone = [record(sut, item(0), item(1), item(2)) for sut in "cd"]
    assert pair(*alone).clusters is None


def test_groups_are_named_by_the_field_of_the_baseline():
    before = record("a", *(item(n, context={"topic": topic}) for n, topic in enumerate(("x", None, 3))))
    items = pair(before, record("b", item(2), item(0), item(1)), group_by="topic", allow="targets")
    assert items.groups == ["x", "", "3"]
    with pytest.raises(RecordError, match=r"has the field 'tpic' to form groups by\. Did you mean 'topic'\?"):
        pair(before, record("b", item(0)), group_by="tpic")


def test_repeats_are_given_where_values_are_their_means():
    repeated = ({"right": 0.0}, {"right": 1.0})
    before = record("a", item(0, 0.5, repeat_measurements=repeated), item(1, None), repeats=2)
    after = record("b", item(0, 1.0), item(1, 1.0))
    items = pair(before, after)
    assert [list(items.before.repeats["right"](place)) for place in (0, 1)] == [[0, 1], []]
    assert items.after.repeats == {}


def test_measurements_that_were_reduced_are_named_so():
    runs = [
        record(
            sut,
            item(0, 1.0, repeat_measurements=({"right": 1.0},)),
            reduction="pass@2",
            repeats=2,
            directions={"right": "higher"},
            ranges={"right": (0, 1)},
        )
        for sut in "ab"
    ]
    items = pair(*runs)
    assert [*items.before.values] == [*items.ranges] == [*items.directions] == ["right.pass@2"]
    assert items.before.repeats == {}
    other = pair(runs[0], runs[1].replaced(reduction=None), allow="reduction")
    assert [*other.before.values] == [*other.after.values] == ["right"]
    assert other.before.repeats == other.after.repeats == {}


def test_ranges_are_those_recorded_else_those_of_bools():
    def runs(*ranges, binary=("right",)):
        return [
            record(sut, item(0, {"right": 1.0, "words": 2.0}, binary=binary), ranges=own)
            for sut, own in zip("ab", ranges, strict=True)
        ]

    assert pair(*runs(None, None)).ranges == {"right": (0, 1)}
    assert pair(*runs(None, None, binary=())).ranges == {}
    assert pair(*runs({"words": (0, None)}, {"words": (0, 5)})).ranges == {
        "right": (0, 1),
        "words": (0, math.inf),
    }
    assert pair(*runs({"words": (0, 9)}, {})).ranges == {"right": (0, 1)}


def test_directions_are_those_that_the_runs_agree_on():
    passed = Threshold(value=2, higher_is_better=False)
    before = record("a", item(0), directions={"right": "higher", "words": "lower"})
    after = record("b", item(0), directions={"right": "higher", "words": "higher"})
    assert pair(before, after).directions == {"right": "higher"}
    older = [record(sut, item(0), directions=None, thresholds={"seconds": passed}) for sut in "ab"]
    said = paired_runs(older[0], [older[1]])
    assert said.items[0].directions == {"seconds": "lower", "seconds.passed": "higher", "passed": "higher"}
    assert said.notes[0].startswith("Recorded by an older version, which did not say which values are better")


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"cancelled": True}, "was interrupted"),
        ({"failure": RunFailure(stage="run", error_type="E", message="a cap")}, "stopped early"),
    ],
)
def test_a_run_that_stopped_is_compared_as_far_as_it_is(fields, note):
    stopped = record("b", item(0), item(1), counts=Counts(items=2, scored=2, not_begun=7), **fields)
    said = paired_runs(record("a", *(item(n) for n in range(9))), [stopped])
    assert said.items[0].n_only_baseline == 7
    assert len(said.notes) == 1
    assert f"20260131-120000-b {note}; compared: its first 2 items of 9, not a sample" in said.notes[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"failure": RunFailure(stage="aggregate", error_type="E", message="m")},
        {"cancelled": True, "counts": Counts(items=1, scored=1, not_begun=0)},
    ],
)
def test_a_run_with_all_its_items_is_whole(fields):
    assert paired_runs(record("a", item(0)), [record("b", item(0), **fields)]).notes == ()


def test_items_that_were_under_way_are_missing():
    stopped = record("b", item(0), cancelled=True, counts=Counts(items=3, scored=1, not_begun=0))
    (note,) = paired_runs(record("a", item(0)), [stopped]).notes
    assert "its first 1 item of 3" in note


def test_a_killed_run_is_compared_as_far_as_it_is(tmp_path):
    folder(tmp_path, record("a", item(0), item(1)))
    folder(tmp_path, record("b", item(0)), ended=False)
    said = paired_runs("20260131-120000-a", ["20260131-120000-b"], CompareOptions(data_dir=tmp_path))
    assert "20260131-120000-b was killed; compared: its first 1 item," in said.notes[0]
    assert "modelgauge resume 20260131-120000-b" in said.notes[0]


def test_a_run_that_is_going_on_is_compared_as_far_as_it_is(tmp_path):
    folder(tmp_path, record("a", item(0), item(1)))
    journal = JournalFile(folder(tmp_path, record("b", item(0)), ended=False).journal)
    try:
        said = paired_runs("20260131-120000-a", ["20260131-120000-b"], CompareOptions(data_dir=tmp_path))
    finally:
        journal.close()
    assert "20260131-120000-b is going on; compared: its first 1 item," in said.notes[0]
    assert said.notes[0].endswith("Compare again when it has ended.")


def test_a_run_without_items_is_an_error():
    failure = RunFailure(stage="items", error_type="E", message="no file")
    with pytest.raises(
        RecordError, match=r"Run 20260131-120000-b has no items\. Correct its test, and run it"
    ):
        pair(record("a", item(0)), record("b", failure=failure))


def test_other_targets_are_refused_unless_they_are_allowed():
    before = record("a", *(item(n, context={"answer": n}) for n in range(3)))
    after = record("b", *(item(n, context={"answer": max(n, 1)}) for n in range(3)))
    problem = (
        r"targets: exam, contexts of 1 of 3 items paired by id i0 → i0 \(another answer\).* --allow targets"
    )
    with pytest.raises(RecordError, match=problem):
        pair(before, after)
    (differing,) = paired_runs(before, [after], CompareOptions(allow="targets")).differs
    assert (differing.kind, differing.baseline, differing.fields) == ("targets", "i0", ("answer",))


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ({"input": "q", "expected_output": "a"}, {"input": "q", "expected_output": "b"}, "expected_output"),
        ({"input": "q", "context": ["a"]}, {"input": "q", "context": ["b"], "lang": "de"}, "context, lang"),
        ("a", "b", "context"),
        (None, {"answer": 1}, "context"),
    ],
)
def test_refusal_names_the_fields_that_differ(before, after, fields):
    with pytest.raises(RecordError, match=rf"i0 → i0 \(another {fields}\)"):
        pair(record("a", item(0, context=before)), record("b", item(0, context=after)))


def test_given_answers_to_one_input_are_paired_however_they_are_named():
    runs = []
    for version in ("v1", "v2"):
        asked = ([f"q{n}", "a span"] for n in range(2))
        items = (
            item(n, item_id=f"{version}{n}", prompt=one, source=str(9 - n)) for n, one in enumerate(asked)
        )
        made = record(GIVEN, *items, run_id=version, identifier=version, test_uid=version)
        runs.append(made.replaced(test_initialization={"class_name": "pytest"}))
    said = paired_runs(runs[0], [runs[1]])
    assert [one.label for one in (said.baseline, *said.candidates)] == ["v1", "v2"]
    assert (said.items[0].test, said.items[0].matched_by) == ("pytest", "input")


def test_a_run_is_read_once_however_many_candidates_there_are(monkeypatch):
    reads = []
    before = record("a", item(0))
    counted = before.with_items(lambda: reads.append(1) or iter([item(0)]))
    said = paired_runs(counted, [record(sut, item(0)) for sut in "bcd"])
    assert len(said.items) == 3
    assert len(reads) == 1
    assert isinstance(said.items[0].before.places, np.ndarray)


REFUND = LLMTestCase("Refund?", "yes", "yes", name="refund")


@pytest.mark.parametrize(
    ("before", "after", "by"),
    [
        (REFUND, REFUND.replaced(input="Money back?", actual_output="no"), "id"),
        (REFUND, REFUND.replaced(name="money", actual_output="no"), "input"),
        (LLMTestCase("Refund?", "no", "yes"), REFUND, "input"),
    ],
)
def test_a_case_with_another_input_or_another_name_is_the_same_case(before, after, by, tmp_path):
    runs = [evaluate([case], [ExactMatchMetric()], data_dir=tmp_path).record for case in (before, after)]
    items = pair(*runs)
    assert (places(items), items.matched_by) == ([(0, 0)], by)
    other = evaluate([after.replaced(expected_output="no")], [ExactMatchMetric()], data_dir=tmp_path).record
    with pytest.raises(RecordError, match="--allow targets"):
        pair(runs[0], other)

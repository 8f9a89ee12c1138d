"""What manifest and record say of the items of a run beside its numbers."""

from itertools import count

import pytest

from modelgauge import TestItem
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.manifest import is_signed

BY_TOPIC = "no 'topic': each is a cluster of its own."
UNKNOWN = "How many items the test has is not known, so the intervals are about all items like these."


@pytest.fixture
def folder_of(run_folder):
    return lambda record: RunFolder(run_folder / "runs" / record.run_id)


@pytest.mark.parametrize(
    ("items", "repeated", "note"),
    [
        (["a", "b"], None, None),
        (["a", "b", "a"], 1, "1 item repeats the prompts of an earlier item, with ids that end in ~2, ~3, …"),
        (
            ["a", "a", "b", "b", "a"],
            3,
            "3 items repeat the prompts of an earlier item, with ids that end in ~2, ~3, …",
        ),
        (
            ["a"] * 1001,
            1000,
            "1,000 items repeat the prompts of an earlier item, with ids that end in ~2, ~3, …",
        ),
    ],
)
def test_items_that_repeat_others_are_counted_in_manifest_and_notes(
    make_test, make_sut, run, folder_of, items, repeated, note
):
    record = run(make_test(items), make_sut())
    assert list(record.notes) == ([] if note is None else [note])
    assert folder_of(record).read_manifest().get("repeated_ids") == repeated
    ids = {one.test_item.id for one in record.iter_items()}
    assert len(ids) == len(items)


@pytest.mark.parametrize("killed", [True, False])
def test_the_manifest_of_a_run_that_goes_on_counts_them_though_its_first_session_was_killed(
    make_test, make_sut, run, resumed, folder_of, killed
):
    test, sut = make_test(["a", "a", "b", "b"]), make_sut()
    stopped = run(test, sut, max_calls=1, concurrency=1)
    folder = folder_of(stopped)
    if killed:
        told = folder.read_manifest()
        folder.write_manifest({name: told[name] for name in told if name != "repeated_ids"}, str)
    ended = resumed(stopped, test, sut, max_calls=9)
    assert ended.counts.scored == 4
    assert folder.read_manifest()["repeated_ids"] == 2
    assert is_signed(folder.read_manifest())
    assert [note for note in ended.notes if "2 items repeat" in note] == list(ended.notes)


@pytest.mark.parametrize(
    ("lacking", "notes"),
    [(0, []), (1, [f"1 item has {BY_TOPIC}"]), (2, [f"2 items have {BY_TOPIC}"])],
)
def test_items_without_a_cluster_are_counted(make_test, make_sut, run, lacking, notes):
    items = [
        TestItem([f"question {n}"], context={} if n < lacking else {"topic": n % 2}, id=f"i{n}")
        for n in range(6)
    ]
    assert list(run(make_test(items), make_sut(), cluster="topic").notes) == notes


@pytest.mark.parametrize(
    ("finite", "endless", "notes"), [(True, True, [UNKNOWN]), (True, False, []), (False, True, [])]
)
def test_where_nobody_knows_how_many_items_there_are_intervals_are_not_about_them(
    make_test, make_sut, run, finite, endless, notes
):
    items = (lambda: (TestItem([f"question {n}"]) for n in count())) if endless else 5
    record = run(make_test(items), make_sut(), finite=finite, max_calls=2, concurrency=1)
    assert record.counts.scored == 2
    assert list(record.notes) == notes

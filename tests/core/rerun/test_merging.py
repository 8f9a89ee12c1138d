"""Runs that each measured some items of a test, merged into one run."""

import json
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelgauge import FunctionSUT, PromptResponseTest, TestItem, load_record, merge, resume
from modelgauge.api import Runner
from modelgauge.bundles.checking import check
from modelgauge.data.item_records import item_from_json
from modelgauge.data.records import DatasetReference
from modelgauge.errors import RecordError, UsageError
from modelgauge.files.lock import lock
from modelgauge.rerun.again import rescore

ITEMS = 8


class Numbers(PromptResponseTest):
    """Twelve questions, every third asked twice."""

    dataset = DatasetReference(name="numbers", digest="a" * 64)

    def make_test_items(self, dependencies):
        for n in range(12):
            yield TestItem(f"question {n - n % 3 // 2}", context={"n": n})

    def measure_quality(self, item):
        return {"length": len(item.text) + item.context["n"] / 10, "long": len(item.text) > 10}


class Listed(Numbers):
    """The same in a list, so that each part knows the number of all items."""

    def make_test_items(self, dependencies):
        return list(super().make_test_items(dependencies))


class Middle(Numbers):
    """A test with a result of its own."""

    def aggregate_measurements(self, items):
        return {"middle": float(sorted(items.values("length"))[len(items) // 2])}


MODES = {"": 1}
CALLS = []


def answer(text):
    """Answer as the mode says: which mode it is does not belong to the identity of the SUT."""
    (mode,) = MODES
    CALLS.append(text)
    if text == "question 3" and mode != "never failing":
        raise ValueError("no answer")
    return text.upper() + "!" * (mode == "excited")


def shouting(version=1):
    return FunctionSUT("shouting", answer, version=version)


def asked(data, test=Listed, mode="", version=1, **options):
    options = {"max_test_items": ITEMS, "seed": 3, "max_retries": 0, **options}
    MODES.clear()
    MODES[mode] = 1
    (record,) = Runner(data, **options).run([test("numbers")], [shouting(version)])
    return record


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MODELGAUGE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """All ranges of the items of a run as runs of their own, by the range, and the whole run."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("merging")
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        ranges = list(combinations(range(ITEMS + 1), 2))
        found = {places: asked(folder, item_range=places) for places in ranges}
        yield found, asked(folder), folder


def told(record):
    """What a record says of each item, by its place in the test; a traceback names threads."""
    return {one.index: one.model_dump_json(exclude={"traceback"}) for one in record.iter_items()}


def edited(record, file, change):
    """Change a JSON file of a run."""
    path = record.folder / file
    held = json.loads(path.read_text(encoding="utf-8"))
    change(held)
    path.write_text(json.dumps(held), encoding="utf-8")


def edit_line(record, change):
    """Change the first line of a journal."""
    path = record.folder / "items.jsonl"
    first, *others = path.read_text(encoding="utf-8").splitlines()
    line = json.loads(first)
    change(line)
    path.write_text("\n".join([json.dumps(line), *others, ""]), encoding="utf-8")


def paths(*records):
    return [record.folder for record in records]


# --- what comes out --------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.lists(
        st.sampled_from(list(combinations(range(ITEMS + 1), 2))), min_size=2, max_size=5, unique=True
    )
)
def test_merged_run_equals_whole_run_of_the_same_items(parts, chosen):
    found, whole, folder = parts
    merged = merge(paths(*(found[places] for places in chosen)), folder)
    covered = {place for first, end in chosen for place in range(first, end)}
    of_whole = told(whole)
    assert told(merged) == {
        index: line for index, line in of_whole.items() if _place(of_whole, index) in covered
    }
    missing = ITEMS - len(covered)
    assert (merged.counts.not_begun, merged.failure is None) == (missing, not missing)
    assert merged.counts.sut_calls.paid + merged.counts.sut_calls.cached == sum(
        record.counts.sut_calls.paid + record.counts.sut_calls.cached
        for record in (found[places] for places in chosen)
    )
    if not missing:
        assert merged.result == whole.result
        alike = (
            "sample",
            "prompts",
            "distinct_prompts",
            "ranges",
            "directions",
            "dataset",
            "sut_initialization",
        )
        assert [getattr(merged, name) for name in alike] == [getattr(whole, name) for name in alike]
        assert merged.counts.scored == whole.counts.scored
        assert not check(str(merged.folder), folder, None, None).runs[0].findings


def _place(of_whole, index):
    """The place of an item among those of the whole run; its index is its place in the test."""
    return sorted(of_whole).index(index)


def test_merged_run_names_its_parts(data):
    one, two = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    merged = merge([one.run_id, two.run_id], identifier="both")
    assert merged.merged_from == (one.run_id, two.run_id)
    assert load_record(merged.folder).merged_from == (one.run_id, two.run_id)
    assert merged.notes[0] == f"Merged from 2 runs: {one.run_id}, {two.run_id}."
    assert merged.identifier == "both"
    assert not [note for note in merged.notes if "this is a part of a run" in note]
    assert "merged_from" not in json.loads((one.folder / "record.json").read_text(encoding="utf-8"))


def test_merged_run_takes_the_newest_place_among_runs(data):
    parts = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    assert merge(paths(*parts)).run_id == load_record("latest").run_id


def test_totals_are_the_sums_of_the_parts(data):
    parts = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    merged = merge(paths(*parts))
    assert merged.spent == parts[0].spent + parts[1].spent
    totals = [
        json.loads((each.folder / "totals.json").read_text(encoding="utf-8")) for each in (*parts, merged)
    ]
    assert totals[2]["seconds"] == pytest.approx(totals[0]["seconds"] + totals[1]["seconds"])
    assert totals[2]["attempts"] == totals[0]["attempts"] + totals[1]["attempts"]
    assert totals[2]["ended"] is True


def test_merged_run_of_runs_with_clusters_and_repeats_equals_the_whole(data):
    options = {"max_test_items": None, "repeats": 2, "cluster": "n", "finite": True}
    parts = [asked(data, item_range=places, **options) for places in ((0, 3), (3, 9), (9, 12))]
    merged, whole = merge(paths(*parts)), asked(data, **options)
    assert merged.result == whole.result
    assert merged.repeats == 2
    assert merged.failure is None


def test_merged_runs_can_be_merged(data):
    parts = [asked(data, item_range=places) for places in ((0, 3), (3, 6), (6, 8))]
    merged = merge(paths(merge(paths(*parts[:2])), parts[2]))
    assert merged.result == asked(data).result
    assert merged.failure is None


# --- missing items ---------------------------------------------------------------------------------------------------


def test_resume_asks_the_missing_items_only(data):
    parts = asked(data, item_range=(0, 2)), asked(data, item_range=(5, 8))
    merged = merge(paths(*parts))
    assert merged.failure is not None
    assert merged.failure.message == "3 of 8 items have no record."
    CALLS.clear()
    (resumed,) = resume(
        merged.folder,
        test=Listed("numbers"),
        sut=shouting(),
        cache=None,
        caching=False,
    )
    assert len(CALLS) == 3
    assert resumed.failure is None
    assert resumed.result == asked(data).result
    assert resumed.merged_from == merged.merged_from
    assert merged.notes[0] in resumed.notes


def test_resume_refuses_damaged_ids_of_parts_before_it_asks(data):
    merged = merge(paths(asked(data, item_range=(0, 2)), asked(data, item_range=(5, 8))))
    edited(merged, "run.json", lambda manifest: manifest.update(merged_from=5))
    CALLS.clear()
    with pytest.raises(RecordError, match="damaged: merged_from: 5 is not a list of ids"):
        resume(merged.folder, test=Listed("numbers"), sut=shouting())
    assert not CALLS


def test_run_is_unfinished_while_nobody_knows_how_many_items_there_are(data):
    parts = [asked(data, Numbers, max_test_items=None, item_range=places) for places in ((0, 6), (6, 11))]
    merged = merge(paths(*parts))
    assert merged.failure is not None
    assert merged.failure.message == "The parts do not show how many items the test has."
    assert merged.counts.not_begun is None
    (resumed,) = resume(merged.folder, test=Numbers("numbers"), sut=shouting())
    assert resumed.failure is None
    assert resumed.counts.items == 12


@pytest.mark.parametrize("end", [12, 20])
def test_last_part_shows_how_many_items_there_are(data, end):
    options = {"test": Numbers, "max_test_items": None}
    first, last = asked(data, item_range=(0, 6), **options), asked(data, item_range=(6, end), **options)
    assert merge(paths(first, last)).failure is None
    assert merge(paths(last, asked(data, item_range=(2, 5), **options))).counts.not_begun == 3
    beyond = asked(data, item_range=(50, 60), **options)
    assert merge(paths(first, beyond)).counts.not_begun == 6


def test_stopped_runs_are_parts_too(data):
    stopped = [asked(data, max_calls=calls, concurrency=1, caching=False) for calls in (3, 5)]
    merged = merge(paths(*stopped))
    assert merged.counts.items == 5
    assert merged.counts.not_begun == ITEMS - 5
    for record in stopped:
        assert record.failure is not None
        why = f"Run {record.run_id}: It stopped early: {record.failure.error_type}: {record.failure.message}"
        assert why in merged.notes


def test_killed_run_is_a_part(data):
    killed, other = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    (killed.folder / "record.json").unlink()
    (killed.folder / "totals.json").unlink()
    merged = merge(paths(killed, other))
    assert merged.failure is None
    assert f"Run {killed.run_id}: It was killed." in merged.notes
    assert f"The calls and the time of run {killed.run_id} are not known." in merged.notes


# --- a test with a result of its own ---------------------------------------------------------------------------------


def test_resume_computes_the_result_that_only_the_test_can(data):
    parts = [asked(data, Middle, item_range=places) for places in ((0, 5), (5, 8))]
    merged = merge(paths(*parts))
    assert merged.failure is not None
    assert merged.failure.message == "The test computes its result by code of its own, which was not run."
    assert merged.result == {}
    (resumed,) = resume(merged.folder, test=Middle("numbers"), sut=shouting())
    assert resumed.result == asked(data, Middle).result
    assert resumed.counts.sut_calls == merged.counts.sut_calls


# --- items in several parts ------------------------------------------------------------------------------------------


def test_score_replaces_failure(data):
    failed = asked(data, item_range=(0, 5))
    whole = asked(data, mode="never failing", caching=False)
    for order in ([failed, whole], [whole, failed]):
        merged = merge(paths(*order))
        assert merged.counts.failed == 0
        assert merged.result == whole.result
        assert "1 item that failed in a part is here as another part recorded it." in merged.notes


def test_failure_in_all_parts_stays(data):
    merged = merge(paths(asked(data), asked(data, caching=False)))
    assert merged.counts.failed == asked(data).counts.failed == 1
    assert merged.counts.items == ITEMS


def test_different_answers_to_an_item_are_refused(data):
    one, two = asked(data), asked(data, mode="excited", caching=False)
    with pytest.raises(
        RecordError, match=f"different answers, .* in run {one.run_id} and run {two.run_id}"
    ) as raised:
        merge(paths(one, two))
    assert "Leave one of the runs out" in str(raised.value)
    assert len(list((data / "runs").iterdir())) == 2


def test_times_and_cache_keys_may_differ(data):
    merged = merge(paths(asked(data, mode="never failing"), asked(data, mode="never failing", caching=False)))
    assert merged.counts.scored == ITEMS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line["test_item"].update(context={"n": 77}), "its prompts or its context differ"),
        (lambda line: line["test_item"].update(id="another"), "their tests made different items"),
        (lambda line: line.update(index=500), "their tests made different items"),
        (
            lambda line: line["measurements"].update(long=0.5),
            "has different answers, annotations or measurements",
        ),
    ],
)
def test_contradicting_items_are_refused(data, change, message):
    one, two = asked(data, mode="never failing"), asked(data, mode="never failing")
    edit_line(two, change)
    for order in ((one, two), (two, one)):
        with pytest.raises(RecordError, match=message):
            merge(paths(*order))


def test_item_that_is_twice_in_one_journal_is_refused(data):
    one, two = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    journal = one.folder / "items.jsonl"
    first = journal.read_bytes().splitlines(keepends=True)[0]
    record = item_from_json(first, "")
    journal.write_bytes(journal.read_bytes() + first.replace(b'"index":%d' % record.index, b'"index":99'))
    with pytest.raises(RecordError):
        merge(paths(one, two))


# --- facts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 4}, "options.seed is 3 in the first, and 4 in the second"),
        ({"repeats": 2}, "options.repeats is 1 in the first, and 2 in the second"),
        ({"max_test_items": None}, "options.max_test_items is 8 in the first, and not set in the second"),
        (
            {"hyperparameters": {"k": 5}},
            "options.hyperparameters.k is not set in the first, and 5 in the second",
        ),
    ],
)
def test_runs_with_other_options_are_no_parts(data, options, message):
    one, two = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8), **options)
    with pytest.raises(
        RecordError, match=f"Runs {one.run_id} and {two.run_id} are not parts of one run: {message}"
    ):
        merge(paths(one, two))


def test_runs_of_other_objects_are_no_parts(data):
    one, other_test = asked(data), asked(data, Middle)
    with pytest.raises(
        RecordError, match=r"test_initialization\.class_name is .*Listed.* in the first, and .*Middle"
    ):
        merge(paths(one, other_test))
    with pytest.raises(RecordError, match=r"sut_initialization\.cache_version is 1 in the first, and 2"):
        merge(paths(one, asked(data, version=2)))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("dataset", "digest"), "dataset.digest is"),
        (("modelgauge",), "modelgauge is"),
        (("thresholds",), "thresholds.long.value is not set in the first, and 1.0 in the second"),
    ],
)
def test_runs_of_other_data_or_versions_are_no_parts(data, path, message):
    one, two = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))

    def change(manifest):
        for name in path[:-1]:
            manifest = manifest[name]
        other = {"long": {"value": 1, "higher_is_better": True}} if path == ("thresholds",) else "other"
        manifest[path[-1]] = other

    edited(two, "run.json", change)
    with pytest.raises(RecordError, match=message):
        merge(paths(one, two))


def test_versions_that_one_part_lacks_are_added(data):
    one, two = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    edited(one, "run.json", lambda manifest: manifest["dependency_versions"].update(a="1"))
    edited(two, "run.json", lambda manifest: manifest["dependency_versions"].update(b="2"))
    assert merge(paths(one, two)).dependency_versions == {"a": "1", "b": "2"}
    edited(two, "run.json", lambda manifest: manifest["dependency_versions"].update(a="2"))
    with pytest.raises(
        RecordError, match=r'dependency_versions\.a is "1" in the first, and "2" in the second'
    ):
        merge(paths(one, two))


def test_parts_that_show_other_numbers_of_items_are_refused(data):
    one, two = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    edited(two, "run.json", lambda manifest: manifest.update(part_of={"items": 9, "total": 12}))
    with pytest.raises(
        RecordError, match=f"The test has 8 items in run {one.run_id}, and 9 in run {two.run_id}"
    ):
        merge(paths(one, two))
    edited(two, "run.json", lambda manifest: manifest.update(part_of={"items": "many"}))
    with pytest.raises(RecordError, match=r"run.json is damaged"):
        merge(paths(one, two))


# --- what is no part -------------------------------------------------------------------------------------------------


def test_one_run_is_not_merged(data):
    record = asked(data)
    with pytest.raises(UsageError, match="One run is named"):
        merge([record.run_id, record.folder])


def test_rescored_run_is_no_part(data):
    one = asked(data)
    (again,) = rescore(one.folder, test=Listed("numbers"))
    with pytest.raises(RecordError, match=f"measures the answers of run {one.run_id} again"):
        merge(paths(one, again))


def test_run_of_somebody_else_makes_the_merged_run_somebody_elses(data, tmp_path, monkeypatch):
    one, two = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    own = merge(paths(one, two))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))
    three = asked(data, item_range=(6, 8))
    mixed = merge(paths(one, three))
    signed = [
        "signature" in json.loads((each.folder / "run.json").read_text(encoding="utf-8"))
        for each in (own, mixed)
    ]
    assert signed == [True, False]
    with pytest.raises(RecordError, match="not known to be your own"):
        resume(mixed.folder)


def test_running_run_is_no_part(data):
    one, two = asked(data, item_range=(0, 5)), asked(data, item_range=(5, 8))
    (one.folder / "record.json").unlink()
    with lock(one.folder / "items.jsonl"), pytest.raises(RecordError, match="is still in progress"):
        merge(paths(one, two))

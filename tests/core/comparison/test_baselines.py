"""Pinned baselines: what a run is compared with, who may pin, and what becomes of a deleted one."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from recorded import folder, item, record

from modelgauge.comparison.compare import compare
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.baselines import (
    Baselines,
    BaselineSubject,
    list_subjects,
    resolve_baseline,
)
from modelgauge.data.records import DatasetReference
from modelgauge.errors import InvalidOptionError, RecordError, UnknownNameError
from modelgauge.reports.comparisons.report import answers
from modelgauge.runs.notes import Notes
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.runs.trash import move_to_trash, restore_from_trash

QUESTIONS = DatasetReference(name="questions", digest="1" * 64)
HOSTILE = "a:b\n\x1b[31m<b>\u202e'\""


def made(data_dir, sut, tags=(), **fields):
    run = folder(data_dir, record(sut, *(item(index) for index in range(3)), **fields))
    Notes(tags=tags).write(run.path)
    return run


def pin(data_dir, **subjects):
    Baselines(data_dir).pin(
        {BaselineSubject(kind, name): run.run_id for kind, (name, run) in subjects.items()}
    )


def meant(data_dir, run):
    return resolve_baseline("pinned", [run.run_id], CompareOptions(data_dir=data_dir))


def test_tag_comes_before_data_set_and_data_set_before_test(tmp_path):
    tagged, of_data, of_test = (made(tmp_path, sut, dataset=QUESTIONS) for sut in ("a", "b", "c"))
    run = made(tmp_path, "new", tags=("other", "live"), dataset=QUESTIONS)
    pin(tmp_path, tag=("live", tagged), dataset=("questions", of_data), test=("exam", of_test))
    assert meant(tmp_path, run) == [tagged.run_id]
    assert [str(subject) for subject in list_subjects(recorded_run(run))] == [
        "tag:other",
        "tag:live",
        "dataset:questions",
        "test:exam",
    ]
    for subject, then in (("tag:live", of_data), ("dataset:questions", of_test)):
        Baselines(tmp_path).unpin(BaselineSubject.parse(subject))
        assert meant(tmp_path, run) == [then.run_id]
    found = compare("pinned", run.run_id, data_dir=tmp_path)
    assert (found.baseline.given, found.baseline.runs) == ("pinned", {"exam": of_test.run_id})


def test_run_of_another_test_is_refused_and_nothing_is_pinned(tmp_path):
    run = made(tmp_path, "a")
    exam = {BaselineSubject("test", "exam"): run.run_id}
    with pytest.raises(UnknownNameError, match=r"(?s)is not of the test 'exams'.*test:exam"):
        Baselines(tmp_path).pin(exam | {BaselineSubject("test", "exams"): run.run_id})
    assert Baselines(tmp_path).pins() == {}
    with pytest.raises(
        RecordError, match=r"(?s)No baseline is pinned for the test 'exam'.*baselines pin RUN"
    ):
        meant(tmp_path, run)
    with pytest.raises(UnknownNameError, match="No baseline is pinned for the tag 'x'"):
        Baselines(tmp_path).unpin(BaselineSubject("tag", "x"))
    for wrong in ("exam", "suite:exam", "test:", ""):
        with pytest.raises(InvalidOptionError, match="dataset:NAME"):
            BaselineSubject.parse(wrong)


def test_deleted_baseline_is_named_until_it_is_restored(tmp_path):
    baseline, run = made(tmp_path, "a"), made(tmp_path, "b")
    pin(tmp_path, test=("exam", baseline))
    trashed = move_to_trash(baseline, tmp_path)
    with pytest.raises(
        RecordError, match=rf"(?s)test 'exam', run {baseline.run_id}, is in the trash.*pin another"
    ):
        meant(tmp_path, run)
    restore_from_trash(trashed.name, tmp_path)
    assert meant(tmp_path, run) == [baseline.run_id]
    baseline.path.rename(tmp_path / "elsewhere")
    with pytest.raises(RecordError, match=r"not in .* any more. Pin another: .* RUN --for 'test:exam'"):
        meant(tmp_path, run)


def test_all_who_pin_at_once_are_heard(tmp_path):
    run = made(tmp_path, "a")
    tags = [BaselineSubject("tag", f"{HOSTILE}{number}") for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda tag: Baselines(tmp_path).pin({tag: run.run_id}), tags))
    assert {*Baselines(tmp_path).pins()} == {*tags}


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"test:exam": 1}', '{"exam": "r"}', '{"test:exam": "../../elsewhere"}']
)
def test_damaged_file_is_refused_by_name(tmp_path, text):
    (tmp_path / "baselines.json").write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=r"baselines\.json"):
        Baselines(tmp_path).pins()


# --- the first line of a comparison of cases that pass or fail -------------------------------------------------------


def judged(data_dir, sut, *passed, uid="app"):
    """A run whose items pass as is said; None for an item that failed before it was judged."""
    items = [
        item(place, None if value is None else {"passed": value}, item_id=f"i{place}")
        for place, value in enumerate(passed)
    ]
    fields = {"ranges": {"passed": (0, 1)}, "directions": {"passed": "higher"}}
    return folder(data_dir, record(uid, *items, run_id=f"20260131-120000-{sut}", **fields)).run_id


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((1, 1, 1, 0, 1), (0, 0, 0, 1, 1), "3 passed before and fail now; 1 the other way."),
        ((1, 1), (0, 1), "1 passed before and fails now; none the other way."),
        ((0, 0, 1), (1, 1, 1), "2 failed before and pass now; none the other way."),
        ((0, 1, 1), (0, 1, 1), "No test case passes in one run and fails in the other; 2 pass in both."),
        ((1, None, 1, 0), (0, 1, None, 0), "1 passed before and fails now; none the other way."),
        (
            (1, 0.5),
            (0.5, 0),
            "1 passed before and fails now; none the other way.",
        ),  # of repeats all must pass
    ],
)
def test_first_line_counts_cases_that_pass_in_one_run_alone(tmp_path, before, after, said):
    runs = judged(tmp_path, "a", *before), judged(tmp_path, "b", *after)
    assert next(answers(compare(*runs, data_dir=tmp_path))) == said


def test_first_line_names_systems_that_differ(tmp_path):
    runs = judged(tmp_path, "a", 1, 0, uid="old"), judged(tmp_path, "b", 0, 1, uid="new")
    first = next(answers(compare(*runs, data_dir=tmp_path)))
    assert first == "1 passes with old and fails with new; 1 the other way."

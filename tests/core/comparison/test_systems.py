"""Which systems are compared, by which tests, and what they are called."""

import pytest
from recorded import folder, item, record

from modelgauge import load_record
from modelgauge.comparison.compare import compare_runs
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_runs import paired_runs
from modelgauge.data.records import DatasetReference
from modelgauge.errors import RecordError
from modelgauge.runs.recorded_run import RecordedRun


@pytest.fixture
def data_dir(tmp_path):
    """One invocation: two tests on three SUTs; and a run of another command, of the third SUT."""
    for test in ("exam", "quiz"):
        for sut in "abc":
            made = record(sut, item(0), run_id=f"{test}-{sut}", test_uid=test)
            folder(tmp_path, made.replaced(invocation_id="all"))
    folder(tmp_path, record("c", item(0), run_id="later").replaced(invocation_id="another"))
    return tmp_path


def said(data_dir, *names, **options):
    """For each pair its test and candidate, and the label of the baseline."""
    found = paired_runs(names[0], names[1:], CompareOptions(data_dir=data_dir, **options))
    return found.baseline.label, [(item.test, item.candidate) for item in found.items]


def test_each_sut_of_an_invocation_is_a_system(data_dir):
    assert said(data_dir, "exam-a", "all") == ("a", [("exam", "b"), ("exam", "c")])


def test_one_of_the_suts_of_an_invocation_is_the_baseline_of_the_others(data_dir):
    pairs = [("exam", "a"), ("quiz", "a"), ("exam", "c"), ("quiz", "c")]
    assert said(data_dir, "all", baseline_sut="b") == ("b", pairs)
    assert said(data_dir, "all", "later", baseline_sut="b") == ("b", [("exam", "c")])


def test_several_suts_are_no_baseline(data_dir):
    with pytest.raises(
        RecordError, match=r"'all' has runs of 3 SUTs, and the baseline is one: a, b, c\. .*--baseline-sut a"
    ):
        said(data_dir, "all", "later")
    with pytest.raises(RecordError, match=r"'all' has no run of the SUT 'd'\..*Its SUTs are: a, b, c"):
        said(data_dir, "all", "later", baseline_sut="d")


def test_one_sut_alone_has_nothing_to_be_compared_with(data_dir):
    with pytest.raises(RecordError, match="'later' has runs of one SUT alone"):
        said(data_dir, "later", baseline_sut="c")


def test_a_run_is_not_compared_with_itself(data_dir):
    folder_of_a = str(data_dir / "runs" / "exam-a")
    for names, problem in {
        (
            "exam-a",
            folder_of_a,
        ): f"exam-a is both baseline and candidate: 'exam-a' and '{folder_of_a}' name it",
        ("exam-b", "exam-a", "exam-a"): "exam-a is given twice: 'exam-a' and 'exam-a' name it",
    }.items():
        with pytest.raises(
            RecordError, match=f"Run {problem}. Name two different runs: `modelgauge runs` lists"
        ):
            said(data_dir, *names)


def test_tests_of_one_system_alone_are_noted(data_dir):
    found = paired_runs("later", ["all"], CompareOptions(data_dir=data_dir))
    assert [item.test for item in found.items] == ["exam", "exam", "exam"]
    assert found.notes[0] == "a was measured by quiz, and c (later) was not."


def test_systems_of_one_sut_have_labels_of_their_own(data_dir):
    assert said(data_dir, "exam-c", "later") == ("c (exam-c)", [("exam", "c (later)")])
    runs = [record("a", item(0), run_id=name, identifier=f"prompt {name}") for name in ("x", "y")]
    assert said(None, *runs) == ("a (prompt x)", [("exam", "a (prompt y)")])


def test_runs_of_different_tests_have_no_test_in_common(data_dir):
    with pytest.raises(
        RecordError,
        match=r"no test in common: one was measured by 'exam', the other by 'quiz'\..*--allow test",
    ):
        said(data_dir, "exam-a", "quiz-b")
    assert said(data_dir, "exam-a", "quiz-b", allow="test") == ("a", [("exam", "b")])


def test_tests_of_one_data_set_are_the_same_however_they_are_called():
    runs = [
        record(
            sut,
            item(0),
            test_uid=f"file {sut}",
            dataset=DatasetReference(name=f"file {sut}", digest="0" * 64),
        )
        for sut in "ab"
    ]
    assert said(None, *runs) == ("a", [("file a", "b")])


def test_two_runs_of_one_test_on_one_sut_are_no_system():
    runs = [record("a", item(0), run_id=name) for name in ("x", "y")]
    with pytest.raises(RecordError, match=r"has two runs of exam on a: x and y\. Name one"):
        said(None, runs, record("b", item(0)))


def test_records_are_given_as_a_list():
    runs = [record(sut, item(0)) for sut in "abc"]
    assert said(None, runs[0], runs[1:]) == ("a", [("exam", "b"), ("exam", "c")])


def test_long_names_of_suts_are_shortened_to_what_differs():
    folder_of_answers = "replay//srv/data/gsm8k/solutions"
    made = [
        record(f"{folder_of_answers}/{name}.jsonl?prompt=question", item(0), run_id=name) for name in "abc"
    ]
    found = paired_runs(made[0], made[1:], CompareOptions())
    assert [found.baseline.label, *(candidate.label for candidate in found.candidates)] == [
        "a.jsonl",
        "b.jsonl",
        "c.jsonl",
    ]
    assert found.baseline.sut_uid == made[0].sut_uid


def test_the_items_of_a_record_are_read_from_its_folder_where_that_holds_it(data_dir):
    def not_read():
        raise AssertionError

    before, after = (load_record(f"exam-{sut}", data_dir).with_items(not_read) for sut in "ab")
    assert said(data_dir, before, after) == ("a", [("exam", "b")])
    with pytest.raises(AssertionError):
        said(data_dir, before, after.replaced(seconds=1.0).with_items(not_read))


def test_runs_are_compared_with_the_first_ones_where_they_share_a_test():
    made = [
        record("a", item(0), item(1)),
        record("a", item(0), run_id="a-quiz", test_uid="quiz"),
        record("b", item(0), item(1, 0.0)),
        record("a", item(1), run_id="a-again"),
        record("c", item(0), test_uid="quiz"),
        record("d", item(0), test_uid="of nobody else"),
    ]
    runs = [RecordedRun(one) for one in made]
    found = compare_runs(runs)
    assert found.baseline.label == "a (20260131-120000-a)"
    assert [(row.test, row.candidate) for row in found.comparisons] == [
        *(("exam", "b"), ("exam", "a (a-again)"), ("quiz", "c")),
    ]
    sides = [(pair.before.run, pair.after.run) for pair in found.paired]
    assert [(runs.index(one), runs.index(other)) for one, other in sides] == [(0, 2), (0, 3), (1, 4)]
    assert compare_runs([runs[0], runs[5]]) is None
    assert compare_runs(runs[:1]) is None

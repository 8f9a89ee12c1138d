"""Which items passed the thresholds of a run's metrics, in numbers, tables and sentences."""

import pytest

from modelgauge import Estimate, TestRecord
from modelgauge.data.results import Counts, Threshold
from modelgauge.data.thresholds import failing
from modelgauge.documents.terminal import Style, as_text
from modelgauge.reports.runs_report import runs_document
from modelgauge.runs.passing import describe_passed, have_all_passed, why_not_passed
from modelgauge.runs.recorded_run import RecordedRun


def render(runs, style, redact=str, **options):
    return as_text(runs_document(runs, **options), style, redact)


MADE = {"uid": "x", "class_name": "x", "cache_version": 0, "arguments": {}, "opaque": []}
SCORES = {
    "Match": Estimate(0.75, 4, 0.25),
    "Match.passed": Estimate(0.75, 4),
    "Length": Estimate(2.5, 4, 0.5),
    "Length.passed": Estimate(1.0, 4),
    "passed": Estimate(0.75, 4),
}


def record(result, thresholds=("Match", "Length"), scored=4, sut="sut"):
    found = {name: Threshold(value=0.7, higher_is_better=name != "Length") for name in thresholds}
    return TestRecord(
        run_id="r",
        invocation_id="i",
        run_timestamp="t",
        test_uid="goldens",
        test_initialization=MADE,
        sut_uid=sut,
        sut_initialization=MADE,
        counts=Counts(items=4, scored=scored, sut_errors=4 - scored),
        thresholds=found,
        result=result,
    )


def shown(*records, symbols=True):
    runs = [RecordedRun(record) for record in records]
    return render(runs, Style(width=80, color=False, symbols=symbols)).splitlines()


def test_the_table_shows_for_each_metric_how_many_items_passed_and_at_which_threshold():
    lines = shown(record(SCORES))
    rows = {line.split("  ")[0]: line for line in lines}
    assert lines[1].endswith("n   passed")
    assert rows["Match ≥ 0.7"].endswith("4   3 of 4")
    assert rows["Length ≤ 0.7"].endswith("4   4 of 4")
    assert rows["passed"].endswith("4   3 of 4")
    assert not any("Match.passed" in line for line in lines)
    assert any(line.startswith("Match >= 0.7") for line in shown(record(SCORES), symbols=False))


def test_a_test_without_thresholds_keeps_all_its_rows():
    lines = shown(record(SCORES, thresholds=()))
    assert any(line.startswith("Match.passed") for line in lines)
    assert " of 4" not in "\n".join(lines)


def test_of_many_runs_the_passes_come_first():
    lines = shown(record(SCORES), record({**SCORES, "passed": Estimate(1.0, 4)}, sut="other"))
    assert [line.split() for line in lines if "passed" in line] == [
        ["sut", "passed", "3", "of", "4", "0"],
        ["other", "passed", "4", "of", "4", "0"],
    ]


@pytest.mark.parametrize(
    ("result", "thresholds", "scored", "why"),
    [
        (SCORES, ("Match",), 4, "3 of 4 items passed all thresholds"),
        ({**SCORES, "passed": Estimate(1.0, 4)}, ("Match",), 4, None),
        ({**SCORES, "passed": Estimate(1.0, 3)}, ("Length",), 3, None),
        (
            {**SCORES, "passed": Estimate(1.0, 3)},
            ("Match",),
            3,
            "3 of 4 items passed the threshold of Match",
        ),
        ({}, ("Match",), 0, "nothing was scored, so nothing passed"),
        (SCORES, (), 4, None),
        ({}, (), 0, None),
    ],
)
def test_why_a_run_did_not_pass(result, thresholds, scored, why):
    assert why_not_passed(record(result, thresholds, scored)) == why


def test_items_that_were_asked_several_times_pass_in_part():
    assert describe_passed(record({"passed": Estimate(0.375, 4)})) == "1.5 of 4"


@pytest.mark.parametrize(
    ("name", "told"), [(None, "3 of 4"), ("Match", "3 of 4"), ("Length", "4 of 4"), ("Style", None)]
)
def test_how_many_passed_one_threshold_or_all(name, told):
    assert describe_passed(record(SCORES), name) == told
    assert describe_passed(record(SCORES, thresholds=()), name) is None
    assert describe_passed(record({"passed": 1, "Match.passed": 1}), name) is None


def test_thousands_of_items_are_counted_for_people():
    assert describe_passed(record({"passed": Estimate(1 / 3, 3000)})) == "1,000 of 3,000"


@pytest.mark.parametrize(
    ("measurements", "names"),
    [
        ({"x": 0.1, "x.passed": 0.0, "y": 1.0, "y.passed": 1.0, "passed": 0.0}, ("x",)),
        ({"x": 0.1, "x.passed": 0.5, "y": 1.0, "y.passed": 0.0}, ("x", "y")),
        ({"x": 0.1}, ()),
        ({"x.passed": 0.0}, ()),
    ],
)
def test_the_measurements_of_an_item_that_are_below_their_thresholds(measurements, names):
    assert failing(measurements) == names


@pytest.mark.parametrize(
    ("result", "passed"),
    [
        ({}, True),
        ({"x.passed": Estimate(1.0, 4)}, True),
        ({"x.passed": Estimate(1.0, 4), "y.passed": Estimate(0.75, 4)}, False),
        ({"passed": Estimate(0.75, 4), "x": Estimate(0.1, 4)}, True),
        ({"x.passed": 0}, True),
    ],
)
def test_whether_no_item_is_below_a_threshold(result, passed):
    assert have_all_passed(record(result)) == passed


@pytest.mark.parametrize(
    ("result", "items", "why"),
    [
        ({}, [{"Match": 0.8}, {"Match": 0.6}, {"Match": 0.7}], "2 of 3 items passed all thresholds"),
        ({}, [{"Match": 0.8}, {"Match": 0.7}], None),
        ({}, [{"Match": 0.8}, {"Match": 0.9, "passed": 0.0}], "1 of 2 items passed all thresholds"),
        ({"passed": Estimate(1.0, 2)}, [{"Match": 0.1}], None),
        ({}, [], "nothing says whether its items passed all thresholds"),
    ],
)
def test_where_the_results_do_not_say_it_the_items_tell_why_a_run_did_not_pass(
    scored, failure, result, items, why
):
    held = [scored(n).replaced(measurements=one) for n, one in enumerate(items)]
    given = record(result, ("Match",)).with_items(lambda: iter([failure(9), *held]))
    assert why_not_passed(given) == why


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (Estimate(0.75, 4), "3 of 4 items passed the threshold of Match"),
        (Estimate(1.0, 4), None),
        (Estimate(2 / 3, 3), None),
    ],
)
def test_of_failed_items_it_may_be_known_that_they_are_below_one_threshold(one, why):
    assert why_not_passed(record({"passed": Estimate(1.0, 3), "Match.passed": one}, scored=3)) == why

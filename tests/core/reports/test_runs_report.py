"""What is shown of several runs: one table, what went wrong, what differs, and how to see more."""

import pytest

from modelgauge.data.estimates import Estimate
from modelgauge.data.results import CallCounts, Counts, RunFailure, Spent, Threshold
from modelgauge.documents.terminal import Style, as_text
from modelgauge.reports.runs_report import headline, runs_document
from modelgauge.runs.recorded_run import RecordedRun


def render(runs, style, redact=str, **options):
    return as_text(runs_document(runs, **options), style, redact)


ACCURACY = Estimate(value=0.6384, n=72, stderr=0.0571, interval=(0.5236, 0.7401), bounds=(0.46, 0.74))
INVOCATION = "20260131-120000-d4e5f6"


@pytest.fixture
def runs_of(folder, record):
    def runs_of(*changes):
        return [RecordedRun(record(**change), folder()) for change in changes]

    return runs_of


def rows_of(text):
    """The cells of the table: what stands between its rule and the next empty line."""
    lines = text.split("\n")
    return [line.split() for line in lines[3 : lines.index("")]]


def test_four_pairs_fit_one_screen(runs_of):
    pairs = [
        {"test_uid": test, "sut_uid": sut, "result": {"accuracy": ACCURACY}}
        for test in ("one", "two")
        for sut in ("left", "right")
    ]
    verdicts = ["one: right is better.", "two: cannot tell."]
    shown = render(runs_of(*pairs), Style(), differences=verdicts)
    lines = shown.split("\n")
    assert len(lines) <= 24
    assert lines[0] == "2 tests on 2 SUTs"
    assert lines[1].split() == ["Test", "SUT", "accuracy", "95", "%", "interval", "n", "failed", "time"]
    rows = rows_of(shown)
    assert rows[2] == ["two", "left", "0.638", "0.524", "to", "0.740", "72", "0", "3.2", "s"]
    assert rows[3] == ["right", *rows[2][2:]]
    assert "differs  one: right is better.\n         two: cannot tell.\n" in shown
    assert lines[-3:] == [
        f"next     modelgauge show {INVOCATION} -v",
        f"         modelgauge compare {INVOCATION} --baseline-sut left",
        f"         modelgauge report {INVOCATION} --open",
    ]


def test_the_details_of_each_run_follow_on_request(runs_of):
    pairs = runs_of({"sut_uid": "left", "sut_label": "small"}, {"sut_uid": "right"})
    plain, details = (render(pairs, Style(), details=one) for one in (False, True))
    assert "a_test on small" not in plain
    assert [line for line in details.split("\n") if line.startswith("a_test on ")] == [
        "a_test on 2 SUTs",
        "a_test on small",
        "a_test on right",
    ]
    assert "next   modelgauge show 20260131-120000-a1b2c3" in details.replace("next    ", "next   ")


def test_what_all_rows_have_in_common_stands_in_the_title(runs_of):
    several = {"result": {"a": 1, "b": 2}}
    lines = render(runs_of({**several, "sut_uid": "x"}, {**several, "sut_uid": "y"}), Style()).split("\n")
    assert lines[0] == "a_test on 2 SUTs"
    assert lines[1].split()[:3] == ["SUT", "Result", "value"]
    lines = render(runs_of({"test_uid": "x"}, {"test_uid": "y"}), Style()).split("\n")
    assert lines[0] == "2 tests on a_sut"
    assert lines[1].split()[0] == "Test"


def test_of_each_run_some_results_are_shown_and_what_is_wrong_with_it(runs_of):
    share = Estimate(0.5, 4)
    pairs = {
        "plain": {"result": {"a": 1, "b": 2, "c": 3, "d": 4, "g": {"x": 9}}},
        "grouped": {"result": {"g": {"x": 7, "y": 8}}, "counts": Counts(items=6, scored=4, sut_errors=2)},
        "empty": {"cancelled": True},
        "judged": {
            "result": {"m": 0.75, "m.passed": share, "passed": share},
            "thresholds": {"m": Threshold(value=0.5)},
            "counts": Counts(items=4, scored=4),
        },
        "nothing": {},
    }
    shown = rows_of(render(runs_of(*({"sut_uid": name, **pair} for name, pair in pairs.items())), Style()))
    assert shown == [
        ["plain", "a", "1", "0", "3.2", "s"],
        ["b", "2"],
        ["grouped", "g", "x", "7", "2", "3.2", "s"],
        ["g", "y", "8"],
        ["empty", "no", "result", "0,", "stopped", "3.2", "s"],
        ["judged", "passed", "2", "of", "4", "0", "3.2", "s"],
        ["m", "0.75"],
        ["nothing", "no", "result", "0", "3.2", "s"],
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_results_without_row_are_named(runs_of, width):
    several = dict.fromkeys(("a", "b", "c", "d"), ACCURACY)
    pairs = [
        {"test_uid": "one", "result": {**several, "topics": {"x": 1}}},
        {"test_uid": "two", "result": several},
        {"test_uid": "three", "result": {"a": ACCURACY}},
        {"test_uid": "four", "result": {**several, "e": 1}},
        {"test_uid": "five"},
    ]
    shown = " ".join(render(runs_of(*pairs), Style(width=width)).split())
    assert "note Not shown: c, d, topics (one); c, d (two); c, d, e (four)." in shown
    assert "Not shown" not in render(runs_of(*pairs[2:3], *pairs[4:]), Style(width=width))
    assert "Not shown" not in render(runs_of(*pairs), Style(width=width), details=True)


def test_results_that_one_sut_or_test_lacks_are_named(runs_of):
    threshold = {"f1": Threshold(value=0.5)}
    pairs = [
        {"test_uid": "t", "sut_uid": "x", "result": {"a": 1, "b": 2}},
        {"test_uid": "t", "sut_uid": "y", "result": {"a": 1}},
        {"test_uid": "t", "sut_uid": "z"},  # a row says that it has none
        {"test_uid": "u", "sut_uid": "x", "result": {"a": 1}, "thresholds": threshold},
    ]
    assert "note No result: b (t on y); f1 (u on x). calls" in " ".join(
        render(runs_of(*pairs), Style()).split()
    )


def test_mean_over_group_is_shown_with_reduction(runs_of):
    pairs = [
        {
            "test_uid": name,
            "result": {"accuracy.pass@2": ACCURACY},
            "groups": {"all": 2},
            "repeats": 5,
            "reduction": "pass@2",
        }
        for name in ("one", "two")
    ]
    assert [row[:4] for row in rows_of(render(runs_of(*pairs), Style(width=120)))][-1] == [
        "all,",
        "mean",
        "of",
        "2",
    ]


def test_many_runs_have_one_result_each_and_what_all_used_is_summed(runs_of):
    calls = Counts(items=1, scored=1, sut_calls=CallCounts(paid=2, cached=1), judge_calls=CallCounts(paid=1))
    each = {"counts": calls, "spent": Spent(attempts=3, tokens=10, cost_usd=0.5), "result": {"a": 1, "b": 2}}
    shown = render(runs_of(*({**each, "sut_uid": f"sut{n}"} for n in range(8))), Style())
    assert rows_of(shown)[0] == ["sut0", "1", "0", "$0.50"]
    assert len(rows_of(shown)) == 8
    assert "calls  SUT 16 made, 8 cached; judges 8 made, 0 cached\n" in shown
    assert "used   80 tokens, $4.00\n" in shown


def test_what_went_wrong_stands_on_a_line_for_each_kind(runs_of, scored, failure):
    stopped = RunFailure(stage="run", error_type="RunStoppedError", message="the disk is full")
    shown = render(
        runs_of(
            *({"sut_uid": name, "failure": stopped} for name in ("x", "y", "z")),
            {"sut_uid": "left", "cancelled": True},
        ),
        Style(),
        shown_by="show",
    )
    assert "errors  a_test on x and 2 more pairs: stopped: RunStoppedError: the disk is full\n" in shown
    assert "        a_test on left: interrupted\n" in shown
    assert f"        modelgauge resume {INVOCATION}" in shown


def test_why_items_failed_is_shown_beside_long_names(folder, record, failure):
    failed = {"test_uid": "acme_polite?annotator=acme_judge&n=300", "counts": Counts(items=1, sut_errors=1)}
    runs = [
        RecordedRun(record(**failed, sut_uid=f"sut{n}"), folder(failure(0, "no verdict"))) for n in (1, 2)
    ]
    assert "ValueError: no verdict" in " ".join(render(runs, Style(width=80)).split())


def test_the_mean_over_the_tests_of_a_group_has_a_row_for_each_sut(runs_of):
    result = {"accuracy": ACCURACY, "other": 1}
    pairs = [
        {"test_uid": f"t{n}", "sut_uid": sut, "result": result, "groups": {"all": members}}
        for n, members in ((1, 3), (2, 3))
        for sut in ("x", "y")
    ]
    shown = render(runs_of(*pairs), Style(width=100))
    mean = ["accuracy", "0.638", "0.559", "to", "0.718", "144", "0"]
    assert rows_of(shown)[-2:] == [["all,", "mean", "of", "2", "of", "3", "x", *mean], ["y", *mean]]


def test_a_test_is_named_once_where_the_sut_tells_its_rows_apart(runs_of):
    result = {"accuracy": ACCURACY}
    tests = [f"bbh_tracking_shuffled_objects_{n}" for n in range(27)]
    pairs = [
        {"test_uid": test, "sut_uid": sut, "result": result} for test in tests for sut in ("small", "large")
    ]
    shown = render(runs_of(*pairs), Style())
    assert "".join("".join(row) for row in rows_of(shown)).count("bbh_") == len(tests)
    again = [{"test_uid": test, "sut_uid": "s", "result": result} for test in ("one", "one", "two")]
    assert [row[0] for row in rows_of(render(runs_of(*again), Style()))] == ["one", "one", "two"]


def test_no_line_is_longer_than_the_terminal(runs_of):
    long = "a_very_long_name_of_a_test/with?options=of&every=kind"
    pairs = [
        {"test_uid": f"{long}{n}", "sut_uid": f"{long}{sut}", "result": {long: ACCURACY}}
        for n in range(2)
        for sut in "xy"
    ]
    for width in (40, 60, 80, 120):
        lines = render(runs_of(*pairs), Style(width=width), differences=["word " * 50]).split("\n")
        lines = [line for line in lines if "modelgauge " not in line]  # commands are never broken
        assert max(map(len, lines)) <= width


def test_a_list_of_runs_tells_what_passed_else_the_first_result(record):
    share = Estimate(2 / 3, 15)
    judged = record(
        result={"m": 0.9, "m.passed": share, "passed": share},
        thresholds={"m": Threshold(value=0.5)},
        counts=Counts(items=15, scored=15),
    )
    assert headline(judged) == "10 of 15 passed"
    plain = record(result={"g": {"x": 1}, "accuracy": ACCURACY, "b": 1})
    assert headline(plain) == "accuracy 0.638 ± 0.057"
    assert headline(record(result={"g": {"x": 1}})) == ""


def test_what_was_stopped_is_said_to_be_of_the_first_items(runs_of):
    stopped = {"cancelled": True, "counts": Counts(items=9, scored=5), "result": {"accuracy": ACCURACY}}
    shown = render(runs_of({**stopped, "sut_uid": "x"}, {"sut_uid": "y"}), Style())
    assert "note    Results of stopped runs are of the items that came first" in shown
    assert "note" not in render(runs_of({"sut_uid": "x"}, {"sut_uid": "y"}), Style())


def test_times_are_left_out_where_they_have_no_room(runs_of):
    pairs = runs_of(*({"sut_uid": name, "result": {"accuracy": ACCURACY}} for name in "xy"))
    assert "time" in render(pairs, Style(width=70))
    assert "time" not in render(pairs, Style(width=50))
    wide = [
        {"test_uid": f"a_longer_test_{name}", "sut_uid": name, "result": {f"accuracy of {name}": ACCURACY}}
        for name in ("one", "another")
    ]
    assert not [at for at in range(70, 121) if "time:" in render(runs_of(*wide), Style(width=at))]

"""Tables of a calibration: each known score has a row with its value, its interval and its number of answers."""

from measured_runs import measured_run

from modelgauge import calibrate_judge
from modelgauge.reports.comparisons.calibration import METHODS, score_table, sut_labels
from modelgauge.wording.figures import between, figure


def calibrated(*suts):
    """Calibrate a judge that is right about four answers of five, by labels of half of the answers of each SUT."""
    runs = [measured_run(sut, {f"n{i}": float(i % 2) for i in range(80)}) for sut in suts]
    rows = [
        {"sut": sut, "item_id": f"n{i}", "label": (i + (i % 5 == 0)) % 2} for sut in suts for i in range(40)
    ]
    return calibrate_judge(runs, rows)


def cells(found):
    return {column.head: list(column.cells) for column in score_table(found, sut_labels(found)).columns}


def test_score_row_has_value_error_interval_and_number_of_its_estimate():
    found = calibrated("a")
    (sut,) = found.suts
    rows = cells(found)
    assert "SUT" not in rows
    assert rows["Score"] == [METHODS[estimate.method] for estimate in sut.scores]
    assert rows["n"] == ["80", "40", "80", "80"]
    assert rows["95 % interval"] == [between(estimate.interval, 0.01) for estimate in sut.scores]
    judge, people, corrected, _ = rows["value ± std err"]
    assert judge == "0.500"
    for shown, estimate in ((people, sut.scores[1]), (corrected, sut.scores[2])):
        value, _, stderr = shown.partition(" ± ")
        assert value == figure(estimate.value, estimate.stderr)
        assert stderr == figure(estimate.stderr, estimate.stderr)


def test_score_rows_of_several_suts_name_each_once_and_leave_out_unknown_scores():
    found = calibrated("a", "b")
    rows = cells(found)
    assert rows["SUT"] == ["a", "", "", "", "b", "", "", ""]
    labelled = measured_run("a", {"x": 1.0, "y": 0.0, "z": 1.0})
    every = calibrate_judge(labelled, [{"item_id": item, "label": 1} for item in "xyz"])
    assert cells(every)["Score"] == ["judge alone", "people alone"]

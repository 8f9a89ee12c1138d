"""Judges and people: agreement, corrected scores, and what is said of labels that are wrong."""

import json
import math
import re
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from measured_runs import measured_run
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss_kappa

from modelgauge import calibrate_judge, sample_answers
from modelgauge.data.estimates import Estimate
from modelgauge.errors import InputFileError, RecordError, UnknownNameError
from modelgauge.runs.ratings import Rating, RatingsFile
from modelgauge.stats import prediction_powered_mean, rogan_gladen, wilson_interval

GSM8K = Path(__file__).parents[5] / "shared" / "data" / "gsm8k"
RNG = np.random.default_rng(3)
TRUE = RNG.random(300) < 0.6
JUDGED = np.where(RNG.random(300) < 0.85, TRUE, ~TRUE)
RUN = measured_run("a", {f"n{i}": float(one) for i, one in enumerate(JUDGED)})
RATERS = {"ann": 0.02, "ben": 0.1, "cid": 0.2}


def rows_of(run, n, raters=("ann",), truth=TRUE):
    """The labels of people who err by their shares."""
    drawn = [int(row["item_id"][1:]) for row in sample_answers(run, n)]
    rng = np.random.default_rng(4)
    return [
        {
            "item_id": f"n{i}",
            "sut": run.sut_uid,
            "rater": rater,
            "label": int(truth[i] ^ (rng.random() < RATERS[rater])),
        }
        for rater in raters
        for i in drawn
    ]


def values(agreement):
    return {coefficient.name: coefficient.value for coefficient in agreement.coefficients}


def labels_by_item(rows):
    found = {}
    for row in rows:
        found.setdefault(int(row["item_id"][1:]), {})[row["rater"]] = row["label"]
    return found


# --- agreement --------------------------------------------------------------------------------------------


def test_the_agreement_of_a_judge_with_a_person():
    rows = rows_of(RUN, 80)
    (found,) = calibrate_judge(RUN, rows).agreements
    people = [row["label"] for row in rows]
    judge = [int(JUDGED[int(row["item_id"][1:])]) for row in rows]
    table = np.zeros((2, 2), dtype=int)
    np.add.at(table, (people, judge), 1)
    assert (found.between, found.sut, found.n, found.categories) == ("judge and people", None, 80, (0, 1))
    assert np.array_equal(found.confusion, table)
    same = np.mean(np.equal(people, judge))
    share = (np.mean(people) + np.mean(judge)) / 2
    chance = 2 * share * (1 - share)  # Gwet (2008), for two labels
    assert values(found) == pytest.approx(
        {
            "raw_agreement": same,
            "cohen_kappa": cohens_kappa(table).kappa,
            "krippendorff_alpha": krippendorff.alpha([people, judge], level_of_measurement="nominal"),
            "gwet_ac1": (same - chance) / (1 - chance),
        },
        abs=1e-10,
    )
    for coefficient in found.coefficients:
        assert coefficient.interval[0] < coefficient.value < coefficient.interval[1]


def test_several_raters_are_compared_with_the_judge_one_by_one_and_with_each_other():
    rows = rows_of(RUN, 90, RATERS)
    judge, people = calibrate_judge(RUN, rows).agreements
    held = labels_by_item(rows)
    matrix = np.array([[*labels.values()] for labels in held.values()])
    judged = JUDGED[[*held]].astype(int)
    tables = np.zeros((3, 2, 2), dtype=int)
    for rater in range(3):
        np.add.at(tables[rater], (matrix[:, rater], judged), 1)
    assert (judge.n, people.between, people.n) == (90, "people", 90)
    assert values(judge)["cohen_kappa"] == pytest.approx(
        np.mean([cohens_kappa(table).kappa for table in tables])
    )
    assert values(judge)["raw_agreement"] == pytest.approx(np.mean(matrix == judged[:, None]))
    assert np.array_equal(judge.confusion, tables.sum(axis=0))
    fleiss = statsmodels_fleiss_kappa(aggregate_raters(matrix, 2)[0])
    assert values(people)["fleiss_kappa"] == pytest.approx(fleiss, abs=1e-10)
    alpha = krippendorff.alpha(matrix.T, level_of_measurement="nominal")
    assert values(people)["krippendorff_alpha"] == pytest.approx(alpha, abs=1e-10)


def test_raters_of_many_answers_weigh_more():
    rows = [row for place, row in enumerate(rows_of(RUN, 60, ("ann", "cid"))) if place < 60 or place >= 100]
    judge, people = calibrate_judge(RUN, rows).agreements
    right = [row["label"] == JUDGED[int(row["item_id"][1:])] for row in rows]
    assert (len(rows), judge.n, people.n) == (80, 60, 20)
    assert values(judge)["raw_agreement"] == pytest.approx(np.mean(right))
    assert "cohen_kappa" in values(people)  # of two raters


def test_intervals_draw_answers_and_not_ratings():
    """Three raters who always agree know no more than one: the interval is as wide."""
    one = rows_of(RUN, 60)
    three = [{**row, "rater": rater} for rater in "abc" for row in one]
    found = [calibrate_judge(RUN, rows).agreements[0].coefficients for rows in (one, three)]
    for single, several in zip(*found, strict=True):
        assert several.value == pytest.approx(single.value, abs=1e-12)
        assert several.interval == pytest.approx(single.interval, abs=1e-9)


def test_grades_are_weighted_by_the_square_of_the_miss():
    rng = np.random.default_rng(5)
    grades = rng.integers(1, 6, 120)
    run = measured_run("a", {f"n{i}": float(one) for i, one in enumerate(grades)})
    rows = [
        {"item_id": f"n{i}", "label": int(np.clip(grades[i] + rng.integers(-1, 2), 1, 5))} for i in range(60)
    ]
    calibration = calibrate_judge(run, rows)
    found = values(calibration.agreements[0])
    table = np.zeros((5, 5))
    np.add.at(table, ([row["label"] - 1 for row in rows], grades[:60] - 1), 1)
    expected = cohens_kappa(table, wt="quadratic").kappa
    assert found["cohen_kappa"] == pytest.approx(expected, abs=1e-10)
    pairs = [[row["label"] for row in rows], grades[:60]]
    assert found["krippendorff_alpha"] == pytest.approx(
        krippendorff.alpha(pairs, level_of_measurement="interval"), abs=1e-10
    )
    assert calibration.label_kind == "grades"
    assert [score.method for score in calibration.suts[0].scores] == ["judge", "people", "ppi"]


def test_scores_that_are_any_numbers_have_no_kappa():
    rng = np.random.default_rng(6)
    scores = rng.random(100)
    run = measured_run("a", {f"n{i}": float(one) for i, one in enumerate(scores)})
    rows = [{"item_id": f"n{i}", "label": float(scores[i] / 2 + rng.random() / 2)} for i in range(50)]
    calibration = calibrate_judge(run, rows)
    assert calibration.label_kind == "numbers"
    assert [*values(calibration.agreements[0])] == ["raw_agreement", "krippendorff_alpha"]
    assert calibration.agreements[0].confusion == ()
    labels = [row["label"] for row in rows]
    expected = prediction_powered_mean(labels, scores[:50], scores[50:])
    assert calibration.suts[0].scores[2].value == pytest.approx(expected.value, abs=1e-12)


def test_a_panel_of_judges_gives_one_score_for_each_answer():
    rng = np.random.default_rng(7)
    panel = {f"n{i}": {f"j{k}": float(TRUE[i] ^ (rng.random() < 0.2)) for k in range(3)} for i in range(300)}
    run = measured_run("a", panel)
    calibration = calibrate_judge(run, rows_of(run, 100), measurement=["j0", "j1", "j2"])
    judge, judges = calibration.agreements
    assert (judge.n, judges.between, judges.n) == (100, "judges", 100)
    assert "fleiss_kappa" in values(judges)
    assert values(judge)["raw_agreement"] == pytest.approx(0.8, abs=0.08)
    means = {item: np.mean([*each.values()]) for item, each in panel.items()}
    assert calibration.suts[0].scores[0].value == pytest.approx(np.mean([*means.values()]))
    drawn = {row["item_id"] for row in rows_of(run, 100)}
    labels = [row["label"] for row in rows_of(run, 100)]
    judged = [means[row["item_id"]] for row in rows_of(run, 100)]
    others = [mean for item, mean in means.items() if item not in drawn]
    expected = prediction_powered_mean(labels, judged, others)
    assert calibration.suts[0].scores[2].interval == pytest.approx(expected.interval, abs=1e-12)


def test_each_sut_has_its_own_agreement():
    other = measured_run(
        "b", {f"n{i}": float(~TRUE[i]) for i in range(300)}
    )  # on b the judge is always wrong
    rows = [*rows_of(RUN, 60), *rows_of(other, 60)]
    everything, a, b = calibrate_judge([RUN, other], rows).agreements
    assert (everything.sut, a.sut, b.sut) == (None, "a", "b")
    assert everything.n == 120
    assert values(a)["cohen_kappa"] > 0.5
    assert values(b)["cohen_kappa"] < -0.5


def test_where_a_label_is_rare_kappa_is_said_to_mislead():
    judged = np.ones(200)
    judged[:6] = 0
    run = measured_run("a", {f"n{i}": one for i, one in enumerate(judged)})
    rows = [{"item_id": f"n{i}", "label": int(i >= 3)} for i in range(100)]
    calibration = calibrate_judge(run, rows)
    assert any("3 % of people's labels are 0" in note and "Gwet's AC1" in note for note in calibration.notes)
    found = values(calibration.agreements[0])
    assert found["cohen_kappa"] < 0.7 < 0.9 < found["gwet_ac1"]


# --- scores -----------------------------------------------------------------------------------------------


def test_the_scores_are_those_of_the_labels_and_of_the_items_that_were_not_sampled():
    rows = rows_of(RUN, 80)
    sut = calibrate_judge(RUN, rows).suts[0]
    drawn = [int(row["item_id"][1:]) for row in rows]
    labels, judged = np.array([row["label"] for row in rows]), JUDGED[drawn].astype(float)
    others = np.delete(JUDGED, drawn).astype(float)
    judge, people, ppi, corrected = sut.scores
    assert (sut.n_items, sut.n_labelled, sut.n_without_label) == (300, 80, 0)
    assert (judge.value, judge.interval) == (pytest.approx(JUDGED.mean()), None)
    assert people.interval == wilson_interval(float(labels.sum()), 80)
    expected = prediction_powered_mean(labels, judged, others)
    assert (ppi.value, ppi.stderr, ppi.weight) == pytest.approx(
        (expected.value, expected.stderr, expected.weight)
    )
    positive, negative = labels == 1, labels == 0
    share = rogan_gladen(
        (int(others.sum()), 220),
        (int(judged[positive].sum()), int(positive.sum())),
        (int((1 - judged[negative]).sum()), int(negative.sum())),
    )
    assert (corrected.value, corrected.interval) == (share.value, share.interval)
    assert (corrected.sensitivity, corrected.specificity) == (share.sensitivity, share.specificity)


def test_missing_labels_are_counted_and_bounded():
    rows = rows_of(RUN, 80)
    blank = [{**row, "label": None} if place < 10 else row for place, row in enumerate(rows)]
    calibration = calibrate_judge(RUN, blank)
    sut = calibration.suts[0]
    assert (calibration.n_rows, calibration.n_without_label) == (80, 10)
    assert (sut.n_labelled, sut.n_without_label) == (70, 10)
    ends = [
        calibrate_judge(
            RUN, [{**row, "label": row["label"] if row["label"] is not None else end} for row in blank]
        )
        for end in (0, 1)
    ]
    assert sut.scores[2].bounds == pytest.approx([one.suts[0].scores[2].value for one in ends])
    assert sut.scores[2].n == 290  # neither labelled nor unlabelled
    assert any("10 rows of 80 have no label" in note for note in calibration.notes)


def test_an_answer_that_another_rater_labelled_is_not_missing():
    rows = rows_of(RUN, 40, ("ann", "ben"))
    rows[0]["label"] = None
    calibration = calibrate_judge(RUN, rows)
    assert (calibration.n_without_label, calibration.suts[0].n_without_label) == (1, 0)


def test_a_judge_that_tells_nothing_is_refused_with_a_sentence():
    run = measured_run("a", {f"n{i}": float(i % 2) for i in range(100)})
    rows = [{"item_id": f"n{i}", "label": int(i % 4 < 2)} for i in range(40)]
    *_, ppi, corrected = calibrate_judge(run, rows).suts[0].scores
    assert corrected.value is corrected.interval is None
    assert "sensitivity 0.50 and specificity 0.50 is no better than chance" in corrected.why_not
    assert ppi.weight == pytest.approx(0, abs=0.05)


def test_where_all_items_are_labelled_there_is_nothing_to_correct():
    run = measured_run("a", {"x": 1.0, "y": 0.0, "z": 1.0})
    rows = [{"item_id": item, "label": 1} for item in "xyz"]
    _, people, ppi, corrected = calibrate_judge(run, rows).suts[0].scores
    assert (people.value, ppi.value) == (1.0, None)
    assert "two unlabelled items" in ppi.why_not
    assert corrected.value is None


def test_items_that_the_judge_did_not_score_are_in_no_score():
    run = measured_run("a", {**{f"n{i}": float(i % 2) for i in range(20)}, "failed": None})
    rows = [{"item_id": f"n{i}", "label": i % 2} for i in range(6)] + [{"item_id": "failed", "label": 1}]
    calibration = calibrate_judge(run, rows)
    sut = calibration.suts[0]
    assert (sut.n_items, sut.n_unscored, sut.n_labelled) == (20, 1, 6)
    assert calibration.agreements[0].n == 6
    assert any("gave no score for 1 item;" in note for note in calibration.notes)


def intervals(agreement):
    return {one.name: one.interval for one in agreement.coefficients}


def test_full_agreement_has_the_interval_of_its_number_of_answers():
    run = measured_run("a", {f"n{i}": float(i % 2) for i in range(14)})
    (found,) = calibrate_judge(run, [{"item_id": f"n{i}", "label": i % 2} for i in range(14)]).agreements
    low, _ = wilson_interval(14, 14)
    half = 2 * low - 1  # chance agreement is 1/2
    assert intervals(found) == {
        "raw_agreement": (pytest.approx(low), 1),
        "cohen_kappa": (pytest.approx(half), 1),
        "krippendorff_alpha": (pytest.approx(half, abs=0.02), 1),
        "gwet_ac1": (pytest.approx(half), 1),
    }


def test_full_agreement_on_grades_leaves_weighted_coefficients_without_an_interval():
    run = measured_run("a", {f"n{i}": 1.0 + i % 5 for i in range(14)})
    (found,) = calibrate_judge(run, [{"item_id": f"n{i}", "label": 1 + i % 5} for i in range(14)]).agreements
    held = intervals(found)
    assert held["cohen_kappa"] is held["krippendorff_alpha"] is None
    assert held["raw_agreement"] == (pytest.approx(wilson_interval(14, 14)[0]), 1)


def test_answers_to_one_text_are_a_cluster():
    """Of 20 texts with four questions each, judge and people say the same of all four."""
    rng = np.random.default_rng(0)
    texts = rng.random(20) < 0.6
    truth = np.repeat(texts, 4)
    said = np.repeat(texts ^ (rng.random(20) < 0.3), 4)
    labels = [{"item_id": f"n{i}", "label": int(truth[i])} for i in range(60)]
    values_, prompts = (
        {f"n{i}": float(one) for i, one in enumerate(said)},
        {f"n{i}": f"text {i // 4}" for i in range(80)},
    )
    apart, together = (
        calibrate_judge(measured_run("a", values_, prompts=asked), labels) for asked in (None, prompts)
    )
    assert any("which the intervals allow for" in note for note in together.notes)
    for one, other in zip(together.suts[0].scores[1:3], apart.suts[0].scores[1:3], strict=True):
        assert one.value == pytest.approx(other.value)
        assert np.ptp(one.interval) > 1.3 * np.ptp(other.interval), one.method
    assert together.suts[0].scores[3].interval is None
    raw, plain = (intervals(found.agreements[0])["raw_agreement"] for found in (together, apart))
    assert np.ptp(raw) > 1.5 * np.ptp(plain)


def test_estimates_of_graded_answers_stay_within_their_range():
    run = measured_run(
        "a", {f"n{i}": 0.9 + 0.1 * (i % 2) for i in range(20)}, ranges={"right": (0, 1)}, directions={}
    )
    labels = [{"item_id": f"n{i}", "label": 0.95 + 0.05 * (i % 2)} for i in range(3)]
    for one in calibrate_judge(run, labels).suts[0].scores[1:]:
        assert 0 <= one.interval[0] < one.value <= one.interval[1] <= 1, one.method


@pytest.mark.parametrize("clusters", [None, 100])
def test_clusters_are_said_to_make_intervals_too_narrow(clusters):
    estimate = Estimate(0.5, 20, n_clusters=clusters)
    run = measured_run("a", {f"n{i}": float(i % 2) for i in range(20)}, result={"right": estimate})
    calibration = calibrate_judge(run, [{"item_id": f"n{i}", "label": i % 2} for i in range(6)])
    assert any("The items form clusters" in note for note in calibration.notes) == (clusters is not None)


def test_real_answers():
    """The last number of an answer as the judge, and the authors of GSM8K as people."""
    if not GSM8K.is_dir():
        pytest.skip("the data of GSM8K is not on this machine")
    lines = (GSM8K / "solutions-175b_verification.jsonl").read_text(encoding="utf-8").splitlines()
    targets = [
        json.loads(line)["answer"] for line in (GSM8K / "test.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    solutions = [json.loads(line) for line in lines]
    judged = {
        f"n{i}": float(_last_number(one["solution"]) == _last_number(target))
        for i, (one, target) in enumerate(zip(solutions, targets, strict=True))
    }
    run = measured_run("175b", judged)
    truth = np.array([solution["is_correct"] for solution in solutions])
    assert truth.sum() == 742
    calibration = calibrate_judge(run, rows_of(run, 300, truth=truth))
    assert values(calibration.agreements[0])["raw_agreement"] > 0.9
    for score in calibration.suts[0].scores[2:]:
        assert score.interval[0] < 742 / 1319 < score.interval[1]


def _last_number(text):
    return float((re.findall(r"-?\d[\d,]*\.?\d*", text) or ["nan"])[-1].replace(",", ""))


# --- labels that are wrong ----------------------------------------------------------------------------------

GOOD = {"item_id": "n1", "sut": "a", "label": 1}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"item_id": "n10000"}, r"row 2: a has no item 'n10000'\. Did you mean 'n100'"),
        ({"item_id": None}, "row 2: a has no item 'None'"),
        ({"sut": "aa"}, r"row 2: no run is of the SUT 'aa'\. Did you mean 'a'\? Name its run too"),
        ({"label": "maybe"}, "row 2: the label 'maybe' is not 1 or 0, yes or no, as the judge's are"),
        ({"label": "0,5"}, "the label '0,5' is not 1 or 0"),
        ({"label": 2}, "the label '2' is not 1 or 0"),
        ({"item_id": "n1"}, "row 2: people labelled item 'n1' of a before: the labels, row 1"),
    ],
)
def test_a_wrong_row_is_named_with_how_to_correct_it(row, words):
    with pytest.raises(InputFileError, match=words):
        calibrate_judge(RUN, [GOOD, {**GOOD, "item_id": "n2", **row}])


def test_all_wrong_rows_are_named_at_once():
    with pytest.raises(InputFileError, match="And 5 more rows like these") as caught:
        calibrate_judge(RUN, [{"item_id": f"x{i}", "label": 1} for i in range(15)])
    assert str(caught.value).count("has no item") == 10


@pytest.mark.parametrize("label", ["nan", "inf", "yes", "", "0,5"])
def test_labels_beside_a_judge_that_gives_numbers_are_numbers(label):
    run = measured_run("a", {"n1": 0.25, "n2": 0.75})
    wrong = InputFileError, "is not a number, such as 0.5" if label else "No row has a label"
    with pytest.raises(wrong[0], match=wrong[1]):
        calibrate_judge(run, [{"item_id": "n1", "label": label}])


@pytest.mark.parametrize("label", [1, 1.0, True, "1", "1.0", "YES", " true ", "Pass", "right", "y"])
def test_right_is_written_in_many_ways(label):
    assert calibrate_judge(RUN, [{**GOOD, "label": label}]).suts[0].scores[1].value == 1


def test_with_several_suts_rows_must_name_theirs():
    other = measured_run("b", {"n1": 1.0})
    with pytest.raises(InputFileError, match=r"row 1: no run is of the SUT ''"):
        calibrate_judge([RUN, other], [{"item_id": "n1", "label": 1}])


@pytest.mark.parametrize(
    ("run", "measurement", "words"),
    [
        (measured_run("a", {"n1": {"x": 1.0, "y": 0.0}}), None, "several measurements.*--measurement: x, y"),
        (measured_run("a", {"n1": {"x": 1.0, "y": 0.0}}), "z", "no measurement 'z'"),
        (measured_run("a", {"n1": {"helpful": 1.0}}), "hepful", "Did you mean 'helpful'"),
        (measured_run("a", {"n1": None}), None, "no measurement in common"),
    ],
)
def test_the_judge_is_a_measurement_of_all_runs(run, measurement, words):
    with pytest.raises(UnknownNameError, match=words):
        calibrate_judge(run, [GOOD], measurement=measurement)


def test_one_label_is_little_and_no_error():
    calibration = calibrate_judge(RUN, [GOOD])
    assert all(
        math.isfinite(coefficient.value)
        for coefficient in calibration.agreements[0].coefficients
        if coefficient.value is not None
    )
    assert calibration.suts[0].scores[2].why_not == "It takes two labelled items."


# --- ratings of the workbench -----------------------------------------------------------------------------


def test_ratings_of_the_workbench_are_labels_like_the_scores_of_the_judge(tmp_path):
    judged = {"binary": (1.0, 0.0, 1.0), "share": (1.0, 0.25, 0.5), "stars": (5.0, 2.0, 3.0)}
    people = {"binary": (1.0, 0.0, 0.0), "share": (1.0, 0.25, 0.5), "stars": (5.0, 2.0, 3.0)}
    for name, scores in judged.items():
        run = measured_run(name, {f"n{i}": one for i, one in enumerate(scores)})
        file = RatingsFile(tmp_path / f"{run.run_id}.jsonl")
        for i, score in enumerate((5, 2, 3)):
            file.add(Rating(item_id=f"n{i}", answers=["x"], rater="ann", score=score))
        file.add(Rating(item_id="n0", answers=["x"], rater="ben", score=None))
        rows = [{"item_id": f"n{i}", "rater": "ann", "label": one} for i, one in enumerate(people[name])]
        found, by_rows = (calibrate_judge(run, labels) for labels in (file.path, rows))
        assert found.suts == by_rows.suts
        assert found.agreements == by_rows.agreements
        assert (found.n_rows, found.n_without_label) == (4, 1)
        file.path.unlink()
    assert calibrate_judge(run, rows, good=3) == calibrate_judge(run, rows)  # rows are labels already


def test_ratings_of_another_run_and_damaged_ones_are_refused(tmp_path):
    file = RatingsFile(tmp_path / "another.jsonl")
    file.add(Rating(item_id="n0", answers=["x"], rater="ann", score=5))
    with pytest.raises(InputFileError, match=r"has ratings of run another\. Name this run too"):
        calibrate_judge(RUN, file.path)
    with file.path.open("a") as damaged:
        damaged.write("{}\n")
    with pytest.raises(RecordError, match=r"another\.jsonl, line 2 is not a rating"):
        calibrate_judge(RUN, file.path)
    with pytest.raises(InputFileError, match=r"none\.jsonl cannot be read"):
        calibrate_judge(RUN, tmp_path / "none.jsonl")

"""`modelgauge sample` and `modelgauge calibrate-judge`: the sheet, the tables, the JSON, and labels that are wrong."""

import csv
import json
import shlex

import pytest


@pytest.fixture
def ran(run, here, once):
    """Two SUTs on a test of 40 items: one always right, the other never."""
    plugin = (here / "plugin.py").read_text(encoding="utf-8")
    (here / "plugin.py").write_text(plugin.replace("items = 10", "items = 40"), encoding="utf-8")
    once(here, lambda: run("run-test", "--sut", "echo", "--sut", "text_only", "--test", "numbers"))


@pytest.fixture
def label(here):
    """Fill in a sheet."""

    def label(name, of, source="labels.csv"):
        with (here / source).open(encoding="utf-8", newline="") as file:
            rows = [*csv.DictReader(file)]
        with (here / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows({**row, "label": of(row)} for row in rows)

    return label


def right(row):
    """People find echo right, but for two answers."""
    return "no" if row["sut"] == "text_only" or row["item_id"] in ("n0", "n1", "n2", "n3") else "yes"


def test_a_sheet_is_drawn_labelled_and_compared_with_the_judge(run, ran, here, label):
    drawn = run("sample", "latest", "-n", "30", "-o", "labels.csv")
    assert (drawn.code, drawn.out.splitlines()[0]) == (
        0,
        "labels.csv: 30 answers (15 of echo, 15 of text_only).",
    )
    head, *rows = csv.reader((here / "labels.csv").read_text(encoding="utf-8").splitlines())
    assert (head, len(rows)) == (["item_id", "sut", "prompt", "answer", "rater", "label"], 30)
    label("ann.csv", right)
    command = drawn.out.splitlines()[-1].replace("labels.csv", "ann.csv")
    ended = run(*shlex.split(command)[1:])
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "Judge accuracy and 1 rater (ann)"
    assert max(map(len, lines)) <= 80
    for words in ("judge and people, all", "Gwet's AC1", "people: 0", "corrected: PPI++", "judge alone"):
        assert words in ended.out


def test_the_calibration_in_json_is_one_object(run, ran, label):
    run("sample", "latest", "-n", "30", "-o", "labels.csv")
    label("ann.csv", right)
    found = run("calibrate-judge", "latest", "--labels", "ann.csv", "--json").json
    assert (found["schema_version"], found["measurements"], found["raters"]) == (1, ["accuracy"], ["ann"])
    assert [one["sut"] for one in found["agreements"]] == [None, "echo", "text_only"]
    assert [one["sut"] for one in found["suts"]] == ["echo", "text_only"]


def test_each_rater_may_have_a_sheet(run, ran, label):
    run("sample", "latest", "-n", "30", "-o", "labels.csv")
    label("ann.csv", right)
    label("ben.csv", lambda row: int(row["sut"] == "echo"))
    out = run("calibrate-judge", "latest", "--labels", "ann.csv", "--labels", "ben.csv").out
    assert out.startswith("Judge accuracy and 2 raters (")
    assert "people, echo" in out


def test_a_sample_in_json_says_what_was_drawn(run, ran):
    found = run("sample", "latest", "-n", "9", "-o", "x.csv", "--seed", "3", "--json").json
    assert found == {"path": "x.csv", "seed": 3, "answers": 9, "suts": {"echo": 5, "text_only": 4}}


def test_a_sheet_with_labels_is_not_overwritten(run, ran, here):
    run("sample", "latest", "-n", "5", "-o", "labels.csv")
    before = (here / "labels.csv").read_bytes()
    ended = run("sample", "latest", "-n", "6", "-o", "labels.csv")
    assert (ended.code, (here / "labels.csv").read_bytes()) == (2, before)
    assert ended.err.startswith("Error: labels.csv already exists, and may contain labels.")


def test_wrong_labels_are_named_with_their_lines(run, ran, here):
    (here / "bad.csv").write_text(
        "item_id,sut,label\nn1,echo,perhaps\nn111,echo,1\nn2,eco,1\nn3,echo,1\nn3,echo,0\n", encoding="utf-8"
    )
    ended = run("calibrate-judge", "latest", "--labels", "bad.csv")
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "Error: The labels cannot be used:",
        "  bad.csv, line 2: the label 'perhaps' is not 1 or 0, yes or no, as the judge's are.",
        "  bad.csv, line 3: echo has no item 'n111'. Did you mean 'n11' or 'n1'?",
        "  bad.csv, line 4: no run is of the SUT 'eco'. Did you mean 'echo'? Name its run too.",
        "  bad.csv, line 6: bad labelled item 'n3' of echo before: bad.csv, line 5.",
        "Correct these rows.",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("sample latest -n 0 -o x.csv", "Invalid value for '-n'"),
        ("sample latest", "Missing option '-o'"),
        ("sample latest latest -o x.csv", "are both of echo"),
        ("sample nowhere -o x.csv", "There is no run 'nowhere'"),
        ("calibrate-judge latest --labels none.csv", "none.csv cannot be read: No such file"),
        ("calibrate-judge latest --labels plugin.py", "there is no column 'item_id'"),
        ("calibrate-judge latest", "Missing option '--labels'"),
    ],
)
def test_wrong_input_is_refused(run, ran, here, arguments, words):
    ended = run(*arguments.split())
    assert ended.code == 2
    assert words in ended.err
    assert not (here / "x.csv").exists()


def test_a_run_from_a_file_keeps_its_name_in_the_next_command(run, here):
    run("run-test", "--sut", "echo", "--test", "numbers", "--output-file", "record.json")
    out = run("sample", "record.json", "-n", "5", "-o", "labels.csv").out
    assert out.endswith("modelgauge calibrate-judge record.json --labels labels.csv\n")
    assert json.loads((here / "record.json").read_text(encoding="utf-8"))

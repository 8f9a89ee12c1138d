"""`modelgauge datasets`: list, show, validate, diff, and the versions that are saved under an alias."""

import json
import os

import pytest
from click.testing import CliRunner

from modelgauge.cli.main import cli
from modelgauge.data.test_cases import ConversationalGolden, Golden
from modelgauge.datasets.dataset import EvaluationDataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EvaluationDataset(
        [Golden("What is 2 + 2?", expected_output="4", context=["sums"]), Golden("Why?")]
    ).save_as("csv", ".", "goldens")
    EvaluationDataset([ConversationalGolden("greeting", expected_outcome="happy")]).save_as(
        "jsonl", "more", "talks"
    )
    (tmp_path / "package.json").write_text('{"input": 1}', encoding="utf-8")
    (tmp_path / "table.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    (tmp_path / "broken.csv").write_text("input,token_cost\nq,x\nr,1\nq,y\n", encoding="utf-8")
    return tmp_path


def run(*args, exit_code=0):
    result = CliRunner().invoke(cli, ["datasets", *map(str, args)], prog_name="modelgauge")
    assert result.exit_code == exit_code, result.output
    return result


def as_json(*args, exit_code=0):
    return json.loads(run(*args, "--json", exit_code=exit_code).stdout)


def test_list_finds_data_sets_and_names_what_it_leaves_out(folder):
    result = run("list")
    shown = result.stdout
    assert "Not data sets: package.json, table.csv." in result.stderr
    others = as_json("list")["others"]
    assert [one["path"] for one in others] == ["package.json", "table.csv"]
    assert "input" in others[1]["problem"]
    assert "goldens.csv" in shown
    assert "1 row" not in shown.splitlines()[2]
    assert "2 rows cannot be read" in shown
    assert "package.json" not in shown
    assert "table.csv" not in shown
    assert [row["path"] for row in as_json("list")["datasets"]] == ["broken.csv", "goldens.csv"]


def test_list_looks_into_folders_when_asked(folder):
    rows = as_json("list", ".", "--recursive")["datasets"]
    talks = rows[-1]
    assert talks["name"] == "talks"
    assert (talks["kind"], talks["goldens"]) == ("multi-turn", 1)
    assert talks["content_hash"] == EvaluationDataset.from_file(folder / "more" / "talks.jsonl").content_hash


def test_list_stays_out_of_folders_that_hold_no_ones_goldens(folder, monkeypatch):
    monkeypatch.setenv("MODELGAUGE_DATA_DIR", "out")
    environment = folder / "env"
    for inside in (
        "out/runs/1",
        "old/run_data/runs/1",
        ".git",
        "web/node_modules/x",
        "env/lib",
        "conda/lib",
        "src/__pycache__",
    ):
        (folder / inside).mkdir(parents=True)
        (folder / inside / "goldens.csv").write_text("input\nq\n", encoding="utf-8")
    (environment / "pyvenv.cfg").write_text("", encoding="utf-8")
    (folder / "conda" / "conda-meta").mkdir()
    (folder / "._goldens.csv").write_bytes(b"\x00\x05\x16\x07")
    found = as_json("list", "-r")
    assert [row["path"] for row in found["datasets"]] == ["broken.csv", "goldens.csv", "more/talks.jsonl"]
    assert [one["path"] for one in found["others"]] == ["package.json", "table.csv"]
    assert [row["path"] for row in as_json("list", "out/runs", "-r")["datasets"]] == [
        "out/runs/1/goldens.csv"
    ]


BROKEN = {
    "comma.json": (b'[{"input": "q"}\n{"input": "r"}]', "line 2: ',' or ']' is missing"),
    "empty.csv": (b"", "is empty"),
    "empty.json": (b" \n", "is empty"),
    "excel.csv": (b"input;expected_output\nq;a\n", "no column 'input'"),
    "latin.csv": (b"input\n\xfc\n", "line 2: this is not utf-8"),
    "nested.json": (b'[[{"input": "q"}]]', "line 1: this is of type list"),
    "pointer.json": (b"version https://example.org/spec/v1\n", "not a JSON list of objects"),
    "quote.csv": (b'input\n"q\n', "line 2: a cell begins with a quote"),
    "text.jsonl": (b"input\nq\n", "line 1: this is not JSON"),
    "turns.jsonl": (b'{"turns": ', "line 1: this is not JSON"),
}


def test_list_shows_data_sets_that_are_broken_and_says_how_many(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (content, _) in BROKEN.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    (tmp_path / "rows.csv").write_text("input,token_cost\nq,x\n", encoding="utf-8")
    (tmp_path / "whole.csv").write_text("input\nq\n", encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "120")
    result = run("list")
    rows = {line.split()[0]: line for line in result.stdout.splitlines()[1:]}
    expected = {name: problem for name, (_, problem) in BROKEN.items()}
    expected |= {"gone.csv": "No such file", "rows.csv": "1 row cannot be read"}
    assert sorted(rows) == sorted([*expected, "whole.csv"])
    assert {name: problem in rows[name] for name, problem in expected.items()} == dict.fromkeys(
        expected, True
    )
    assert "12 of 13 data sets cannot be read, or not all of it" in result.stderr
    assert "Not data sets:" not in result.stderr
    listed = as_json("list")
    assert listed["broken"] == 12
    assert {row["path"]: bool(row["problem"]) for row in listed["datasets"]} == {
        **dict.fromkeys(expected, True),
        "whole.csv": False,
    }
    assert {row["content_hash"] is None for row in listed["datasets"] if row["problem"]} == {True}


def test_list_goes_on_where_a_named_column_does_not_fit_a_file(folder):
    found = as_json("list", "-r", "--column", "input=x")
    assert [row["path"] for row in found["datasets"]] == ["table.csv"]
    assert {one["path"] for one in found["others"]} >= {"goldens.csv", "broken.csv", "more/talks.jsonl"}
    found = as_json("list", "-r", "--column", "expected_outcome=expected_output")
    assert (
        "A Golden has no 'expected_outcome'"
        in {one["path"]: one["problem"] for one in found["others"]}["goldens.csv"]
    )


def test_a_field_has_one_column(folder):
    refused = run("show", "table.csv", "--column", "input=x", "--column", "input=y", exit_code=2).stderr
    assert "'input' has two columns, 'x' and 'y'" in refused
    refused = run(
        "show", "table.csv", "--column", "metadata=x", "--column", "additional_metadata=y", exit_code=2
    )
    assert "named twice: 'x' and 'y'" in refused.stderr


def test_list_says_which_folders_it_cannot_read(folder, monkeypatch):
    def scandir(path, scan=os.scandir):
        if str(path).endswith("more"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert "more cannot be read: Permission denied" in run("list", "-r").stderr


def test_a_file_of_conversations_is_called_so_where_no_row_can_be_read(folder):
    (folder / "conv.csv").write_text('scenario,turns\n"x","[{]"\n', encoding="utf-8")
    (row,) = (row for row in as_json("list")["datasets"] if row["path"] == "conv.csv")
    assert (row["kind"], row["goldens"]) == ("multi-turn", 0)
    assert as_json("validate", "conv.csv", exit_code=1)["datasets"][0]["kind"] == "multi-turn"


@pytest.mark.parametrize(("delimiter", "said"), [(";", ";"), ("\t", "\\t"), ("\t", "tab")])
def test_a_file_with_another_delimiter_is_read_once_it_is_said(folder, delimiter, said):
    text = f"input{delimiter}expected_output\nWhy?{delimiter}Because\n"
    (folder / "excel.csv").write_text(text, encoding="utf-8")
    refused = run("show", "excel.csv", exit_code=2).stderr
    assert f"delimiter={delimiter!r}" in refused
    assert "input_col_name" not in refused
    shown = said if said == delimiter else "\\t"
    assert f'--delimiter "{shown}"' in refused
    assert as_json("show", "excel.csv", "--delimiter", said)["rows"] == [
        {"input": "Why?", "expected_output": "Because"}
    ]


def test_a_file_in_another_encoding_is_read_once_it_is_said(folder):
    (folder / "latin.csv").write_bytes("input\nOù?\n".encode("cp1252"))
    assert "--encoding cp1252" in run("show", "latin.csv", exit_code=2).stderr
    assert as_json("show", "latin.csv", "--encoding", "cp1252")["rows"] == [{"input": "Où?"}]


def test_a_delimiter_is_one_character(folder):
    assert "is not one character" in run("show", "goldens.csv", "--delimiter", ";;", exit_code=2).stderr


def test_list_of_an_empty_folder_says_so(tmp_path):
    assert "There are no data sets in" in run("list", tmp_path).stdout


def test_show_shows_rows_and_hash(folder):
    shown = run("show", "goldens.csv").stdout
    assert EvaluationDataset.from_file("goldens.csv").content_hash in shown
    assert "goldens: 2 single-turn goldens" in shown
    assert "What is 2 + 2?" in shown
    assert "context" in shown
    assert "1 more" in run("show", "goldens.csv", "--first", "1").stdout
    assert as_json("show", "goldens.csv")["rows"][0] == {
        "input": "What is 2 + 2?",
        "expected_output": "4",
        "context": ["sums"],
    }


def test_show_takes_the_names_of_columns(folder):
    assert as_json("show", "table.csv", "--column", "input=x", "--column", "expected_output=y")["rows"] == [
        {"input": "1", "expected_output": "2"}
    ]
    assert "no column 'input'" in run("show", "table.csv", exit_code=2).stderr
    assert "FIELD=COLUMN" in run("show", "table.csv", "--column", "x", exit_code=2).stderr
    assert "Did you mean 'input'" in run("show", "table.csv", "--column", "inptu=x", exit_code=2).stderr
    assert "line 2, column 'token_cost'" in run("show", "broken.csv", exit_code=2).stderr


def test_validate_lists_every_problem(folder):
    shown = run("validate", "broken.csv", "goldens.csv", exit_code=1).stdout
    assert "broken.csv, line 2, column 'token_cost': 'x' is not a number" in shown
    assert "broken.csv, line 4, column 'token_cost': 'y' is not a number" in shown
    assert "broken.csv: NOT VALID, 1 golden." in shown
    assert "goldens.csv: valid, 2 goldens." in shown
    assert "Warning: goldens.csv" not in shown
    report = as_json("validate", "broken.csv", "nowhere.csv", exit_code=1)
    assert report["valid"] is False
    assert [len(one["problems"]) for one in report["datasets"]] == [2, 1]


def test_validate_gives_no_hash_of_a_data_set_that_is_not_whole(folder):
    (folder / "half.csv").write_text("input,token_cost\nq,1\nr,x\n", encoding="utf-8")
    report = as_json("validate", "half.csv", "nowhere.csv", "goldens.csv", exit_code=1)["datasets"]
    assert [(one["goldens"], one["content_hash"] is None) for one in report[:2]] == [(1, True), (0, True)]
    assert report[2]["content_hash"] == EvaluationDataset.from_file(folder / "goldens.csv").content_hash
    assert [one["name"] for one in report] == ["half", "nowhere", "goldens"]


def test_validate_lists_rows_that_cannot_be_taken_apart_too(folder):
    (folder / "ragged.csv").write_text("input,name\na\nb,c\nd,e,f\n", encoding="utf-8")
    (folder / "lines.jsonl").write_text(
        '{"input": "a"}\n{"input"\n[1]\n{"input": 2}\n{} 3\n', encoding="utf-8"
    )
    ragged, lines = as_json("validate", "ragged.csv", "lines.jsonl", exit_code=1)["datasets"]
    assert [text.partition(". ")[0] for text in ragged["problems"]] == [
        "ragged.csv, line 2 has 1 cell, and the first line names 2 columns",
        "ragged.csv, line 4 has 3 cells, and the first line names 2 columns",
    ]
    assert "Write the delimiter for a cell that is empty" in ragged["problems"][0]
    assert "Put quotes around a cell that holds the delimiter" in ragged["problems"][1]
    assert [text.partition(":")[0] for text in lines["problems"]] == [
        "lines.jsonl, line 2",
        "lines.jsonl, line 3",
        "lines.jsonl, line 4, column 'input'",
        "lines.jsonl, line 5",
    ]
    assert (ragged["goldens"], lines["goldens"]) == (1, 1)
    assert "3 more rows cannot be read either" in run("show", "lines.jsonl", exit_code=2).stderr


def test_validate_warns_of_what_looks_like_a_mistake(folder):
    (folder / "odd.csv").write_text("input,expected_ouput,actual_output\nq,a,b\nq,c,d\n", encoding="utf-8")
    shown = run("validate", "odd.csv").stdout
    assert "Warning: odd.csv: 2 goldens have the input 'q'." in shown
    assert "'expected_ouput' is kept as a custom one" in shown
    assert "2 goldens have actual_output" in shown
    assert "odd.csv: valid" in shown


def test_validate_warns_of_the_test_cases_that_are_saved_with_goldens(folder):
    case = {"input": "r", "actual_output": "a", "context": "one|two", "modelgauge_member": "test_case"}
    lines = [json.dumps(one) + "\n" for one in ({"input": "q"}, case)]
    (folder / "both.jsonl").write_text("".join(lines), encoding="utf-8")
    assert (
        "Warning: both.jsonl: the texts in 'context' are read as lists"
        in run("validate", "both.jsonl").stdout
    )


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("none.csv", "", "Its first line must name the columns."),
        (
            "none.csv",
            "input\n",
            "none.csv holds no goldens. Write one a row, below the names of the columns.",
        ),
        ("none.json", "[]", "none.json holds no goldens. Write a list of them"),
        ("none.jsonl", "", "none.jsonl holds no goldens. Write one a line"),
    ],
)
def test_a_file_without_goldens_is_not_valid(folder, name, text, told):
    (folder / name).write_text(text, encoding="utf-8")
    shown = run("validate", name, exit_code=1).stdout
    assert told in shown
    assert f"{name}: NOT VALID, 0 goldens." in shown
    assert name.endswith("csv") or "column" not in shown


def test_validate_says_all_that_is_wrong_with_a_row(folder):
    text = 'input,token_cost,tags,expected_tools\n"",dear,"[1]","[{""nam"": 1}]"\nq,dear,,\n'
    (folder / "bad.csv").write_text(text, encoding="utf-8")
    (report,) = as_json("validate", "bad.csv", exit_code=1)["datasets"]
    assert [one.partition(": ")[0] for one in report["problems"]] == [
        "bad.csv, line 2, column 'token_cost'",
        "bad.csv, line 2, column 'tags'",
        "bad.csv, line 2, column 'expected_tools'",
        "bad.csv, line 3, column 'token_cost'",
    ]
    assert "1 more row cannot be read either" in run("show", "bad.csv", exit_code=2).stderr
    assert "2 rows cannot be read" in run("list").stdout
    (folder / "bad.jsonl").write_text('{"input": 5, "tags": [1], "name": 2}', encoding="utf-8")
    (report,) = as_json("validate", "bad.jsonl", exit_code=1)["datasets"]
    assert len(report["problems"]) == 3
    assert "This row has 2 more problems" in run("show", "bad.jsonl", exit_code=2).stderr


def test_diff_joins_files_of_different_types(folder):
    dataset = EvaluationDataset.from_file("goldens.csv")
    dataset.save_as("json", ".", "same")
    same = run("diff", "goldens.csv", "same.json", "--exit-code").stdout
    assert "0 added, 0 removed, 0 changed, 2 unchanged." in same
    assert "SHA-256" not in same
    EvaluationDataset(reversed(dataset.goldens)).save_as("json", ".", "turned")
    turned = run("diff", "goldens.csv", "turned.json", "--exit-code").stdout
    assert "0 changed, 2 unchanged, in another order.\nSHA-256 " in turned
    told = as_json("diff", "goldens.csv", "turned.json")
    assert (told["differ"], told["order_differs"]) == (False, True)
    assert told["content_hash"]["old"] == dataset.content_hash != told["content_hash"]["new"]
    dataset.goldens[0].expected_output = "four"
    dataset.goldens[1] = Golden("How?")
    dataset.save_as("json", ".", "other")
    shown = run("diff", "goldens.csv", "other.json").stdout
    assert (
        "- Why?\n+ How?\n~ What is 2 + 2?\n    - expected_output: 4\n    + expected_output: four\n" in shown
    )
    found = as_json("diff", "goldens.csv", "other.json", "--exit-code", exit_code=1)
    assert found["differ"] is True
    assert found["changed"][0]["fields"] == ["expected_output"]


def test_the_table_of_data_sets_has_their_kinds_sizes_and_hashes(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    for number in range(3):
        (folder / f"x{number}.csv").write_text("x\n1\n", encoding="utf-8")
    (folder / "gone.csv").symlink_to(folder / "nowhere.csv")
    result = run("list")
    head, broken, sound, gone = (line.split() for line in result.stdout.splitlines())
    assert head == ["FILE", "KIND", "GOLDENS", "HASH", "PROBLEM"]
    assert broken == ["broken.csv", "single-turn", "1", "2", "rows", "cannot", "be", "read"]
    assert gone[:3] == ["gone.csv", "?", "0"]
    whole = EvaluationDataset.from_file("goldens.csv")
    assert sound == ["goldens.csv", "single-turn", "2", whole.content_hash[:12]]
    assert "Not data sets: package.json, table.csv, x0.csv, x1.csv, x2.csv. `" in result.stderr
    (folder / "x3.csv").write_text("x\n1\n", encoding="utf-8")
    assert "x1.csv, x2.csv and 1 more. `" in run("list").stderr
    assert "2 of 3 data sets cannot be read, or not all of it" in result.stderr


def test_show_has_a_column_for_each_part_of_a_golden(folder):
    content_hash = EvaluationDataset.from_file("goldens.csv").content_hash
    assert [line.split() for line in run("show", "goldens.csv").stdout.splitlines()] == [
        ["goldens:", "2", "single-turn", "goldens,", "SHA-256", content_hash],
        [],
        ["ROW", "INPUT", "EXPECTED", "OTHER", "FIELDS"],
        ["1", "What", "is", "2", "+", "2?", "4", "context"],
        ["2", "Why?"],
    ]
    _, _, head, row = run("show", "more/talks.jsonl").stdout.splitlines()
    assert head.split() == ["ROW", "SCENARIO", "EXPECTED", "OTHER", "FIELDS"]
    assert row.split() == ["1", "greeting", "happy"]
    assert as_json("show", "more/talks.jsonl") == {
        "path": "more/talks.jsonl",
        "name": "talks",
        "kind": "multi-turn",
        "goldens": 1,
        "content_hash": EvaluationDataset.from_file("more/talks.jsonl").content_hash,
        "rows": [{"scenario": "greeting", "expected_outcome": "happy"}],
    }
    run("show", "goldens.csv", "--first", "0", exit_code=2)


def test_goldens_that_look_alike_are_told_by_what_they_share(folder):
    lines = ['{"scenario": "s", "name": "n"}\n', '{"scenario": "s", "name": "n"}\n', '{"scenario": "t"}\n']
    (folder / "twins.jsonl").write_text("".join(lines), encoding="utf-8")
    report = as_json("validate", "twins.jsonl")["datasets"][0]
    assert report["warnings"] == [
        "twins.jsonl: 2 goldens have the scenario 's'.",
        "twins.jsonl: 2 goldens have the name 'n'.",
    ]
    assert (report["valid"], report["problems"], report["goldens"]) == (True, [], 3)
    run("validate", exit_code=2)


def test_diff_calls_goldens_by_their_names_or_their_turns(folder):
    turns = '{"turns": [{"role": "user", "content": "hi"}]%s}\n'
    (folder / "old.jsonl").write_text(turns % ', "name": "t"', encoding="utf-8")
    (folder / "new.jsonl").write_text(turns % "" + '{"scenario": "s", "name": "u"}\n', encoding="utf-8")
    result = run("diff", "old.jsonl", "new.jsonl")
    before, after = (
        EvaluationDataset.from_file(f"{name}.jsonl").content_hash[:12] for name in ("old", "new")
    )
    assert result.stdout.splitlines() == [
        "- t: a conversation that begins with its turns",
        "+ a conversation that begins with its turns",
        "+ u: s",
        "2 added, 1 removed, 0 changed, 0 unchanged.",
        f"SHA-256 {before} became {after}.",
    ]
    found = as_json("diff", "old.jsonl", "new.jsonl")
    assert found.keys() == {
        "differ",
        "added",
        "removed",
        "changed",
        "unchanged",
        "order_differs",
        "content_hash",
    }
    assert [one.get("name") for one in found["added"]] == [None, "u"]
    assert [one["name"] for one in found["removed"]] == ["t"]
    (folder / "odd.csv").write_text("input,expected_ouput\nq,a\n", encoding="utf-8")
    assert "Warning: odd.csv: " in run("diff", "odd.csv", "odd.csv", "--exit-code").stderr


def test_versions_are_pushed_listed_pulled_and_restored(folder):
    assert run("push", "goldens.csv", "questions", "--message", "First", "--author", "ann").stdout.startswith(
        "questions has version 1 by ann of "
    )
    refused = run("push", "more/talks.jsonl", "questions", exit_code=2)
    assert "'questions' has version 1 by ann" in refused.stderr
    assert as_json("push", "more/talks.jsonl", "questions", "--parent", 1)["version"]["number"] == 2
    assert "version 3" in run("restore", "questions", 1).stdout
    listed = as_json("versions", "questions")["versions"]
    assert [one["message"] for one in listed] == ["First", "", "Version 1 again"]
    assert run("versions", "questions").stdout.splitlines()[1].startswith("3")
    run("pull", "questions", "talks.csv", "--version", 2)
    assert EvaluationDataset.from_file("talks.csv").goldens == EvaluationDataset.pull("questions", 2).goldens
    assert as_json("pull", "questions", "again.json")["version"]["number"] == 3
    for wrong, says in (
        (("versions", "none"), "There is no data set 'none'"),
        (("pull", "questions", "file"), "not a data set by its name"),
        (("restore", "questions", 9), "has no version 9"),
        (("push", "goldens.csv", "../x"), "cannot be the alias"),
    ):
        assert says in run(*wrong, exit_code=2).stderr


def test_a_saved_data_set_is_listed_shown_validated_and_compared_by_its_alias(folder):
    run("push", "goldens.csv", "questions")
    EvaluationDataset([Golden("Why?")]).push("questions", parent=1)
    shown = as_json("show", "questions@1")
    assert (shown["name"], shown["goldens"], shown["rows"][1]["input"]) == ("questions@1", 2, "Why?")
    assert as_json("show", "questions")["goldens"] == 1
    assert shown["content_hash"] == as_json("show", "goldens.csv")["content_hash"]
    (saved,) = (row for row in as_json("list")["datasets"] if row["path"] == "questions@2")
    assert (saved["kind"], saved["goldens"]) == ("single-turn", 1)
    assert "questions@1: valid, 2 goldens." in run("validate", "questions@1").stdout
    assert as_json("diff", "questions@1", "questions")["removed"][0]["input"] == "What is 2 + 2?"
    assert "Did you mean 'questions'?" in run("show", "question", exit_code=2).stderr
    assert (
        "more/questions' is not a data set by its name" in run("show", "more/questions", exit_code=2).stderr
    )


def test_a_saved_version_is_run_by_its_alias_and_the_record_names_it(folder):
    EvaluationDataset([Golden("Is it?", expected_output="Yes")]).push("questions")
    command = ("run-test", "--metric", "exact_match", "--sut", "demo_yes_no", "--json", "--dataset")
    results = {
        name: CliRunner().invoke(cli, [*command, name])
        for name in ("questions", "questions@1", "questions@2")
    }
    for name in ("questions", "questions@1"):
        (record,) = json.loads(results[name].stdout)["records"]
        assert (record["test_uid"], record["dataset"]["name"], record["dataset"]["version"]) == (
            "questions",
            "questions",
            1,
        )
    assert "'questions' has no version 2" in results["questions@2"].stderr
    again = CliRunner().invoke(cli, ["rescore", record["run_id"], "--json"])
    assert json.loads(again.stdout)["records"][0]["dataset"]["version"] == 1


def test_an_empty_input_has_a_title_in_a_comparison(folder):
    EvaluationDataset([Golden("", expected_output="a")]).save_as("json", ".", "blank")
    assert "- (empty input)\n" in run("diff", "blank.json", "goldens.csv").stdout

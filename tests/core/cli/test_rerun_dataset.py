"""Runs of data sets that are done again from the command line: `resume` and `rescore`."""

import json
import shlex
import sys

import pytest

# --- done again --------------------------------------------------------------------------------------


@pytest.fixture
def judged(run_dataset):
    """Run a data set on the app without a cache, judged by the judge of the command line too."""
    metrics = ["exact_match", "answer_relevancy?include_reason=false"]
    return lambda *args: run_dataset("--no-caching", "--judge", "judge", *args, metrics=metrics)


@pytest.fixture
def killed(judged, only_run):
    """A run of `bad.csv` that was killed when one of its three items was done."""
    assert judged("--dataset", "bad.csv").code == 1
    journal = only_run() / "items.jsonl"
    first, second, _ = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + second[:40])
    (only_run() / "record.json").unlink()
    return only_run()


def record_of(folder):
    return json.loads((folder / "record.json").read_text(encoding="utf-8"))


def check_resumed(ended, folder, paid):
    """The whole run of `bad.csv`, for which so many answers were paid in all."""
    assert ended.code == 1, ended.err
    record = record_of(folder)
    assert record["counts"]["scored"] == 3
    assert record["counts"]["sut_calls"] == {"paid": paid, "cached": 0}
    assert record["result"]["AnswerRelevancyMetric"]["value"] == 1
    assert record["result"]["ExactMatchMetric"]["value"] == pytest.approx(2 / 3)
    lines = (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["index"] for line in lines) == [0, 1, 2]


def test_a_run_of_a_data_set_that_was_killed_is_resumed_without_saying_anything_again(
    program, here, killed, monkeypatch
):
    monkeypatch.setenv("MODELGAUGE_JUDGE", "strict")  # this shell's; the run has its own
    check_resumed(program("resume", str(killed)), killed, paid=3 + 2)


def test_what_is_left_is_counted_before_a_resume_and_nothing_is_sent(run, here, killed):
    before = {one: one.read_bytes() for one in killed.iterdir()}
    plan = json.loads(run("resume", killed.name, "--dry-run", "--json").out)["plans"]
    assert [(one["items"], one["sut_calls"]["paid"]) for one in plan] == [(2, 2)]
    assert "To pay: 2 calls" in run("resume", killed.name, "--dry-run").out
    assert {one: one.read_bytes() for one in killed.iterdir()} == before
    edited = (here / "bad.csv").read_text(encoding="utf-8").replace("input", "scenario", 1)
    (here / "bad.csv").write_text(edited, encoding="utf-8")
    assert run("resume", killed.name, "--dry-run").code == 2


def test_answers_are_measured_by_a_data_set_that_was_saved(run, here, killed):
    run("datasets", "push", "bad.csv", "saved")
    ended = run("rescore", killed.name, "--dataset", "saved@1", "--judge", "judge", "--json")
    (record,) = json.loads(ended.out)["records"]
    assert (record["dataset"]["name"], record["dataset"]["version"]) == ("saved", 1)
    refused = run("rescore", killed.name, "--dataset", "savd")
    assert refused.code == 2
    assert "Did you mean 'saved'?" in refused.err


NAMED = {"--plugin": "app.py", "--sut": "app", "--judge": "judge", "--dataset": "moved.csv",
         "--metric": "answer_relevancy?include_reason=false"}  # fmt: skip


def from_elsewhere(folder, **changes):
    """Let somebody else have sent the run."""
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    del manifest["signature"]
    (folder / "run.json").write_text(json.dumps(manifest | changes), encoding="utf-8")


@pytest.mark.parametrize("command", ["resume", "rescore"])
def test_of_a_run_from_elsewhere_no_name_is_used_unasked(run, here, killed, command):
    from_elsewhere(killed)
    whole = {name: value for name, value in NAMED.items() if name != "--sut" or command == "resume"}
    if command == "rescore":  # which reads what is at that path, if it is the content of the run
        whole["--dataset"] = str(here / "bad.csv")
    else:
        (here / "moved.csv").write_bytes((here / "bad.csv").read_bytes())
    for lacking in whole:
        given = [part for pair in whole.items() if pair[0] != lacking for part in pair]
        given += ["--test", "bad"] if lacking == "--dataset" and command == "resume" else []
        refused = run(command, killed.name, *given, plugin=False)
        assert refused.code == 2
        assert f"It names {lacking} " in refused.err
        (line,) = (line for line in refused.err.splitlines() if line.startswith(f"  modelgauge {command} "))
        assert all(f" {name} " in line for name in whole)
    ended = run(command, killed.name, *[part for pair in whole.items() for part in pair], plugin=False)
    if command == "resume":
        check_resumed(ended, killed, paid=3 + 2)
    else:
        assert ended.code == 0, ended.err
        assert "1 scored" in ended.out


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupted_rescore_says_with_what_it_goes_on(program, here, killed):
    plugin = (here / "app.py").read_text(encoding="utf-8")
    head = "def strict_judge(question):\n"
    interrupts = f"{head}    import signal; signal.raise_signal(signal.SIGINT)\n"
    (here / "app.py").write_text(plugin.replace(head, interrupts), encoding="utf-8")
    (here / "bad.csv").unlink()
    (here / "moved.csv").write_bytes("größe;expected_output\na;a\nb;b\nc;x\n".encode("cp1252"))
    form = ("--column", "input=größe", "--delimiter", ";", "--encoding", "cp1252")
    judging = ("--metric", "answer_relevancy?include_reason=false", "--judge", "strict")
    stopped = program("rescore", killed.name, "--dataset", "moved.csv", *judging, *form)
    assert stopped.code == 130, stopped.err
    (line,) = (line for line in stopped.err.splitlines() if line.startswith("To go on: "))
    said = shlex.split(line.removeprefix("To go on: "))
    assert said[:3] == ["modelgauge", "rescore", killed.name]
    (here / "app.py").write_text(plugin, encoding="utf-8")
    ended = program(*said[1:])
    assert "1 scored" in ended.out, ended.err
    assert "ExactMatchMetric" not in ended.out  # a metric of the run that is not named for the rescore


@pytest.mark.parametrize("command", ["resume", "rescore"])
def test_a_file_that_a_run_from_elsewhere_names_must_be_the_one_that_it_knows(run, here, killed, command):
    whole = {**NAMED, "--dataset": str(here / "bad.csv")}
    named = [part for pair in whole.items() for part in pair if command == "resume" or pair[0] != "--sut"]
    from_elsewhere(killed)
    with_another_reference(here)
    refused = run(command, killed.name, *named, plugin=False)
    assert refused.code == 2
    assert "is not what it was" in refused.err
    manifest = json.loads((killed / "run.json").read_text(encoding="utf-8"))
    (killed / "run.json").write_text(json.dumps(manifest | {"dataset": None}), encoding="utf-8")
    refused = run(command, killed.name, *named, plugin=False)
    assert refused.code == 2
    assert "does not say what its data set held" in refused.err


def test_a_run_that_is_resumed_keeps_its_names(run, killed):
    for given in (
        ("--metric", "levenshtein"),
        ("--sut", "judge"),
        ("--judge", "strict"),
        ("--dataset", "good.csv"),
    ):
        assert run("resume", killed.name, *given, plugin=False).code == 2


def test_a_run_of_a_data_set_that_was_stopped_says_how_to_go_on(run, judged, only_run):
    ended = judged("--dataset", "bad.csv", "--max-calls", "0")
    assert ended.code == 4
    assert f"To go on: modelgauge resume {only_run().name} --max-calls N\n" in ended.err
    ended = run("resume", only_run().name, "--max-calls", "100", plugin=False)
    check_resumed(ended, only_run(), paid=3)


def test_the_manifest_says_what_a_run_of_a_data_set_is_done_again_with(judged, only_run, here):
    judged("--dataset", "bad.csv")
    manifest = json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    assert manifest["inputs"] == {
        "plugins": [str(here / "app.py")],
        "dependencies": {},
        "columns": {},
        "delimiter": None,
        "encoding": None,
        "datasets": {"bad": str(here / "bad.csv")},
        "metrics": ["exact_match", "answer_relevancy?include_reason=false"],
        "judge": "judge",
    }
    assert manifest["dataset"] == record_of(only_run())["dataset"]
    assert manifest["judges"]["AnswerRelevancyMetric"]["judge"]["uid"] == "judge"


def without_the_file(here):
    (here / "bad.csv").unlink()


def with_another_golden(here):
    with (here / "bad.csv").open("a", encoding="utf-8") as file:
        file.write("d,d\n")


def with_another_reference(here):
    text = (here / "bad.csv").read_text(encoding="utf-8")
    (here / "bad.csv").write_text(text.replace("c,x", "c,c"), encoding="utf-8")


def without_goldens(here):
    (here / "bad.csv").write_text("input\n", encoding="utf-8")


@pytest.mark.parametrize("command", ["resume", "rescore"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without_the_file, "cannot be read any more"),
        (with_another_golden, "is not what it was in run"),
        (with_another_reference, "is not what it was in run"),
        (without_goldens, "holds no goldens"),
    ],
)
def test_a_data_set_that_has_changed_is_told_before_any_call(run, here, killed, command, change, told):
    before = (killed / "items.jsonl").read_bytes()
    change(here)
    ended = run(command, killed.name, plugin=False)
    assert ended.code == 2
    assert told in ended.err
    assert f"modelgauge rescore {killed.name} --dataset FILE" in ended.err
    assert (killed / "items.jsonl").read_bytes() == before
    assert len(list(killed.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            'register("app", FunctionSUT, app, version=1)',
            'register("app", FunctionSUT, app, version=2)',
            "'app'",
        ),
        (
            'register("judge", FunctionSUT, judge, version=1)',
            'register("judge", FunctionSUT, judge, version=2)',
            "'judge' is not what it was",
        ),
    ],
)
def test_an_app_or_a_judge_that_has_changed_is_not_mixed_with_what_it_was(run, here, killed, old, new, told):
    text = (here / "app.py").read_text(encoding="utf-8")
    assert old in text
    (here / "app.py").write_text(text.replace(old, new), encoding="utf-8")
    ended = run("resume", killed.name, plugin=False)
    assert ended.code == 2
    assert told in ended.err
    assert "Start a new run" in ended.err


def test_the_columns_of_a_file_are_named_once(run, run_dataset, only_run, here):
    (here / "other.csv").write_text("question,answer\na,a\nb,b\n", encoding="utf-8")
    unnamed = run_dataset("--dataset", "other.csv")
    assert unnamed.code == 2
    assert "--column input=question" in unnamed.err
    columns = ("--column", "input=question", "--column", "expected_output=answer")
    assert run_dataset("--dataset", "other.csv", *columns, "--max-calls", "0").code == 4
    first = only_run().name
    assert run("resume", first, "--max-calls", "100", plugin=False).code == 0
    ended = run("rescore", first, "--json", plugin=False)
    assert scored(ended)["result"]["passed"]["n"] == 2
    (here / "renamed.csv").write_text("q,expected_output\na,x\nb,b\n", encoding="utf-8")
    ended = run("rescore", first, "--dataset", "renamed.csv", "--column", "input=q", "--json")
    assert scored(ended)["result"]["passed"]["value"] == 0.5
    again = run("rescore", scored(ended)["run_id"], "--json")
    assert scored(again)["result"] == scored(ended)["result"]


@pytest.mark.parametrize(
    ("head", "args", "value"),
    [
        ("input,expected_output", (), 0.5),  # the usual names
        ("question,expected_output", (), 0.5),  # one as before
        ("question,reference", ("--column", "expected_output=reference"), 0.5),
        ("answer,reference", ("--column", "input=answer", "--column", "expected_output=reference"), 0.5),
    ],
)
def test_the_columns_of_a_run_count_for_another_file_where_it_has_them(
    run, run_dataset, only_run, here, head, args, value
):
    (here / "other.csv").write_text("question,answer\na,a\nb,b\n", encoding="utf-8")
    run_dataset("--dataset", "other.csv", "--column", "input=question", "--column", "expected_output=answer")
    (here / "next.csv").write_text(f"{head}\na,x\nb,b\n", encoding="utf-8")
    ended = run("rescore", only_run().name, "--dataset", "next.csv", *args, "--json", plugin=False)
    assert scored(ended)["result"]["passed"]["value"] == value
    assert "Warning" not in ended.err


@pytest.mark.filterwarnings("always:Run ")
def test_a_column_of_the_run_that_another_file_lacks_is_told(run, run_dataset, only_run, here):
    (here / "other.csv").write_text("question,answer\na,a\nb,b\n", encoding="utf-8")
    run_dataset("--dataset", "other.csv", "--column", "input=question", "--column", "expected_output=answer")
    first = only_run().name
    (here / "next.csv").write_text("q,answer\na,x\nb,b\n", encoding="utf-8")
    ended = run("rescore", first, "--dataset", "next.csv", plugin=False)
    assert ended.code == 2
    assert f"Run {first} read 'input' from 'question', which next.csv does not have." in ended.err
    assert ended.err.rstrip().endswith("Name the columns of this file: --column input=COLUMN")
    (here / "half.csv").write_text("question,a\na,x\nb,b\n", encoding="utf-8")
    ended = run("rescore", first, "--dataset", "half.csv", plugin=False)
    assert ended.code == 2
    assert "Warning: Run" in ended.err
    assert "--column expected_output=COLUMN" in ended.err
    assert "ExactMatchMetric needs 'expected_output'" in ended.err


def test_a_run_is_measured_by_another_column_of_its_own_file(run, run_dataset, only_run, here):
    (here / "two.csv").write_text("question,first,second\na,a,a\nb,b,x\n", encoding="utf-8")
    columns = ("--column", "input=question", "--column", "expected_output=first")
    assert run_dataset("--dataset", "two.csv", *columns).code == 0
    first = only_run().name
    ended = run("rescore", first, "--column", "expected_output=second", "--json", plugin=False)
    assert scored(ended)["result"]["passed"]["value"] == 0.5
    again = run("rescore", scored(ended)["run_id"], "--json", plugin=False)
    assert scored(again)["result"] == scored(ended)["result"]
    wrong = run("rescore", first, "--column", "expected_output=third", plugin=False)
    assert wrong.code == 2
    assert "there is no column 'third', which was named for 'expected_output'" in wrong.err
    assert "cannot be read any more" not in wrong.err


def test_data_sets_of_one_name_in_one_command_are_told_apart(run_dataset, run, here):
    (here / "more").mkdir()
    (here / "more" / "good.csv").write_text("input,expected_output\nz,z\n", encoding="utf-8")
    both = ("--dataset", "good.csv", "--dataset", "more/good.csv")
    ended = run_dataset(*both, "--max-calls", "0", "--no-caching", "--json")
    assert ended.code == 4
    records = ended.json["records"]
    assert [record["test_uid"] for record in records] == ["good.csv", "more/good.csv"]
    resumed = run("resume", records[0]["invocation_id"], "--max-calls", "100", "--json", plugin=False)
    assert resumed.code == 0, resumed.err
    assert [one["counts"]["scored"] for one in resumed.json["records"]] == [2, 1]


# --- measured anew -----------------------------------------------------------------------------------


@pytest.fixture
def ran(run_dataset, only_run):
    """A run of `bad.csv`."""
    assert run_dataset("--dataset", "bad.csv").code == 1
    return only_run()


def scored(ended):
    """The only record that a command printed."""
    (record,) = ended.json["records"]
    assert record["counts"]["sut_calls"] == {"paid": 0, "cached": 0}
    return record


def test_a_run_of_a_data_set_is_rescored_as_it_was(run, ran):
    ended = run("rescore", ran.name, "--json", plugin=False)
    assert ended.code == 1
    record = scored(ended)
    assert record["result"] == record_of(ran)["result"]
    again = run("rescore", record["run_id"], "--json", plugin=False)  # which may be done any number of times
    assert scored(again)["result"] == record["result"]


def test_answers_are_rescored_by_other_metrics_and_another_judge(run, ran):
    both = ("--metric", "levenshtein", "--metric", "answer_relevancy")
    ended = run("rescore", ran.name, *both, "--json", plugin=False)
    assert ended.code == 2
    assert "--judge SUT" in ended.err
    for judge, relevancy in (("judge", 1), ("strict", 0)):
        by_judge = ("--metric", "answer_relevancy", "--judge", judge)
        ended = run("rescore", ran.name, *by_judge, "--json", plugin=False)
        assert ended.code == 1 - relevancy, ended.err
        assert scored(ended)["result"]["AnswerRelevancyMetric"]["value"] == relevancy
        again = run("rescore", scored(ended)["run_id"], "--json", plugin=False)
        assert scored(again)["result"] == scored(ended)["result"]


def test_answers_are_rescored_by_mended_references(run, ran, here):
    with_another_reference(here)
    ended = run("rescore", ran.name, "--dataset", "bad.csv", "--json", plugin=False)
    assert ended.code == 0, ended.err
    assert scored(ended)["result"]["ExactMatchMetric"]["value"] == 1
    assert scored(ended)["dataset"]["digest"] != record_of(ran)["dataset"]["digest"]


def test_goldens_that_ask_something_else_cannot_measure_the_answers(run, ran):
    ended = run("rescore", ran.name, "--dataset", "good.csv", plugin=False)
    assert ended.code == 2
    assert "is not among the items of the test any more" in ended.err
    assert list(ran.parent.iterdir()) == [ran]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            ("--test", "numbers", "--metric", "exact_match"),
            "by a test, by the metrics of a data set, or by ratings",
        ),
        (("--metric", "exact_mach"), "exact_match"),
        (("--dataset", "gone.csv"), "gone.csv"),
        (("--judge", "nobody", "--metric", "answer_relevancy"), "nobody"),
    ],
)
def test_what_cannot_measure_a_run_is_told(run, ran, args, told):
    ended = run("rescore", ran.name, *args)
    assert ended.code == 2
    assert told in ended.err
    assert len(list(ran.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [(("--metric", "exact_match"), "--dataset FILE"), (("--dataset", "good.csv"), "--metric")],
)
def test_a_run_of_a_test_needs_goldens_and_metrics_to_be_measured_by_metrics(run, only_run, here, args, told):
    assert run("run-test", "--sut", "echo", "--test", "numbers").code == 0
    ended = run("rescore", only_run().name, *args)
    assert ended.code == 2
    assert told in ended.err


def test_the_delimiter_and_the_encoding_of_a_file_are_those_of_its_run(run, run_dataset, only_run, here):
    (here / "excel.csv").write_bytes("input;expected_output;note\nyes;yes;déjà\n".encode("cp1252"))
    form = ["--delimiter", ";", "--encoding", "cp1252"]
    assert run_dataset("--dataset", "excel.csv").code == 2
    ran = run_dataset("--dataset", "excel.csv", *form, "--json")
    assert ran.json["records"][0]["counts"]["scored"] == 1
    manifest = json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    assert (manifest["inputs"]["delimiter"], manifest["inputs"]["encoding"]) == (";", "cp1252")
    again = run("rescore", only_run().name, "--metric", "contains", "--json", plugin=False)
    assert again.json["records"][0]["result"]["ContainsMetric"]["n"] == 1
    wrong = run("rescore", ran.json["records"][0]["run_id"], "--delimiter", ",", plugin=False)
    assert wrong.code == 2
    assert "delimiter=';'" in wrong.err


def test_a_delimiter_without_a_data_set_is_refused(run, datasets):
    ended = run(
        "run-test", "--sut", "app", "--plugin", "app.py", "--test", "x", "--delimiter", ";", plugin=False
    )
    assert ended.code == 2
    assert "describe a --dataset" in ended.err

"""`run-test`: exit codes, output and what is refused before any call."""

import json
import os
import sys
import threading
from pathlib import Path

import pytest

import modelgauge


def test_shows_a_table_that_says_what_came_out_and_where_it_is(run, only_run):
    ended = run("run-test", "--sut", "echo", "--test", "numbers")
    assert ended.code == 0
    assert "numbers on echo" in ended.out
    assert "10 scored, 0 failed" in ended.out
    assert "SUT 10 made, 0 cached" in ended.out
    assert f"modelgauge show {only_run().name}" in ended.out
    assert ended.err == ""


def test_a_sut_that_changes_the_working_directory_loses_no_file(run, here):
    plugin = here / "plugin.py"
    moving = plugin.read_text(encoding="utf-8").replace(
        "CALLS.append(request)", "CALLS.append(request); __import__('os').chdir('/')"
    )
    plugin.write_text(moving, encoding="utf-8")
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "--output-file", "out.json")
    assert (ended.code, ended.err) == (0, "")
    assert len(json.loads((here / "out.json").read_text(encoding="utf-8"))["test_item_records"]) == 10


def test_a_second_run_makes_no_call(run):
    run("run-test", "--sut", "echo", "--test", "numbers")
    assert "SUT 0 made, 10 cached" in run("run-test", "--sut", "echo", "--test", "numbers").out
    assert (
        "SUT 10 made, 0 cached" in run("run-test", "--sut", "echo", "--test", "numbers", "--no-caching").out
    )


def test_json_is_one_object_with_records_without_items(run):
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "--json")
    (record,) = ended.json["records"]
    assert record["test_uid"] == "numbers"
    assert record["counts"]["scored"] == 10
    assert record["result"]["accuracy"]["value"] == 1
    assert "test_item_records" not in record


def test_every_test_runs_on_every_sut(run):
    suts = ("--sut", "echo", "--sut", "echo?answer=no")
    ended = run("run-test", *suts, "--test", "numbers", "--test", "judged", "--json")
    pairs = [(record["test_uid"], record["sut_uid"]) for record in ended.json["records"]]
    names = ("echo", "echo?answer=no")
    assert pairs == [(test, sut) for test in ("numbers", "judged") for sut in names]
    assert len({record["invocation_id"] for record in ended.json["records"]}) == 1


@pytest.mark.parametrize(
    ("allowed", "code"), [("0", 3), ("1", 3), ("2", 0), ("19%", 3), ("20%", 0), ("19.5%", 3), ("100%", 0)]
)
def test_more_failures_than_allowed_exit_with_3(run, allowed, code):
    ended = run(
        "run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0", "--max-errors", allowed
    )
    assert ended.code == code
    assert "8 scored, 2 failed (2 SUT errors)" in ended.out
    assert "2 x SUT flaky: ValueError: cannot answer" in ended.out
    assert ("2 of 10 items failed" in ended.err) == (code == 3)


@pytest.mark.parametrize(
    ("options", "is_told"), [((), True), (("--no-caching",), True), (("--max-calls", "3"), False)]
)
def test_after_failures_it_names_the_command_that_asks_those_again(run, calls, options, is_told):
    ended = run("run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0", *options)
    assert (" --retry-failed" in ended.out) == is_told
    if is_told and not options:
        assert len(calls()) == 10
        run("run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0")
        assert len(calls()) == 2


@pytest.mark.parametrize("allowed", ["-1", "many", "101%", "1.5", "nan%", "%"])
def test_an_allowance_that_is_none_is_refused(run, allowed):
    ended = run("run-test", "--sut", "echo", "--test", "numbers", f"--max-errors={allowed}")
    assert ended.code == 2
    assert "percentage" in ended.err


def test_a_run_that_stopped_early_exits_with_4(run):
    ended = run("run-test", "--sut", "echo", "--test", "broken", "--max-errors", "100%")
    assert ended.code == 4
    assert "the source of items is gone" in ended.out
    assert "broken on echo stopped early" in ended.err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--sut", "ecko", "--test", "numbers"), "Did you mean 'echo'?"),
        (("--sut", "echo", "--test", "number"), "Did you mean 'numbers'?"),
        (("--sut", "echo"), "Missing option '--test'"),
        (("--sut", "echo?answr=no", "--test", "numbers"), "Did you mean 'answer'?"),
        (("--sut", "echo", "--test", "numbers", "--temperature", "-1"), "--temperature"),
        (("--sut", "echo", "--test", "numbers", "--temperature", "nan"), "temperature"),
        (("--sut", "echo", "--test", "numbers", "-m", "0"), "--max-test-items"),
        (("--sut", "echo", "--test", "numbers", "--repeats", "0"), "--repeats"),
        (("--sut", "echo", "--test", "numbers", "--repeats", "5", "--reduce", "pass@9"), "--repeats 9"),
        (
            ("--sut", "echo", "--test", "numbers", "--reduce", "median"),
            "all, pass@K, pass^K or MofN",
        ),
        (("--sut", "echo", "--test", "numbers", "--max-calls", "-1"), "--max-calls"),
        (("--sut", "echo", "--test", "numbers", "--max-cost", "nan"), "--max-cost"),
        (("--sut", "echo", "--test", "numbers", "--requests-per-minute", "0"), "--requests-per-minute"),
        (("--sut", "echo", "--test", "numbers", "--call-timeout", "inf"), "--call-timeout"),
        (("--sut", "echo", "--test", "numbers", "--timeout", "0"), "'--timeout'"),
        (("--sut", "echo", "--test", "numbers", "--concurrency", "0"), "'--concurrency'"),
        (("--sut", "echo", "--test", "numbers", "--max-retries", "-1"), "'--max-retries'"),
        (("--sut", "echo", "--test", "numbers", "--dry-run", "--output-file", "x"), "--dry-run"),
        (("--sut", "echo", "--test", "numbers", "--log-level", "loud"), "--log-level"),
        (("--sut", "echo", "--test", "numbers", "--dependency", "words"), "KEY=PATH"),
        (("--sut", "echo", "--test", "numbers", "--dependency", "words=x.txt"), "words"),
    ],
)
def test_wrong_usage_exits_with_2_without_a_traceback(run, args, told):
    ended = run("run-test", *args)
    assert ended.code == 2
    assert told in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_all_missing_secrets_are_told_at_once_before_any_call(run, calls):
    suts = ("--sut", "echo", "--sut", "secretive", "--sut", "secretive2")
    ended = run("run-test", *suts, "--test", "numbers")
    assert ended.code == 2
    assert "ACME_TOKEN" in ended.err
    assert "OTHER_KEY" in ended.err
    assert "Ask acme." in ended.err
    assert calls() == []


def test_a_secret_is_never_shown_or_written(run, here, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "canary-0123456789")
    output = ("--output-file", "out.json")
    ended = run("run-test", "--sut", "secretive", "--test", "numbers", "--json", *output)
    assert ended.code == 0
    written = [file for file in here.rglob("*") if file.is_file() and file.name != "plugin.py"]
    assert (here / "out.json") in written
    assert "canary-0123456789" not in ended.out + ended.err
    assert [file for file in written if b"canary-0123456789" in file.read_bytes()] == []


def test_sut_options_reach_the_sut(run, calls):
    run("run-test", "--sut", "echo", "--test", "judged", "--temperature", "0", "--stop", "a", "--stop", "b")
    assert sorted(calls()) == [f"number {n}|0.0|('a', 'b')" for n in range(2)]


def test_a_response_schema_is_read_from_a_file(run, here, only_run):
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    (here / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    ended = run("run-test", "--sut", "echo", "--test", "judged", "--response-schema", "schema.json")
    assert ended.code == 0, ended.err
    manifest = json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    assert manifest["options"]["sut_options"] == {"response_schema": schema}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "Error: schema.json cannot be read"),
        ("{", "is not JSON"),
        ("[1]", "no JSON object"),
        ('{"a": NaN}', "a is nan"),
    ],
)
def test_what_is_no_response_schema_is_refused(run, here, content, told):
    if content is not None:
        (here / "schema.json").write_text(content, encoding="utf-8")
    ended = run("run-sut", "--sut", "echo", "--prompt", "x", "--response-schema", "schema.json")
    assert ended.code == 2
    assert told in ended.err


def test_max_test_items_takes_the_same_items_for_one_seed(run):
    def chosen(*args):
        return [item["id"] for item in run("list-items", "--test", "numbers", *args, "--json").json["items"]]

    assert len(chosen("-m", "4")) == 4
    assert set(chosen("-m", "2")) < set(chosen("-m", "4"))
    assert chosen("-m", "4") == chosen("-m", "4", "--seed", "0")
    assert chosen("-m", "4") != chosen("-m", "4", "--seed", "1")


def test_what_plugins_print_does_not_get_into_the_json(run, here):
    text = (here / "plugin.py").read_text(encoding="utf-8")
    text = text.replace("CALLS.append(request)", "CALLS.append(request); print('asked', request)")
    (here / "plugin.py").write_text("print('loaded')\n" + text, encoding="utf-8")
    for more in ((), ("--dry-run",)):
        ended = run("run-test", "--sut", "echo", "--test", "numbers", "--json", *more)
        assert list(ended.json) == (["plans"] if more else ["records"])
    assert "asked number 1" in run("run-test", "--sut", "echo", "--test", "numbers", "--no-caching").out
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "--no-caching", "--json")
    assert "asked number 1" in ended.err
    assert run("show", ended.json["records"][0]["run_id"], "--items", "--json").json["records"]


def test_a_test_that_makes_no_items_names_file_and_line_and_leaves_nothing_to_resume(run, here):
    line = (here / "plugin.py").read_text(encoding="utf-8").split("the source of items")[0].count("\n") + 1
    place = f"RuntimeError: the source of items is gone ({here / 'plugin.py'}, line {line})"
    ended = run("run-test", "--sut", "echo", "--test", "broken")
    assert ended.code == 4
    assert "".join(place.split()) in "".join(ended.out.split())
    assert "To go on, once that is corrected: modelgauge resume " in ended.err
    assert place in run("list-items", "--test", "broken").err
    text = (here / "plugin.py").read_text(encoding="utf-8")
    (here / "plugin.py").write_text(
        text.replace('        yield mg.TestItem(["one"], id="one")\n', ""), encoding="utf-8"
    )
    ended = run("run-test", "--sut", "echo", "--test", "broken")
    assert ended.code == 4
    assert "resume" not in ended.out + ended.err


# --- repeats, limits, dry runs -----------------------------------------------------------------------


def test_each_prompt_is_asked_as_often_as_repeats_say(run, only_run):
    ended = run(
        "run-test", "--sut", "echo", "--test", "numbers", "--repeats", "3", "--reduce", "pass@2", "--json"
    )
    (record,) = ended.json["records"]
    assert record["counts"]["items"] == record["counts"]["scored"] == 10
    assert record["counts"]["sut_calls"] == {"paid": 30, "cached": 0}
    manifest = json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    assert (manifest["options"]["repeats"], manifest["options"]["reduce"]) == (3, "pass@2")


def test_limits_reach_the_run(run, only_run):
    given = {
        "max_calls": 40,
        "max_tokens_total": 50,
        "max_cost": 1.5,
        "requests_per_minute": 60_000,
        "tokens_per_minute": 70_000,
        "call_timeout": 80.0,
    }
    flags = [text for name, value in given.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    assert run("run-test", "--sut", "echo", "--test", "numbers", *flags).code == 0
    manifest = json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    assert {name: manifest["options"][name] for name in given} == given


def test_a_cap_of_no_calls_leaves_what_the_cache_has(run):
    capped = ("run-test", "--sut", "echo", "--test", "numbers", "--max-calls", "0")
    ended = run(*capped)
    assert ended.code == 4
    assert "The cap of 0 calls is reached" in ended.err
    run("run-test", "--sut", "echo", "--test", "numbers")
    assert run(*capped).code == 0


def test_a_dry_run_says_what_a_run_would_take_and_makes_nothing(run, here, calls):
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "--test", "judged", "--dry-run", "--json")
    assert ended.code == 0
    plans = {plan["test_uid"]: plan for plan in ended.json["plans"]}
    assert plans["numbers"]["items"] == 10
    assert plans["numbers"]["sut_calls"] == {"paid": 10, "cached": 0}
    assert plans["judged"]["annotator_calls"] == {"paid": 2, "cached": 0}
    assert calls() == []
    assert not (here / "run_data").exists()


@pytest.mark.parametrize("args", [("run-test", "--sut", "echo", "--dry-run"), ("list-items",)])
def test_a_test_that_makes_no_items_is_told_before_a_run(run, args):
    ended = run(*args, "--test", "broken")
    assert ended.code == 4
    assert "Test 'broken'" in ended.err
    assert "RuntimeError: the source of items is gone" in ended.err


def test_a_dry_run_counts_what_the_cache_has(run, here):
    run("run-test", "--sut", "echo", "--test", "numbers", "-m", "4")
    runs = list((here / "run_data" / "runs").iterdir())
    dry = ("run-test", "--sut", "echo", "--test", "numbers", "--dry-run")
    assert run(*dry, "--json").json["plans"][0]["sut_calls"] == {"paid": 6, "cached": 4}
    assert "To pay: 6 calls, about 12 prompt tokens in all; the cost is unknown." in run(*dry).out
    assert "To pay: 10 calls" in run(*dry, "--no-caching").out
    secret = {"HTTPS_PROXY": "user:passw0rd@host:notaport"}
    shown = run("run-test", "--sut", "echo?answer=passw0rd", "--test", "numbers", "--dry-run", env=secret).out
    assert "passw0rd" not in shown
    assert list((here / "run_data" / "runs").iterdir()) == runs


# --- external data ----------------------------------------------------------------------------------


def test_a_dependency_can_be_a_local_file(run, here):
    (here / "words.txt").write_text("one two three", encoding="utf-8")
    for name in ("words", "with_data:words"):
        ended = run("run-test", "--sut", "echo", "--test", "with_data", "--dependency", f"{name}=words.txt")
        assert ended.code == 0
        assert "3 scored" in ended.out


def test_missing_data_is_told_before_any_call(run, calls):
    ended = run("run-test", "--sut", "echo", "--test", "with_data", "--offline")
    assert ended.code == 2
    assert "modelgauge dependencies add" in ended.err
    assert calls() == []


# --- --output-file -----------------------------------------------------------------------------------


def test_an_output_file_loads_back_as_the_record_with_its_items_in_order(run, here):
    output = ("--output-file", "new/folder/out.json")
    run("run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0", *output)
    record = modelgauge.load_record(here / "new" / "folder" / "out.json")
    assert [item.index for item in record.test_item_records] == [0, 1, 2, 5, 6, 7, 8, 9]
    assert [item.test_item.id for item in record.test_item_exceptions] == ["n3", "n4"]
    assert record.counts.failed == 2
    raw = json.loads((here / "new" / "folder" / "out.json").read_text(encoding="utf-8"))
    assert [item["index"] for item in raw["test_item_records"]] == [0, 1, 2, 5, 6, 7, 8, 9]
    assert [file.name for file in (here / "new" / "folder").iterdir()] == ["out.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_the_reader_of_a_pipe_gets_all_of_the_output_file(run, here):
    os.mkfifo("pipe")
    read = []
    reader = threading.Thread(
        target=lambda: read.append(Path("pipe").read_text(encoding="utf-8")), daemon=True
    )
    reader.start()
    # Should the reader be gone too early, nothing would be left that the writer could wait for but this.
    rescue = threading.Timer(20, lambda: os.open("pipe", os.O_RDONLY | os.O_NONBLOCK))
    rescue.daemon = True
    rescue.start()
    assert run("run-test", "--sut", "echo", "--test", "numbers", "--output-file", "pipe").code == 0
    rescue.cancel()
    reader.join(10)
    assert json.loads(read[0])["test_uid"] == "numbers"


def test_an_output_file_of_several_pairs_holds_a_list(run, here):
    run("run-test", "--sut", "echo", "--test", "numbers", "--test", "judged", "--output-file", "out.json")
    records = modelgauge.load_records(here / "out.json")
    assert [(record.test_uid, len(record.test_item_records)) for record in records] == [
        ("numbers", 10),
        ("judged", 2),
    ]


@pytest.mark.parametrize("name", ["folder", "file/out.json"])
def test_an_output_file_that_cannot_be_written_is_refused_before_any_call(run, here, calls, name):
    (here / "folder").mkdir()
    (here / "file").write_text("", encoding="utf-8")
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "--output-file", name)
    assert ended.code == 2
    assert "--output-file" in ended.err
    assert not (here / "run_data").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file that never has room is Linux's")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_came_out_is_shown_also_where_the_output_file_has_no_room(run, only_run, more):
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "--output-file", "/dev/full", *more)
    assert ended.code == 4
    assert "--output-file /dev/full cannot be written" in ended.err
    assert only_run().name in ended.out
    assert "accuracy" in ended.out


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_an_output_file_replaces_no_link_and_nothing_of_the_data_folder(run, here, only_run, calls):
    asked = ("run-test", "--sut", "echo", "--test", "numbers", "--output-file")
    assert run(*asked, "run_data/out.json").code == 0  # a new file may lie there
    (here / "mine.txt").write_text("mine", encoding="utf-8")
    (here / "link.json").symlink_to("mine.txt")
    (here / "circle.json").symlink_to("circle.json")
    kept = only_run().relative_to(here)
    calls().clear()
    for name, told in {
        "link.json": "is a link",
        "circle.json": "is a link",
        f"{kept}/run.json": "data folder",
        f"{kept}/../{kept.name}/items.jsonl": "data folder",
        "run_data/cache/cache.db": "data folder",
    }.items():
        before = (here / name).read_bytes() if name != "circle.json" else b""
        ended = run(*asked, name)
        assert (ended.code, told in " ".join(ended.err.split())) == (2, True), ended.err
        assert (here / name).is_symlink() or (here / name).read_bytes() == before
    assert (here / "mine.txt").read_text(encoding="utf-8") == "mine"
    assert calls() == []


def test_a_refused_run_leaves_an_old_output_file_alone(run, here):
    (here / "out.json").write_text("old", encoding="utf-8")
    assert run("run-test", "--sut", "nobody", "--test", "numbers", "--output-file", "out.json").code == 2
    assert (here / "out.json").read_text(encoding="utf-8") == "old"
    assert sorted(one.name for one in here.iterdir()) == ["out.json", "plugin.py"]


# --- settings ----------------------------------------------------------------------------------------


def test_settings_come_from_the_file_then_the_environment_then_options(run, here, monkeypatch):
    (here / "modelgauge.toml").write_text('data_dir = "from_file"', encoding="utf-8")
    run("run-test", "--sut", "echo", "--test", "judged")
    monkeypatch.setenv("MODELGAUGE_DATA_DIR", "from_environment")
    run("run-test", "--sut", "echo", "--test", "judged")
    run("run-test", "--sut", "echo", "--test", "judged", "--data-dir", "from_option")
    made = sorted(
        folder.name for folder in here.iterdir() if folder.is_dir() and folder.name.startswith("from")
    )
    assert made == ["from_environment", "from_file", "from_option"]


def test_the_manifest_holds_the_command(run, only_run):
    run("run-test", "--sut", "echo", "--test", "judged", "--seed", "7")
    manifest = json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    assert manifest["command"][0] == "modelgauge"
    assert manifest["command"][-2:] == ["--seed", "7"]
    assert manifest["options"]["seed"] == 7


def test_ctrl_c_before_a_run_began_says_that_nothing_was_asked(run, here):
    plugin = here / "plugin.py"
    text = plugin.read_text(encoding="utf-8").replace("self.answer = answer", "raise KeyboardInterrupt")
    plugin.write_text(text, encoding="utf-8")
    ended = run("run-test", "--sut", "echo", "--test", "numbers")
    assert (ended.code, ended.out) == (130, "")
    assert ended.err == "Interrupted before a run began: nothing was asked.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names that are not UTF-8")
def test_a_name_that_no_record_can_hold_is_refused_before_anything_is_asked(run, here, calls):
    folder = os.fsdecode(b"b\xff")
    refused = run("run-test", "--test", "numbers", "--sut", "echo", "--data-dir", folder)
    assert refused.code == 2
    assert "run.json cannot hold the name" in refused.err
    assert "b\\udcff', which is not UTF-8.\nRename the file or folder" in refused.err
    assert calls() == []
    assert list((here / folder / "runs").iterdir()) == []

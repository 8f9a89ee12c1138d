"""The commands that list and show; each has `--json`."""

import json
import os
import re
import sqlite3
from contextlib import closing

import pytest

from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.responses import ResponseCache
from modelgauge.config.entry_points import PluginEntryPoint
from modelgauge.plugins import discovery


@pytest.fixture
def ran(run, here, only_run, once):
    """A run with two failures."""
    once(here, lambda: run("run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0"))
    return only_run()


# --- what is installed -------------------------------------------------------------------------------


def test_list_shows_all_kinds_with_their_numbers(run):
    ended = run("list")
    assert ended.code == 0
    assert "Tests (4)" in ended.out
    assert "SUTs (6)" in ended.out  # with the built-in replay
    assert "replay/…" in ended.out
    assert "Annotators (1)" in ended.out


@pytest.mark.parametrize(
    ("command", "key", "uid"),
    [
        ("list-tests", "tests", "numbers"),
        ("list-suts", "suts", "echo"),
        ("list-annotators", "annotators", "yes_no"),
        ("list-metrics", "metrics", "answer_relevancy"),
    ],
)
def test_each_kind_has_a_list(run, command, key, uid):
    assert uid in run(command).out
    rows = run(command, "--json").json[key]
    (row,) = [row for row in rows if row["uid"] == uid]
    assert row.keys() == {"uid", "provider", "class", "distribution", "groups"}
    assert rows == run("list", "--json").json[key]


def test_a_list_fits_the_terminal_and_shows_classes_on_request(run, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = "a_test_with_a_name_of_some_forty_characters"
    (here / "long.py").write_text(
        "import modelgauge as mg\nfrom plugin import Numbers\n\n\n@mg.hookimpl\n"
        f"def modelgauge_register_tests(register):\n    register('{name}', Numbers)\n",
        encoding="utf-8",
    )
    plain, details = (run("list-tests", "--plugin", "long.py", *more).out for more in ((), ("-v",)))
    assert max(map(len, plain.splitlines())) <= 80
    assert name in plain
    assert "plugin:Numbers" not in plain
    assert "plugin:Numbers" in details


def test_a_plugin_is_loaded_wherever_the_option_stands(run):
    assert "numbers" in run("list-tests", "--plugin", "plugin.py", plugin=False).out
    assert "numbers" not in run("list-tests", plugin=False).out


def test_a_local_plugin_that_does_not_work_is_an_error(run, here):
    (here / "bad.py").write_text("1 / 0", encoding="utf-8")
    ended = run("list", "--plugin", "bad.py")
    assert ended.code == 2
    assert "bad.py, line 1: ZeroDivisionError" in ended.err


def test_list_secrets_tells_where_from_and_never_what(run, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "canary-0123456789")
    rows = {row["name"]: row for row in run("list-secrets", "--json").json["secrets"]}
    assert rows["acme.key"]["found"] is True
    assert rows["acme.key"]["wanted_by"] == ["secretive"]
    assert rows["other.key"] == {
        "name": "other.key",
        "scope": "other",
        "key": "key",
        "required": True,
        "found": False,
        "env": ["OTHER_KEY"],
        "instructions": "Ask another.",
        "wanted_by": ["secretive2"],
    }
    shown = run("list-secrets").out
    assert "other.key: MISSING" in shown
    assert "acme.key: found" in shown
    assert "canary" not in shown


@pytest.fixture
def installed(here, monkeypatch):
    """Announce modules of the working directory as installed plugins."""

    def installed(**sources):
        for name, source in sources.items():
            (here / f"{name}.py").write_text(source, encoding="utf-8")
        found = [PluginEntryPoint(name, name, f"dist-{name}", "1.2.3") for name in sources]
        monkeypatch.setattr(discovery, "installed_entry_points", lambda: found)
        monkeypatch.syspath_prepend(here)

    return installed


REGISTERS = """
import modelgauge
@modelgauge.hookimpl
def modelgauge_register_suts(register):
    register("disputed", "nowhere:Nothing")
"""


def test_plugins_lists_what_was_loaded_what_failed_and_what_is_disputed(run, installed):
    installed(look_first=REGISTERS, look_second=REGISTERS, look_broken="raise SystemExit('not today')")
    data = run("plugins", "--json", plugin=False).json
    loaded = {one["distribution"]: one for one in data["plugins"]}
    assert loaded["dist-look_first"]["version"] == "1.2.3"
    assert loaded["dist-look_first"]["registered"]["sut"] == 1
    assert loaded["dist-look_first"]["seconds"] > 0
    (failure,) = data["failures"]
    assert (failure["name"], failure["cause"]) == ("look_broken", "SystemExit: not today")
    owners = ["dist-look_first", "dist-look_second"]
    assert data["conflicts"] == [{"uid": "disputed", "kind": "sut", "distributions": owners}]
    shown = run("plugins", plugin=False).out
    assert "FAILED look_broken (from dist-look_broken 1.2.3)\n  SystemExit: not today" in shown
    assert "disputed is claimed by dist-look_first and by dist-look_second" in shown
    assert "Traceback" not in shown
    assert "Traceback" in run("plugins", "--debug", plugin=False).out


def test_lists_say_when_something_may_be_missing(run, installed):
    installed(look_broken2="1 / 0")
    ended = run("list-tests", "--json", plugin=False)
    assert ended.json == {"tests": []}
    assert "look_broken2" in run("list-tests", plugin=False).err


# --- items -------------------------------------------------------------------------------------------


def test_list_items_shows_every_prompt_and_asks_no_sut(run, calls):
    ended = run("list-items", "--test", "numbers")
    assert ended.code == 0
    assert [line.strip() for line in ended.out.split("\n") if "number " in line] == [
        f"number {n}" for n in range(10)
    ]
    assert "10 items." in ended.out
    assert calls() == []


def test_list_items_as_json_is_one_object_with_an_item_a_line(run):
    ended = run("list-items", "--test", "numbers", "-m", "3", "--json")
    data = ended.json
    assert data["test_uid"] == "numbers"
    assert len(data["items"]) == 3
    assert ended.out.count("\n") == 4
    assert {"id", "prompts", "context"} <= data["items"][0].keys()


# --- probes ------------------------------------------------------------------------------------------


def test_run_sut_shows_the_native_request_the_native_response_and_the_response(run, here):
    ended = run("run-sut", "--sut", "echo", "--prompt", "number 1", "--temperature", "0.5", "--json")
    assert ended.code == 0
    data = ended.json
    assert data["native_request"] == "number 1|0.5|None"
    assert data["native_response"] == "yes"
    assert data["response"]["completions"][0]["text"] == "yes"
    shown = run("run-sut", "--sut", "echo", "--prompt", "number 1").out
    assert shown.index("Native request") < shown.index("Native response") < shown.index("Response\n")
    assert not (here / "run_data").exists()


def test_run_sut_takes_a_chat_from_a_file(run, here):
    chat = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    (here / "chat.json").write_text(json.dumps(chat), encoding="utf-8")
    assert (
        run("run-sut", "--sut", "echo", "--chat", "chat.json", "--json").json["native_request"] == "one/two"
    )
    ended = run("run-sut", "--sut", "text_only", "--chat", "chat.json")
    assert ended.code == 2
    assert "takes no ChatPrompt" in ended.err


@pytest.mark.parametrize("prompts", [(), ("--prompt", "x", "--chat", "plugin.py")])
def test_run_sut_wants_one_prompt(run, prompts):
    ended = run("run-sut", "--sut", "echo", *prompts)
    assert ended.code == 2
    assert "--prompt TEXT or --chat FILE" in ended.err


def test_a_probe_that_fails_shows_how_far_it_came(run):
    ended = run("run-sut", "--sut", "flaky", "--prompt", "number 3", "--max-retries", "0")
    assert ended.code == 3
    assert "number 3|None" in ended.out
    assert "ValueError: cannot answer 3" in ended.err
    assert "Traceback" not in ended.err
    assert "Traceback" in run("--debug", "run-sut", "--sut", "flaky", "--prompt", "number 3").err


def test_a_check_shows_what_a_sut_can_do_and_what_that_took(run, here):
    ended = run("run-sut", "--sut", "echo", "--check")
    assert ended.code == 0
    assert ended.out.splitlines()[0] == "echo"
    assert "several completions  no   1 of 2, by 1 call" in ended.out
    assert ended.out.splitlines()[-1] == "sent    4 requests, 0 tokens, no cost reported"
    findings = run("run-sut", "--sut", "echo", "--check", "--json").json["findings"]
    assert findings[0] == {"ability": "answers", "is_there": True, "detail": "yes"}
    assert not (here / "run_data").exists()


def test_a_check_asks_questions_of_its_own(run):
    ended = run("run-sut", "--sut", "echo", "--check", "--prompt", "x")
    assert ended.code == 2
    assert "leave out --prompt and --chat" in ended.err


def test_a_secret_in_a_response_is_not_shown(run, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "canary-0123456789")
    for args in ((), ("--json",)):
        ended = run("run-sut", "--sut", "secretive", "--prompt", "tell me", *args)
        assert "[secret acme.key]" in ended.out
        assert "canary" not in ended.out + ended.err


def test_run_annotator_shows_its_steps(run):
    given = ("--annotator", "yes_no", "--prompt", "ready?", "--completion", "yes", "--context", '{"a": 1}')
    data = run("run-annotator", *given, "--json").json
    assert data["native_request"] == {"answer": "yes", "context": {"a": 1}}
    assert data["native_response"] is True
    assert data["annotation"] == {"yes": True}
    assert '"yes": true' in run("run-annotator", *given).out


# --- runs --------------------------------------------------------------------------------------------


def test_runs_lists_runs_with_their_first_result(run, ran):
    (row,) = run("runs", "--json").json["runs"]
    assert row["run_id"] == ran.name
    assert row["state"] == "finished"
    assert row["headline"] == "accuracy 0.00"  # all are wrong, and "± 0" would say too much
    assert ran.name in run("runs").out


def test_an_unfinished_and_a_damaged_run_do_not_hide_others(run, ran):
    for name, manifest in (("20200101-000000-aaaaaa", "{}"), ("20200101-000000-bbbbbb", "not json")):
        (ran.parent / name).mkdir()
        (ran.parent / name / "run.json").write_text(manifest, encoding="utf-8")
    ended = run("runs", "--json")
    assert [row["state"] for row in ended.json["runs"]] == ["killed", "damaged", "finished"]
    assert "is not JSON" in ended.err
    assert len(run("runs", "--last", "1", "--json").json["runs"]) == 1


def test_runs_counts_all_items_of_a_run_that_was_stopped(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    given = (
        "--sut",
        "echo",
        "--test",
        "numbers",
        "--max-calls",
        "3",
        "--concurrency",
        "1",
        "--data-dir",
        "data",
    )
    ended = run("run-test", *given)
    assert "not begun" in ended.out
    assert " 3/10\n" in run("runs", "--data-dir", "data").out
    commands = [line.split("modelgauge ")[1] for line in ended.out.splitlines() if "modelgauge " in line]
    shown = [command for command in commands if command.startswith("show ")]
    assert shown
    assert all(run(*one.split()).code == 0 for one in shown)


def test_show_takes_an_id_a_folder_an_invocation_or_a_file(run, ran, here):
    invocation = json.loads((ran / "record.json").read_text(encoding="utf-8"))["invocation_id"]
    run("show", ran.name, "--items", "--json")
    for name in (ran.name, str(ran), invocation, str(ran / "record.json")):
        ended = run("show", name)
        assert ended.code == 0
        assert "8 scored, 2 failed" in ended.out
    assert run("show", "nothing").code == 2


def test_show_says_how_far_a_run_without_a_record_is(run, ran, here):
    (ran / "record.json").unlink()
    ended = run("show", ran.name)
    assert ended.code == 0
    assert "8 scored, 2 failed (2 SUT errors) so far" in ended.out
    assert "It was killed, or its record could not be written" in ended.out
    assert "2 x SUT flaky: ValueError: cannot answer" in ended.out
    assert f"modelgauge resume {ran.name}" in ended.out
    assert "FAILED at sut (flaky)" in run("show", ran.name, "--failures").out
    (record,) = run("show", ran.name, "--items", "--json").json["records"]
    assert record["failure"]["error_type"] == "RunUnfinished"
    assert record["result"] == {}
    assert [item["index"] for item in record["test_item_exceptions"]] == [3, 4]


def test_show_says_that_a_run_has_only_begun(run, ran):
    for name in ("record.json", "items.jsonl"):
        (ran / name).unlink()
    assert "0 scored, 0 failed so far" in run("show", ran.name).out


@pytest.mark.parametrize("manifest", ["{}", "[]", "not json"])
def test_show_refuses_what_is_no_run(run, ran, manifest):
    (ran / "record.json").unlink()
    (ran / "run.json").write_text(manifest, encoding="utf-8")
    ended = run("show", str(ran))
    assert ended.code == 2
    assert "run.json" in ended.err


def test_show_prints_items_and_failures(run, ran):
    items = run("show", ran.name, "--items").out
    assert items.index("1. n0") < items.index("4. n3") < items.index("10. n9")
    assert "measured: accuracy = 0" in items
    assert items.index("4. n3") < items.index("FAILED at sut (flaky): ValueError: cannot answer 3")
    failures = run("show", ran.name, "--failures").out
    assert re.search(
        r"\n  FAILED at sut \(flaky\): ValueError: cannot answer [34]", failures
    )  # whichever came first
    assert re.search(r"\n  1 more failed alike: n[34]\n", failures)
    assert 'in evaluate\n        raise ValueError(f"cannot answer {number}")' in failures
    assert "engine" not in failures
    assert failures.endswith("2 failed items, 1 kind of failure.\n")
    assert "engine" in run("--debug", "show", ran.name, "--failures").out
    assert "n9" not in failures
    (record,) = run("show", ran.name, "--items", "--json").json["records"]
    assert [item["index"] for item in record["test_item_records"]] == [0, 1, 2, 5, 6, 7, 8, 9]
    assert [item["index"] for item in record["test_item_exceptions"]] == [3, 4]
    assert "test_item_records" not in run("show", ran.name, "--json").json["records"][0]


@pytest.mark.parametrize(
    ("context", "shown"),
    [
        ('{"target": "42", "input": "x"}', "  target\n    42\n"),
        ('{"expected_output": None, "references": ["a", "b"]}', '  references\n    [\n      "a",\n'),
        ('{"even": True}', '  context\n    { "even": true }\n'),
        ('"Paris"', "  context\n    Paris\n"),
    ],
)
def test_show_includes_the_expected_answer(run, here, context, shown):
    plugin = (here / "plugin.py").read_text(encoding="utf-8")
    changed = plugin.replace('context={"even": number % 2 == 0}', f"context={context}")
    (here / "plugin.py").write_text(changed, encoding="utf-8")
    run("run-test", "--sut", "echo", "--test", "numbers", "-m", "1")
    (row,) = run("runs", "--json").json["runs"]
    assert shown in run("show", row["run_id"], "--items").out
    assert "None" not in run("show", row["run_id"], "--items").out.split("completion")[1]


def test_a_journal_that_has_lost_items_is_told(run, ran):
    assert "Warning" not in run("show", ran.name, "--items").err
    journal = ran / "items.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-2]))
    ended = run("show", ran.name, "--items")
    assert ended.code == 0
    assert "Warning: the record counts 10 of them, but the run's journal holds 8." in ended.err


def test_what_show_prints_with_items_can_be_loaded_and_shown_again(run, ran, here):
    (here / "saved.json").write_text(run("show", ran.name, "--items", "--json").out, encoding="utf-8")
    assert "8 scored, 2 failed" in run("show", "saved.json").out
    assert "10 items." in run("show", "saved.json", "--items").out


# --- cache and dependencies --------------------------------------------------------------------------


def test_cache_stats_and_clear(run, ran):
    assert run("cache", "stats", "--json").json["entries"] == 8
    refused = run("cache", "clear", input="n\n")
    assert refused.code == 2
    assert "8 responses" in refused.err
    assert run("cache", "clear", input="").code == 2
    assert run("cache", "stats", "--json").json["entries"] == 8
    assert run("cache", "clear", "--yes", "--json").json["removed"] == 8
    assert run("cache", "stats", "--json").json["entries"] == 0


@pytest.mark.parametrize("command", ["stats", "verify"])
def test_looking_at_a_cache_does_not_make_one(run, here, command):
    ended = run("cache", command, "--cache", "elsewhere")
    assert ended.code == 0
    assert ended.out.startswith("There is no cache yet in elsewhere")
    assert not (here / "run_data").exists()
    assert not (here / "elsewhere").exists()


@pytest.mark.parametrize(
    "command", ["cache stats", "cache verify", "cache clear --yes", "run-test --sut echo --test numbers"]
)
def test_a_cache_that_is_a_file(run, here, command):
    ended = run(*command.split(), "--cache", "plugin.py")
    assert (ended.code, ended.out) == (2, "")
    assert "The cache cannot be in plugin.py, which is a file.\nGive a folder" in ended.err


@pytest.mark.parametrize("in_use", [False, True])
def test_a_cache_in_a_read_only_folder_is_read_without_writing(run, ran, here, monkeypatch, in_use):
    folder = here / "run_data" / "cache"
    (folder / "write.lock").unlink()  # which is made again by whoever opens the cache to write
    other = ResponseCache(FolderBackend(folder)) if in_use else None
    before = {path.name for path in folder.iterdir()}
    monkeypatch.setattr("modelgauge.cache.opening.os.access", lambda path, mode: False)
    facts = run("cache", "stats", "--json").json
    assert (facts["entries"], facts["shared"]) == (8, in_use)
    found = run("cache", "verify", "--json").json
    assert (found["sound"], found["damaged"], found["read_only"]) == (8, 0, True)
    assert run("cache", "copy", str(folder), "copy", "--json").json["copied"] == 8
    assert run("bundle", "latest", "-o", "run.mgb", "--json").json["cache_rows"]["kept"] == 8
    explained = run("cache", "explain", "--sut", "flaky", "--prompt", "number 0", "--json").json
    assert explained["nearest"] is not None
    assert run("run-test", "--sut", "flaky", "--test", "numbers", "--dry-run").code == 0
    assert {path.name for path in folder.iterdir()} == before
    if other is None:
        with closing(sqlite3.connect(folder / "cache.db")) as database, database:
            database.execute("UPDATE Cache SET value = 'x' WHERE rowid = (SELECT min(rowid) FROM Cache)")
        ended = run("cache", "verify")
        assert (
            ended.code,
            "7 sound responses, 1 damaged" in ended.out,
            "Damaged entries stay" in ended.out,
        ) == (
            1,
            True,
            True,
        )
        assert {path.name for path in folder.iterdir()} == before
    else:
        other.close()
        other.leave()


@pytest.mark.parametrize("args", [("words.txt",), ("words", "words.txt"), ("--key", "words", "words.txt")])
def test_data_is_added_by_hand_and_then_listed_and_used(run, here, args):
    (here / "words.txt").write_text("one two", encoding="utf-8")
    missing = run("dependencies", "list", "--test", "with_data", "--json").json["dependencies"]
    assert [(row["key"], row["here"]) for row in missing] == [("words", False)]
    assert run("dependencies", "add", "--test", "with_data", *args).code == 0
    (row,) = run("dependencies", "list", "--json").json["dependencies"]
    assert (row["test_uid"], row["key"], row["bytes"]) == ("with_data", "words", 7)
    assert "here" in run("dependencies", "list", "--test", "with_data").out
    (fetched,) = run("dependencies", "fetch", "--test", "with_data", "--json").json["dependencies"]
    assert fetched["version"] == row["version"]
    assert "2 scored" in run("run-test", "--sut", "echo", "--test", "with_data", "--offline").out


def test_a_wrong_key_of_data_is_told(run, here):
    (here / "words.txt").write_text("one two", encoding="utf-8")
    ended = run("dependencies", "add", "--test", "with_data", "--key", "word", "words.txt")
    assert ended.code == 2
    assert "Did you mean 'words'?" in ended.err


def test_a_response_is_shown_as_what_it_says(run):
    assert run("run-sut", "--sut", "echo", "--prompt", "x 1").out.split("\n") == [
        "Native request",
        "  x 1|None|None",
        "",
        "Native response",
        "  yes",
        "",
        "Response",
        "  {",
        '    "completions": [',
        "      {",
        '        "text": "yes"',
        "      }",
        "    ]",
        "  }",
        "",
        "",
    ]


def test_a_call_that_fails_is_an_error_in_the_json(run):
    ended = run("run-sut", "--sut", "flaky", "--prompt", "number 3", "--max-retries", "0", "--json")
    assert ended.code == 3
    assert ended.json == {
        "uid": "flaky",
        "prompt": {"text": "number 3"},
        "native_request": "number 3|None|None",
        "native_response": None,
        "response": None,
        "error": {"type": "ValueError", "stage": "sut", "message": "cannot answer 3"},
    }
    assert ended.err == (
        "Error: flaky failed: ValueError: cannot answer 3\n`modelgauge --debug ...` shows the traceback.\n"
    )


def test_an_annotation_comes_with_what_was_judged(run):
    asked = ("run-annotator", "--annotator", "yes_no", "--prompt", "ready?", "--completion", "yes", "--json")
    data = run(*asked).json
    assert (data["uid"], data["prompt"], data["completion"]) == ("yes_no", {"text": "ready?"}, "yes")
    assert data["error"] is None
    wrong = run(*asked, "--context", "{")
    assert wrong.code == 2
    assert "--context is not JSON" in wrong.err


@pytest.mark.skipif(os.name != "posix", reason="others may read a file elsewhere")
def test_a_secret_may_lie_in_the_file_of_secrets(run, here):
    (here / "modelgauge.toml").write_text("", encoding="utf-8")
    (here / "secrets.toml").write_text('[acme]\nkey = "canary-0123456789"\n', encoding="utf-8")
    (here / "secrets.toml").chmod(0o600)
    rows = {row["name"]: row["found"] for row in run("list-secrets", "--json").json["secrets"]}
    assert rows == {"acme.key": True, "other.key": False}
    shown = run("run-sut", "--sut", "secretive", "--prompt", "x").out
    assert "my key is [secret acme.key]" in shown
    assert "canary" not in shown

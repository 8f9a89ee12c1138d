"""What `show`, `runs`, `cache` and `list-secrets` print beside what `test_look.py` and `test_cache.py` look at."""

import json
import re
import webbrowser
from pathlib import Path

import pytest

from modelgauge import load_record
from modelgauge.data.records import DatasetReference
from modelgauge.data.results import GIVEN


@pytest.fixture
def ran(run, here, only_run, once):
    """A run of ten items, of which two failed."""
    once(here, lambda: run("run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0"))
    return only_run()


def test_an_item_is_shown_with_all_that_is_known_of_it(run, here):
    plugin = (here / "plugin.py").read_text(encoding="utf-8")
    (here / "plugin.py").write_text(
        plugin.replace('("echo", Echo)', '("echo", Echo, "<think>let me see</think>yes")'), encoding="utf-8"
    )
    run("run-test", "--sut", "echo", "--test", "judged", "-m", "1")
    (row,) = run("runs", "--json").json["runs"]
    shown = run("show", row["run_id"], "--items").out
    assert re.sub(r"\n  took [\d.]+ m?s\n", "\n  took a while\n", shown).split("\n")[1:] == [
        "  prompt",
        "    number 1",
        "  reasoning",
        "    let me see",
        "  completion",
        "    yes",
        "  annotation judge",
        "    {",
        '      "yes": true',
        "    }",
        "  took a while",
        "  context",
        '    { "even": false }',
        "  measured: yes = 1",
        "",
        "1 item.",
        "",
    ]


def test_fields_that_are_not_understood_are_shown_with_the_item(run, here):
    own = """
class Odd(Echo):
    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response, left_out=["usage.cost", "logprobs"])])


@hookimpl
def modelgauge_register_suts(register):
    register("odd", Odd, "yes")
"""
    source = "from modelgauge import SUTCompletion, SUTResponse, hookimpl\nfrom plugin import Echo\n" + own
    (here / "odd.py").write_text(source, encoding="utf-8")
    run("run-test", "--plugin", "odd.py", "--sut", "odd", "--test", "numbers", "-m", "1")
    (row,) = run("runs", "--json").json["runs"]
    assert "\n    yes\n  not understood: usage.cost, logprobs\n" in run("show", row["run_id"], "--items").out


RIGHT_ANSWERS = (
    *("expected_output", "expected_outcome", "expected", "target", "targets", "reference", "references"),
    *("answer", "answers", "label", "gold", "solution"),
)


def test_of_a_context_the_right_answer_is_shown_alone(run, here):
    text = (here / "plugin.py").read_text(encoding="utf-8")
    for old, new in {
        "items = 10": f"items = {len(RIGHT_ANSWERS)}",
        '{"even": number % 2 == 0}': f'{{"level": "hard", {RIGHT_ANSWERS}[number]: "forty-two"}}',
    }.items():
        assert old in text
        text = text.replace(old, new)
    (here / "plugin.py").write_text(text, encoding="utf-8")
    run("run-test", "--sut", "echo", "--test", "numbers")
    (row,) = run("runs", "--json").json["runs"]
    shown = run("show", row["run_id"], "--items").out
    for name in RIGHT_ANSWERS:
        assert shown.count(f"\n  {name.replace('_', ' ')}\n    forty-two\n") == 1
    assert "context" not in shown
    assert "hard" not in shown


def test_the_items_of_several_runs_stand_below_the_names_of_theirs(run):
    run("run-test", "--sut", "echo", "--sut", "text_only", "--test", "judged")
    (invocation,) = {row["invocation_id"] for row in run("runs", "--json").json["runs"]}
    lines = run("show", invocation, "--items").out.split("\n")
    heads = [line for line in lines if " on " in line]
    assert sorted(heads) == ["judged on echo", "judged on text_only"]
    assert lines[1] == ""
    assert lines.count("2 items.") == 2
    assert lines[lines.index(heads[1]) - 2 :][:2] == ["2 items.", ""]


def test_a_damaged_run_of_a_command_does_not_hide_the_others(run):
    run("run-test", "--sut", "echo", "--sut", "text_only", "--test", "judged")
    rows = run("runs", "--json").json["runs"]
    damaged = next(row["path"] for row in rows if row["sut_uid"] == "echo")
    Path(damaged, "record.json").write_text("nothing", encoding="utf-8")
    ended = run("show", rows[0]["invocation_id"])
    assert ended.code == 0
    assert "judged on text_only" in ended.out
    assert "judged on echo" not in ended.out
    assert "Warning: " in ended.err
    assert "record.json is not JSON" in ended.err


def test_where_there_are_no_runs_that_is_said(run):
    assert run("runs").out == "There are no runs in run_data.\n"
    assert run("runs", "--json").json == {"runs": []}


def test_a_row_of_a_run_tells_what_was_measured_and_how_far_it_came(run, ran, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    (row,) = run("runs", "--json").json["runs"]
    assert (row["test_uid"], row["sut_uid"], row["dataset"]) == ("numbers", "flaky", None)
    assert row["path"].endswith(ran.name)
    record = json.loads((ran / "record.json").read_text(encoding="utf-8"))
    assert {name: row[name] for name in ("run_id", "invocation_id", "run_timestamp", "counts")} == {
        name: record[name] for name in ("run_id", "invocation_id", "run_timestamp", "counts")
    }
    head, line = run("runs").out.splitlines()
    assert head.split() == ["RUN", "TEST", "SUT", "STATE", "SCORED", "RESULT"]
    assert line.split() == [ran.name, "numbers", "flaky", "finished", "8/10", "accuracy", "0.00"]
    (ran / "record.json").unlink()
    assert run("runs").out.splitlines()[1].split() == [ran.name, "numbers", "flaky", "killed"]


@pytest.mark.parametrize(("not_begun", "told"), [(None, "8/10+"), (0, "8/10"), (1990, "8/2,000")])
def test_a_plus_says_that_nobody_knows_how_many_items_there_are(run, ran, monkeypatch, not_begun, told):
    monkeypatch.setenv("COLUMNS", "120")
    record = json.loads((ran / "record.json").read_text(encoding="utf-8"))
    record["counts"]["not_begun"] = not_begun
    record["cancelled"] = True
    (ran / "record.json").write_text(json.dumps(record), encoding="utf-8")
    assert f" interrupted  {told} " in run("runs").out


def test_the_cache_tells_its_size_and_what_was_removed(run, ran):
    facts = run("cache", "stats", "--json").json
    assert facts.keys() == {"path", "entries", "bytes", "quarantined", "shared"}
    assert (facts["entries"], facts["quarantined"], facts["shared"]) == (8, 0, False)
    (line,) = run("cache", "stats").out.splitlines()
    assert line.startswith("8 responses, ")
    assert line.endswith(f"B, in {Path('run_data', 'cache')}")
    assert run("cache", "clear", "--yes").out.startswith("Removed 8 responses from ")
    assert run("cache", "clear").out.startswith("Removed 0 responses from ")
    assert run("cache", "stats", "--json").json["entries"] == 0


SECRETS = """

class Optional(mg.OptionalSecret):
    @classmethod
    def description(cls):
        return mg.SecretDescription("third", "key", "Ask nobody.", env=("THIRD_A", "THIRD_B"))


@mg.hookimpl(specname="modelgauge_register_suts")
def more_suts(register):
    register("optional", Secretive, mg.InjectSecret(Optional))
    register("also", Secretive, mg.InjectSecret(Other))
    register("wrong", Secretive, mg.InjectSecret("nowhere:Nothing"))
"""


def test_secrets_are_told_with_who_wants_them_and_how_many_are_missing(run, here, monkeypatch):
    plugin = here / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + SECRETS, encoding="utf-8")
    monkeypatch.setenv("ACME_TOKEN", "canary-0123456789")
    ended = run("list-secrets")
    blocks = [
        [" ".join(line.split()) for line in block.split("\n")] for block in ended.out.strip().split("\n\n")
    ]
    assert [block[0] for block in blocks] == [
        "acme.key: found",
        "other.key: MISSING",
        "third.key: not set (optional)",
        "3 secrets, 1 required and missing.",
    ]
    assert "environment THIRD_A or THIRD_B or THIRD_KEY" in blocks[2]
    assert "wanted by also, secretive2" in blocks[1]
    assert "get one Ask another." in blocks[1]
    assert any(line.endswith('under [other]: key = "..."') for line in blocks[1])
    assert "Warning: wrong: " in ended.err
    data = run("list-secrets", "--json").json
    assert [row["required"] for row in data["secrets"]] == [True, True, False]
    assert len(data["failures"]) == 1


def test_options_that_name_one_thing_twice_are_refused(run):
    given = (
        "list-items",
        "--test",
        "with_data",
        "--dependency",
        "words=a.txt",
        "--dependency",
        "words=b.txt",
    )
    ended = run(*given)
    assert ended.code == 2
    assert "'words' is given twice" in ended.err


@pytest.mark.parametrize("text", ["words", "=a.txt", "words="])
def test_an_option_without_key_or_value_is_refused(run, text):
    ended = run("list-items", "--test", "with_data", "--dependency", text)
    assert ended.code == 2
    assert "is not KEY=PATH, or TEST:KEY=PATH" in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("given", "seed"), [("7", 7), ("-7", -7), ("7a", "7a"), ("--5", "--5"), ("1_0", "1_0")]
)
def test_a_seed_is_a_number_where_it_can_be(run, given, seed):
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "-m", "1", f"--random={given}")
    assert ended.code == 0
    (row,) = run("runs", "--json").json["runs"]
    manifest = json.loads(Path(row["path"], "run.json").read_text(encoding="utf-8"))
    assert manifest["options"]["sut_options"] == {"random": seed}


def test_the_last_runs_are_the_latest(run, here):
    for _ in range(3):
        run("run-test", "--sut", "echo", "--test", "judged")
    rows = run("runs", "--json").json["runs"]
    assert [row["run_id"] for row in rows] == sorted(
        one.name for one in (here / "run_data" / "runs").iterdir()
    )
    assert run("runs", "-n", "2", "--json").json["runs"] == rows[1:]
    assert run("runs", "--last", "9", "--json").json["runs"] == rows
    assert run("runs", "--last", "0").code == 2


def test_a_run_whose_manifest_says_nothing_has_question_marks(run, ran):
    (ran / "record.json").unlink()
    (ran / "run.json").write_text("{}", encoding="utf-8")
    (row,) = run("runs", "--json").json["runs"]
    assert (row["test_uid"], row["sut_uid"], row["invocation_id"]) == ("?", "?", None)
    assert (row["state"], row["counts"], row["headline"]) == ("killed", None, "")


def test_runs_of_given_answers_are_told_apart_by_their_data_set(run, run_dataset, only_run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert run_dataset("--dataset", "good.csv").code == 0
    digest = load_record(only_run()).dataset.digest
    (row,) = run("runs", "--json").json["runs"]
    assert row["dataset"] == {"name": "good", "digest": digest}
    assert run("runs").out.splitlines()[1].split()[1:3] == ["good", "app"]
    manifest = json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    (only_run() / "run.json").write_text(json.dumps(manifest | {"sut_uid": GIVEN}), encoding="utf-8")
    assert f"good ({DatasetReference(name='good', digest=digest)})" in run("runs").out


def test_many_failures_of_a_kind_are_counted_and_some_are_named(run, here):
    plugin = here / "plugin.py"
    text = plugin.read_text(encoding="utf-8").replace('number in ("3", "4")', 'number != "3"')
    plugin.write_text(text.replace("cannot answer {number}", "cannot answer"), encoding="utf-8")
    run("run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0", "--concurrency", "1")
    (row,) = run("runs", "--json").json["runs"]
    lines = run("show", row["run_id"], "--failures").out.split("\n")
    (more,) = (line for line in lines if "failed alike" in line)
    assert more.startswith("  8 more failed alike: n1, n2, n4")
    assert more.endswith(", ...")
    assert lines[lines.index(more) + 1 :] == ["", "9 failed items, 1 kind of failure.", ""]


def test_what_is_below_a_threshold_is_shown_with_what_was_measured(run, run_dataset, only_run):
    run_dataset("--dataset", "bad.csv", metrics=["exact_match", "length?threshold=5"])
    ended = run("show", only_run().name, "--failures", plugin=False)
    assert ended.err == ""
    assert ended.out.split("\n")[0].startswith("3. ")
    assert ended.out.count("NOT PASSED") == 1
    assert ended.out.endswith("  NOT PASSED: ExactMatchMetric = 0\n\n0 failed items, 1 below a threshold.\n")
    (record,) = run("show", only_run().name, "--failures", "--json", plugin=False).json["records"]
    assert [one["index"] for one in record["test_item_records"]] == [2]
    assert record["test_item_exceptions"] == []


def test_failures_that_the_journal_lost_are_told(run, ran):
    journal = ran / "items.jsonl"
    kept = [line for line in journal.read_bytes().splitlines(keepends=True) if b"cannot answer 4" not in line]
    journal.write_bytes(b"".join(kept))
    ended = run("show", ran.name, "--failures")
    assert ended.out.endswith("1 failed item.\n")
    assert "the record counts 2 of them, but the run's journal holds 1." in " ".join(ended.err.split())


SEVERAL_PROMPTS = """

class Several(Numbers):
    def make_test_items(self, dependencies):
        chat = mg.ChatPrompt([mg.ChatMessage("system", "be kind"), mg.ChatMessage("user", "number 0")])
        prompts = [mg.PromptWithContext(chat, context={"answer": 42}), mg.PromptWithContext("number 3")]
        yield mg.TestItem(prompts, id="both")


@mg.hookimpl(specname="modelgauge_register_tests")
def several(register):
    register("several", Several)
"""


def test_each_prompt_of_an_item_that_failed_is_shown_once(run, here):
    plugin = here / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + SEVERAL_PROMPTS, encoding="utf-8")
    run("run-test", "--sut", "flaky", "--test", "several", "--max-retries", "0")
    (row,) = run("runs", "--json").json["runs"]
    shown = run("show", row["run_id"], "--items").out
    assert shown.split("\n")[:8] == [
        "1. both",
        "  prompt",
        "    [system] be kind",
        "    [user] number 0",
        "  answer",
        "    42",
        "  completion",
        "    flaky",
    ]
    assert shown.count("  prompt\n    number 3\n") == 1
    assert "\n\n  FAILED at sut (flaky)" not in shown
    assert shown.count("be kind") == 1
    assert "measured" not in shown


@pytest.mark.parametrize("is_there", [True, False])
def test_report_opens_its_page_or_says_that_there_is_no_browser(run, only_run, monkeypatch, is_there):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or is_there)
    run("run-test", "--sut", "echo", "--test", "numbers")
    ended = run("report", "latest", "--open")
    address = (only_run() / "report.html").as_uri()
    assert (ended.code, opened) == (0, [address])
    assert (f"No browser was found. The page is at {address}" in ended.err) is not is_there

"""`cache verify` and `cache explain`; `stats` and `clear` are with the commands that look."""

import json
import sqlite3

import pytest

from modelgauge.cache.leases import Leases


@pytest.fixture
def filled(run, here):
    """A cache with ten answers of `echo`, and the judgements of two."""
    run("run-test", "--sut", "echo", "--test", "numbers", "--test", "judged")
    return here / "run_data" / "cache"


def damage(cache, number):
    with sqlite3.connect(cache / "cache.db") as database:
        for (row,) in database.execute(f"SELECT rowid FROM Cache LIMIT {number}").fetchall():
            database.execute("UPDATE Cache SET value = substr(value, 1, 20) WHERE rowid = ?", (row,))
    database.close()


# --- verify ------------------------------------------------------------------------------------------


def test_a_sound_cache_is_said_to_be_sound(run, filled):
    ended = run("cache", "verify")
    assert ended.code == 0
    assert "11 responses, all sound" in ended.out
    data = run("cache", "verify", "--json").json
    assert (data["sound"], data["damaged"], data["structure"], data["quarantine"]) == (11, 0, "ok", None)


def test_damaged_entries_exit_with_1_and_go_to_the_quarantine(run, filled, here):
    damage(filled, 2)
    ended = run("cache", "verify")
    assert ended.code == 1
    assert "9 sound responses, 2 damaged" in ended.out
    assert "The file itself" not in ended.out
    assert "run_data/cache/quarantine" in ended.out.replace("\\", "/")
    assert "WARNING modelgauge.cache" in ended.err
    assert len((filled / "quarantine" / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert run("cache", "verify").code == 0
    assert run("cache", "stats", "--json").json["quarantined"] == 2
    assert "2 damaged entries in" in run("cache", "stats").out
    assert "SUT 2 made" in run("run-test", "--sut", "echo", "--test", "numbers").out


def break_file(folder):
    content = bytearray((folder / "cache.db").read_bytes())
    content[:100] = bytes(100)
    (folder / "cache.db").write_bytes(content)


def test_a_damaged_file_exits_with_1(run, filled):
    break_file(filled)
    ended = run("cache", "verify", "--json")
    assert ended.code == 1
    assert ended.json["quarantine"].endswith("quarantine")
    assert run("cache", "verify").code == 0


def test_a_damaged_file_is_said_to_be_replaced_by_a_new_one(run, filled):
    break_file(filled)
    ended = run("cache", "verify")
    assert ended.code == 1
    assert "The file itself was damaged" in ended.out


@pytest.mark.parametrize("args", [("verify",), ("explain", "--sut", "echo", "--prompt", "number 1")])
def test_looking_does_not_make_a_cache(run, here, args):
    assert run("cache", *args).code == 0
    assert not (here / "run_data").exists()


# --- explain -----------------------------------------------------------------------------------------


def test_an_answer_that_is_there_is_found_without_a_call(run, filled, calls):
    ended = run("cache", "explain", "--sut", "echo", "--prompt", "number 1", "--json")
    assert ended.code == 0
    assert ended.json["hit"] is True
    assert (
        "The answer is in the cache" in run("cache", "explain", "--sut", "echo", "--prompt", "number 1").out
    )
    assert calls() == []


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (
            ("--sut", "echo", "--prompt", "number 1", "--temperature", "0"),
            {"request (the prompt's text is the same)": ("number 1|0.0|None", "number 1|None|None", None)},
        ),
        (
            ("--sut", "echo?answer=no", "--prompt", "number 1"),
            {"uid": ("echo?answer=no", "echo", None), "argument answer": ("no", None, "cached")},
        ),
    ],
)
def test_the_parts_that_differ_from_the_nearest_are_named(run, filled, args, parts, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    differences = run("cache", "explain", *args, "--json").json["differences"]
    assert {
        difference["part"]: (difference["asked"], difference["cached"], difference["absent"])
        for difference in differences
    } == parts
    shown = run("cache", "explain", *args).out
    assert "The answer is not in the cache" in shown
    (head,) = [line for line in shown.splitlines() if "IN THE CACHE" in line]
    assert head.startswith("PART  ")
    for part, (asked, _, absent) in parts.items():
        (line,) = [line for line in shown.splitlines() if line.startswith(part)]
        assert line.index(f'"{asked}"') == head.index("ASKED")
        assert ("absent" in line) == bool(absent)


def test_a_difference_far_into_a_long_text_is_shown(run, here):
    (here / "long.json").write_text(json.dumps([{"role": "user", "content": "x" * 500 + " one"}]))
    (here / "other.json").write_text(json.dumps([{"role": "user", "content": "x" * 500 + " two"}]))
    run("run-test", "--sut", "echo", "--test", "numbers", "-m", "1")
    plugin = (
        (here / "plugin.py")
        .read_text(encoding="utf-8")
        .replace('[f"number {number}"]', '["x" * 500 + " one"]')
    )
    (here / "plugin.py").write_text(plugin, encoding="utf-8")
    run("run-test", "--sut", "text_only", "--test", "numbers", "-m", "1")
    shown = run("cache", "explain", "--sut", "text_only", "--prompt", "x" * 500 + " two").out
    assert 'xxxx two"' in shown
    assert 'xxxx one"' in shown
    assert max(map(len, shown.splitlines())) < 250


def test_a_chat_is_explained_too(run, filled, here):
    chat = [{"role": "user", "content": "number 1|None|None"}]
    (here / "chat.json").write_text(json.dumps(chat), encoding="utf-8")
    assert run("cache", "explain", "--sut", "echo", "--chat", "chat.json", "--json").json["hit"] is True


def test_annotators_are_explained_with_what_they_would_judge(run, filled):
    judged = ("--annotator", "yes_no", "--prompt", "number 0", "--completion", "yes", "--context")
    assert run("cache", "explain", *judged, '{"even": true}', "--json").json["hit"] is False
    asked = ("--annotator", "yes_no", "--prompt", "number 0", "--completion", "yes", "--json")
    (difference,) = run("cache", "explain", *judged[:-1], "--context", "3", "--json").json["differences"]
    assert (difference["part"], difference["asked"], difference["cached"]) == ("request: context", 3, None)
    assert run("cache", "explain", *asked).json["hit"] is True


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--prompt", "x"), "--sut UID or --annotator UID"),
        (("--sut", "echo", "--annotator", "yes_no", "--prompt", "x"), "--sut UID or --annotator UID"),
        (("--sut", "echo"), "--prompt TEXT or --chat FILE"),
        (("--sut", "echo", "--prompt", "x", "--completion", "y"), "--completion is for annotators"),
        (("--annotator", "yes_no", "--prompt", "x"), "--completion TEXT"),
        (("--annotator", "yes_no", "--prompt", "x", "--completion", "y", "--context", "{"), "not JSON"),
        (("--sut", "ecko", "--prompt", "x"), "Did you mean 'echo'?"),
        (("--sut", "secretive", "--prompt", "x"), "ACME_TOKEN"),
    ],
)
def test_wrong_usage_is_told(run, here, args, told):
    ended = run("cache", "explain", *args)
    assert ended.code == 2
    assert told in ended.err


def test_a_call_with_a_secret_in_its_request_is_said_to_be_never_cached(run, here, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "canary-0123456789")
    run("run-test", "--sut", "secretive", "--test", "numbers")
    ended = run("cache", "explain", "--sut", "secretive", "--prompt", "say canary-0123456789")
    assert ended.code == 2
    assert "never cached: 'secretive' with the secret acme.key in the request" in ended.err
    assert "canary" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("cacheable = False", "'text_only' says that it is not cacheable"),
        ("is_cheap = True", "asking 'text_only' costs next to nothing"),
    ],
)
def test_what_is_never_cached_is_told(run, here, said, told):
    text = (here / "plugin.py").read_text(encoding="utf-8")
    text = text.replace(
        "class TextOnly(mg.PromptResponseSUT[str, str]):",
        f"class TextOnly(mg.PromptResponseSUT[str, str]):\n    {said}",
    )
    (here / "plugin.py").write_text(text, encoding="utf-8")
    ended = run("cache", "explain", "--sut", "text_only", "--prompt", "x")
    assert ended.code == 2
    assert told in ended.err


def test_of_a_judge_metric_only_the_answers_of_its_judges_are_cached(run, here):
    asked = ("--annotator", "answer_relevancy?model=echo", "--prompt", "x", "--completion", "y")
    ended = run("cache", "explain", *asked)
    assert ended.code == 2
    assert "computed in each run, from the answers of 'echo'" in ended.err


def test_that_another_process_uses_it_is_told(run, filled):
    assert len(run("cache", "stats").out.splitlines()) == 1
    others = Leases(filled)
    try:
        assert run("cache", "stats").out.endswith("\nAnother process is using it.\n")
        assert run("cache", "stats", "--json").json["shared"] is True
    finally:
        others.close()


def test_an_empty_cache_has_no_nearest_entry(run):
    shown = run("cache", "explain", "--sut", "echo", "--prompt", "x").out.splitlines()
    data = run("cache", "explain", "--sut", "echo", "--prompt", "x", "--json").json
    assert shown == [f"The answer is not in the cache: {data['key']}", "The cache is empty."]
    assert (data["uid"], data["hit"], data["nearest"]) == ("echo", False, None)


def test_the_number_of_parts_and_the_nearest_entry_are_told(run, filled):
    asked = ("cache", "explain", "--sut", "echo?answer=no", "--prompt", "number 1")
    nearest = run(*asked, "--json").json["nearest"]
    assert run(*asked).out.splitlines()[1:3] == [f"The nearest entry differs in 2 parts: {nearest}", ""]


def test_the_options_of_the_prompt_reach_an_annotator_that_is_explained(run, here):
    plugin = here / "plugin.py"
    text = plugin.read_text(encoding="utf-8")
    options = '"context": prompt.context, "temperature": prompt.prompt.options.temperature'
    plugin.write_text(text.replace('"context": prompt.context', options), encoding="utf-8")
    run("run-test", "--sut", "echo", "--test", "judged")
    asked = ("--annotator", "yes_no", "--prompt", "number 0", "--completion", "yes", "--json")
    assert run("cache", "explain", *asked).json["hit"] is True
    (difference,) = run("cache", "explain", *asked, "--temperature", "0.5").json["differences"]
    assert (difference["part"], difference["asked"], difference["cached"]) == (
        "request: temperature",
        0.5,
        None,
    )


# --- forget ------------------------------------------------------------------------------------------


def test_forgetting_a_run_removes_its_answers_and_judgements_after_a_yes(run, filled, calls):
    made = len(calls())
    stored = run("cache", "stats", "--json").json["entries"]
    found = run("cache", "forget", "latest", "--dry-run", "--json").json
    assert 0 < found["found"] <= stored
    assert found["removed"] == 0
    refused = run("cache", "forget", "latest", input="n\n")
    assert (refused.code, "Nothing was removed" in refused.err) == (2, True)
    ended = run("cache", "forget", "latest", input="y\n")
    assert f"Removed {found['found']} response" in ended.out
    assert run("cache", "stats", "--json").json["entries"] == stored - found["found"]
    assert "Removed 0 responses" in run("cache", "forget", "latest", "--yes").out
    assert len(calls()) == made


def test_forgetting_items_removes_theirs_alone(run, here, calls):
    run("run-test", "--sut", "echo", "--test", "numbers")
    [journal] = (here / "run_data" / "runs").glob("*/items.jsonl")
    ids = [json.loads(line)["test_item"]["id"] for line in journal.read_text(encoding="utf-8").splitlines()]
    ended = run("cache", "forget", "latest", "--item", ids[0], "--item", ids[1], "--yes")
    assert "Removed 2 responses" in ended.out
    calls().clear()
    assert "SUT 2 made, 8 cached" in run("run-test", "--sut", "echo", "--test", "numbers").out


def test_unknown_item_is_named_and_nothing_forgotten(run, filled):
    ended = run("cache", "forget", "latest", "--item", "no such", "--yes")
    assert (ended.code, "No item 'no such' has a record" in ended.err) == (2, True)
    assert run("cache", "stats", "--json").json["entries"] == 11


def test_answers_are_forgotten_in_the_cache_that_the_run_used(run, here):
    run("run-test", "--sut", "echo", "--test", "numbers", "--cache", "shared")
    run("run-test", "--sut", "echo", "--test", "numbers")
    [shared] = [
        path for path in (here / "run_data" / "runs").iterdir() if "shared" in (path / "run.json").read_text()
    ]
    ended = run("cache", "forget", str(shared), "--yes")
    assert f"from {here / 'shared'}" in ended.out.replace("\n", "")
    assert run("cache", "stats", "--json").json["entries"] == 10
    assert run("cache", "stats", "--cache", "shared", "--json").json["entries"] == 0

"""The command that shows what a test will send."""

import json

import pytest

MORE = """

class Asking(Numbers):
    def make_test_items(self, dependencies):
        options = mg.SUTOptions(max_tokens=7, stop_sequences=["a"])
        yield mg.TestItem([mg.TextPrompt("only one\\nof two lines", options)], id="first")
        chat = mg.ChatPrompt([mg.ChatMessage("system", "be kind"), mg.ChatMessage("user", "hello")])
        yield mg.TestItem(
            [mg.PromptWithContext(chat, source_id="a"), mg.PromptWithContext(mg.TextPrompt("bare"))],
            id="second",
        )


@mg.hookimpl(specname="modelgauge_register_tests")
def more_tests(register):
    register("asking", Asking)
"""


@pytest.fixture
def asking(here):
    plugin = here / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + MORE, encoding="utf-8")


def test_prompts_are_shown_with_their_ids_roles_and_options(run, asking):
    assert run("list-items", "--test", "asking").out.split("\n") == [
        "1. first",
        "    only one",
        "    of two lines",
        "  options: max_tokens=7, stop_sequences=['a']",
        "",
        "2. second",
        "  prompt 1 (a)",
        "    [system] be kind",
        "    [user] hello",
        "  prompt 2",
        "    bare",
        "",
        "2 items.",
        "",
    ]
    assert run("list-items", "--test", "asking", "-m", "1").out.endswith("\n1 item.\n")


def test_items_as_json_hold_what_is_sent(run, asking):
    ended = run("list-items", "--test", "asking", "--json")
    assert list(ended.json) == ["test_uid", "items"]
    first, second = ended.json["items"]
    assert first["prompts"][0]["prompt"]["options"]["max_tokens"] == 7
    assert len(second["prompts"]) == 2
    lines = ended.out.split("\n")
    assert lines[0] == '{"test_uid": "asking", "items": ['
    assert json.loads(lines[1].removesuffix(",")) == first


def test_a_test_without_items_has_none_to_show(run, here):
    plugin = here / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8").replace("items = 10", "items = 0"), encoding="utf-8")
    assert run("list-items", "--test", "numbers").out == "0 items.\n"
    assert run("list-items", "--test", "numbers", "--json").json == {"test_uid": "numbers", "items": []}


def test_json_of_items_that_do_not_end_says_how_many_were_read(run, here, monkeypatch):
    now = iter(range(10**6))
    monkeypatch.setattr("modelgauge.engine.items.source.monotonic", lambda: next(now))
    plugin = here / "plugin.py"
    plugin.write_text(
        plugin.read_text(encoding="utf-8").replace("items = 10", "items = 100"), encoding="utf-8"
    )
    ended = run("list-items", "--test", "numbers", "--json")
    assert len(ended.json["items"]) == 100
    assert (
        "--json prints all or none of the items of 'numbers', so it reads them all first: 11 so far"
        in ended.err
    )


def test_json_is_whole_or_not_there(run, asking, here):
    """Also when a later part cannot be read, made or found: a script never gets half an object."""
    assert run("run-test", "--test", "numbers", "--sut", "echo").code == 0
    plugin = here / "plugin.py"
    text = plugin.read_text(encoding="utf-8")
    plugin.write_text(text.replace('id="second"', "id=1 / 0"), encoding="utf-8")
    failing = run("list-items", "--test", "asking", "--json")
    missing = run("show", "latest", "--item", "1", "--item", "nosuch", "--json", plugin=False)
    (journal,) = here.rglob("items.jsonl")
    journal.write_bytes(journal.read_bytes()[:-30] + b"?" * 29 + b"\n")
    damaged = run("show", "latest", "--items", "--json", plugin=False)
    for ended, code, problem in (
        (failing, 4, "division by zero"),
        (missing, 2, "no item 'nosuch'"),
        (damaged, 2, "items.jsonl"),
    ):
        assert (ended.code, ended.out) == (code, "")
        assert problem in ended.err

"""The command that lists, fetches and adds what tests need."""

import hashlib

import pytest

MORE = """

class TwoFiles(WithData):
    def get_dependencies(self):
        return {
            "left": mg.WebData("https://nowhere.invalid/left.txt"),
            "right": mg.WebData("https://nowhere.invalid/right.txt"),
        }


@mg.hookimpl(specname="modelgauge_register_tests")
def more_tests(register):
    register("two_files", TwoFiles)
"""
VERSION = hashlib.sha256(b"one two").hexdigest()


WHEN_USED = """

class ByLanguage(WithData):
    def get_dependencies(self):
        return {
            language: mg.WebData(f"https://nowhere.invalid/{language}.txt", when_used=True) for language in ("de", "fr")
        }

    def make_test_items(self, dependencies):
        yield mg.TestItem(dependencies["de"].read_text())


@mg.hookimpl(specname="modelgauge_register_tests")
def test_by_language(register):
    register("by_language", ByLanguage)
"""


def test_data_that_is_fetched_when_used_is_listed_and_not_needed_before(run, here, monkeypatch):
    plugin = here / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + WHEN_USED, encoding="utf-8")
    (here / "words.txt").write_text("one two", encoding="utf-8")
    assert add(run, "de", "words.txt", test="by_language").code == 0
    out = run("dependencies", "list", "--test", "by_language").out
    assert [row[2:-1] for row in rows(out)[1:3]] == [["here"], ["fetched", "when", "used"]]
    found = run("dependencies", "list", "--test", "by_language", "--json").json["dependencies"]
    assert [(row["key"], row["here"], row["when_used"]) for row in found] == [
        ("de", True, True),
        ("fr", False, True),
    ]
    ended = run("run-test", "--test", "by_language", "--sut", "echo", "--offline", "--json")
    assert ended.code == 0
    assert ended.json["records"][0]["dependency_versions"] == {"de": VERSION}
    monkeypatch.setenv("MODELGAUGE_OFFLINE", "1")
    fetched = run("dependencies", "fetch", "--test", "by_language")
    assert fetched.code != 0
    assert "'fr' of 'by_language'" in fetched.err


@pytest.fixture
def words(here):
    plugin = here / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + MORE, encoding="utf-8")
    (here / "words.txt").write_text("one two", encoding="utf-8")


def add(run, *args, test="with_data"):
    return run("dependencies", "add", "--test", test, *args)


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_where_nothing_is_kept_or_needed_that_is_said(run):
    assert run("dependencies", "list").out == "No data is stored in run_data.\n"
    assert run("dependencies", "list", "--test", "numbers").out == "These tests need no data.\n"
    assert run("dependencies", "fetch", "--test", "numbers").out == "Nothing was fetched.\n"
    assert run("dependencies", "list", "--json").json == {"dependencies": []}


def test_what_is_kept_is_a_table_with_sizes_and_short_versions(run, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    added = add(run, "words.txt")
    path = run("dependencies", "list", "--json").json["dependencies"][0]["path"]
    assert added.out == f"Added words of with_data, version {VERSION[:12]}: {path}\n"
    listed = run("dependencies", "list").out
    assert max(map(len, listed.splitlines())) <= 80
    head, (*facts, start), *rest = rows(listed)
    assert head == ["TEST", "KEY", "VERSION", "SIZE", "PATH"]
    assert facts == ["with_data", "words", VERSION[:12], "7", "B"]
    assert "".join([start, *(part for row in rest for part in row)]) == path
    assert rows(run("dependencies", "fetch", "--test", "with_data").out) == [
        ["TEST", "KEY", "VERSION", "PATH"],
        ["with_data", "words", VERSION[:12], path],
    ]


def test_what_is_added_is_told_as_json(run, words):
    (row,) = add(run, "words.txt", "--json").json["dependencies"]
    (kept,) = run("dependencies", "list", "--json").json["dependencies"]
    assert row == {key: kept[key] for key in ("test_uid", "key", "version", "path")}
    assert row["version"] == VERSION
    assert kept["bytes"] == 7


def test_what_a_test_needs_is_told_with_its_state_and_the_fix(run, words):
    add(run, "left", "words.txt", test="two_files")
    shown = run("dependencies", "list", "--test", "two_files").out
    assert [row[:3] for row in rows(shown)[:3]] == [
        ["TEST", "KEY", "STATE"],
        ["two_files", "left", "here"],
        ["two_files", "right", "missing"],
    ]
    assert "https://nowhere.invalid/right.txt" in shown
    left, right = run("dependencies", "list", "--test", "two_files", "--json").json["dependencies"]
    assert (left["here"], left["problem"], right["here"]) == (True, None, False)
    assert f"\n\n{right['problem']}\n" in shown
    assert left.keys() == {"test_uid", "key", "source", "sha256", "when_used", "here", "problem"}


def test_of_several_tests_each_failure_is_told(run, words):
    tests = [part for name in ("with_data", "numbers", "two_files") for part in ("--test", name)]
    ended = run("dependencies", "fetch", *tests, env={"MODELGAUGE_OFFLINE": "1"})
    assert ended.code != 0
    assert ended.out == "Nothing was fetched.\n"
    assert ended.err.count("Error: ") == 2
    assert ended.err.index("words") < ended.err.index("left")


def test_a_failure_does_not_hide_what_was_fetched(run, words):
    add(run, "words.txt")
    tests = ("--test", "two_files", "--test", "with_data")
    ended = run("dependencies", "fetch", *tests, env={"MODELGAUGE_OFFLINE": "1"})
    assert ended.code != 0
    assert [row[:2] for row in rows(ended.out)] == [["TEST", "KEY"], ["with_data", "words"]]


@pytest.mark.parametrize(
    "args",
    [("left", "words.txt", "--key", "left"), ("left", "right", "words.txt")],
)
def test_a_key_is_given_once(run, words, args):
    ended = add(run, *args, test="two_files")
    assert ended.code == 2
    assert "Give one FILE, and its key once." in ended.err


@pytest.mark.parametrize(
    ("test", "args", "told"),
    [
        ("two_files", ("words.txt",), "Which dependency of 'two_files' is it? Its keys are: left, right."),
        ("two_files", ("lefty", "words.txt"), "'two_files' has no dependency 'lefty'. Did you mean 'left'?"),
        ("numbers", ("words.txt",), "It needs no data."),
        ("numbers", ("x", "words.txt"), "'numbers' has no dependency 'x'. It needs no data."),
    ],
)
def test_a_key_that_the_test_lacks_is_told_with_those_that_it_has(run, words, test, args, told):
    ended = add(run, *args, test=test)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())


def test_the_sources_of_one_content_are_listed_one_after_the_other(run, words, here):
    add(run, "words.txt")
    plugin = here / "plugin.py"
    text = plugin.read_text(encoding="utf-8").replace("invalid/words.txt", "invalid/more.txt")
    plugin.write_text(text, encoding="utf-8")
    add(run, "words.txt")
    (kept,) = run("dependencies", "list", "--json").json["dependencies"]
    assert kept["source"] == "https://nowhere.invalid/words.txt, https://nowhere.invalid/more.txt"
    assert (kept["test_uid"], kept["key"], kept["version"]) == ("with_data", "words", VERSION)


def test_a_test_that_is_named_twice_is_listed_once_and_a_file_may_lie_at_home(run, words, here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.setenv("USERPROFILE", str(here))
    assert add(run, "~/words.txt").code == 0
    twice = ("--test", "with_data", "--test", "with_data", "--json")
    for command in ("list", "fetch"):
        (row,) = run("dependencies", command, *twice).json["dependencies"]
        assert row["key"] == "words"


WITH_SECRETS = """

class Guarded(WithData):
    def __init__(self, uid, key):
        super().__init__(uid)


@mg.hookimpl(specname="modelgauge_register_tests")
def guarded_tests(register):
    register("guarded", Guarded, mg.InjectSecret(Key))
    register("guarded2", Guarded, mg.InjectSecret(Other))
"""


def test_the_secrets_of_all_tests_are_asked_for_at_once(run, here):
    plugin = here / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + WITH_SECRETS, encoding="utf-8")
    for command in ("list", "fetch"):
        ended = run("dependencies", command, "--test", "guarded", "--test", "guarded2")
        assert ended.code == 2
        assert "ACME_TOKEN" in ended.err
        assert "OTHER_KEY" in ended.err


GROUP = """
import modelgauge as mg
from plugin import WithData


@mg.hookimpl
def modelgauge_register_tests(register):
    register("of_a", WithData)
    register("of_b", WithData)
    register.group("ofs", ["of_a", "of_b"])
"""


def test_groups_and_patterns_stand_for_their_tests(run, words, here):
    (here / "group.py").write_text(GROUP, encoding="utf-8")
    for names in (["ofs"], ["of_*"], ["of_b", "ofs"]):
        named = [part for name in names for part in ("--test", name)]
        listed = run("dependencies", "list", "--plugin", "group.py", *named, "--json").json["dependencies"]
        assert sorted(row["test_uid"] for row in listed) == ["of_a", "of_b"]
    ended = run("dependencies", "fetch", "--plugin", "group.py", "--test", "ofs")
    assert ended.code != 0
    assert "'of_a'" in ended.err
    assert "'of_b'" in ended.err
    assert "No test matches 'x*'" in run("dependencies", "list", "--test", "x*").err
    ended = run("dependencies", "add", "--plugin", "group.py", "--test", "ofs", "words.txt")
    assert "'ofs' is a group of 2 tests, and one is wanted." in ended.err

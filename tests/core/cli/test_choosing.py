"""`--test` and `--sut` with groups, patterns and labels: which pairs are run, and what tables call them."""

import json
import re

import pytest

MORE = """
import modelgauge as mg
from modelgauge.interfaces.sut import AcceptsChatPrompt
from plugin import Numbers


class Chat(Numbers):
    requires_sut_capabilities = (AcceptsChatPrompt,)


@mg.hookimpl
def modelgauge_register_tests(register):
    register("num_a", Numbers)
    register("num_chat", Chat)
    register.group("nums", ["num_a", "num_chat"])
"""


@pytest.fixture
def choose(run, here):
    (here / "more.py").write_text(MORE, encoding="utf-8")

    def choose(*args):
        return run("run-test", "--plugin", "more.py", "--no-progress-bar", *args)

    return choose


def said(ended):
    return " ".join(ended.err.split())


def pairs(ended):
    return [(one["test_uid"], one["sut_uid"]) for one in ended.json["records"]]


def test_a_pattern_and_a_group_run_all_that_they_stand_for(choose):
    ended = choose("--test", "num_*", "--sut", "ech*", "--json")
    assert pairs(ended) == [("num_a", "echo"), ("num_chat", "echo")]
    assert pairs(choose("--test", "nums", "--test", "num_a", "--sut", "echo", "--json")) == pairs(ended)


@pytest.mark.filterwarnings("default:1 pair that does not fit")
def test_pairs_that_do_not_fit_are_left_out_and_listed_unless_both_were_named(choose):
    ended = choose("--test", "nums", "--sut", "text_only", "--json")
    assert ended.code == 0
    assert pairs(ended) == [("num_a", "text_only")]
    assert "1 pair that does not fit is left out: num_chat on text_only. " in said(ended)
    assert "needs AcceptsChatPrompt" in said(ended)
    (left_out,) = map(dict, ended.json["left_out"])
    assert "needs AcceptsChatPrompt" in left_out.pop("reason")
    assert left_out == {"test_uid": "num_chat", "sut_uid": "text_only", "sut_label": None}
    planned = choose("--test", "nums", "--sut", "text_only", "--json", "--dry-run").json
    assert planned["left_out"] == ended.json["left_out"]
    ended = choose("--test", "num_chat", "--sut", "text_only")
    assert ended.code == 2
    assert "needs AcceptsChatPrompt" in said(ended)
    assert choose("--test", "num_chat", "--test", "nums", "--sut", "text_only").code == 2
    assert choose("--test", "num_cha*", "--sut", "text_only").code == 2  # nothing would be left


def test_a_pattern_without_a_match_says_what_is_near(choose):
    ended = choose("--test", "nun_*", "--sut", "echo")
    assert ended.code == 2
    assert "No test matches 'nun_*'. Did you mean 'num_*'" in said(ended)


def test_the_groups_are_listed(run, here, choose):
    assert "nums   2 tests  " in run("list-tests", "--plugin", "more.py").out
    rows = run("list-tests", "--plugin", "more.py", "--json").json["tests"]
    assert {row["uid"]: row["groups"] for row in rows if row["groups"]} == {
        "num_a": ["nums"],
        "num_chat": ["nums"],
    }
    assert "Did you mean 'nums'" in choose("--test", "nusm", "--sut", "echo").err


def test_a_label_stands_in_tables_and_the_uid_in_records(choose, run, here):
    named = ("--test", "numbers", "--sut", "always yes=echo?answer=yes", "--sut", "no=echo?answer=no")
    ended = choose(*named)
    assert "always yes" in ended.out
    assert "echo?answer" not in ended.out
    listed = run("runs", "--sut", "no", "--json").json["runs"]
    assert [(row["sut_uid"], row["sut_label"]) for row in listed] == [("echo?answer=no", "no")]
    assert "always yes" in run("runs").out
    record = json.loads((here / listed[0]["path"] / "record.json").read_text(encoding="utf-8"))
    assert (record["sut_uid"], record["sut_label"]) == ("echo?answer=no", "no")
    for name in ("no", "echo?answer=no"):
        compared = run("compare", "latest", "--baseline-sut", name)
        assert "Is always yes better than no on numbers?" in compared.out
    assert "numbers on no" in run("show", listed[0]["run_id"]).out
    assert "always yes" in choose(*named, "--dry-run").out


def test_a_run_that_is_done_again_keeps_its_label(choose, run, here):
    choose("--test", "numbers", "--sut", "small=echo", "--max-calls", "3")
    for verb in (("resume", "latest", "--max-calls", "20"), ("rescore", "latest")):
        again = run(*verb, "--no-progress-bar", "--json").json["records"]
        assert [(one["sut_uid"], one["sut_label"]) for one in again] == [("echo", "small")]


def test_two_suts_with_one_label_are_an_error(choose):
    ended = choose("--test", "numbers", "--sut", "x=echo", "--sut", "x=flaky")
    assert ended.code == 2
    assert "'x' is the name of two SUTs: echo and flaky. Give each a label of its own." in said(ended)


def test_several_pairs_have_one_table_with_the_means_of_groups_and_what_differs(choose, run):
    ended = choose("--test", "nums", "--sut", "yes=echo", "--sut", "no=echo?answer=no", "--no-report")
    lines = ended.out.split("\n")
    assert len(lines) <= 24
    assert lines[0] == "2 tests on 2 SUTs"
    assert [" ".join(line.split()) for line in lines if line.startswith("nums")] == [
        "nums, mean of 2 yes 1.00 0.72 to 1.00 20 0",
    ]
    assert " no 0.00 0.00 to 0.28 20 0 " in " ".join(ended.out.split())
    assert "num_a: no is lower than yes by 100 points" in " ".join(ended.out.split())
    assert "num_a on yes" not in ended.out
    shown = run("show", "latest").out
    assert shown.split("calls")[0] == ended.out.split("calls")[0]
    details = run("show", "latest", "-v").out
    assert [line for line in details.split("\n") if line.startswith("num_")][-1] == "num_chat on no"
    assert (
        "num_chat on no\n"
        in choose("--test", "nums", "--sut", "yes=echo", "--sut", "no=echo?answer=no", "-v").out
    )
    assert "differs" not in choose("--test", "nums", "--sut", "echo").out


def test_a_page_shows_the_means_of_groups_of_each_command(choose, run, here):
    for _ in range(2):
        choose("--test", "nums", "--sut", "yes=echo", "--sut", "no=echo?answer=no", "--no-report")
    assert run("report", "latest~1", "latest", "-o", "page.html").code == 0
    page = (here / "page.html").read_text(encoding="utf-8")
    means = re.findall(r"nums, mean of 2 <small>(\w+)</small>.*?</svg></td><td.*?>accuracy (\S+) \(", page)
    assert means == 2 * [("yes", "1.00"), ("no", "0.00")]


def test_a_result_below_a_threshold_fails_the_command(choose):
    named = ("--test", "nums", "--sut", "yes=echo", "--sut", "no=echo?answer=no")
    assert choose(*named, "--threshold", "accuracy=0").code == 0
    ended = choose(*named, "--threshold", "num_a:accuracy=0.5", "--threshold", "nums:accuracy=0.9")
    assert ended.code == 1
    assert [line for line in ended.err.split("\n") if line.startswith("Failed")] == [
        "Failed: num_a on no: accuracy is 0, below 0.5.",
        "Failed: nums on no: accuracy is 0, below 0.9.",
    ]
    ended = choose(*named, "--threshold", "nums:accuracy=0.9", "--json")
    assert [(one["sut"], one["value"], one["passed"]) for one in ended.json["thresholds"]] == [
        ("yes", 1, True),
        ("no", 0, False),
    ]
    assert [(one["group"], one["sut"], one["mean"]["value"]) for one in ended.json["groups"]] == [
        ("nums", "yes", 1),
        ("nums", "no", 0),
    ]
    ended = choose(*named, "--threshold", "acc=1")
    assert ended.code == 2
    assert "There is no result 'acc' for the threshold. The results are: accuracy" in said(ended)
    assert choose(*named, "--threshold", "accuracy=high").code == 2


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_threshold_of_another_test_is_refused_before_anything_is_asked(choose, run, here, dry):
    ended = choose("--test", "nums", "--sut", "echo", "--threshold", "num_b:accuracy=0.5", *dry)
    assert (ended.code, ended.out) == (2, "")
    assert "There is no test 'num_b' for the threshold of accuracy. Did you mean 'num_a' or" in said(ended)
    assert not [*here.glob("run_data/runs/*")]
    assert choose("--test", "num_a", "--sut", "echo", "--max-calls", "3").code == 4
    for command in ("resume", "rescore"):
        ended = run(command, "latest", "--plugin", "more.py", "--threshold", "nums:accuracy=0.5")
        assert (ended.code, ended.out) == (2, "")
        assert "There is no test 'nums' for the threshold of accuracy. Did you mean 'num_a'?" in said(ended)
    assert len([*here.glob("run_data/runs/*")]) == 1


def test_a_group_is_no_single_test(run, here, choose):
    ended = run("list-items", "--plugin", "more.py", "--test", "nums")
    assert "'nums' is a group of 2 tests, and one is wanted. Name one of them: num_a, num_chat." in said(
        ended
    )


def test_names_are_looked_at_before_anything_is_made_ready(choose, monkeypatch):
    monkeypatch.setattr("modelgauge.cli.app.App.runner", None)
    ended = choose("--test", "numberz", "--sut", "ecko")
    assert ended.code == 2
    assert "There is no test 'numberz'. Did you mean 'numbers'" in said(ended)
    assert "There is no SUT 'ecko'." in said(ended)
    ended = choose("--test", "numbers", "--sut", "echo", "--judge", "jugde")  # also one that nobody would ask
    assert (ended.code, "There is no SUT 'jugde'." in said(ended)) == (2, True)


SEVEN = """
import modelgauge as mg
from plugin import Numbers


class Seven(Numbers):
    items = 7


@mg.hookimpl
def modelgauge_register_tests(register):
    register("seven", Seven)


@mg.hookimpl
def modelgauge_register_suts(register):
    for name, right in (("old", 2), ("new", 6)):
        register(name, mg.FunctionSUT, lambda text, right=right: "yes" if int(text[-1]) < right else "no", version=1)
"""


def test_where_the_interval_alone_looks_like_a_finding_the_p_value_is_told(choose, here):
    (here / "seven.py").write_text(SEVEN, encoding="utf-8")
    out = " ".join(
        choose("--plugin", "seven.py", "--test", "seven", "--sut", "old", "--sut", "new").out.split()
    )
    assert "(difference 57 points, 1 to 84): " in out
    assert (
        "found 4 times in 5. The interval excludes 0, but the test is not significant: p is 0.12. calls"
        in out
    )


def test_a_name_of_another_kind_is_told_which_option_takes_it(run, here, choose):
    ended = choose("--test", "echo?answer=no", "--sut", "label=nums")
    assert ended.code == 2
    assert "'echo' is a SUT, and a test is wanted. --sut takes it." in said(ended)
    assert "'nums' is a test, and a SUT is wanted. --test takes it." in said(ended)
    ended = run("run-annotator", "--annotator", "numbers", "--prompt", "q", "--completion", "a")
    assert "'numbers' is a test, and an annotator is wanted. --test takes it." in said(ended)

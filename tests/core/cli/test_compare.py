"""`modelgauge compare` and `run-test --baseline`, on runs that are made here."""

import json
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from junitparser import JUnitXml

PLUGIN = """
import modelgauge as mg


class Sums(mg.PromptResponseTest):
    def make_test_items(self, dependencies):
        for number in range(40):
            hostile = "\\x1b[2J\\u202e ::error::x | <b>" if number == 3 else ""
            yield mg.TestItem(f"{number} + 1 = {hostile}", context=number + 1, id=f"sum {number}")

    def measure_quality(self, item):
        said = item.text.split()[0]
        return {"accuracy": said == str(item.context), "length": len(item.text)}


class Others(Sums):
    def make_test_items(self, dependencies):
        yield mg.TestItem("other", context=0, id="other")


def adder(wrong, fails=()):
    def add(text):
        number = int(text.split()[0])
        if number in fails:
            raise ValueError("cannot add")
        said = number + 1 + (number in wrong)
        return f"{said} \\x1b[31m::add-mask::{number}" if number == 3 else f"{said} it is"

    return add


@mg.hookimpl
def modelgauge_register_tests(register):
    register("sums", Sums)
    register("others", Others)


@mg.hookimpl
def modelgauge_register_suts(register):
    register("good", mg.FunctionSUT, adder({0}), version=1)
    register("bad", mg.FunctionSUT, adder(set(range(3, 20))), version=1)
    register("similar", mg.FunctionSUT, adder({1}), version=1)
    register("failing", mg.FunctionSUT, adder({0}, {5, 6}), version=1)
    register("other", mg.FunctionSUT, lambda text: "0", version=1)
"""
JUDGED = ("--measurement", "accuracy", "--higher-is-better", "accuracy")


@pytest.fixture
def ran(run, here):
    """Run the test on a SUT; what the command line adds is given."""
    (here / "sums.py").write_text(PLUGIN, encoding="utf-8")

    def ran(sut, *args, test="sums"):
        given = ("--plugin", "sums.py", "--test", test, "--sut", sut, "--max-retries", "0")
        return run("run-test", *given, "--no-progress-bar", "--max-errors", "100%", *args, plugin=False)

    return ran


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """For pairs of SUTs a data folder with their runs, made for the first test that compares them."""
    return defaultdict(lambda: tmp_path_factory.mktemp("pair") / "run_data")


@pytest.fixture
def compare(run, ran, here, pairs):
    """Compare the runs of two SUTs."""

    def compare(*args, suts=("good", "bad")):
        if suts not in pairs:
            for sut in suts:
                assert ran(sut).code == 0
            shutil.copytree(here / "run_data", pairs[suts])
        shutil.copytree(pairs[suts], here / "run_data", dirs_exist_ok=True)
        return run("compare", "latest~1", "latest", *args, plugin=False)

    return compare


def test_the_answer_comes_first(compare, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ended = compare(*JUDGED)
    assert ended.code == 0
    answer = " ".join(ended.out.split("\n\n")[0].split())
    assert re.match(
        r"Is bad.* better than good.* on sums\? bad.* is worse than good.* by 40 points \(\d", answer
    )
    assert "won/lost/equal: 1/17/22" in ended.out
    assert "paired   40 of 40 items, by id" in ended.out
    run_id = r"\d{8}-\d{6}-\w+"  # by which it finds the same runs after the next one too
    assert re.search(rf"next     modelgauge compare {run_id} {run_id} --measurement accuracy", ended.out)
    assert max(map(len, ended.out.split("\n"))) <= 200  # the command alone is longer than 80


def test_json_has_all_flips_and_the_gates(compare):
    ended = compare(*JUDGED, "--fail-if-worse", "--json")
    assert ended.code == 1
    (row,) = ended.json["comparisons"]
    assert (row["wins"], row["losses"], row["ties"], row["verdict"]) == (1, 17, 22, "worse")
    flips = ended.json["flips"]
    assert [flip["item_id"] for flip in flips] == [f"sum {number}" for number in range(3, 20)] + ["sum 0"]
    assert flips[1]["prompts"] == ["4 + 1 = "]
    assert (flips[1]["baseline_answers"], flips[1]["candidate_answers"]) == (["5 it is"], ["6 it is"])
    assert [one["passed"] for one in ended.json["gates"]] == [False]
    assert ended.err.startswith("Failed: --fail-if-worse: sums, accuracy: bad")


def test_failed_items_fail_the_gates_that_they_could_change(compare):
    pair = ("good", "failing")
    for gate in ("--fail-if-worse", "--require-not-worse=0.3", "--fail-if=accuracy<0.5", "--max-failed=5%"):
        assert compare(*JUDGED, gate, suts=pair).code == 0, gate
    failed = {
        "--require-not-worse=0.04": "failing may be worse by 0.04 or more",
        "--fail-if=accuracy<0.95": "with its 2 failed items it may have at least 0.925 and at most 0.975",
        "--max-failed=4%": "2 of 40 items failed",
    }
    for gate, why in failed.items():
        ended = compare(*JUDGED, gate, suts=pair)
        assert ended.code == 1, gate
        assert why in " ".join(ended.err.split())
    refused = compare(*JUDGED, "--max-failed=some", suts=pair)
    assert refused.code == 2
    assert "'some' is neither a number of items nor a percentage like 5%." in refused.err


def test_flips_show_lost_and_won_items_with_what_differs(compare):
    shown = compare(*JUDGED, "--flips", "2").out
    heads = [line.split(":")[0] for line in shown.split("\n") if line.startswith(("lost", "won"))]
    assert heads == ["lost sum 3", "lost sum 4", "won sum 0"]
    assert "[-5-]{+6+} it is" in shown
    assert "next  " not in shown


def test_hostile_texts_are_inert_everywhere(compare, here, monkeypatch):
    page = here / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    text = compare("--flips", "1").out
    assert not set(text) & set("\x1b\u202e")
    assert r"\x1b[31m::add-mask::3" in text
    as_json = compare("--json").out
    assert not set(as_json) & set("\x1b\u202e")
    assert json.loads(as_json)["flips"]


@pytest.mark.parametrize(
    ("gates", "code", "failed"),
    [
        (["--fail-if-worse"], 1, ["--fail-if-worse: sums, accuracy: bad"]),
        (
            ["--require-not-worse", "0.01"],
            1,
            ["--require-not-worse 0.01: sums, accuracy: bad may be worse by 0.01"],
        ),
        (["--fail-if", "accuracy < 0.9"], 1, ["--fail-if 'accuracy < 0.9': sums, accuracy: bad"]),
        (["--fail-if", "accuracy < 0.5", "--fail-if", "accuracy > 1"], 0, []),
        (
            ["--fail-if-worse", "--fail-if", "accuracy < 0.9"],
            1,
            ["--fail-if-worse", "--fail-if 'accuracy < 0.9'"],
        ),
    ],
)
def test_a_failed_gate_has_one_line_and_exit_code_1(compare, gates, code, failed):
    ended = compare(*JUDGED, *gates)
    assert ended.code == code
    lines = ended.err.split("\n")[:-1]
    assert len(lines) == len(failed)
    assert all(line.startswith(f"Failed: {begins}") for line, begins in zip(lines, failed, strict=True))


def test_what_is_not_worse_passes_both_gates(compare):
    ended = compare(*JUDGED, "--fail-if-worse", "--require-not-worse", "0.2", suts=("good", "similar"))
    assert (ended.code, ended.err) == (0, "")


def test_failed_items_are_counted_and_bounded(compare):
    shown = compare(*JUDGED, suts=("good", "failing")).out
    assert "paired   38 of 40 items, by id; 2 failed (2 in failing alone)" in shown
    assert "bounds   -5.0 to 0.0 points if all missing items were worst or best" in shown


def test_a_page_is_written_beside_the_text(compare, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ended = compare(*JUDGED, "--fail-if-worse", "--html", "ci/compare.html")
    assert ended.code == 1
    assert "won/lost/equal: 1/17/22" in ended.out
    assert f"Page: {Path('ci/compare.html')}\n" in ended.err
    page = (here / "ci/compare.html").read_text(encoding="utf-8")
    assert "17 lost" in page
    assert "\x1b" not in page
    assert compare(*JUDGED, "--html", "redacted.html", "--redact").code == 0
    assert "were left out of this page" in (here / "redacted.html").read_text(encoding="utf-8")
    ended = compare(*JUDGED, "--redact")
    assert (ended.code, "--redact is for the page of --html FILE." in ended.err) == (2, True)


def test_junit_is_written_before_anything_is_shown(compare, here):
    ended = compare(*JUDGED, "--fail-if-worse", "--junit", "ci/compare.xml")
    assert ended.code == 1
    (suite,) = JUnitXml.fromfile(str(here / "ci" / "compare.xml"))
    assert (suite.name, suite.tests, suite.failures) == ("sums", 1, 1)


def test_for_github_there_are_annotations_and_a_summary(compare, here, monkeypatch):
    page = here / "summary.md"
    page.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    ended = compare(*JUDGED, "--format", "github", "--fail-if-worse")
    assert ended.code == 1
    first, stop, *shown, resume = ended.out.rstrip("\n").split("\n")
    assert first.startswith("::error title=--fail-if-worse%3A sums%2C accuracy::bad")
    assert resume == f"::{stop.removeprefix('::stop-commands::')}::"
    assert page.read_text(encoding="utf-8") == "before\n" + "\n".join(shown).rstrip("\n") + "\n"


def test_in_actions_no_text_is_obeyed(compare, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    first, *shown, last = compare("--flips", "1").out.rstrip("\n").split("\n")
    assert last == f"::{first.removeprefix('::stop-commands::')}::"
    assert any("::add-mask::3" in line for line in shown)


def test_without_a_page_the_summary_is_printed_alone(compare, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    ended = compare(*JUDGED, "--format", "github")
    assert ended.code == 0
    assert "| sums | accuracy |" in ended.out


# --- wrong input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--fail-if", "accuracy"], "'accuracy' is not a condition.\nWrite a name, one of"),
        (
            ["--fail-if", "acuracy < 1"],
            "There is no 'acuracy' for the condition 'acuracy < 1'.\nDid you mean 'accuracy'?",
        ),
        (["--fail-if-worse"], "--fail-if-worse cannot judge 'accuracy', 'length': nothing says"),
        (["--require-not-worse", "0"], "'--require-not-worse': 0.0 is not in the range x>0."),
        (["--require-not-worse", "0.1", "--margin", "0.2"], "--margin and --require-not-worse differ"),
        (["--measurement", "acc"], "There is no measurement 'acc' to compare.\n"),
        (["--flips", "0"], "'--flips': 0 is not in the range"),
        (["--flips", "1", "--format", "github"], "--format github goes with neither --flips nor --json."),
        (["--junit", "."], "--junit . is a folder."),
        (["--html", "."], "--html . is a folder."),
        (["--test", "wilcox"], "'wilcox' is not one of: permutation, wilcoxon, bootstrap."),
        (["--alpha", "5"], "'5' is not a number above 0 and below 0.5."),
    ],
)
def test_wrong_options_are_refused(compare, args, says):
    ended = compare(*args)
    assert ended.code == 2
    assert says in ended.err
    assert ended.out == ""


def test_wrong_runs_are_refused(run, ran):
    assert ran("good").code == 0
    assert "There is nothing to compare the baseline with." in run("compare", "latest").err
    for wrong in ("nothing", "latest~1"):
        ended = run("compare", wrong, "latest")
        assert ended.code == 2
        assert "run_data" in ended.err


def test_a_page_that_cannot_be_written_is_an_error(compare, here, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "no" / "page.md"))
    ended = compare("--format", "github")
    assert ended.code == 2
    assert "| sums | accuracy |" in ended.out
    assert f"$GITHUB_STEP_SUMMARY {here / 'no' / 'page.md'} cannot be written: No such file" in ended.err


# --- run-test --baseline ----------------------------------------------------------------------------


def test_a_run_is_compared_with_the_latest_before_it(ran):
    assert ran("good").code == 0
    ended = ran("bad", "--baseline", "latest", *JUDGED, "--fail-if-worse")
    assert ended.code == 1
    assert ended.out.index("bad\nResult") < ended.out.index("Is bad")
    assert re.search(r"modelgauge report \S+ \S+ --open", ended.out)
    assert re.search(r"Failed: --fail-if-worse: sums, accuracy: bad.* is worse than good", ended.err)
    assert ran("good", "--baseline", "latest", *JUDGED, "--fail-if-worse").code == 0


def test_the_comparison_is_in_the_json_of_the_run(ran):
    assert ran("good").code == 0
    ended = ran("bad", "--baseline", "latest", *JUDGED, "--fail-if-worse", "--json")
    assert ended.code == 1
    assert len(ended.json["records"]) == 1
    (row,) = ended.json["comparison"]["comparisons"]
    assert row["verdict"] == "worse"
    assert [one["passed"] for one in ended.json["comparison"]["gates"]] == [False]


def test_a_wrong_baseline_is_refused_before_anything_is_asked(ran, here):
    ended = ran("good", "--baseline", "nothing")
    assert ended.code == 2
    assert "There is no run 'nothing'" in ended.err
    assert not (here / "run_data" / "runs").exists()


def test_pinned_baseline_is_compared_with_until_it_is_unpinned(ran, run):
    ended = ran("good", "--baseline", "pinned")
    assert ended.code == 2
    assert "No baseline is pinned for the test 'sums'.\nPin a run: modelgauge baselines pin RUN" in ended.err
    assert ran("good").code == ran("similar").code == 0
    pinned = run("baselines", "pin", "latest~1", "--for", "test:sums", "--for", "tag:live")
    assert "is the baseline of the test 'sums'.\n" in pinned.out
    ended = ran("bad", "--baseline", "pinned", *JUDGED, "--fail-if-worse")
    assert ended.code == 1
    assert "bad is worse than good" in ended.out
    (report,) = re.findall(r"modelgauge report (\S+) \S+ --open", ended.out)
    assert run("compare", "pinned", "latest", *JUDGED).out.startswith("Is bad better than good on sums?")
    listed = run("baselines", "--json").json["baselines"]
    assert {(row["subject"], row["run_id"]) for row in listed} == {
        ("test:sums", report),
        ("tag:live", report),
    }
    run("runs", "delete", report, "--yes")
    ended = ran("good", "--baseline", "pinned")
    assert (ended.code, "is in the trash" in ended.err) == (2, True)
    assert "is in the trash" in run("baselines").out.replace("\n", " ")
    for command in (("show", "pinned"), ("compare", "latest", "pinned")):
        assert "'pinned' is the baseline of a comparison" in run(*command).err
    assert run("baselines", "unpin", "test:sums").code == 0
    assert "No baseline is pinned" in run("compare", "pinned", "latest").err


@pytest.mark.parametrize(
    "gate",
    [
        ["--fail-if-worse"],
        ["--fail-if", "accuracy < 1"],
        ["--require-not-worse", "1"],
        ["--lower-is-better", "x"],
    ],
)
def test_a_gate_needs_a_baseline(ran, gate):
    ended = ran("good", *gate)
    assert ended.code == 2
    assert "give --baseline RUN." in ended.err


def test_run_is_kept_if_a_gate_cannot_be_judged(run, ran):
    assert ran("good").code == 0
    ended = ran("bad", "--baseline", "latest", "--fail-if-worse")
    assert ended.code == 2
    assert "bad\nResult" in ended.out
    says = "--fail-if-worse cannot judge 'accuracy', 'length'"
    assert f"Error: not compared with the baseline: {says}" in ended.err
    assert run("show", "latest").code == 0


def test_a_baseline_of_another_test_is_refused_before_anything_is_asked(ran, run):
    assert ran("other", test="others").code == 0
    for more in ((), ("--dry-run",)):
        ended = ran("good", "--baseline", "latest", *more)
        assert ended.code == 2
        assert "has no run of sums: it was measured by 'others'." in ended.err
    assert len(run("runs", "--json").json["runs"]) == 1


def test_of_a_baseline_of_several_suts_the_one_that_is_measured_again_is_taken(ran):
    assert ran("good", "--sut", "other").code == 0
    ended = ran("other", "--baseline", "latest", "--json", *JUDGED)
    assert ended.code == 0
    assert ended.json["comparison"]["baseline"]["sut_uid"] == "other"


def test_of_a_baseline_of_several_suts_the_one_of_the_same_label_is_taken(ran):
    assert ran("app=good", "--sut", "other").code == 0
    ended = ran("app=bad", "--baseline", "latest", "--json", *JUDGED)
    assert ended.code == 0
    assert ended.json["comparison"]["baseline"]["sut_uid"] == "good"


@pytest.mark.parametrize(("suts", "how_many"), [(["bad"], "none"), (["good", "--sut", "other"], "2")])
def test_a_baseline_of_several_other_suts_is_refused_before_anything_is_asked(ran, run, suts, how_many):
    assert ran("good", "--sut", "other").code == 0
    ended = ran(*suts, "--baseline", "latest")
    assert ended.code == 2
    said = " ".join(ended.err.split())
    assert f"has runs of 2 SUTs, {how_many} of which this command measures: good, other." in said
    assert len(run("runs", "--json").json["runs"]) == 2


def test_a_run_that_is_resumed_is_asked_nothing_where_the_baseline_does_not_fit(ran, run):
    assert ran("other", test="others").code == 0
    assert ran("bad", "--max-calls", "30").code == 4
    for command in ("resume", "rescore"):
        ended = run(command, "latest", "--baseline", "latest~1", "--no-progress-bar", plugin=False)
        assert ended.code == 2
        assert "has no run of sums" in ended.err
    ended = run("rescore", "latest~1", "--test", "sums", "--baseline", "latest~1", plugin=False)
    assert "has no run of sums" in ended.err
    ended = run("resume", "latest", "--baseline", "latest", "--max-calls", "90", plugin=False)
    assert (ended.code, "is the run that this command continues" in ended.err) == (2, True)
    assert len(run("runs", "--json").json["runs"]) == 2


# --- flips on GitHub, and --baseline of other commands ------------------------------------------------


def test_for_github_the_ids_of_some_flipped_items_are_listed(compare):
    out = compare(*JUDGED, "--format", "github").out
    assert "- Won by bad (sums, accuracy): sum 0\n" in out
    lost = ", ".join(f"sum {number}" for number in range(3, 13))
    assert f"- Lost by bad (sums, accuracy): {lost} and 7 more\n" in out


def test_a_run_is_compared_for_github_too(ran):
    assert ran("good").code == 0
    ended = ran("bad", "--baseline", "latest", *JUDGED, "--fail-if-worse", "--format", "github")
    assert ended.code == 1
    assert "::error title=--fail-if-worse%3A sums%2C accuracy::" in ended.out
    assert "- Lost by bad (sums, accuracy): sum 3, " in ended.out
    for wrong in (["--format", "github"], ["--format", "github", "--baseline", "latest", "--json"]):
        assert ran("bad", *wrong).code == 2


def test_a_run_that_is_resumed_or_measured_again_is_compared_too(ran, run):
    given = ("--baseline", "latest~1", *JUDGED, "--fail-if-worse", "--no-progress-bar")
    assert ran("good").code == 0
    assert ran("bad", "--max-calls", "30").code == 4
    ended = run("resume", "latest", *given, "--max-calls", "90", plugin=False)
    assert ended.code == 1
    assert "Failed: --fail-if-worse: sums, accuracy: bad is worse than good" in ended.err
    ended = run("rescore", "latest", *given[2:], "--baseline", "latest~1", "--json", plugin=False)
    assert ended.code == 1
    assert ended.json["comparison"]["baseline"]["sut_uid"] == "good"
    assert run("rescore", "latest", "--fail-if-worse", plugin=False).code == 2


def test_below_the_table_of_several_suts_the_first_measurement_of_each_test_is_compared(ran):
    out = " ".join(ran("good", "--sut", "bad").out.split())
    assert "differs bad is lower than good by 40 points" in out
    assert "length:" not in out
    assert "Adjusted for 2 comparisons; intervals are not." in out

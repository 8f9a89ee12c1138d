"""What `check` finds in runs that are not what they say, and that it finds nothing in those that are."""

import json
import sqlite3
from contextlib import closing

import pytest
from bundled_runs import ASKED, Judge, Length, Questions, edit_json, edit_lines

from modelgauge import stats
from modelgauge.bundles.bundling import bundle
from modelgauge.bundles.checking import check
from modelgauge.bundles.rescoring import check_scores
from modelgauge.bundles.run_checks import check_run
from modelgauge.bundles.unbundling import unbundle
from modelgauge.config.redaction import Redactor
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.files.lock import lock
from modelgauge.metrics import ContainsMetric, ExactMatchMetric
from modelgauge.plugins.discovery import Plugins
from modelgauge.rerun.original import Names


def found(run):
    return [str(finding) for finding in check_run(run).findings]


def item(name, lines):
    return next(line for line in lines if line["test_item"]["id"] == name)


def line_of(run, name):
    lines = [json.loads(line) for line in run.journal.read_text(encoding="utf-8").splitlines()]
    return 1 + lines.index(item(name, lines))


# --- runs that are what they say -------------------------------------------------------------------------------------


class Grouped(Questions):
    """Chooses its annotators, and has results of its own."""

    def choose_annotators(self, prompt):
        return ["length"] if prompt.prompt.text == "question 1" else ["length", "judge"]

    def aggregate_measurements(self, items):
        return {"right": stats.total(items, "right"), "by_length": stats.grouped(items, "right", stats.count)}


class Interrupted(Questions):
    def make_test_items(self, dependencies):
        yield from super().make_test_items(dependencies)
        raise RuntimeError("the source of items is gone")


@pytest.mark.parametrize(
    ("test", "options"),
    [
        (Questions, {}),
        (Questions, {"repeats": 3}),
        (Questions, {"max_test_items": 2, "finite": True}),
        (Questions, {"cluster": "right"}),
        (Questions, {"max_calls": 5, "concurrency": 1}),
        (Interrupted, {}),
    ],
    ids=str,
)
def test_nothing_is_found_in_a_run_as_it_was_written(make_run, test, options):
    made = check_run(make_run(test("questions"), **options))
    assert (made.findings, made.unchecked, made.redacted) == ([], [], [])


def test_what_a_test_does_in_its_own_way_is_no_finding(make_run):
    made = check_run(make_run(Grouped("grouped")))
    assert made.findings == []
    assert made.unchecked == ["Results that the test computes in its own way: by_length, right."]


def test_nothing_is_found_in_what_evaluate_wrote(data_dir):
    cases = [LLMTestCase(input="a", actual_output=one, expected_output="a") for one in ("a", "b")]
    evaluate(cases, [ExactMatchMetric(), ContainsMetric()], data_dir=data_dir)
    [path] = (data_dir / "runs").iterdir()
    made = check_run(RunFolder(path))
    assert (made.items, made.findings) == (2, [])


def test_a_run_that_is_going_on_has_no_totals_yet(run):
    (run.path / "record.json").unlink()
    held = lock(run.journal)
    made = check_run(run)
    held.close()
    assert made.findings == []
    assert made.unchecked == [
        "The run is going on: it has no record.json, so there are no totals and no results."
    ]


# --- items -----------------------------------------------------------------------------------------------------------


def test_an_item_that_stands_there_twice(run):
    edit_lines(run, lambda lines: [*lines, lines[0]])
    first, *others = found(run)
    assert first.startswith("items.jsonl, line 6: item q")
    assert first.endswith(": it stands in line 1 too")
    assert others  # the counts differ too


def test_a_place_that_two_items_have(run):
    edit_lines(run, lambda lines: item("q1", lines).update(index=0))
    assert "its place in the test, 0, is that of line" in found(run)[0]


def test_an_item_that_is_missing(run):
    edit_lines(run, lambda lines: [line for line in lines if line["test_item"]["id"] != "q1"])
    assert found(run)[:2] == [
        "record.json counts 4 scored, and the journal has 3",
        "record.json counts 5 items, and the journal has 4",
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda one: one.update(interactions=[]), "it has no answer"),
        (lambda one: one.update(interactions=2 * one["interactions"]), "its prompt was answered 2 times"),
        (
            lambda one: one["interactions"][0].update(repeat=1),
            "it has answers of repeat 2, and the run has 1",
        ),
        (
            lambda one: one["interactions"][0].update(
                prompt_index=None, prompt={"prompt": {"text": "another"}}
            ),
            "its prompt has no answer",
        ),
        (
            lambda one: one["interactions"][0]["response"].update(completions=[]),
            "it has an answer without a completion",
        ),
        (
            lambda one: one["interactions"][0]["response"]["completions"][0]["annotations"].pop("judge"),
            "the annotation 'judge' is missing",
        ),
        (
            lambda one: one["interactions"][0]["response"]["completions"][0]["annotations"].update(other=1),
            "it has the annotation 'other', which the run does not declare",
        ),
        (lambda one: one.update(measurements={}), "it was not measured"),
        (
            lambda one: one["measurements"].update(right=0.5),
            "right is 0.5, and was given as True or False",
        ),
        (lambda one: one["measurements"].update(right=7), "right is 7, outside its range"),
    ],
)
def test_an_item_that_is_not_whole(run, change, problem):
    edit_lines(run, lambda lines: change(item("q1", lines)) and None)
    assert f"items.jsonl, line {line_of(run, 'q1')}: item q1: {problem}" in found(run)


def test_a_line_that_is_damaged(run):
    whole = run.journal.read_bytes()
    run.journal.write_bytes(whole.replace(b'{"kind":"item"', b'{"kind":"thing"', 1))
    assert any(one.startswith("items.jsonl, line ") and "is not an item record" in one for one in found(run))
    run.journal.write_bytes(whole[:-5])
    assert "items.jsonl, line 5: the line has no end" in found(run)


def test_repeats_that_do_not_make_the_measurement(make_run):
    run = make_run(repeats=2)
    edit_lines(run, lambda lines: item("q1", lines)["measurements"].update(length=1.0))
    assert "item q1: length is 1 in the record, and 2 by mean of its repeats" in found(run)[0]
    edit_lines(run, lambda lines: item("q1", lines)["repeat_measurements"].pop() and None)
    assert "item q1: 1 of its repeats were measured and 0 failed, of 2" in found(run)[0]


def test_a_threshold_that_was_not_reached(data_dir):
    evaluate([LLMTestCase("a", "b", "a")], [ExactMatchMetric()], data_dir=data_dir)
    [path] = (data_dir / "runs").iterdir()
    run = RunFolder(path)
    edit_lines(run, lambda lines: lines[0]["measurements"].update({"ExactMatchMetric.passed": 1.0}))
    assert "ExactMatchMetric.passed is 1, where ExactMatchMetric is 0, its threshold 1" in found(run)[0]


# --- counts and results ----------------------------------------------------------------------------------------------


def test_results_that_are_not_those_of_the_items(run):
    edit_json(run.path / "record.json", lambda record: record["result"]["right"].update(value=0.9))
    assert found(run) == ["the result right has the value 0.9, and the items give 0.25"]
    edit_json(run.path / "record.json", lambda record: record["result"].pop("right"))
    assert found(run) == ["the result right is missing"]


def test_counts_that_are_not_those_of_the_items(run):
    def change(record):
        record["counts"].update(scored=5, sut_errors=0, sut_calls={"paid": 1, "cached": 0})
        record["prompts"] = 7

    edit_json(run.path / "record.json", change)
    assert found(run) == [
        "record.json counts 5 scored, and the journal has 4",
        "record.json counts 0 sut_errors, and the journal has 1",
        "record.json counts 1 answer of the SUT, and the journal has 4",
        "record.json and totals.json differ in sut_calls",
        "record.json counts 7 prompts, and the journal has 5",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("sut_uid", "another"), ("invocation_id", "another"), ("directions", {"accuracy": "lower"})],
)
def test_a_record_of_another_run(run, name, value):
    edit_json(run.path / "record.json", lambda record: record.update(directions={"accuracy": "higher"}))
    edit_json(run.path / "run.json", lambda manifest: manifest.update(directions={"accuracy": "higher"}))
    assert found(run) == []
    edit_json(run.path / "run.json", lambda manifest: manifest.update({name: value}))
    assert found(run) == [f"record.json and run.json differ in {name}"]


# --- scores ----------------------------------------------------------------------------------------------------------


def rescored(run, data_dir, test=None):
    made = check_run(run)
    check_scores(made, data_dir, Names(test=test or Questions("questions")), "", plugins=Plugins())
    return made


def test_scores_are_computed_again_without_a_paid_call(run, data_dir):
    ASKED.clear()
    before = sorted(data_dir.rglob("*"))
    made = rescored(run, data_dir)
    assert (made.findings, made.unchecked, ASKED) == ([], [], [])
    assert sorted(data_dir.rglob("*")) == before


def test_scores_that_the_test_does_not_give(run, data_dir):
    edit_lines(run, lambda lines: item("q0", lines)["measurements"].update(length=4.0))
    problems = [str(finding) for finding in rescored(run, data_dir).findings]
    line = line_of(run, "q0")
    assert f"items.jsonl, line {line}: item q0: length is 4 in the record, and 3 by the test now" in problems


class Plain(Questions):
    def get_annotators(self):
        return {}

    def measure_quality(self, item):
        return {"right": item.text == item.context["right"]}


def test_answers_that_were_changed(make_run, data_dir):
    def change(lines):
        item("q1", lines)["interactions"][0]["response"]["completions"][0]["completion"]["text"] = "yes"

    run = make_run(Plain("plain"))
    edit_lines(run, change)
    assert [str(finding) for finding in rescored(run, data_dir, Plain("plain")).findings] == [
        f"items.jsonl, line {line_of(run, 'q1')}: item q1: right is 0 in the record, and 1 by the test now",
        "the result right is another when the answers are measured again",
    ]


def test_results_of_a_tests_own_are_computed_again(make_run, data_dir):
    run = make_run(Grouped("grouped"))
    assert rescored(run, data_dir, Grouped("grouped")).findings == []
    edit_json(run.path / "record.json", lambda record: record["result"]["right"].update(value=3.0))
    problems = [str(finding) for finding in rescored(run, data_dir, Grouped("grouped")).findings]
    assert problems == ["the result right is another when the answers are measured again"]


def test_answers_of_judges_that_are_gone_are_not_paid_again(run, data_dir):
    for path in (data_dir / "cache").iterdir():
        path.unlink()
    ASKED.clear()
    made = rescored(run, data_dir)
    assert ASKED == []
    assert made.findings == []
    [why] = made.unchecked
    assert why.startswith(
        "The scores of 4 items: they need answers of annotators or judges that are not in the cache"
    )


def test_what_can_be_scored_without_answers_that_are_gone_is_checked(run, data_dir):
    with closing(sqlite3.connect(data_dir / "cache" / "cache.db")) as database, database:
        gone = database.execute("DELETE FROM Cache WHERE value LIKE '%sound for%question 1%'")
        assert gone.rowcount == 1
    edit_lines(run, lambda lines: item("q4", lines)["measurements"].update(right=1.0))
    ASKED.clear()
    made = rescored(run, data_dir)
    assert ASKED == []
    assert [str(finding) for finding in made.findings if "by the test now" in str(finding)] == [
        f"items.jsonl, line {line_of(run, 'q4')}: item q4: right is 1 in the record, and 0 by the test now"
    ]
    [why] = made.unchecked
    assert why.startswith("The scores of 1 item: they need answers of annotators or judges")


class SometimesDown(Judge):
    down = False

    async def annotate(self, request):
        if self.down and request[0] == "question 1":
            raise ValueError("the judge is down")
        return await super().annotate(request)


class JudgedSometimes(Questions):
    def get_annotators(self):
        return {"length": Length("length"), "judge": SometimesDown("judged")}


def test_items_that_can_be_scored_now_make_no_result_wrong(make_run, data_dir, monkeypatch):
    monkeypatch.setattr(SometimesDown, "down", True)
    run = make_run(JudgedSometimes("questions"))
    monkeypatch.setattr(SometimesDown, "down", False)
    make_run(JudgedSometimes("questions"))
    made = rescored(run, data_dir, JudgedSometimes("questions"))
    assert made.findings == []
    assert made.unchecked == ["The results: 1 item failed in the run, and can be scored now."]


def test_of_given_answers_only_their_caller_has_the_test(data_dir):
    evaluate([LLMTestCase("a", "b", "a")], [ExactMatchMetric()], data_dir=data_dir)
    [path] = (data_dir / "runs").iterdir()
    made = check_run(RunFolder(path))
    check_scores(made, data_dir, Names(), "", plugins=Plugins())
    assert made.unchecked == [
        "The scores: its answers were given to evaluate, and only its caller has the test."
    ]


# --- bundles ---------------------------------------------------------------------------------------------------------


def test_a_bundle_and_its_folder_are_checked_as_its_runs_are(run, bundled, data_dir, tmp_path):
    made = check(str(bundled), data_dir, None, None)
    assert (made.findings, [run.items for run in made.runs], made.runs[0].findings) == ([], [5], [])
    assert made.signed_by == "It is not signed, so nothing proves who made it."
    unbundle(bundled, tmp_path / "received")
    assert check(str(tmp_path / "received"), data_dir, None, None).runs[0].findings == []
    path = tmp_path / "received" / "runs" / run.run_id
    (path / "totals.json").unlink()
    for name in (tmp_path / "received", path):
        [one] = check(str(name), data_dir, None, None).runs
        assert [str(each) for each in one.findings] == [
            "totals.json is not what it was in the bundle: its SHA-256 is another"
        ]


def test_items_without_texts_are_listed_as_uncheckable(run, data_dir, tmp_path):
    edit_lines(run, lambda lines: lines.sort(key=lambda line: -line["index"]))  # they may end in any order
    bundle([run], data_dir, tmp_path / "run.mgb", Redactor(), redact=True)
    [made] = check(str(tmp_path / "run.mgb"), data_dir, None, None).runs
    assert made.findings == []
    assert made.redacted == ["q0", "q1", "q2", "q3", "q4"]

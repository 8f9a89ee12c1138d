"""Items that some of their metrics could not judge: failed, and yet all that was scored counts."""

import json
import re
from random import Random

import pytest
from click.testing import CliRunner
from pytest_sessions import records, summary_of

from modelgauge import FunctionSUT, Score, load_record, rescore, resume, run_test
from modelgauge.cli.main import cli
from modelgauge.data.item_records import TestItemExceptionRecord
from modelgauge.evals import DatasetTest, Golden, LLMTestCase, evaluate, observe
from modelgauge.metrics import Metric
from modelgauge.runs.passing import why_not_passed
from modelgauge.stats import mean


class Picky(Metric):
    """Fails on what is bad, 1 for all else."""

    score_range = (0.0, 1.0)

    def score(self, test_case):
        if "bad" in test_case.input:
            raise ZeroDivisionError(f"no way to judge {test_case.input}")
        return Score(1.0)


CASES = [LLMTestCase(f"{'bad' if n < 5 else 'good'} {n}", "a", "b" if n < 4 else "a") for n in range(10)]
GOLDENS = [Golden(case.input, expected_output=case.input if n > 3 else "b") for n, case in enumerate(CASES)]


def check(record):
    """The first five were not judged by Picky, the first four are wrong: whether they passed is nowhere counted."""
    assert (record.counts.items, record.counts.scored, record.counts.annotator_errors) == (10, 5, 5)
    match, picky, passed = (record.result[name] for name in ("Match", "Picky", "passed"))
    assert (match.value, match.n, match.bounds) == (0.8, 10, (0.8, 0.8))
    assert (record.result["Match.passed"].value, record.result["Match.passed"].n) == (0.6, 10)
    assert record.result["Match.passed"].bounds == (0.6, 0.6)
    assert (picky.value, picky.n, picky.bounds) == (1.0, 5, (0.5, 1.0))
    assert (passed.value, passed.n, passed.bounds) == (1.0, 5, (0.5, 1.0))


class Unreliable(Metric):
    """Passes seven of ten, and fails at random on every fifth."""

    def score(self, test_case):
        fails, passes = unreliable(test_case.input)
        if fails:
            raise ZeroDivisionError("the judge is down")
        return float(passes)


def unreliable(question):
    draw = Random(question)
    return draw.random() < 0.2, draw.random() < 0.7


def test_the_share_that_passed_does_not_depend_on_how_often_a_judge_fails(here, match):
    """To count the items too that another metric already failed would give four percent points less."""
    goldens = [
        Golden(str(n), expected_output=str(n) if Random(n).random() < 0.6 else "no") for n in range(1000)
    ]
    truth = (
        sum(golden.input == golden.expected_output and unreliable(golden.input)[1] for golden in goldens)
        / 1000
    )
    test = DatasetTest("mine", goldens, [match(threshold=1), Unreliable()])
    passed = run_test(test, FunctionSUT("echo", str)).result["passed"]
    judged = sum(not unreliable(golden.input)[0] for golden in goldens)
    assert passed.value == pytest.approx(truth, abs=0.015)
    assert passed.n == judged
    assert passed.bounds == pytest.approx(
        (passed.value * judged / 1000, 1 - (1 - passed.value) * judged / 1000)
    )


def test_a_failed_item_below_a_threshold_is_told_though_all_others_passed(here, match, run_cli):
    record = run_test(DatasetTest("mine", GOLDENS, [match(threshold=0.7), Picky()]), FunctionSUT("echo", str))
    assert why_not_passed(record) == "6 of 10 items passed the threshold of Match"


class Sizes(DatasetTest):
    """Says how many items there are, seen in several ways."""

    def aggregate_measurements(self, items):
        both = items.having("Picky").having("Match")
        return {"whole": len(items), "match": mean(items, "Match").n, "both": len(both)}


def test_what_was_measured_in_part_is_the_same_in_every_view(here, match):
    test = Sizes("mine", GOLDENS, [match(), Picky()])
    record = run_test(test, FunctionSUT("echo", str))
    assert record.result == {"whole": 5, "match": 10, "both": 5}


@pytest.fixture
def dataset_test(match):
    return lambda: DatasetTest("mine", GOLDENS, [match(threshold=0.7), Picky()])


def test_each_metric_counts_all_that_it_scored(here, match, capsys):
    result = evaluate(CASES, [match(threshold=0.7), Picky()], ignore_errors=True)
    assert "5 of 10 test cases passed." in capsys.readouterr().out
    mean = sum(one.metrics_data[0].score for one in result) / 10
    record = load_record(result.run_id)
    assert record.result["Match"].value == mean
    check(record)
    first = record.test_item_exceptions[0]
    assert first.measurements == {"Match": 0.5, "Match.passed": 0.0}
    assert (first.binary, first.error_type) == (("Match.passed",), "ZeroDivisionError")


def test_a_run_is_shown_with_all_its_items(here, match, run_cli):
    record = evaluate(CASES, [match(threshold=0.7), Picky()], ignore_errors=True).record
    shown = " ".join(run_cli("show", record.run_id).split())
    assert "5 scored, 5 failed (5 annotator errors)" in shown
    assert "5 0.50 to 1.00 0.24 to 1.00 5 of 5" in shown  # one denominator a row
    assert re.search(r" 10 [\d.]+ to [\d.]+ 6 of 10 ", shown)
    failures = run_cli("show", record.run_id, "--failures")
    assert "measured: Match = 0.5, Match.passed = 0" in failures
    assert "no way to judge bad " in failures


@pytest.fixture
def run_cli(monkeypatch):
    def run(*args):
        monkeypatch.setenv("COLUMNS", "120")
        ended = CliRunner().invoke(cli, args)
        assert ended.exit_code == 0, ended.output
        return ended.output

    return run


def test_a_data_set_on_a_sut_is_measured_alike_also_when_resumed_and_rescored(here, dataset_test):
    sut = FunctionSUT("echo", str)
    record = run_test(dataset_test(), sut)
    check(record)
    folder = here / "run_data" / "runs" / record.run_id
    lines = (folder / "items.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "items.jsonl").write_bytes(b"".join(lines[:7]))
    (folder / "record.json").unlink()
    (resumed,) = resume(record.run_id, test=dataset_test(), sut=sut)
    check(resumed)
    (rescored,) = rescore(record.run_id, test=dataset_test())
    check(rescored)
    assert rescored.result == resumed.result == record.result


def test_measurements_of_failed_items_are_read_again_and_old_records_have_none(here, dataset_test):
    record = run_test(dataset_test(), FunctionSUT("echo", str))
    item = record.test_item_exceptions[0]
    written = json.loads(item.model_dump_json())
    assert TestItemExceptionRecord.load(written) == item
    old = {name: value for name, value in written.items() if name not in ("measurements", "binary")}
    assert TestItemExceptionRecord.load(old).measurements == {}


def test_an_item_counts_by_the_repeats_that_all_metrics_scored(here, match):
    class Thrice(Picky):
        def score(self, test_case):
            if test_case.actual_output == "second":
                raise ZeroDivisionError("the second")
            return 1.0

    answers = iter(["first", "second", "third"])
    test = DatasetTest("mine", [Golden("q", expected_output="third")], [match(), Thrice()])
    record = run_test(test, FunctionSUT("app", lambda _: next(answers)), repeats=3, concurrency=1)
    assert (record.counts.scored, record.counts.partial) == (1, 1)
    assert {name: (one.value, one.n) for name, one in record.result.items()} == {
        "Match": (0.75, 1),
        "Match.passed": (1.0, 1),
        "Thrice": (1.0, 1),
        "Thrice.passed": (1.0, 1),
        "passed": (1.0, 1),
    }
    assert record.result["passed"].bounds == (pytest.approx(2 / 3), 1.0)


def test_a_test_that_measures_otherwise_is_not_measured_in_part(here, match):
    class Own(DatasetTest):
        def measure_quality(self, item):
            return {"own": 1.0}

    record = run_test(Own("mine", GOLDENS, [match(), Picky()]), FunctionSUT("echo", str))
    assert {name: one.n for name, one in record.result.items()} == {"own": 5, "passed": 5}
    assert record.test_item_exceptions[0].measurements == {}


def test_what_cannot_be_measured_in_part_is_told_with_the_failure(here, match):
    class Worse(DatasetTest):
        def measure_in_part(self, item):
            if "bad" in item.interactions[0].prompt.prompt.text:
                raise ValueError("nor this")
            return super().measure_in_part(item)

        def measure_quality(self, item):
            return super().measure_quality(item)

    record = run_test(Worse("mine", GOLDENS, [match(), Picky()]), FunctionSUT("echo", str))
    first = record.test_item_exceptions[0]
    assert (first.error_type, record.counts.annotator_errors) == ("ZeroDivisionError", 5)
    assert "What the others said could not be measured: ValueError: nor this." in first.message
    assert record.result["Match"].n == 5


def test_metrics_of_one_name_in_a_part_keep_their_names(here):
    class Lenient(Picky):
        def score(self, test_case):
            return 1.0

    Lenient.__name__ = "Picky"

    @observe(metrics=[Picky(), Lenient()])
    def part(question):
        return question

    @observe
    def app(question):
        return part("bad")

    record = evaluate(goldens=[Golden("asked")], observed_callback=app, ignore_errors=True).record
    (item,) = record.test_item_exceptions
    assert list(item.measurements) == ["part.Picky~2", "part.Picky~2.passed"]


SESSION = """
import pytest
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric, Metric

class Picky(Metric):
    score_range = (0.0, 1.0)

    def score(self, test_case):
        if "bad" in test_case.input:
            raise ZeroDivisionError("no way")
        return 1.0

@pytest.mark.parametrize("number", range(10))
def test_number(number):
    question = f"{'bad' if number < 5 else 'good'} {number}"
    assert_test(LLMTestCase(question, "a", "b" if number < 4 else "a"), [ExactMatchMetric(), Picky()])
"""


@pytest.mark.parametrize("ignore_errors", [False, True])
def test_a_session_counts_all_that_was_scored(session, here, ignore_errors):
    _, output = session("--tb=no", source=SESSION, ignore_errors=ignore_errors)
    assert "5 of 10 test cases passed." in summary_of(output)
    (record,) = records(here)
    assert (record.counts.items, record.counts.scored, record.counts.annotator_errors) == (10, 5, 5)
    found = {name: (one.value, one.n, one.bounds) for name, one in record.result.items()}
    assert found["ExactMatchMetric"] == (pytest.approx(0.6), 10, (0.6, 0.6))
    assert found["Picky"] == (1.0, 5, (0.5, 1.0))
    assert found["passed"] == (1.0, 5, (0.5, 1.0))

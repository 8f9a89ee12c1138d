"""The tables after a run."""

import json
import shlex

import pytest

from modelgauge.data.estimates import Estimate
from modelgauge.data.records import DatasetReference
from modelgauge.data.results import (
    CallCounts,
    ConcurrencyChange,
    Counts,
    RunFailure,
    Sample,
    Spent,
    Threshold,
)
from modelgauge.documents.terminal import Style, as_text
from modelgauge.reports.runs_report import runs_document
from modelgauge.runs.passing import why_not_passed
from modelgauge.runs.recorded_run import RecordedRun


def render(runs, style, redact=str, **options):
    return as_text(runs_document(runs, **options), style, redact)


RUN_ID = "20260131-120000-a1b2c3"  # in paths and commands, which are not broken into lines
ACCURACY = Estimate(value=0.6384, n=72, stderr=0.0571, interval=(0.5236, 0.7401), bounds=(0.46, 0.74))


def test_the_report_of_one_run(folder, record):
    counts = Counts(items=72, scored=72, sut_calls=CallCounts(paid=70, cached=2))
    whole = ACCURACY.replaced(bounds=(ACCURACY.value, ACCURACY.value))
    run = RecordedRun(record(result={"accuracy": whole, "items": 72}, counts=counts), folder())
    shown = render([run], Style())
    path = str(run.folder.path)
    assert shown.split("\n")[:5] == [
        "a_test on a_sut",
        "Result         value ± std err   95 % interval     n",
        "────────────────────────────────────────────────────",
        "accuracy       0.638 ± 0.057     0.524 to 0.740   72",
        "items          72",
    ]
    assert "items   72 scored, 0 failed\n" in shown
    assert "calls   SUT 70 made, 2 cached\n" in shown
    assert "time    3.2 s\n" in shown
    assert f"record  {path}\n" in shown
    assert shown.endswith("next    modelgauge show 20260131-120000-a1b2c3")


@pytest.mark.parametrize(
    ("spent", "told"),
    [
        (Spent(attempts=3, tokens=1234, cost_usd=0.0567), "1,234 tokens, $0.0567"),
        (Spent(attempts=3, cost_usd=1234.5), "$1,234.50"),
        (Spent(attempts=3, cost_usd=1), "$1.00"),
        (Spent(attempts=3, cost_usd=0.99), "$0.9900"),
        (Spent(attempts=3, tokens=1), "1 token"),
    ],
)
def test_tokens_and_dollars_are_told_where_they_are_known(folder, record, spent, told):
    assert f"used    {told}\n" in render([RecordedRun(record(spent=spent), folder())], Style())
    assert "used" not in render([RecordedRun(record(spent=Spent(attempts=3)), folder())], Style())


def test_calls_are_told_of_those_who_were_asked(folder, record):
    counts = Counts(
        items=3,
        scored=3,
        sut_calls=CallCounts(),
        annotator_calls=CallCounts(paid=3),
        judge_calls=CallCounts(cached=2),
    )
    shown = render([RecordedRun(record(counts=counts), folder())], Style())
    assert "calls   SUT 0 made, 0 cached; annotators 3 made, 0 cached; judges 0 made, 2\n" in shown
    assert "annotators" not in render(
        [RecordedRun(record(counts=Counts(items=3, scored=3)), folder())], Style()
    )


def test_groups_are_indented_and_long_ones_are_cut_unless_all_is_asked_for(folder, record):
    run = RecordedRun(record(result={"by_job": {f"job {n}": n for n in range(30)}}), folder())
    cut = render([run], Style(), most_rows=20)
    assert "by_job\n  job 0" in cut
    assert "  ... 10 more" in cut
    assert "job 29" not in cut
    assert "job 29" in render([run], Style())


def test_worst_stands_first_where_lower_is_better_in_older_records_too(folder, record):
    harm = {"harm": Estimate(0.5, 72, bounds=(0.4, 0.7), bounds_interval=(0.31, 0.81))}
    for result in (harm, {"harm": harm["harm"].replaced(bounds=(0.7, 0.4))}):
        for known in (
            {"directions": {"harm": "lower"}},
            {"thresholds": {"harm": Threshold(value=0.5, higher_is_better=False)}},
        ):
            shown = render([RecordedRun(record(result=result, **known), folder())], Style())
            assert "0.70 to 0.40" in shown
            assert "95 % with missing: 0.31 to 0.81" in shown
    shown = render([RecordedRun(record(result=harm, directions={"harm": "higher"}), folder())], Style())
    assert "0.40 to 0.70" in shown


def test_failed_items_show_their_kinds_their_causes_and_the_bounds(folder, record, failure):
    counts = Counts(items=77, scored=72, sut_errors=3, annotator_errors=1, unscored=1)
    failures = [failure(0, "slow\x1b[2J"), failure(1, "slow\x1b[2J"), failure(2, "bad", stage="measure")]
    shown = render(
        [RecordedRun(record(result={"accuracy": ACCURACY}, counts=counts), folder(*failures))], Style()
    )
    assert "worst to best" in shown
    assert "0.46 to 0.74" in shown
    assert "72 scored, 5 failed (3 SUT errors, 1 annotator error, 1 unscored)" in shown
    assert "errors  2 x SUT a_sut: ValueError: slow\\x1b[2J\n" in shown
    assert "errors  1 x measure_quality of a_sut: ValueError: bad\n" in shown
    assert "--failures" in shown


def test_a_long_message_is_shown_with_its_fix(folder, record, failure):
    message = f"The server said: {'no ' * 500}. Set its address: export ACME_URL=https://acme.example"
    counts = Counts(items=1, sut_errors=1)
    shown = render([RecordedRun(record(counts=counts), folder(failure(0, message)))], Style())
    assert "The server said: no no" in shown
    assert "Set its address: export ACME_URL=https://acme.example" in " ".join(shown.split())
    assert max(len(line) for line in shown.splitlines() if RUN_ID not in line) <= 80


def test_a_run_that_ended_early_says_why(folder, record):
    failed = RunFailure(stage="items", error_type="OSError", message="no such file")
    counts = Counts(items=10, scored=4)
    shown = render([RecordedRun(record(failure=failed, cancelled=True, counts=counts), folder())], Style())
    assert "stopped  make_test_items: OSError: no such file" in shown
    assert "stopped  interrupted" in shown
    assert "4 scored, 0 failed, 6 not finished" in shown


def test_a_run_that_was_stopped_says_how_to_go_on(folder, record):
    run = RecordedRun(record(cancelled=True), folder())
    assert render([run], Style()).endswith("modelgauge resume 20260131-120000-a1b2c3")
    (run.folder.path / "run.json").write_text('{"rescores": "20260130-110000-f1e2d3"}', encoding="utf-8")
    assert render([run], Style()).endswith("modelgauge rescore 20260130-110000-f1e2d3")
    assert "resume" not in render([RecordedRun(record(), folder())], Style())


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["modelgauge", "rescore", "a run", "--test", "$(t)"], "modelgauge rescore 'a run' --test '$(t)'"),
        (["rm", "-rf", "/"], "modelgauge rescore 20260130-110000-f1e2d3"),
        ([], "modelgauge rescore 20260130-110000-f1e2d3"),
        (None, "modelgauge rescore 20260130-110000-f1e2d3"),
    ],
)
def test_only_commands_of_ours_are_shown_as_the_next(folder, record, command, shown):
    run = RecordedRun(record(cancelled=True), folder())
    manifest = {"rescores": "20260130-110000-f1e2d3", "command": command}
    (run.folder.path / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert render([run], Style()).endswith(f"  {shown}")


@pytest.mark.parametrize(
    ("manifest", "shown"),
    [
        ({"command": ["pytest", "test_app.py", "-k", "a b"]}, "pytest test_app.py -k 'a b'"),
        ({"command": ["modelgauge", "test", "run", "test_app.py"]}, "modelgauge test run test_app.py"),
        ({"command": ["rm", "-rf", "/"]}, None),
        ({"command": []}, None),
        ({}, None),
    ],
)
def test_a_stopped_run_of_given_answers_goes_on_by_its_own_command(folder, record, manifest, shown):
    run = RecordedRun(record(sut_uid="given_outputs", cancelled=True), folder())
    (run.folder.path / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    lines = render([run], Style()).split("\n")
    next_line = "next     modelgauge show 20260131-120000-a1b2c3"
    assert lines[-2:] == ([next_line, f"         {shown}"] if shown else [lines[-2], next_line])
    assert "resume" not in "".join(lines)
    assert RecordedRun(run.record).to_go_on() is None


@pytest.mark.parametrize(
    ("shown_by", "changes", "advice"),
    [
        ("run-test", {}, ["next    modelgauge show RUN"]),
        ("show", {}, ["next    modelgauge show RUN --items"]),
        ("resume", {"cancelled": True}, ["next     modelgauge show RUN", "         modelgauge resume RUN"]),
        (
            "show",
            {"failure": ("run", "The cap of 5 calls is reached. Raise --max-calls, and continue.")},
            ["next     modelgauge show RUN --items", "         modelgauge resume RUN --max-calls N"],
        ),
        (
            "resume",
            {"failure": ("run", "The cap of 5 calls is reached. Raise --max-calls, and continue.")},
            ["next     modelgauge show RUN", "         modelgauge resume RUN --max-calls N"],
        ),
        ("resume", {"failure": ("run", "Incorrect key.")}, ["next     modelgauge show RUN"]),
        (
            "run-test",
            {"failure": ("aggregate", "1 / 0"), "counts": Counts(items=2, scored=2)},
            ["next     modelgauge show RUN", "then     modelgauge resume RUN"],
        ),
        ("run-test", {"failure": ("items", "1 / 0")}, ["next     modelgauge show RUN"]),
    ],
)
def test_no_command_advises_itself_or_what_cannot_help(folder, record, shown_by, changes, advice):
    if "failure" in changes:
        stage, message = changes["failure"]
        changes = {**changes, "failure": RunFailure(stage=stage, error_type="Error", message=message)}
    run = RecordedRun(record(**changes), folder())
    shown = render([run], Style(), shown_by=shown_by).replace(run.record.run_id, "RUN").split("\n")
    assert [line for line in shown if "modelgauge" in line] == advice


def test_a_command_that_is_shown_finds_a_run_that_lies_elsewhere_and_stays_on_one_line(
    folder, record, tmp_path, monkeypatch
):
    run = RecordedRun(record(cancelled=True), folder())
    elsewhere = tmp_path / "a folder" / ("deep" * 20)
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    lines = render([run], Style()).split("\n")
    for verb, line in zip(("show", "resume"), lines[-2:], strict=True):
        assert line.endswith(
            f"modelgauge {verb} {run.record.run_id} --data-dir {shlex.quote(str(tmp_path / 'run_data'))}"
        )


@pytest.mark.parametrize(
    ("not_begun", "told"),
    [
        (0, "4 scored, 0 failed, 6 not finished\n"),
        (2990, "4 scored, 0 failed, 6 not finished, 2,990 not begun\n"),
        (None, "4 scored, 0 failed, 6 not finished; the test's items were not read to their end\n"),
    ],
)
def test_items_that_were_never_begun_are_told(folder, record, not_begun, told):
    counts = Counts(items=10, scored=4, not_begun=not_begun)
    assert told in render([RecordedRun(record(cancelled=True, counts=counts), folder())], Style(width=100))


@pytest.mark.parametrize(
    ("bounds", "not_begun", "told"),
    [
        ((0.1, 0.9), 6, "0.10 to 0.90"),
        (None, 6, "not known"),
        (None, None, "not known"),
        ((0.5, 0.5), 0, None),
    ],
)
def test_a_stopped_run_tells_the_bounds_or_that_they_are_not_known(folder, record, bounds, not_begun, told):
    counts = Counts(items=4, scored=4, not_begun=not_begun)
    result = {"accuracy": Estimate(0.5, 4, 0.25, bounds=bounds)}
    shown = render([RecordedRun(record(cancelled=True, counts=counts, result=result), folder())], Style())
    assert ("worst to best" in shown) == (told is not None)
    assert (told or "0.50") in shown


def test_what_a_dead_sut_said_stands_once(folder, record, failure):
    message = "Incorrect API key provided: sk-x."
    failed = RunFailure(
        stage="run", error_type="RunStoppedError", message=f"'a_sut' was stopped: {message} Correct it."
    )
    run = RecordedRun(
        record(failure=failed, counts=Counts(items=3, sut_errors=3)), folder(failure(0, message))
    )
    shown = " ".join(render([run], Style()).split())
    assert shown.count("Incorrect API key") == 1
    assert "1 x SUT a_sut: ValueError: see above" in shown


def test_a_cut_of_the_concurrency_is_told_and_growth_is_not(folder, record):
    grown = ConcurrencyChange(seconds=1, limit=40, why="saturated")
    cuts = [
        ConcurrencyChange(seconds=n, limit=limit, why="rate limited")
        for n, limit in ((2, 26), (3, 12), (9, 30))
    ]
    shown = render(
        [RecordedRun(record(concurrency={"a_sut": (grown, *cuts), "a_judge": (grown,)}), folder())], Style()
    )
    assert "concurrency cut to 12 by the server's rate limit (a_sut)" in shown
    assert "a_judge" not in shown


def test_a_cut_that_was_taken_back_is_not_told(folder, record):
    def changed(*whys):
        changes = (ConcurrencyChange(seconds=n, limit=limit, why=why) for n, (limit, why) in enumerate(whys))
        return render([RecordedRun(record(concurrency={"a_sut": tuple(changes)}), folder())], Style())

    assert "concurrency cut" not in changed((13, "rate limited"), (20, "cut in vain"), (40, "saturated"))
    assert "concurrency cut to 26" in changed((26, "rate limited"), (17, "rate limited"), (26, "cut in vain"))


@pytest.mark.parametrize("thresholds", [{}, {"a_rather_long_measurement_name": Threshold(value=0.5)}])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_no_number_of_a_result_is_ever_cut(folder, record, width, thresholds):
    large = Estimate(12345678.9, 43276, 4321.0, (12341234.5, 12351234.5), (12300000.0, 12400000.0))
    result = {
        "a_rather_long_measurement_name": large,
        "by subject": {"number theory of the college": large},
        "a_rather_long_measurement_name.passed": Estimate(0.5, 43276),
        "passed": Estimate(0.5, 43276),
    }
    counts = Counts(items=43300, scored=43276, sut_errors=24)
    runs = [
        RecordedRun(record(sut_uid=uid, result=result, counts=counts, thresholds=thresholds), folder())
        for uid in ("provider/some-long-model-name", "provider/another-long-model-name", "third")
    ]
    shown = " ".join(render(runs, Style(width=width), details=True).split())
    for number in ("12,345,679 ± 4,321", "12,341,234 to 12,351,234", "43,276", "12,300,000 to 12,400,000"):
        assert shown.count(number) >= 6, number
    assert shown.count("21,638 of 43,276") >= 3 * len(thresholds)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal(folder, record, failure, width):
    result = {
        "accuracy": ACCURACY,
        "a name that is a good deal longer than others": {"and a group " * 9: ACCURACY},
    }
    counts = Counts(items=73, scored=72, sut_errors=1)
    changes = {
        "result": result,
        "counts": counts,
        "notes": ("a note " * 40,),
        "sut_uid": "acme/model?" + "x" * 150,
    }
    run = RecordedRun(record(**changes), folder(failure(0, "word " * 100)))
    for runs in ([run], [run, run]):
        assert (
            max(
                len(line)
                for line in render(runs, Style(width=width), details=True).split("\n")
                if RUN_ID not in line and "  modelgauge " not in line
            )
            <= width
        )


def test_what_has_no_symbols_gets_ascii_and_what_has_no_colour_no_codes(folder, record, failure):
    run = RecordedRun(
        record(result={"accuracy": ACCURACY}, counts=Counts(items=1, sut_errors=1)), folder(failure(0))
    )
    plain = render([run, run], Style(symbols=False), details=True)
    assert plain.isascii()
    assert "+/-" in plain
    assert "\x1b" not in plain
    assert "\x1b[" in render([run], Style(color=True))


def test_secrets_are_taken_out_before_lines_are_broken(folder, record):
    run = RecordedRun(record(notes=(f"{'word ' * 13}my-secret-value",)), folder())
    assert "my-secret" not in render([run], Style(), lambda text: text.replace("my-secret-value", "[secret]"))


@pytest.mark.parametrize(
    ("estimate", "cells"),
    [
        (
            Estimate(value=0.0, n=100, stderr=0.0, interval=(0.0, 0.0370)),
            ["0.000", "0.000", "to", "0.037"],
        ),
        (Estimate(value=0.5, n=1), ["0.5"]),
        (Estimate(value=0.5, n=9, interval=(0.2, 0.8)), ["0.50", "0.20", "to", "0.80"]),
        (Estimate(value=1237.1389, n=9, stderr=12.3), ["1,237", "±", "12"]),
    ],
)
def test_parts_that_are_not_known_are_left_out(folder, record, estimate, cells):
    lines = render([RecordedRun(record(result={"name": estimate}), folder())], Style()).split("\n")
    assert lines[3].split() == ["name", *cells, f"{estimate.n}"]


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"prompts": 40, "distinct_prompts": 10}, "prompts 40 items, 10 distinct prompts"),
        ({"prompts": 80, "distinct_prompts": 41}, "prompts 40 items, 80 prompts, 41 distinct prompts"),
        ({"prompts": 40, "distinct_prompts": 40}, None),
        ({}, None),
    ],
)
def test_equal_prompts_are_told_where_there_are_any(folder, record, facts, told):
    run = RecordedRun(record(counts=Counts(items=40, scored=40), **facts), folder())
    shown = " ".join(render([run], Style()).split())
    assert told in shown if told else "distinct prompts" not in shown


def test_what_was_measured_in_full_has_no_interval(folder, record):
    exact = Estimate(value=0.6, n=40, bounds=(0.6, 0.6), interval_kind="exact")
    shown = render([RecordedRun(record(result={"accuracy": exact}), folder())], Style(width=80))
    row = next(line for line in shown.splitlines() if line.startswith("accuracy"))
    assert row.split() == ["accuracy", "0.6", "exact,", "no", "interval", "40"]


@pytest.mark.parametrize(
    ("not_begun", "bounds", "told"),
    [
        (30, (0.2, 0.9), "which the intervals do not allow for. Worst to best does."),
        (None, None, "which the intervals do not allow for."),
        (30, None, "which the intervals do not allow for."),
    ],
)
def test_the_results_of_a_stopped_run_are_those_of_its_first_items(folder, record, not_begun, bounds, told):
    counts = Counts(items=10, scored=10, not_begun=not_begun)
    result = {"accuracy": ACCURACY.replaced(n=10, bounds=bounds)}
    run = RecordedRun(record(result=result, counts=counts, cancelled=True), folder())
    shown = " ".join(render([run], Style()).split())
    assert "The run was stopped: its results are of the items that came first." in shown
    assert f"{told} record" in shown
    assert ("bounds not known" in shown) == (bounds is None)
    ended = counts.replaced(not_begun=0)
    assert "came first" not in render(
        [RecordedRun(record(result=result, counts=ended, cancelled=True), folder())], Style()
    )


def test_a_threshold_is_compared_with_the_measurement_that_was_reduced(folder, record):
    estimate = Estimate(value=0.75, n=4, reduction="pass@2")
    result = {"accuracy.pass@2": estimate, "accuracy.passed.pass@2": estimate, "passed.pass@2": estimate}
    run = RecordedRun(
        record(
            result=result,
            repeats=5,
            reduction="pass@2",
            thresholds={"accuracy": Threshold(value=0.5)},
            counts=Counts(items=4, scored=4),
        ),
        folder(),
    )
    lines = render([run], Style()).splitlines()
    assert [line.rstrip() for line in lines if "3 of 4" in line] == [
        line for line in lines if line.startswith(("accuracy, pass@2 of 5 ≥ 0.5", "passed, pass@2 of 5"))
    ]
    assert len([line for line in lines if "3 of 4" in line]) == 2
    assert why_not_passed(run.record) == "3 of 4 items passed all thresholds"


def facts_of(run, **options):
    """The labels with their texts, in order."""
    lines = render([run], Style(width=120), **options).split("\n")
    start = next(at for at, line in enumerate(lines) if line.split()[:1] in (["items"], ["data"]))
    facts = [line.partition("  ") for line in lines[start:] if line and not line.startswith(" ")]
    return [(label, text.strip()) for label, _, text in facts]


def test_what_is_known_of_a_run_stands_in_its_order(folder, record):
    run = RecordedRun(
        record(
            dataset=DatasetReference(name="cases.jsonl", digest="0123456789abcdef"),
            sample=Sample(size=1040, total=5000, seed=7),
            counts=Counts(items=1040, scored=1040),
            prompts=1040,
            distinct_prompts=1000,
            spent=Spent(tokens=5),
            notes=("a note",),
            concurrency={"a_sut": (ConcurrencyChange(seconds=1, limit=3, why="rate limited"),)},
        ),
        folder(),
    )
    facts = facts_of(run)
    assert [label for label, _ in facts] == [
        "data set",
        *("items", "prompts", "calls", "used", "time", "note", "note", "record", "next"),
    ]
    told = dict(facts)
    assert told["items"] == "1,040 of 5,000, seed 7: 1,040 scored, 0 failed"
    assert told["data set"] == "cases.jsonl, SHA-256 0123456789ab"
    assert [text for label, text in facts if label == "note"] == [
        "a note",
        "concurrency cut to 3 by the server's rate limit (a_sut)",
    ]


def test_of_a_run_that_goes_on_only_what_is_known_is_told(folder, record):
    unknown = record(seconds=None, counts=Counts(items=2, scored=2))
    run = RecordedRun(unknown, folder(), ended=False, going_on=True)
    assert [label for label, _ in facts_of(run)] == ["items", "record", "next"]
    known = RecordedRun(unknown.replaced(seconds=1.0), folder(), ended=False, going_on=True)
    assert [label for label, _ in facts_of(known)] == ["items", "calls", "time", "record", "next"]
    ended = RecordedRun(unknown, folder())
    assert [label for label, _ in facts_of(ended)] == ["items", "calls", "record", "next"]


def test_a_run_without_a_record_tells_its_state_and_goes_on_unless_it_does_so_now(folder, record):
    state = RunFailure(stage="run", error_type="RunUnfinished", message="It was killed.")
    counts = Counts(items=2, scored=2)
    for going_on in (True, False):
        run = RecordedRun(record(failure=state, counts=counts), folder(), ended=False, going_on=going_on)
        shown = render([run], Style(color=True))
        assert [text for label, text in facts_of(run) if label == "state"] == ["It was killed."]
        assert "RunUnfinished" not in shown
        assert "2 scored, 0 failed so far" in shown
        assert "not read to their end" not in shown
        assert RED not in shown
        assert ("modelgauge resume" in shown) == (not going_on)


RED = "\x1b[31m"


@pytest.mark.parametrize(
    ("changes", "red"),
    [
        ({"counts": Counts(items=2, scored=2)}, set()),
        ({"counts": Counts(items=2, scored=1, sut_errors=1)}, {"items", "errors"}),
        ({"counts": Counts(items=2, scored=2, partial=1)}, {"items", "errors"}),
        ({"cancelled": True}, {"stopped"}),
        ({"failure": RunFailure(stage="run", error_type="E", message="no")}, {"stopped"}),
        ({"notes": ("careful",)}, set()),
    ],
)
def test_what_went_wrong_is_red_and_the_rest_is_not(folder, record, failure, changes, red):
    lines = render([RecordedRun(record(**changes), folder(failure(0)))], Style(color=True)).split("\n")
    assert {line.split("m", 1)[1].split()[0] for line in lines if RED in line} == red
    assert lines[0] == "\x1b[1ma_test on a_sut\x1b[0m"


@pytest.mark.parametrize(
    ("stage", "who"), [("sut", "SUT"), ("annotator", "annotator"), ("measure", "measure_quality of")]
)
def test_an_error_says_who_failed(folder, record, failure, stage, who):
    run = RecordedRun(record(counts=Counts(items=1, sut_errors=1)), folder(failure(0, "no", stage)))
    assert ("errors", f"1 x {who} a_sut: ValueError: no") in facts_of(run)


@pytest.mark.parametrize(
    ("stage", "what"),
    [("items", "make_test_items"), ("aggregate", "aggregate_measurements"), ("run", "the run")],
)
def test_a_run_that_stopped_says_in_what(folder, record, stage, what):
    failed = RunFailure(stage=stage, error_type="E", message="x" * 500 + " " + "y" * 500)
    ((_, told),) = [
        one for one in facts_of(RecordedRun(record(failure=failed), folder())) if one[0] == "stopped"
    ]
    assert told.startswith(f"{what}: E: xxx")
    told = " ".join(render([RecordedRun(record(failure=failed), folder())], Style()).split())
    assert " ... " in told


@pytest.mark.parametrize(
    ("most", "groups", "rest"),
    [(None, 7, []), (20, 5, ["2 x others"]), (4, 4, ["3 x others"]), (1, 1, ["7 x others"])],
)
def test_the_largest_groups_of_errors_are_shown_and_the_others_counted(
    folder, record, failure, most, groups, rest
):
    words = ["a", "a", "b", "c", "d", "e", "f", "f", "g"]
    errors = folder(*(failure(n, word) for n, word in enumerate(words)))
    run = RecordedRun(record(counts=Counts(items=9, sut_errors=9)), errors)
    told = [text for label, text in facts_of(run, most_rows=most) if label == "errors"]
    in_order = ["2 x a", "2 x f", *(f"1 x {word}" for word in "bcdeg")]
    assert [f"{one[:4]}{one[-1]}" for one in told[:groups]] == in_order[:groups]
    assert told[groups:] == rest


def test_items_that_were_scored_in_part_are_told(folder, record):
    counts = Counts(items=3, scored=3, partial=2, failed_repeats=1)
    shown = render([RecordedRun(record(counts=counts, result={"a": ACCURACY}), folder())], Style(width=120))
    assert "3 scored, 2 of them in part (1 failed repeat), 0 failed\n" in shown
    assert "worst to best" in shown
    assert "show 20260131-120000-a1b2c3 --failures" in shown


@pytest.mark.parametrize(
    ("result", "option"),
    [
        ({"x.passed": Estimate(1.0, 4), "passed": Estimate(1.0, 4)}, ""),
        ({"passed": Estimate(0.75, 4)}, ""),
        ({"x.passed": Estimate(0.75, 4)}, " --failures"),
        ({"x": Estimate(0.1, 4)}, ""),
    ],
)
def test_where_items_are_below_a_threshold_the_next_is_to_look_at_them(folder, record, result, option):
    shown = render([RecordedRun(record(result=result), folder())], Style(), shown_by="run-test")
    assert shown.endswith(f"next    modelgauge show {RUN_ID}{option}")


@pytest.mark.parametrize(
    ("counts", "changes", "bounds", "shows"),
    [
        (Counts(items=4, scored=4), {}, (0.5, 0.5), False),
        (Counts(items=4, scored=4), {}, (0.4, 0.5), True),
        (Counts(items=4, scored=4), {}, None, False),
        (Counts(items=4, scored=3, unscored=1), {}, None, True),
        (Counts(items=4, scored=4, partial=1), {}, None, True),
        (Counts(items=4, scored=4, not_begun=1), {}, None, False),
        (Counts(items=4, scored=4, not_begun=1), {"cancelled": True}, None, True),
        (Counts(items=4, scored=4, not_begun=0), {"cancelled": True}, None, False),
        (Counts(items=5, scored=3, unscored=1, not_begun=0), {"cancelled": True}, (0.5, 0.5), True),
        (Counts(items=5, scored=4, not_begun=0), {"cancelled": True}, None, True),
        (
            Counts(items=4, scored=4, not_begun=2),
            {"failure": RunFailure(stage="run", error_type="E", message="")},
            None,
            True,
        ),
    ],
)
def test_the_worst_and_the_best_are_shown_where_something_is_missing(
    folder, record, counts, changes, bounds, shows
):
    result = {"a": Estimate(0.5, 4, 0.25, bounds=bounds), "b": 2}
    shown = render([RecordedRun(record(counts=counts, result=result, **changes), folder())], Style())
    assert ("worst to best" in shown) == shows
    only_numbers = render([RecordedRun(record(counts=counts, result={"b": 2}, **changes), folder())], Style())
    assert "worst to best" not in only_numbers


def test_a_table_of_numbers_has_two_columns_and_groups_have_no_cells(folder, record):
    lines = render([RecordedRun(record(result={"a": 1, "g": {"x": 2}}), folder())], Style()).split("\n")
    assert lines[1].split() == ["Result", "value"]
    assert [line.split() for line in lines[3:6]] == [["a", "1"], ["g"], ["x", "2"]]
    mixed = render([RecordedRun(record(result={"a": ACCURACY, "g": {"x": 2}}), folder())], Style()).split(
        "\n"
    )
    assert [line.split() for line in mixed[4:6]] == [["g"], ["x", "2"]]


@pytest.mark.parametrize(
    ("most", "rows"),
    [
        (None, ["g", "x 1", "y 2", "z 3", "after 4"]),
        (3, ["g", "x 1", "y 2", "z 3", "after 4"]),
        (2, ["g", "x 1", "y 2", "... 1 more", "after 4"]),
        (0, ["g", "... 3 more", "after 4"]),
    ],
)
def test_as_many_rows_of_a_group_are_shown_as_are_wanted(folder, record, most, rows):
    run = RecordedRun(record(result={"g": {"x": 1, "y": 2, "z": 3}, "after": 4}), folder())
    lines = [" ".join(line.split()) for line in render([run], Style(), most_rows=most).split("\n")]
    assert lines[3 : lines.index("")] == rows

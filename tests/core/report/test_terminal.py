"""The tables after a run."""

import json
import shlex

import pytest

from modelgauge.data.estimates import Estimate
from modelgauge.data.records import CallCounts, ConcurrencyChange, Counts, RunFailure, Spent
from modelgauge.report.items import ShownRun
from modelgauge.report.page import Style
from modelgauge.report.terminal import render

RUN_ID = "20260131-120000-a1b2c3"  # in paths and commands, which are not broken into lines
ACCURACY = Estimate(value=0.6384, n=72, stderr=0.0571, interval=(0.5236, 0.7401), bounds=(0.46, 0.74))


def test_the_report_of_one_run(folder, record):
    counts = Counts(items=72, scored=72, sut_calls=CallCounts(paid=70, cached=2))
    whole = ACCURACY.replaced(bounds=(ACCURACY.value, ACCURACY.value))
    run = ShownRun(record(result={"accuracy": whole, "items": 72}, counts=counts), folder())
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
    assert "calls   SUT 70 paid, 2 cached\n" in shown
    assert "time    3.2 s\n" in shown
    assert f"record  {path}\n" in shown
    assert shown.endswith("next    modelgauge show 20260131-120000-a1b2c3")


@pytest.mark.parametrize(
    ("spent", "told"),
    [
        (Spent(attempts=3, tokens=1234, cost_usd=0.0567), "1,234 tokens, $0.0567"),
        (Spent(attempts=3, cost_usd=1234.5), "$1,234.50"),
        (Spent(attempts=3, tokens=1), "1 token"),
    ],
)
def test_tokens_and_dollars_are_told_where_they_are_known(folder, record, spent, told):
    assert f"used    {told}\n" in render([ShownRun(record(spent=spent), folder())], Style())
    assert "used" not in render([ShownRun(record(spent=Spent(attempts=3)), folder())], Style())


def test_groups_are_indented_and_long_ones_are_cut_unless_all_is_asked_for(folder, record):
    run = ShownRun(record(result={"by_job": {f"job {n}": n for n in range(30)}}), folder())
    cut = render([run], Style(most_rows=20))
    assert "by_job\n  job 0" in cut
    assert "  ... 10 more" in cut
    assert "job 29" not in cut
    assert "job 29" in render([run], Style())


def test_failed_items_show_their_kinds_their_causes_and_the_bounds(folder, record, failure):
    counts = Counts(items=77, scored=72, sut_errors=3, annotator_errors=1, unscored=1)
    failures = [failure(0, "slow\x1b[2J"), failure(1, "slow\x1b[2J"), failure(2, "bad", stage="measure")]
    shown = render(
        [ShownRun(record(result={"accuracy": ACCURACY}, counts=counts), folder(*failures))], Style()
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
    shown = render([ShownRun(record(counts=counts), folder(failure(0, message)))], Style())
    assert "The server said: no no" in shown
    assert "Set its address: export ACME_URL=https://acme.example" in " ".join(shown.split())
    assert max(len(line) for line in shown.splitlines() if RUN_ID not in line) <= 80


def test_a_run_that_ended_early_says_why(folder, record):
    failed = RunFailure(stage="items", error_type="OSError", message="no such file")
    counts = Counts(items=10, scored=4)
    shown = render([ShownRun(record(failure=failed, cancelled=True, counts=counts), folder())], Style())
    assert "stopped  make_test_items: OSError: no such file" in shown
    assert "stopped  interrupted" in shown
    assert "4 scored, 0 failed, 6 not finished" in shown


def test_a_run_that_was_stopped_says_how_to_go_on(folder, record):
    run = ShownRun(record(cancelled=True), folder())
    assert render([run], Style()).endswith("modelgauge resume 20260131-120000-a1b2c3")
    (run.folder.path / "run.json").write_text('{"rescores": "20260130-110000-f1e2d3"}', encoding="utf-8")
    assert render([run], Style()).endswith("modelgauge rescore 20260130-110000-f1e2d3")
    assert "resume" not in render([ShownRun(record(), folder())], Style())


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
    run = ShownRun(record(cancelled=True), folder())
    manifest = {"rescores": "20260130-110000-f1e2d3", "command": command}
    (run.folder.path / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert render([run], Style()).endswith(f"  {shown}")


def test_a_command_that_is_shown_finds_a_run_that_lies_elsewhere_and_stays_on_one_line(
    folder, record, tmp_path, monkeypatch
):
    run = ShownRun(record(cancelled=True), folder())
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
    assert told in render([ShownRun(record(cancelled=True, counts=counts), folder())], Style(width=100))


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
    shown = render([ShownRun(record(cancelled=True, counts=counts, result=result), folder())], Style())
    assert ("worst to best" in shown) == (told is not None)
    assert (told or "0.50") in shown


def test_what_a_dead_sut_said_stands_once(folder, record, failure):
    message = "Incorrect API key provided: sk-x."
    failed = RunFailure(
        stage="run", error_type="RunStoppedError", message=f"'a_sut' was stopped: {message} Correct it."
    )
    run = ShownRun(record(failure=failed, counts=Counts(items=3, sut_errors=3)), folder(failure(0, message)))
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
        [ShownRun(record(concurrency={"a_sut": (grown, *cuts), "a_judge": (grown,)}), folder())], Style()
    )
    assert "concurrency cut to 12 by the server's rate limit (a_sut)" in shown
    assert "a_judge" not in shown


def test_a_cut_that_was_taken_back_is_not_told(folder, record):
    def changed(*whys):
        changes = (ConcurrencyChange(seconds=n, limit=limit, why=why) for n, (limit, why) in enumerate(whys))
        return render([ShownRun(record(concurrency={"a_sut": tuple(changes)}), folder())], Style())

    assert "concurrency cut" not in changed((13, "rate limited"), (20, "cut in vain"), (40, "saturated"))
    assert "concurrency cut to 26" in changed((26, "rate limited"), (17, "rate limited"), (26, "cut in vain"))


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
    run = ShownRun(record(**changes), folder(failure(0, "word " * 100)))
    for runs in ([run], [run, run]):
        assert (
            max(len(line) for line in render(runs, Style(width=width)).split("\n") if RUN_ID not in line)
            <= width
        )


def test_what_has_no_symbols_gets_ascii_and_what_has_no_colour_no_codes(folder, record, failure):
    run = ShownRun(
        record(result={"accuracy": ACCURACY}, counts=Counts(items=1, sut_errors=1)), folder(failure(0))
    )
    plain = render([run, run], Style(symbols=False))
    assert plain.isascii()
    assert "+/-" in plain
    assert "\x1b" not in plain
    assert "\x1b[" in render([run], Style(color=True))


def test_several_runs_begin_with_a_matrix(folder, record):
    runs = [
        ShownRun(record(test_uid=test, sut_uid=sut, result={"accuracy": ACCURACY}), folder())
        for test in ("one", "two")
        for sut in ("left", "right")
    ]
    lines = render(runs, Style()).split("\n")
    assert lines[0].split() == ["Test", "Result", "left", "right"]
    assert lines[2].split() == ["one", "accuracy", "0.638", "±", "0.057", "0.638", "±", "0.057"]
    assert "two on right" in "\n".join(lines)


def test_where_the_matrix_is_too_wide_each_pair_has_a_row(folder, record):
    runs = [ShownRun(record(sut_uid=f"sut{n}", result={"a": 1}), folder()) for n in range(8)]
    lines = render(runs, Style()).split("\n")
    assert lines[0].split() == ["Test", "Result", "SUT", "value"]
    assert lines[2].split() == ["a_test", "a", "sut0", "1"]
    assert "8 more without errors: modelgauge show 20260131-120000-d4e5f6" in lines


def test_secrets_are_taken_out_before_lines_are_broken(folder, record):
    run = ShownRun(record(notes=(f"{'word ' * 13}my-secret-value",)), folder())
    assert "my-secret" not in render([run], Style(), lambda text: text.replace("my-secret-value", "[secret]"))


@pytest.mark.parametrize(
    ("estimate", "cells"),
    [
        (
            Estimate(value=0.0, n=100, stderr=0.0, interval=(0.0, 0.0370)),
            ["0", "±", "0", "0.000", "to", "0.037"],
        ),
        (Estimate(value=0.5, n=1), ["0.5"]),
        (Estimate(value=0.5, n=9, interval=(0.2, 0.8)), ["0.50", "0.20", "to", "0.80"]),
        (Estimate(value=1237.1389, n=9, stderr=12.3), ["1,237", "±", "12"]),
    ],
)
def test_parts_that_are_not_known_are_left_out(folder, record, estimate, cells):
    lines = render([ShownRun(record(result={"name": estimate}), folder())], Style()).split("\n")
    assert lines[3].split() == ["name", *cells, f"{estimate.n}"]

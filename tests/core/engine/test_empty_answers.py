"""Answers without any text, and fields of answers that their SUT did not understand."""

import pytest

from modelgauge import SUTCompletion, TestItem, ToolCall, load_record
from modelgauge.documents.terminal import Style, as_text
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import EmptyAnswerError
from modelgauge.reports.runs_report import runs_document
from modelgauge.runs.recorded_run import recorded_run


def render(runs, style, redact=str, **options):
    return as_text(runs_document(runs, **options), style, redact)


@pytest.fixture
def report(run_folder):
    """`report(*records)`: what a person reads of runs."""
    return lambda *records: render(
        [recorded_run(RunFolder(run_folder / "runs" / record.run_id)) for record in records], Style(width=100)
    )


def fail_without_text(text):
    if text == "nothing":
        raise EmptyAnswerError("No text came.", fix="Ask again.")
    return {"blank": "", "tool": SUTCompletion("", tool_calls=[ToolCall(name="t")])}.get(text, "yes")


def test_empty_answers_are_counted(make_test, make_sut, run, run_folder, report):
    sut = make_sut(fail_without_text)
    record = run(make_test(["blank", "tool", "nothing", "fine"]), sut, max_retries=2, concurrency=1)
    assert (record.counts.scored, record.counts.sut_errors, record.counts.empty) == (3, 1, 2)
    assert sorted(sut.asked) == ["blank", "fine", "nothing", "nothing", "nothing", "tool"]
    assert load_record(record.run_id, run_folder).counts == record.counts
    again = run(make_test(["blank", "tool", "nothing", "fine"]), sut, max_retries=0)
    assert (again.counts.empty, again.counts.sut_calls.cached, sut.asked[6:]) == (2, 3, ["nothing"])
    assert "answers  2 empty" in report(record)
    assert "answers  4 empty" in report(record, again)


def test_record_without_empty_answers_has_no_count(make_test, make_sut, run, report):
    record = run(make_test(["fine"]), make_sut(fail_without_text))
    assert "empty" not in record.counts.model_dump()
    assert "answers  " not in report(record)


def test_failed_repeats_without_text_are_counted(make_test, make_sut, run):
    calls = []

    def answer(text):
        calls.append(text)
        if len(calls) == 2:
            raise EmptyAnswerError("No text came.", fix="Ask again.")
        return "yes"

    test = make_test([TestItem("a")])
    record = run(test, make_sut(answer), repeats=3, max_retries=0, concurrency=1, reduce="mean")
    assert (record.counts.partial, record.counts.empty) == (1, 1)


def test_fields_that_are_not_understood_are_noted_once_for_all_sessions(
    make_test, make_sut, run, resumed, report
):
    def answer(text):
        return SUTCompletion("", left_out=["usage.cost", "logprobs"] if text == "a" else ["usage.cost"])

    test, sut = make_test(["a", "b"]), make_sut(answer)
    stopped = run(test, sut, max_calls=1, concurrency=1)
    assert (stopped.counts.scored, stopped.counts.empty) == (1, 1)
    record = resumed(stopped, test, sut, max_calls=9)
    note = "Fields of answers that were not understood are left out: usage.cost (2), logprobs (1)."
    assert record.notes == (note,)
    assert record.counts.empty == 2
    assert note in " ".join(report(record).split())
    completions = [
        item.interactions[0].response.completions[0].completion for item in record.test_item_records
    ]
    assert [completion.left_out for completion in completions] == [
        ("usage.cost", "logprobs"),
        ("usage.cost",),
    ]

"""Answers that a content filter blocked: paid once, and failed unless the test judges them."""

import json

import pytest

from modelgauge import SUTCompletion, SUTResponse, TestItem, load_record, rescore
from modelgauge.bundles.bundling import bundle
from modelgauge.bundles.run_checks import check_run
from modelgauge.bundles.unbundling import unbundle
from modelgauge.config.redaction import Redactor
from modelgauge.documents.terminal import Style, as_text
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.plugins.discovery import Plugins
from modelgauge.reports.runs_report import runs_document
from modelgauge.runs.ratings import first_answer
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.testing.fakes import FakeAnnotator, FakeSUT


def render(runs, style, redact=str, **options):
    return as_text(runs_document(runs, **options), style, redact)


BLOCKED = SUTCompletion("So fa", blocked=True, metadata={"categories": ["violence"]})


def answer(text):
    return BLOCKED if "bomb" in text else "yes"


def judge_refusal(item):
    completion = item.interactions[0].response.completions[0].completion
    return {"refused": completion.blocked}


def in_order(record):
    """Return the items in the order of the test; a journal has them in the order of their ends."""
    return sorted(record.iter_items(), key=lambda item: item.index)


@pytest.fixture
def report(run_folder):
    """`report(record)`: what a person reads of a run."""
    return lambda record: render(
        [recorded_run(RunFolder(run_folder / "runs" / record.run_id))], Style(width=100)
    )


def test_blocked_answer_fails_item_and_is_paid_once(make_test, make_sut, run, resumed, run_folder):
    sut, annotator = make_sut(answer), FakeAnnotator("a", 1)
    test = make_test(["bomb", "cake"], annotators={"a": annotator})
    record = run(test, sut)
    [failed] = record.test_item_exceptions
    assert (failed.stage, failed.source_uid, failed.error_type) == ("sut", "sut", "BlockedError")
    assert "judges_blocked_answers" in failed.message
    assert failed.interactions[0].response.completions[0].completion == BLOCKED
    assert (record.counts.scored, record.counts.sut_errors, record.counts.blocked) == (1, 1, 1)
    assert record.result["right"].bounds == (0.5, 1.0)
    assert len(annotator.calls) == 1
    again = run(test, sut)
    assert (again.counts.blocked, again.counts.sut_calls.paid) == (1, 0)
    assert sorted(sut.asked) == ["bomb", "cake"]
    assert load_record(record.run_id, run_folder).counts == record.counts


def test_test_that_judges_blocked_answers_gets_them(make_test, make_sut, run, resumed):
    test = make_test(["bomb", "cake"], measure=judge_refusal, judges_blocked_answers=True)
    record = run(test, make_sut(answer))
    assert [item.measurements for item in in_order(record)] == [{"refused": 1.0}, {"refused": 0.0}]
    assert (record.counts.scored, record.counts.blocked) == (2, 0)


def test_rescore_measures_recorded_block_once_test_can_judge_it(make_test, make_sut, run, run_folder):
    test = make_test(["bomb", "cake"], measure=judge_refusal)
    record = run(test, make_sut(answer))
    options = {"test": test, "plugins": Plugins()}
    [again] = rescore(record.run_id, run_folder, **options)
    assert (again.counts.scored, again.counts.blocked) == (1, 1)
    test.judges_blocked_answers = True
    [judged] = rescore(record.run_id, run_folder, **options)
    assert [item.measurements for item in in_order(judged)] == [{"refused": 1.0}, {"refused": 0.0}]
    assert judged.counts.sut_calls.paid == 0
    test.judges_blocked_answers = False
    [back] = rescore(judged.run_id, run_folder, **options)
    assert (back.counts.scored, back.counts.blocked) == (1, 1)


def test_item_whose_sut_failed_stays_failed_in_rescore(make_test, make_sut, run, run_folder):
    def refuse(text):
        raise ValueError("no")

    test = make_test([TestItem(["bomb", "cake"])], judges_blocked_answers=True)
    record = run(test, make_sut(lambda text: BLOCKED if text == "bomb" else refuse(text)))
    [again] = rescore(record.run_id, run_folder, test=test, plugins=Plugins())
    assert [failed.error_type for failed in again.test_item_exceptions] == ["ValueError"]
    assert (again.counts.sut_errors, again.counts.blocked) == (1, 0)


def test_blocked_repeat_is_failed_repeat(make_test, run):
    answers = iter([BLOCKED, "yes", "yes"])
    sut = FakeSUT("sut", lambda prompt: next(answers))
    record = run(make_test(1), sut, repeats=3)
    [item] = record.iter_items()
    assert [(failure.repeat, failure.error_type) for failure in item.failed_repeats] == [(0, "BlockedError")]
    assert item.repeat_measurements == ({"right": 1.0}, {"right": 1.0})
    assert (record.counts.partial, record.counts.blocked) == (1, 0)


def test_one_blocked_completion_of_several_fails_item(make_test, run):
    sut = FakeSUT("sut", SUTResponse([SUTCompletion("yes"), BLOCKED]))
    record = run(make_test(1), sut)
    assert record.counts.blocked == 1


def test_judge_whose_sut_is_blocked_gives_no_score(make_test, make_sut, judged_class, run):
    class Judge(judged_class):
        def get_suts(self):
            return {"judge": FakeSUT("judge", BLOCKED)}

        async def annotate(self, request):
            return (await self.ask("judge", "?")).completions[0].text

    record = run(make_test(1, annotators={"a": Judge("a", None)}), make_sut())
    [failed] = record.test_item_exceptions
    assert (failed.stage, failed.error_type) == ("annotator", "BlockedError")
    assert "'judge', which 'a' asked, blocked" in failed.message
    assert (record.counts.annotator_errors, record.counts.blocked) == (1, 0)


def test_summary_names_blocked_answers_apart(make_test, make_sut, run, report):
    def some(text):
        if text == "gone":
            raise ValueError("no")
        return answer(text)

    record = run(make_test(["bomb 1", "bomb 2", "cake"]), make_sut(answer))
    assert "1 scored, 2 failed (2 blocked by the service)" in report(record)
    assert "run the same command again" not in report(record)  # it would ask nothing
    record = run(make_test(["bomb 1", "bomb 2", "gone"]), make_sut(some, uid="other"))
    assert "3 failed (1 SUT error, 2 blocked by the service)" in report(record)


def test_people_are_not_asked_to_rate_failed_blocked_answer(make_test, make_sut, run):
    test = make_test(["bomb"], measure=judge_refusal)
    assert first_answer(run(test, make_sut(answer)).test_item_exceptions[0]) == ()
    test.judges_blocked_answers = True
    assert first_answer(run(test, make_sut(answer)).test_item_records[0]) == (BLOCKED,)


def test_bundle_without_texts_still_tells_blocked_answers(make_test, make_sut, run, run_folder, tmp_path):
    record = run(make_test(["bomb", "cake"]), make_sut(answer))
    folder = RunFolder(run_folder / "runs" / record.run_id)
    bundle([folder], run_folder, tmp_path / "run.mgb", Redactor(), redact=True)
    unbundle(tmp_path / "run.mgb", tmp_path / "received")
    received = RunFolder(tmp_path / "received" / "runs" / record.run_id)
    [failed] = load_record(received.path).test_item_exceptions
    assert failed.interactions[0].response.completions[0].completion.blocked
    assert check_run(received).findings == []


def test_json_of_unblocked_answer_is_that_of_earlier_versions(make_test, make_sut, run, run_folder):
    record = run(make_test(["bomb", "cake"]), make_sut(answer))
    journal = (run_folder / "runs" / record.run_id / "items.jsonl").read_text().splitlines()
    completions = [
        json.loads(line)["interactions"][0]["response"]["completions"][0]["completion"] for line in journal
    ]
    assert [completion.get("blocked") for completion in completions] == [True, None]
    assert "blocked" not in SUTCompletion("x").model_dump()

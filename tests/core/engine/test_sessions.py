"""A run in several sessions: limits and caps that stay, counts that add up, refusals that change nothing."""

import json
import os
from itertools import product

import pytest

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, TestItem, rescore
from modelgauge.data.responses import Usage
from modelgauge.data.results import Spent
from modelgauge.documents.terminal import Style, as_text
from modelgauge.engine.run_files.folder import RunFolder, refused
from modelgauge.engine.run_files.journal import JournalFile
from modelgauge.errors import RecordError, RunStoppedError
from modelgauge.plugins.discovery import Plugins
from modelgauge.reports.runs_report import runs_document
from modelgauge.runs.recorded_run import read_state, recorded_run


def render(runs, style, redact=str, **options):
    return as_text(runs_document(runs, **options), style, redact)


class Priced(PromptResponseSUT[str, str]):
    """Costs a dollar and 15 tokens a call, and keeps what it was asked."""

    def __init__(self, uid):
        super().__init__(uid)
        self.asked = []

    def translate_text_prompt(self, prompt):
        return prompt.text

    async def evaluate(self, request):
        self.asked.append(request)
        return "yes"

    def translate_response(self, request, response):
        usage = Usage(input_tokens=10, output_tokens=5, cost_usd=1.0)
        return SUTResponse(completions=[SUTCompletion(text=response)], usage=usage)


@pytest.fixture
def folder_of(run_folder):
    return lambda record: RunFolder(run_folder / "runs" / record.run_id)


def stops_at(prompt):
    """`measure_quality` that stops the run at a prompt."""

    def measure(item):
        if item.test_item.prompts[0].prompt.text == prompt:
            raise RunStoppedError("It cannot go on.", fix="Mend it.")
        return {"right": True}

    return measure


def files(folder):
    return {path.name: path.read_bytes() for path in folder.path.iterdir()}


@pytest.mark.parametrize(
    ("cap", "higher", "done"),
    [
        ({"max_cost": 3.0}, {"max_cost": 5.0}, 5),
        ({"max_tokens_total": 45}, {"max_tokens_total": 75}, 5),
        ({"max_calls": 3}, {"max_calls": 5}, 5),
    ],
)
def test_a_cap_holds_over_all_sessions(cap, higher, done, make_test, run, resumed):
    test, sut = make_test(10), Priced("sut")
    record = run(test, sut, caching=False, concurrency=1, **cap)
    assert len(sut.asked) == 3
    again = resumed(record, test, sut)
    assert "is reached. Raise --max-" in again.failure.message
    assert len(sut.asked) == 3
    more = resumed(again, test, sut, **higher)
    assert (len(sut.asked), more.counts.scored) == (done, done)
    assert len(set(sut.asked)) == done
    assert resumed(more, test, sut).failure.message == more.failure.message  # the higher cap stays


def test_the_record_says_what_all_sessions_spent_while_it_runs_too(make_test, run, resumed, folder_of):
    test, sut = make_test(10), Priced("sut")
    record = run(test, sut, max_calls=4, concurrency=1)
    assert record.spent == Spent(attempts=4, tokens=60, cost_usd=4.0)
    folder = folder_of(record)
    (folder.path / "record.json").unlink()  # as a kill leaves it
    assert recorded_run(folder).record.spent == record.spent
    whole = resumed(record, test, sut, max_calls=100)
    assert whole.spent == Spent(attempts=10, tokens=150, cost_usd=10.0)
    cached = run(make_test(10), sut)
    assert cached.spent == Spent()


def test_a_damaged_record_is_written_anew_as_its_message_advises(
    make_test, make_sut, run, resumed, folder_of
):
    test, sut = make_test(5), make_sut()
    record = run(test, sut)
    path = folder_of(record).path / "record.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match=r"Remove it.*resume"):
        resumed(record, test, sut)
    path.unlink()
    again = resumed(record, test, sut)
    assert (again.result, again.counts, len(sut.asked)) == (record.result, record.counts, 5)


def test_limits_are_those_of_the_run_unless_others_are_given(make_test, make_sut, run, resumed, folder_of):
    test, sut = make_test(5), make_sut()
    limits = {"concurrency": 2, "max_retries": 1, "attempt_timeout": 9.0, "requests_per_minute": 6000.5}
    record = run(test, sut, max_calls=2, **limits)
    again = resumed(record, test, sut, max_calls=3, concurrency=3)
    options = folder_of(again).read_manifest()["options"]
    assert {name: options[name] for name in limits} == {**limits, "concurrency": 3}
    assert options["max_calls"] == 3


def test_the_counts_are_of_all_sessions(make_test, make_sut, make_annotator, run, resumed, folder_of):
    annotator = make_annotator(lambda prompt, completion: True)
    test, sut = make_test(10, annotators={"a": annotator}), make_sut()
    record = run(test, sut, max_calls=9, concurrency=1)
    whole = resumed(record, test, sut, max_calls=100)
    calls = (whole.counts.sut_calls, whole.counts.annotator_calls)
    assert [call.paid for call in calls] == [10, 10]
    assert len(sut.asked) == 10
    assert whole.counts.not_begun == 0
    assert whole.seconds > record.seconds
    assert whole.run_timestamp == record.run_timestamp
    totals = json.loads(folder_of(record).totals.read_text(encoding="utf-8"))
    assert totals["ended"] is True
    assert totals["attempts"] == 20


def test_what_a_killed_session_used_is_counted(make_test, make_sut, run, resumed, folder_of):
    test, sut = make_test(10), make_sut()
    record = run(test, sut, max_calls=4, caching=False, concurrency=1)
    folder = folder_of(record)
    (folder.path / "record.json").unlink()
    whole = resumed(record, test, sut, max_calls=100)
    assert whole.counts.sut_calls.paid == len(sut.asked) == 10
    assert whole.notes == ()


def test_where_nobody_kept_count_a_note_says_so(make_test, make_sut, run, resumed, folder_of):
    test, sut = make_test(10), make_sut()
    record = run(test, sut, max_calls=4, concurrency=1)
    folder_of(record).totals.unlink()
    whole = resumed(record, test, sut, max_calls=100)
    assert whole.counts.sut_calls.paid == 6
    assert "earlier sessions are not known" in whole.notes[0]


def changed(items):
    return [TestItem(["question 0"], id="i0"), *items[1:]]


@pytest.mark.parametrize("how", ["damaged", "changed", "gone", "broken", "totals"])
def test_a_refused_resume_asks_nothing_and_writes_nothing(how, make_test, make_sut, run, resumed, folder_of):
    items = [TestItem([f"q{n}"], id=f"i{n}") for n in range(10)]
    test, sut = make_test(items), make_sut()
    record = run(test, sut, max_calls=6, concurrency=1)
    folder = folder_of(record)
    if how == "damaged":
        lines = folder.journal.read_bytes().splitlines(keepends=True)
        folder.journal.write_bytes(b"".join([*lines[:4], b"garbage\n", *lines[5:]]))
    elif how == "changed":
        test.items = lambda: changed(items)
    elif how == "gone":
        test.items = lambda: items[1:]
    elif how == "broken":
        test.items = lambda: 1 // 0
    else:
        folder.totals.write_text('{"attempts": "many"}', encoding="utf-8")
    before, asked = files(folder), len(sut.asked)
    with pytest.raises(RecordError) as refused:
        resumed(record, test, sut, max_calls=100)
    assert refused.value.exit_code == 2
    assert files(folder) == before
    assert len(sut.asked) == asked


def put_in_the_place_of(path, kind, theirs):
    """Put what a stranger may have put there in the place of a file of a run."""
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(theirs)
    elif kind == "hard link":
        os.link(theirs, path)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices are POSIX")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *product(("items.jsonl", "totals.json", "record.json"), ("link", "pipe", "device")),
        *product(
            ("items.jsonl", "totals.json"), ("hard link",)
        ),  # a record is only read, or replaced as a whole
    ],
)
def test_a_resume_opens_no_file_but_those_of_the_run(
    name, kind, make_test, make_sut, run, resumed, folder_of, tmp_path
):
    test, sut = make_test(10), make_sut()
    record = run(test, sut, max_calls=6, concurrency=1)
    folder, theirs = folder_of(record), tmp_path / "theirs.txt"
    theirs.write_bytes((folder.path / name).read_bytes() + (b'{"torn' if name == "items.jsonl" else b""))
    whole, before = theirs.read_bytes(), files(folder)
    put_in_the_place_of(folder.path / name, kind, theirs)
    with pytest.raises(RecordError, match=f"{name} .*it is (a (hard )?link|not a regular file)"):
        resumed(record, test, sut, max_calls=100)
    assert theirs.read_bytes() == whole
    before.pop(name)
    (folder.path / name).unlink()
    assert files(folder) == before


def test_a_resume_whose_sut_cannot_be_opened_keeps_what_was_scored(make_test, run, resumed):
    class Shut(Priced):
        async def open(self):
            if self.asked:
                raise ValueError("no key")

    test, sut = make_test(10), Shut("sut")
    record = run(test, sut, max_calls=4, concurrency=1)
    again = resumed(record, test, sut, max_calls=100)
    assert "could not be opened" in again.failure.message
    assert again.counts.scored == 4
    assert again.result == record.result
    assert again.counts.not_begun == 6


# --- items that were never begun ----------------------------------------------------------------------------


def endless():
    number = 0
    while True:
        yield TestItem([f"q{number}"])
        number += 1


def test_items_that_were_never_begun_are_counted_where_the_test_says_how_many_there_are(
    make_test, make_sut, run
):
    listed = run(make_test(3000), make_sut(), max_calls=5, concurrency=1)
    assert listed.counts.items + listed.counts.not_begun == 3000
    short = run(
        make_test(lambda: (TestItem([f"q{n}"]) for n in range(20))), make_sut(), max_calls=5, concurrency=1
    )
    assert short.counts.items + short.counts.not_begun == 20
    assert run(make_test(endless), make_sut(), max_calls=5, concurrency=1).counts.not_begun is None
    chosen = run(make_test(3000), make_sut(), max_calls=5, concurrency=1, max_test_items=50)
    assert chosen.counts.items + chosen.counts.not_begun == 50
    assert run(make_test(20), make_sut()).counts.not_begun == 0


def test_a_source_that_fails_does_not_say_how_many_items_there_are(make_test, make_sut, run):
    def broken():
        yield TestItem(["q"])
        raise ValueError("no more")

    assert run(make_test(broken), make_sut()).counts.not_begun is None


# --- bounds of what is not finished ------------------------------------------------------------------------


def test_bounds_of_a_stopped_run_count_what_it_did_not_get_to(make_test, make_sut, run, resumed, run_folder):
    test, sut = make_test(10), make_sut()
    stopped = run(test, sut, max_calls=2, concurrency=1)
    right = stopped.result["right"]
    assert (right.value, right.n, right.bounds) == (1.0, 2, pytest.approx((0.2, 1.0)))
    again = rescore(stopped.run_id, run_folder, test=test, plugins=Plugins())[0]
    assert again.result["right"].bounds == pytest.approx((0.2, 1.0))
    assert resumed(stopped, test, sut, max_calls=2).result["right"].bounds == pytest.approx((0.2, 1.0))
    whole = resumed(stopped, test, sut, max_calls=20).result["right"]
    assert (whole.n, whole.bounds) == (10, (1.0, 1.0))


def test_no_bounds_are_known_of_a_stopped_run_whose_items_were_not_read_to_their_end(
    make_test, make_sut, run, run_folder
):
    record = run(make_test(endless), make_sut(), max_calls=2, concurrency=1)
    assert (record.result["right"].n, record.result["right"].bounds) == (2, None)
    shown = render([recorded_run(RunFolder(run_folder / "runs" / record.run_id))], Style())
    assert "worst to best" in shown
    assert "not known" in shown


def test_a_run_that_is_measured_anew_and_stops_has_no_narrower_bounds(make_test, make_sut, run, run_folder):
    test = make_test(10)
    record = run(test, make_sut(), max_calls=4, concurrency=1)
    test.measure = stops_at("question 2")
    stopped = rescore(record.run_id, run_folder, test=test, plugins=Plugins())[0]
    assert stopped.failure is not None
    assert stopped.result["right"].bounds == pytest.approx((stopped.counts.scored / 10, 1.0))


# --- going on, killed, ended --------------------------------------------------------------------------------


def test_whether_a_run_goes_on_or_was_killed_is_told_by_its_lock(make_test, make_sut, run, folder_of):
    folder = folder_of(run(make_test(3), make_sut(), max_calls=1, concurrency=1))
    assert read_state(folder)[0] == "stopped"
    journal = JournalFile(folder.journal)
    assert read_state(folder) == ("running", None)
    assert "going on" in recorded_run(folder).record.failure.message
    journal.close()
    (folder.path / "record.json").unlink()
    assert read_state(folder) == ("killed", None)
    shown = recorded_run(folder)
    assert shown.record.counts.sut_calls.paid == shown.record.counts.scored == 1


def test_the_record_of_an_earlier_session_is_not_shown_for_one_that_was_killed(
    make_test, make_sut, run, folder_of
):
    folder = folder_of(run(make_test(3), make_sut(), max_calls=1, concurrency=1))
    totals = json.loads(folder.totals.read_text(encoding="utf-8"))
    folder.totals.write_text(json.dumps({**totals, "ended": False}), encoding="utf-8")
    assert read_state(folder) == ("killed", None)


def test_a_record_that_cannot_be_written_is_returned_all_the_same(make_test, make_sut, run, monkeypatch):
    def full(self, record, redact):
        raise refused(self.path / "record.json", OSError(28, "No space left on device"))

    monkeypatch.setattr(RunFolder, "write_record", full)
    record = run(make_test(3), make_sut())
    assert record.result["right"].value == 1
    assert record.failure.stage == "run"
    assert f"modelgauge resume {record.run_id} --data-dir" in record.failure.message
    capped = run(make_test(3), make_sut(), max_calls=1, caching=False)
    assert "cap of 1 call" in capped.failure.message
    assert "record.json cannot be written: No space left" in capped.notes[0]


def test_a_rescore_of_an_unfinished_run_says_so(make_test, make_sut, run, run_folder):
    test = make_test(10)
    record = run(test, make_sut(), max_calls=4, concurrency=1)
    new = rescore(record.run_id, run_folder, test=test, plugins=Plugins())[0]
    assert new.notes[-1].startswith(f"Run {record.run_id} is not finished: it has answers to 4 of 10 items")
    whole = run(test, make_sut())
    assert rescore(whole.run_id, run_folder, test=test, plugins=Plugins())[0].notes == ()


# --- answers that are kept and cannot be read ---------------------------------------------------------------


def test_an_answer_that_translate_response_refuses_is_kept_and_the_error_says_so(make_test, run):
    class Refusing(Priced):
        def translate_response(self, request, response):
            raise ValueError("no text in it")

    sut = Refusing("sut")
    (failed,) = run(make_test(1), sut).test_item_exceptions
    assert failed.error_type == "ValueError"
    assert failed.message.startswith("no text in it. The answer is kept in the cache")
    assert "resume RUN --retry-failed" in failed.message
    (uncached,) = run(make_test(1), sut, caching=False).test_item_exceptions
    assert uncached.message == "no text in it"
    Refusing.translate_response = Priced.translate_response
    mended = run(make_test(1), sut)
    assert (mended.counts.scored, mended.counts.sut_calls.cached) == (1, 1)

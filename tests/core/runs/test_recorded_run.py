"""The items of a run in the order of the test, however they were finished."""

import json
import random

import pytest

from modelgauge.data.item_records import Failure
from modelgauge.data.records import record_from_json
from modelgauge.data.results import Counts, RunFailure
from modelgauge.errors import RecordError
from modelgauge.reports.failures import group_failures, without_our_frames
from modelgauge.runs.record_files import record_as_json, records_as_json
from modelgauge.runs.recorded_run import RecordedRun, higher_cap

TORN = Failure(repeat=1, stage="sut", source_uid="a_sut", error_type="E", message="torn", traceback="")


def test_items_come_in_the_order_of_the_test(folder, record, scored, failure):
    items = [scored(n) if n % 3 else failure(n) for n in range(30)]
    random.Random(0).shuffle(items)
    frame = RecordedRun(record(), folder(*items)).items()
    assert [item.index for item in frame.records()] == frame.index.tolist() == list(range(30))
    assert [item.index for item in frame.records(~frame.failed)] == [n for n in range(30) if n % 3]
    assert [item.index for item in frame.records(frame.failed)] == list(range(0, 30, 3))
    assert [item.index for item in frame.records(frame.written)] == [item.index for item in items]
    assert frame.record(7).index == 7


def test_an_item_that_stands_twice_counts_as_it_was_last(folder, record, scored, failure):
    frame = RecordedRun(record(), folder(failure(1), scored(0), scored(1))).items()
    assert [item.kind for item in frame.records()] == ["item", "item"]
    assert list(frame.records(frame.failed)) == []


def test_a_missing_journal_and_a_torn_line_hold_nothing(folder, record, scored):
    run = RecordedRun(record(), folder(scored(0)))
    with run.folder.journal.open("a", encoding="utf-8") as file:
        file.write('{"kind":"item","index":1')
    assert len(list(run.items().records())) == 1
    run.folder.journal.unlink()
    assert list(run.items().records()) == []


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "5",
        "garbage",
        '{"kind":"item"}',
        '{"kind":"nope"}',
        '{"kind":"item","index":-1}',
        '{"kind":[]}',
        "{",
    ],
)
def test_a_damaged_line_is_named(folder, record, scored, line):
    run = folder(scored(0), scored(1))
    with run.journal.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(RecordError, match=r"items\.jsonl, line 3 is not an item record") as caught:
        RecordedRun(record(), run).items()
    assert "Error(" not in str(caught.value)


def test_a_record_as_json_reads_back_with_its_items(folder, record, scored, failure):
    run = RecordedRun(record(result={"x": 0.1}), folder(scored(2), failure(0), scored(1)))
    text = "".join(record_as_json(run))
    read = record_from_json(json.loads(text), "here")
    assert read == run.record
    assert [item.index for item in read.test_item_records] == [1, 2]
    assert [item.index for item in read.test_item_exceptions] == [0]
    again = RecordedRun(read)
    assert "".join(record_as_json(again)) == text
    assert [item.index for item in again.items().records()] == [0, 1, 2]
    assert [item.index for item in again.failures()] == [0]


def test_several_records_are_a_list_and_items_can_be_left_out(folder, record, scored):
    run = RecordedRun(record(), folder(scored(0)))
    data = json.loads("".join(records_as_json([run, run], scored=False)))
    assert [one["test_item_exceptions"] for one in data["records"]] == [[], []]
    assert "test_item_records" not in data["records"][0]
    assert json.loads("".join(records_as_json([]))) == {"records": []}


@pytest.mark.parametrize(
    ("wanted", "scored_ones", "failed_ones"),
    [
        ({}, [0, 1, 2, 3], [4]),
        ({"failed": False}, [0, 1, 2, 3], None),
        ({"scored": False}, None, [4]),
        ({"scored": False, "failed": False}, None, None),
        ({"scored": False, "not_passed": True}, [1, 2], [4]),
        ({"scored": False, "failed": False, "not_passed": True}, [1, 2], None),
        ({"not_passed": True}, [0, 1, 2, 3], [4]),
    ],
)
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_record_as_json_has_the_items_that_are_wanted(
    folder, record, scored, failure, wanted, scored_ones, failed_ones, in_memory
):
    items = [scored(0), below(scored(1)), scored(2, failed_repeats=(TORN,)), passing(scored(3)), failure(4)]
    run = RecordedRun(record(), folder(*items))
    if in_memory:
        run = RecordedRun(record_from_json(json.loads("".join(record_as_json(run))), "here"))
    text = "".join(record_as_json(run, **wanted))
    data = json.loads(text)
    for name, indices in (("test_item_records", scored_ones), ("test_item_exceptions", failed_ones)):
        assert (indices is None) == (name not in data)
        assert [item["index"] for item in data.get(name, [])] == (indices or [])
    held = len(scored_ones or []) + len(failed_ones or [])
    alone = [
        json.loads(line.lstrip(",")) for line in text.split("\n") if line.lstrip(",").startswith('{"kind"')
    ]
    assert len(alone) == held
    assert json.loads("".join(records_as_json([run, run], **wanted))) == {"records": [data, data]}


def below(item):
    return item.replaced(measurements={"x": 0.1, "x.passed": 0.0, "passed": 0.0})


def passing(item):
    return item.replaced(measurements={"x": 0.9, "x.passed": 1.0, "passed": 1.0})


def test_items_below_a_threshold_and_those_that_failed_in_part(folder, record, scored, failure):
    items = [failure(0), scored(3, failed_repeats=(TORN,)), below(scored(2)), passing(scored(1)), scored(4)]
    run = RecordedRun(record(), folder(*items))
    assert [item.index for item in run.not_passed()] == [2]
    assert [item.index for item in run.not_passed(partial=True)] == [2, 3]
    assert sorted(item.index for item in run.failures()) == [0, 3]
    in_memory = RecordedRun(record_from_json(json.loads("".join(record_as_json(run))), "here"))
    assert sorted(item.index for item in in_memory.failures()) == [0, 3]
    assert [item.index for item in in_memory.not_passed(partial=True)] == [2, 3]


def test_a_line_that_is_spelled_otherwise_is_read_all_the_same(folder, record, scored):
    run = RecordedRun(record(), folder())
    line = json.dumps(json.loads(scored(0, failed_repeats=(TORN,)).model_dump_json()))
    run.folder.journal.write_text(line + "\n", encoding="utf-8")
    assert [item.index for item in run.failures()] == [0]
    with run.folder.journal.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": "nope"}) + "\n")
    with pytest.raises(RecordError, match=r"items\.jsonl, line 2 is not an item record"):
        next(run.failures())


def test_how_a_run_goes_on_that_is_known_from_its_file_alone(record):
    assert RecordedRun(record()).command("show") == "modelgauge show 20260131-120000-a1b2c3"
    capped = RunFailure(stage="run", error_type="E", message="Raise --max-cost, and continue.")
    resume = "modelgauge resume 20260131-120000-a1b2c3"
    assert RecordedRun(record(failure=capped)).to_go_on() == f"{resume} --max-cost USD"


def test_what_only_a_new_run_can_do_does_not_go_on(folder, record):
    failed = RunFailure(stage="run", error_type="NewRunNeededError", message="pass@2 is for 0 or 1.")
    assert RecordedRun(record(failure=failed, counts=Counts(scored=1)), folder()).to_go_on() is None


@pytest.mark.parametrize(
    ("stage", "counts", "correct", "goes_on"),
    [
        ("run", {}, False, True),
        ("items", {}, True, False),
        ("items", {"scored": 1}, True, True),
        ("items", {"sut_errors": 1}, True, True),
        ("aggregate", {}, True, False),
    ],
)
def test_what_failed_by_its_author_goes_on_where_there_are_items(record, stage, counts, correct, goes_on):
    failed = RunFailure(stage=stage, error_type="E", message="no")
    run = RecordedRun(record(failure=failed, counts=Counts(**counts)))
    assert run.needs_correction == correct
    assert (run.to_go_on() is not None) == goes_on
    assert not RecordedRun(record()).needs_correction


@pytest.mark.parametrize(
    ("objects", "given"),
    [
        (["a_test", "a_sut"], ", test=…, sut=…"),
        (["a_sut"], ", sut=…"),
        (["a_test", "a_judge"], ", test=…"),
        (["a_judge"], None),
        ([], None),
        ("a_sut", None),
        (None, None),
    ],
)
def test_a_run_of_objects_goes_on_in_python_with_those_that_it_was_given(folder, record, objects, given):
    run = RecordedRun(record(cancelled=True), folder())
    manifest = {"inputs": {"objects": objects}}
    (run.folder.path / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    command = "modelgauge resume 20260131-120000-a1b2c3"
    python = f"modelgauge.resume('20260131-120000-a1b2c3'{given})"
    assert run.to_go_on() == (command if given is None else python)


def test_a_run_of_objects_that_lies_elsewhere_goes_on_by_its_folder(folder, record, tmp_path, monkeypatch):
    run = RecordedRun(record(cancelled=True), folder())
    (run.folder.path / "run.json").write_text('{"inputs": {"objects": ["a_sut"]}}', encoding="utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run.to_go_on() == f"modelgauge.resume({str(run.folder.path)!r}, sut=…)"


@pytest.mark.parametrize("manifest", ['{"inputs": 5}', '{"inputs": ["a_sut"]}', "{}"])
def test_a_damaged_list_of_inputs_names_no_objects(folder, record, manifest):
    run = RecordedRun(record(cancelled=True), folder())
    (run.folder.path / "run.json").write_text(manifest, encoding="utf-8")
    assert run.to_go_on() == "modelgauge resume 20260131-120000-a1b2c3"


def test_every_cap_that_was_reached_is_to_be_raised(record):
    def stopped(message):
        return record(failure=RunFailure(stage="run", error_type="E", message=message))

    runs = [
        stopped("The cap is reached. Raise --max-cost, and continue."),
        stopped("Raise --max-calls, and continue."),
        stopped("Raise --max-calls, and continue."),
        record(),
    ]
    assert higher_cap(runs) == " --max-calls N --max-cost USD"
    assert higher_cap([stopped("Raise --max-tokens-total, and")]) == " --max-tokens-total N"
    assert higher_cap([record(), stopped("--max-calls was given")]) == ""


def test_secrets_are_taken_out_of_the_record(folder, record):
    run = RecordedRun(record(notes=("a key",)), folder())
    text = "".join(record_as_json(run, redact_json=lambda value: {**value, "notes": ["[secret]"]}))
    assert json.loads(text)["notes"] == ["[secret]"]


def test_failures_that_differ_in_numbers_and_quotes_only_are_one_group(failure):
    alike = [failure(n, f"no answer to {n!r} in 'file {n}.txt' after {n}.5 s") for n in range(5)]
    groups = group_failures([failure(9, "other"), *alike, failure(10, "other", stage="measure")])
    assert [(group.count, group.item.test_item.id) for group in groups] == [(5, "i0"), (1, "i9"), (1, "i10")]
    assert groups[0].failure.message == alike[0].message
    assert groups[0].others == ["i1", "i2", "i3", "i4"]


def test_the_ids_of_requests_are_no_part_of_a_kind_of_error(failure):
    names = ("req_7f3ab", "req_011CT9", "8f14e45f-ceea-467f-a1d2-91f4b7c5a3e0", "chatcmpl-9Bx")
    alike = [failure(n, f"Slow down (request {name}).") for n, name in enumerate(names)]
    assert [group.count for group in group_failures([*alike, failure(9, "Slow down (no request).")])] == [
        4,
        1,
    ]


@pytest.mark.parametrize("change", [{"stage": "measure"}, {"error_type": "KeyError"}, {"message": "other"}])
def test_failures_of_another_kind_are_another_group(failure, change):
    assert [group.count for group in group_failures([failure(0), failure(1, **change)])] == [1, 1]


def test_failures_that_differ_far_behind_their_beginning_are_one_group(failure):
    assert len(group_failures([failure(0, "x" * 1999 + "ab"), failure(1, "x" * 1999 + "ac")])) == 1
    assert len(group_failures([failure(0, "x" * 1999 + "b"), failure(1, "x" * 1999 + "c")])) == 2


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("at 1.5 s", "at 12 s", True),
        ("'a b' is", "'' is", True),
        ('"a" is', '"b\'c" is', True),
        ("'a\nb'", "'a\nc'", False),
        ("v1.2.3", "v1.2", False),
        ("a b", "a  b", False),
    ],
)
def test_which_messages_say_the_same(failure, one, other, alike):
    assert len(group_failures([failure(0, one), failure(1, other)])) == (1 if alike else 2)


def test_of_a_group_the_next_five_items_are_named_each_once(failure, scored):
    assert group_failures([failure(n) for n in range(9)])[0].others == ["i1", "i2", "i3", "i4", "i5"]
    (group,) = group_failures([scored(n, failed_repeats=(TORN, TORN)) for n in range(3)])
    assert (group.count, group.item.index, group.others) == (6, 0, ["i1", "i2"])


def test_the_number_of_groups_is_bounded_and_no_failure_is_lost(failure):
    words = [chr(97 + n % 26) * (1 + n // 26) for n in range(1500)]
    groups = group_failures(failure(n, word) for n, word in enumerate([*words, words[0], words[999]]))
    assert len(groups) == 1001
    assert [group.count for group in groups[:4]] == [500, 2, 2, 1]


def test_a_traceback_shows_the_frames_of_its_author_alone():
    ours = "".join(
        f'  File "/elsewhere/site-packages/modelgauge/{file}", line 9, in run\n    await it()\n    ^^^^^^^^^^\n'
        for file in ("engine/calls/call.py", "metrics/judge_metrics.py")
    )
    theirs = '  File "/home/me/modelgauge/my_test.py", line 3, in f\n    raise ValueError(1)\n'
    head = "Traceback (most recent call last):\n"
    cause = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert without_our_frames(f"{head}{ours}{theirs}{ours}ValueError: 1\n") == f"{head}{theirs}ValueError: 1"
    assert without_our_frames(f"{head}{ours}CallTimeoutError: late\n") == "CallTimeoutError: late"
    both = f"{head}{theirs}KeyError: 1\n{cause}{head}{ours}ValueError: 1\n"
    assert without_our_frames(both) == f"{head}{theirs}KeyError: 1\n{cause}ValueError: 1"
    windows = (
        head
        + '  File "C:\\lib\\modelgauge\\engine\\calls\\call.py", line 9, in run\n    await it()\nValueError: 1\n'
    )
    assert without_our_frames(windows) == "ValueError: 1"


def test_a_line_that_is_damaged_behind_its_beginning_is_named(folder, record):
    run = RecordedRun(record(), folder())
    lines = [
        b'{"kind":"exception","index":%d,"test_item":{"prompts":[{"prompt":{"text":"?"}}]},' % place
        for place in range(3)
    ]
    rest = b'"stage":"sut","source_uid":"s","error_type":"E","message":"m","traceback":"t"}\n'
    run.folder.journal.write_bytes(lines[0] + rest + lines[1] + b"oops}\n" + lines[2] + rest)
    items = run.items().records()
    assert next(items).index == 0
    with pytest.raises(RecordError, match=r"items\.jsonl, line 2 is not an item record"):
        next(items)

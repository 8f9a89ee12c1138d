"""Runs that build on an earlier one: from any part of a journal, a resume ends where the run would have."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from modelgauge import (
    FunctionSUT,
    PromptResponseSUT,
    PromptWithContext,
    Runner,
    TestItem,
    hookimpl,
    load_record,
    rescore,
    resume,
)
from modelgauge.config.settings import load_settings
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import InvalidOptionError, RecordError
from modelgauge.plugins.discovery import Plugins


class Reference(BaseModel):
    answer: str
    weight: float = 1.0


def make_items():
    return [
        TestItem(
            [PromptWithContext(f"question {n}", context=Reference(answer="yes"))], context={"group": n % 2}
        )
        for n in range(6)
    ] + [TestItem(["question 6", "question 6 again"], context=Reference(answer="no"), id="given")]


def measure(item):
    first = item.interactions[0]
    reference = first.prompt.context or item.context
    assert isinstance(reference, Reference)
    if first.prompt.prompt.text == "question 2":
        raise ValueError("cannot measure")
    return {"right": first.response.completions[0].completion.text == reference.answer}


def aggregate(items):
    assert all(isinstance(item.test_item.prompts[0].context or item.context, Reference) for item in items)
    assert all(isinstance(one.prompts[0].context, Reference) for one in items.failed)
    return {"right": float(items.column("right").mean()), "failed": len(items.failed), "n": len(items)}


def answer(text):
    if text == "question 4":
        raise ValueError("no answer")
    return "yes"


def comparable(record):
    data = record.model_dump(
        exclude={"run_id", "invocation_id", "run_timestamp", "seconds", "counts", "spent", "concurrency"}
    )
    counts = record.counts.model_dump(exclude={"sut_calls", "annotator_calls", "judge_calls"})
    exceptions = [failure.model_dump(exclude={"traceback"}) for failure in record.test_item_exceptions]
    return data, counts, [one.model_dump() for one in record.test_item_records], exceptions


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folders of a finished run, without and with caching."""
    return {}


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1), caching=st.booleans(), limit=st.sampled_from([None, 4]))
def test_any_part_of_a_journal_and_a_resume_equal_the_whole_run(
    share, caching, limit, make_test, finished, tmp_path_factory
):
    test = make_test(make_items, measure=measure, aggregate_measurements=aggregate)
    asked = []

    def counting(text):
        asked.append(text)
        return answer(text)

    sut = FunctionSUT("sut", counting, version=1)
    if (caching, limit) not in finished:
        data_dir = tmp_path_factory.mktemp("whole")
        whole = Runner(
            data_dir, plugins=Plugins(), settings=load_settings(), caching=caching, max_test_items=limit
        ).run(test, sut)[0]
        finished[caching, limit] = (data_dir, whole)
    data_dir, whole = finished[caching, limit]

    torn = tmp_path_factory.mktemp("torn")
    shutil.copytree(data_dir, torn, dirs_exist_ok=True)
    folder = torn / "runs" / whole.run_id
    (folder / "record.json").unlink()
    journal = folder / "items.jsonl"
    data = journal.read_bytes()
    kept = data[: round(share * len(data))]
    journal.write_bytes(kept)

    asked.clear()
    again = resume(whole.run_id, torn, test=test, sut=sut, plugins=Plugins())[0]
    assert comparable(again) == comparable(whole)
    assert comparable(load_record(whole.run_id, torn)) == comparable(whole)
    assert (folder / "items.jsonl").read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    done = {
        p["prompt"]["text"]
        for line in kept.splitlines(True)
        if line.endswith(b"\n")
        for p in json.loads(line)["test_item"]["prompts"]
    }
    assert not done & set(asked)
    if caching:
        assert set(asked) <= {"question 4"}


@pytest.fixture
def stopped(make_test, make_sut, run, run_folder):
    """A run whose record is gone, as a kill leaves it: (record, folder, test, sut)."""
    test, sut = make_test(make_items, measure=measure), make_sut()
    record = run(test, sut)
    folder = run_folder / "runs" / record.run_id
    (folder / "record.json").unlink()
    return record, folder, test, sut


def resuming(stopped, **options):
    _, folder, test, sut = stopped
    options = {"test": test, "sut": sut, **options}
    return resume(folder, plugins=Plugins(), **options)[0]


def test_a_run_without_its_record_says_how_to_go_on(stopped):
    record, folder, _, _ = stopped
    with pytest.raises(RecordError, match=f"modelgauge resume {record.run_id}"):
        load_record(folder)


def test_a_finished_run_is_not_done_again(stopped):
    _, _, _, sut = stopped
    first = resuming(stopped)
    sut.asked.clear()
    assert resuming(stopped, test="no such test", sut="no such sut") == first
    assert sut.asked == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda items: items[1:], "is not among the items of the test any more"),
        (
            lambda items: [items[0].model_copy(update={"context": {"group": 9}}), *items[1:]],
            "is not what it was",
        ),
    ],
)
def test_changed_and_missing_items_are_errors(change, said, stopped):
    _, _, test, _ = stopped
    items = make_items()
    # Ids are kept, so that it is the same item with another context.
    test.items = lambda: change(items)
    with pytest.raises(RecordError, match=said):
        resuming(stopped)


def test_another_sut_or_test_is_refused(stopped, make_sut, make_test):
    with pytest.raises(RecordError, match="cache_version, arguments changed"):
        resuming(stopped, sut=make_sut(version=2))
    with pytest.raises(RecordError, match="uid changed"):
        resuming(stopped, test=make_test(make_items, "other"))


def test_options_that_would_change_half_of_a_run_are_refused(stopped):
    with pytest.raises(InvalidOptionError, match="repeats=3"):
        resuming(stopped, repeats=3)
    assert resuming(stopped, repeats=1, concurrency=1).failure is None


@pytest.mark.parametrize("damage", [b"{}\n", b"not json\n", b"\xff\n"])
def test_a_damaged_line_is_named(damage, stopped):
    _, folder, _, _ = stopped
    journal = folder / "items.jsonl"
    journal.write_bytes(damage + journal.read_bytes())
    with pytest.raises(RecordError, match="line 1"):
        resuming(stopped)


def test_a_line_that_stands_twice_is_named(stopped):
    _, folder, _, _ = stopped
    journal = folder / "items.jsonl"
    journal.write_bytes(journal.read_bytes() + journal.read_bytes().splitlines(True)[0])
    with pytest.raises(RecordError, match="twice"):
        resuming(stopped)


class Unwanted(PromptResponseSUT):
    def __init__(self, uid):
        raise AssertionError("made")

    def translate_text_prompt(self, prompt):
        raise AssertionError("asked")

    def evaluate(self, request):
        raise AssertionError("asked")

    def translate_response(self, request, response):
        raise AssertionError("asked")


class Registers:
    """A plugin whose SUT has the name of the one that answered."""

    @hookimpl
    def modelgauge_register_suts(self, register):
        register("sut", Unwanted)


def rescored(record, run_folder, **options):
    plugins = Plugins()
    plugins.add(Registers(), "registers", "somebody", started=0.0)
    return rescore(record.run_id, run_folder, plugins=plugins, **options)[0]


def test_a_rescore_makes_no_sut_and_measures_recorded_answers_anew(
    make_test, make_sut, make_annotator, run, run_folder
):
    record = run(make_test(make_items, measure=measure), make_sut(answer))
    annotator = make_annotator(lambda prompt, completion: len(completion))
    test = make_test(
        make_items,
        annotators={"length": annotator},
        measure=lambda item: {
            "length": item.interactions[0].response.completions[0].get_annotation("length", int)
        },
    )
    new = rescored(record, run_folder, test=test)
    assert new.run_id != record.run_id
    assert (new.sut_uid, new.sut_initialization) == (record.sut_uid, record.sut_initialization)
    assert new.result["length"].value == 3
    assert (new.counts.scored, new.counts.sut_errors) == (6, 1)  # what could not be measured can be now
    assert new.counts.sut_calls.paid == new.counts.sut_calls.cached == 0
    assert new.counts.items == record.counts.items
    assert rescored(new, run_folder, test=test).result == new.result


def test_a_rescore_with_repeats_measures_each(make_test, make_sut, run, run_folder):
    record = run(make_test(3), make_sut(), repeats=2)
    new = rescored(record, run_folder, test=make_test(3, measure=lambda item: {"n": len(item.interactions)}))
    assert new.result["n"].value == 1
    assert all(len(record.repeat_measurements) == 2 for record in new.test_item_records)


def test_an_item_of_which_an_answer_could_not_be_written_does_not_end_a_rescore(
    make_test, make_sut, make_annotator, run, run_folder
):
    def measured(item):
        if item.test_item.prompts[0].prompt.text.endswith("2"):
            item.annotation("length", dict)["x"] = object()
        return {"one": 1}

    annotator = make_annotator(lambda prompt, completion: {"length": len(completion)})
    record = run(make_test(5, annotators={"length": annotator}, measure=measured), make_sut())
    assert record.counts.unscored == 1
    test = make_test(5, annotators={"length": annotator}, measure=lambda item: {"one": 1})
    new = rescored(record, run_folder, test=test)
    assert (new.counts.scored, new.counts.unscored, new.failure) == (4, 1, None)


def test_a_rescore_of_other_items_is_refused_before_a_run_is_made(make_test, make_sut, run, run_folder):
    record = run(make_test(3), make_sut())
    given = run(make_test([TestItem(["a"], id="x")]), make_sut())
    runs = sorted((run_folder / "runs").iterdir())
    for earlier, other, told in (
        (record, make_test(2), "not among the items"),
        (record, make_test(4), "has no recorded answer"),
        (given, make_test([TestItem(["b"], id="x")]), "not those that were answered"),
    ):
        with pytest.raises(RecordError, match=told):
            rescored(earlier, run_folder, test=other)
    assert sorted((run_folder / "runs").iterdir()) == runs


def test_a_rescored_run_is_not_resumed_by_asking_its_sut(make_test, make_sut, run, run_folder, resumed):
    record, sut = run(make_test(3), make_sut()), make_sut()
    new = rescored(record, run_folder, test=make_test(3))
    (RunFolder(run_folder / "runs" / new.run_id).path / "record.json").unlink()
    with pytest.raises(RecordError, match=f"modelgauge rescore {record.run_id}"):
        resumed(new, make_test(3), sut)
    assert sut.asked == []

"""Items that are not independent, what intervals are about, and what records say of that."""

from itertools import count as endless

import pytest
from pydantic import BaseModel

from modelgauge import ChatPrompt, Estimate, SUTOptions, TestItem, TextPrompt, rescore
from modelgauge.errors import InvalidOptionError
from modelgauge.plugins.discovery import Plugins
from modelgauge.stats import count, grouped, mean


def right(text):
    """Right for two of three questions."""
    return "yes" if int(text.split()[-1]) % 3 else "no"


def items(number=40, distinct=10):
    return [
        TestItem([f"question {n % distinct}"], context={"n": n, "text": f"t{n % 4}"}, id=f"i{n}")
        for n in range(number)
    ]


# --- shared answers ----------------------------------------------------------------------------------------------


def test_items_that_share_one_answer_are_one_cluster(make_test, make_sut, run, resumed, run_folder):
    test, sut = make_test(items()), make_sut(right)
    record = run(test, sut)
    found = record.result["right"]
    assert (found.n, found.n_clusters) == (40, 10)
    assert (record.prompts, record.distinct_prompts) == (40, 10)
    alone = run(make_test(items(10)), sut).result["right"]
    assert alone.n_clusters is None
    assert (
        found.interval[1] - found.interval[0] > 0.5 > alone.stderr * 2
    )  # not half as wide as if there were 40
    folder = run_folder / "runs" / record.run_id
    lines = (folder / "items.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "items.jsonl").write_bytes(b"".join(lines[:17]))
    (folder / "record.json").unlink()
    again = resumed(record, test, sut)
    (rescored,) = rescore(record.run_id, run_folder, test=test, plugins=Plugins())
    for one in (again, rescored):
        assert (one.result, one.prompts, one.distinct_prompts) == (record.result, 40, 10)


def test_equal_prompts_are_told_by_their_kinds_and_their_options_as_they_are_asked(make_test, make_sut, run):
    warm, plain = TextPrompt("question 1", options=SUTOptions(temperature=1)), TextPrompt("question 1")
    chat = ChatPrompt([{"role": "user", "text": "question 1"}])
    two = [TestItem([plain, warm]), TestItem([warm, plain]), TestItem([plain, warm])]
    for asked, options, prompts, clusters in [
        ([plain, warm], None, (2, 2), None),
        ([plain, warm], SUTOptions(temperature=0), (2, 1), 1),
        ([plain, chat], None, (2, 2), None),
        (two, None, (6, 2), 2),
    ]:
        measure = make_test(
            [one if isinstance(one, TestItem) else TestItem([one]) for one in asked],
            measure=lambda item: {"x": 1.0},
        )
        given = {} if options is None else {"sut_options": options}
        record = run(measure, make_sut("1"), **given)
        assert (record.prompts, record.distinct_prompts) == prompts
        assert record.result["x"].n_clusters == clusters


def test_an_authors_clusters_are_joined_with_those_of_shared_answers(make_test, make_sut, run):
    test = make_test(items())
    test.aggregate_measurements = lambda held: {
        "by_text": mean(held, "right", cluster="text"),
        "of_each": grouped(held, "text", lambda group: mean(group, "right")),
    }
    result = run(test, make_sut(right)).result
    assert result["by_text"].n_clusters == 2  # t0 and t2 share questions, and so do t1 and t3
    assert [one.n_clusters for one in result["of_each"].values()] == [5] * 4


# --- clusters that the user names --------------------------------------------------------------------------------


class Source(BaseModel):
    text: str
    pages: list[int] = []


def test_a_field_of_the_context_makes_clusters_for_every_mean(make_test, make_sut, run, resumed, run_folder):
    test, sut = make_test(items(40, 40)), make_sut(right)
    assert run(test, sut).result["right"].n_clusters is None
    record = run(test, sut, cluster="text")
    assert record.result["right"].n_clusters == 4
    folder = run_folder / "runs" / record.run_id
    (folder / "record.json").unlink()
    assert resumed(record, test, sut).result == record.result
    with_models = make_test(
        [TestItem([f"question {n}"], context=Source(text=f"t{n % 4}", pages=[n % 2])) for n in range(8)]
    )
    assert run(with_models, sut, cluster="text").result["right"].n_clusters == 4
    assert run(with_models, sut, cluster="pages").result["right"].n_clusters == 2


def test_items_without_the_field_stand_for_themselves_and_are_told(make_test, make_sut, run):
    held = [TestItem([f"question {n}"], context={"text": "t"} if n < 3 else {}) for n in range(5)]
    record = run(make_test(held), make_sut(right), cluster="text")
    assert record.result["right"].n_clusters == 3
    assert "2 items have no 'text': each is a cluster of its own." in record.notes


def test_a_field_that_no_item_has_is_told_before_any_call(make_test, make_sut, run, runner, run_folder):
    test, sut = make_test(items()), make_sut(right)
    with pytest.raises(InvalidOptionError, match="No item of 'test' has a field 'texts'") as told:
        run(test, sut, cluster="texts")
    assert told.value.fix == "Did you mean 'text'? The fields of a context are: 'n', 'text'."
    assert not sut.asked
    assert not any((run_folder / "runs").iterdir())
    with pytest.raises(InvalidOptionError, match="'texts'"):
        runner(cluster="texts").plan([test], [sut])
    with pytest.raises(InvalidOptionError, match="cluster is 3"):
        runner(cluster=3)
    with pytest.raises(InvalidOptionError, match="has a field 'text'"):
        run(make_test(3), sut, cluster="text")


def test_what_make_test_items_raises_is_in_the_record_as_ever(make_test, make_sut, run):
    def broken():
        raise ZeroDivisionError("no items")

    assert run(make_test(broken), make_sut(right), cluster="text").failure.error_type == "ZeroDivisionError"


# --- the items of this very test ----------------------------------------------------------------------------------


def test_intervals_about_this_very_test_know_how_many_items_it_has(make_test, make_sut, run):
    test, sut = make_test(items(40, 40)), make_sut(right)
    test.aggregate_measurements = lambda held: {"population": held.population or -1}
    found = [
        run(test, sut, **options).result["population"]
        for options in ({}, {"finite": True}, {"finite": True, "max_test_items": 30})
    ]
    assert found == [-1, 40, 40]


def test_of_a_test_whose_items_nobody_has_counted_there_is_no_finite_interval(make_test, make_sut, run):
    test = make_test(lambda: (TestItem([f"question {n}"]) for n in endless()))
    record = run(test, make_sut(right), finite=True, max_calls=20)
    assert record.failure is not None
    assert any(note.startswith("How many items the test has is not known") for note in record.notes)
    assert record.result["right"].interval is not None


# --- what the record says ------------------------------------------------------------------------------------------


def test_a_record_says_which_items_were_chosen_of_how_many(make_test, make_sut, run):
    sut = make_sut(right)
    sample = run(make_test(items(40, 40)), sut, max_test_items=10, seed=3).sample
    assert (sample.size, sample.total, sample.seed) == (10, 40, 3)
    assert run(make_test(items(40, 40)), sut).sample is None
    assert run(make_test(items(40, 40)), sut, max_test_items=50).sample is None


def test_a_reduced_measurement_never_has_the_name_of_the_plain_one(make_test, make_sut, run):
    test = make_test(items(6, 6))
    test.aggregate_measurements = lambda held: {
        "accuracy": mean(held, "right"),
        "own": float(held.column("right").mean()),
        "by_text": grouped(held, "text", lambda group: mean(group, "right")),
        "items": count(held),
    }
    record = run(test, make_sut(right), repeats=3, reduce="pass@2")
    assert (record.repeats, record.reduction) == (3, "pass@2")
    assert list(record.result) == ["accuracy.pass@2", "own.pass@2", "by_text.pass@2", "items"]
    assert record.result["accuracy.pass@2"].reduction == "pass@2"
    assert record.result["by_text.pass@2"]["t1"].reduction == "pass@2"

    class Found(BaseModel):
        accuracy: Estimate
        own: float
        by_text: dict[str, Estimate]
        items: int

    assert record.get_result(Found).accuracy == record.result["accuracy.pass@2"]
    plain = run(test, make_sut(right), repeats=3)
    assert (plain.reduction, "accuracy" in plain.result) == (None, True)
    assert run(test, make_sut(right), reduce="max").result == run(test, make_sut(right)).result

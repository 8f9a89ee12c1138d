"""Items: their ids, the choice of a sample, and how far ahead they are pulled."""

import asyncio
import sqlite3
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgauge import PromptWithContext, TestItem, TextPrompt
from modelgauge.engine.items import source as engine_source
from modelgauge.engine.items.item_ids import Ids
from modelgauge.engine.items.source import (
    ItemSource,
    get_context_field,
    get_field,
    list_fields,
    numbered,
    sample,
)
from modelgauge.errors import DefinitionError

texts = st.text(max_size=3)


def ids_of(items):
    ids = Ids("test")
    return [one.item.id for one in numbered(items, ids, "test")], ids.repeated


def test_an_id_is_given_or_of_the_sources_or_of_the_prompts():
    ids, repeated = ids_of(
        [
            TestItem(["a"], id="mine"),
            TestItem([PromptWithContext("a", source_id="s1"), PromptWithContext("b", source_id="s2")]),
            TestItem(["a"]),
            TestItem(["a"], context={"differs": True}),
            TestItem(["b"]),
        ]
    )
    assert ids[:2] == ["mine", "s1+s2"]
    assert ids[3] == f"{ids[2]}~2"
    assert ids[4] not in ids[:4]
    assert repeated == 1


@settings(max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["q", "q~2", "q~3", "r"])), max_size=12))
def test_ids_are_unique_or_an_error(made):
    items = [
        TestItem(["x"], id=name) if given else TestItem([PromptWithContext("x", source_id=name)])
        for given, name in made
    ]
    try:
        ids, _ = ids_of(items)
    except DefinitionError as error:
        names = [name for given, name in made if given]
        assert any(f"'{name}'" in str(error) for name in names)  # noqa: PT017  some lists are fine, as below
    else:
        assert len(set(ids)) == len(items)
        assert [one for one, (given, _) in zip(ids, made, strict=True) if given] == [n for g, n in made if g]


@settings(max_examples=50)
@given(st.lists(texts, max_size=20))
def test_ids_are_the_same_each_time(prompts):
    items = [TestItem([prompt]) for prompt in prompts]
    assert ids_of(items) == ids_of(items)


@settings(max_examples=50)
@given(st.lists(texts, max_size=30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 3))
def test_a_smaller_sample_is_inside_a_larger_one_in_the_order_of_the_test(prompts, few, more, seed):
    items = list(numbered([TestItem([prompt]) for prompt in prompts], Ids("t"), "t"))
    few, more = sorted((few, more))
    small, large = sample(items, few, seed), sample(items, more, seed)
    assert len(small) == min(few, len(items))
    assert [one.index for one in small] == sorted(one.index for one in small)
    assert {one.index for one in small} <= {one.index for one in large}


def test_a_sample_depends_on_the_seed():
    items = list(numbered([TestItem([str(n)]) for n in range(50)], Ids("t"), "t"))
    samples = {tuple(one.index for one in sample(items, 5, seed)) for seed in range(5)}
    assert len(samples) == 5


def test_items_are_pulled_lazily():
    pulled = []

    def endless():
        n = 0
        while True:
            pulled.append(n)
            yield TestItem([TextPrompt(str(n))])
            n += 1

    async def main():
        source = ItemSource(numbered(endless(), Ids("t"), "t"))
        taken = [await source.next() for _ in range(1000)]
        source.stop()
        assert await source.next() is None
        return taken

    taken = asyncio.run(main())
    assert [one.index for one in taken] == list(range(1000))
    assert len(pulled) <= 1000 + 2 * 1024  # two chunks ahead


def test_an_error_comes_after_the_items_before_it_and_is_told_once():
    def items():
        yield TestItem(["a"])
        raise OSError("torn")

    async def main():
        source = ItemSource(numbered(items(), Ids("t"), "t"))
        assert (await source.next()).index == 0
        with pytest.raises(OSError, match="torn"):
            await source.next()
        assert await source.next() is None

    asyncio.run(main())


def test_a_run_looks_ahead_by_its_window_only(make_test, make_sut, run):
    """While no call returns, a generator is not pulled much further than there are calls to make."""
    pulled, blocked = [], asyncio.Event()

    def items():
        for n in range(5000):
            pulled.append(n)
            yield TestItem([str(n)])

    async def answer(text):
        if not blocked.is_set():
            for _ in range(200):
                await asyncio.sleep(0)
            at_first.append(len(pulled))
            blocked.set()
        return "yes"

    at_first = []
    record = run(make_test(items), make_sut(answer, max_concurrency=4), max_calls=100, caching=False)
    assert at_first[0] <= 2 * 1024 + 8
    assert record.failure.stage == "run"
    assert len(pulled) < 1000


def test_how_many_items_there_are_is_known_when_they_are_read_to_their_end_and_not_forgotten_by_a_stop():
    async def total_after(made, *, given=None):
        source = ItemSource(numbered(made, Ids("t"), "t"), given)
        await source.next()
        source.stop()
        assert await source.next() is None
        return source.total

    assert asyncio.run(total_after(TestItem([f"q{n}"]) for n in range(20))) == 20
    assert asyncio.run(total_after(TestItem([f"q{n}"]) for n in range(5000))) is None
    assert asyncio.run(total_after((TestItem([f"q{n}"]) for n in range(5000)), given=5000)) == 5000


@pytest.mark.parametrize("number", [600, 100_000])
def test_items_are_made_read_and_closed_in_one_thread(make_test, make_sut, run, number, caplog):
    """A connection of sqlite3 refuses every thread but its own; one of the runs is stopped before the last item."""
    ended = threading.Event()
    counting = (
        f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {number}) SELECT n FROM c"
    )

    def items():
        connection = sqlite3.connect(":memory:")

        def made():
            try:
                for (n,) in connection.execute(counting):
                    yield TestItem([str(n)])
            finally:
                connection.close()
                ended.set()

        return made()

    record = run(make_test(items), make_sut(), max_calls=600)
    assert record.counts.scored == 600
    assert (record.failure is None) is (number == 600)
    assert ended.wait(60)
    assert "could not be closed" not in caplog.text


def test_a_sample_of_items_that_do_not_end_says_how_many_were_read(
    make_test, make_sut, run, monkeypatch, caplog
):
    now = iter(range(10**6))
    monkeypatch.setattr(engine_source, "monotonic", lambda: next(now))
    items = [TestItem([str(n)]) for n in range(100)]
    record = run(make_test(lambda: iter(items)), make_sut(), max_test_items=5)
    assert record.counts.scored == 5
    told = [record.getMessage() for record in caplog.records if "reads them all first" in record.getMessage()]
    assert ["11 so far" in told[0], len(told)] == [True, 3]  # after 10 s, 30 s and 70 s


def test_a_field_of_a_context_comes_before_those_of_its_metadata():
    context = {
        "a": 1,
        "b": None,
        "metadata": {"a": 2, "b": 2, "c": 3, "d": None},
        "additional_metadata": {"c": 4, "d": 5, "e": 6},
    }
    item = TestItem(["question"], context=context)
    expected = {"a": 1, "b": None, "c": 3, "d": None, "e": 6, "f": None}
    assert {name: get_context_field(context, name) for name in expected} == expected
    assert {name: get_field(item, name) for name in expected} == expected
    assert {name: list_fields(item).get(name) for name in expected} == expected
    assert get_context_field("no mapping", "a") is None

"""The time of each call: in the journal, on pages, in tables; and no part of what makes two answers equal."""

import asyncio
import json
import re
import time

import pytest

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, load_record
from modelgauge.data.annotations import CallTime
from modelgauge.data.tables.item_tables import COMPLETIONS
from modelgauge.documents.document import FactList
from modelgauge.reports.pages.item_data import ItemTable
from modelgauge.reports.pages.run_view import run_document


async def _slow(text):
    await asyncio.sleep(0.02)
    return text


def _items(record):
    return list(record.iter_items())


@pytest.fixture
def slow(run, make_test, make_sut):
    """Two runs of a test on a SUT that takes 20 ms: the second takes all answers from the cache."""
    began = time.time()
    first, second = (run(make_test(8), make_sut(_slow)) for _ in range(2))
    return began, first, second


def test_a_call_that_was_sent_has_a_time_and_a_cached_answer_has_none(slow):
    began, first, second = slow
    times = [item.interactions[0].time for item in load_record(first.folder).iter_items()]
    assert len(times) == 8
    assert all(one.seconds >= 0.02 and began <= one.began <= time.time() for one in times)
    assert [item.interactions[0].time for item in second.iter_items()] == [None] * 8


def test_items_that_differ_in_time_alone_are_equal_and_other_json_has_no_time(slow):
    _, first, second = slow
    assert list(first.iter_items()) == list(second.iter_items())
    assert "time" not in json.loads(_items(first)[0].interactions[0].model_dump_json())
    assert _items(first)[0] != _items(first)[1]


def test_what_only_computes_has_no_time(run, make_test):
    class Computed(PromptResponseSUT):
        def translate_text_prompt(self, prompt):
            return prompt.text

        async def evaluate(self, request):
            return request.upper()

        def translate_response(self, request, response):
            return SUTResponse([SUTCompletion(response)])

    record = run(make_test(3), Computed("computed"))
    assert [item.interactions[0].time for item in record.iter_items()] == [None] * 3


def _facts(document):
    """The facts of the page of a run, by their labels."""
    (found,) = (block for block in document if isinstance(block, FactList))
    return {fact.label: fact.text for fact in found.facts}


def test_a_page_says_how_long_answers_took(slow):
    _, first, second = slow
    with_times, without = ItemTable(), ItemTable()
    for record, table in ((first, with_times), (second, without)):
        list(table.parts(record))
    facts = _facts(run_document(first, with_times))
    longest = max(item.interactions[0].time.seconds for item in first.iter_items())
    median, percentile = map(float, re.findall(r"\d[\d.]*(?= s)", facts["latency"]))
    assert 0.02 <= median <= percentile <= round(longest, 3)
    assert "latency" not in _facts(run_document(second, without))


def test_tables_have_the_time_of_each_call(slow):
    _, first, _ = slow
    (row,) = COMPLETIONS.rows_of_item(first, _items(first)[0])
    cells = dict(zip(COMPLETIONS.head, row, strict=True))
    assert cells["seconds"] == _items(first)[0].interactions[0].time.seconds
    assert abs(cells["began"].timestamp() - _items(first)[0].interactions[0].time.began) < 0.001


def test_a_time_that_is_none_does_no_harm(slow):
    _, first, _ = slow
    item = _items(first)[0]
    strange = item.interactions[0].replaced(time=CallTime(1e300, 1.0))
    (row,) = COMPLETIONS.rows_of_item(first, item.replaced(interactions=(strange,)))
    assert dict(zip(COMPLETIONS.head, row, strict=True))["began"] is None

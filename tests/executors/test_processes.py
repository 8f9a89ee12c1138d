"""Runs on several processes: the same records as in one, whatever becomes of the workers."""


def test_a_run_is_the_same_item_by_item(counting):
    alone = counting.run(executor="local", workers=None, caching=False)
    record = counting.run(caching=False, options={"seconds": 0.01})
    assert counting.items_of(record) == counting.items_of(alone)
    assert (record.result, record.counts, record.failure) == (alone.result, alone.counts, None)
    assert len({process for process, _ in counting.calls()[40:]}) == 2


def test_an_item_that_kills_its_workers_fails_and_the_others_are_done(counting):
    record = counting.run(options={"kills": "word 3"}, caching=False)
    [failed] = record.test_item_exceptions
    assert failed.test_item.id == "item 3"
    assert "3 workers ended while they worked on this item" in failed.message
    assert record.counts.scored == 39

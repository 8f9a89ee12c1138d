"""Limits a minute, and places that adapt, are those of the whole run: a real server counts what four workers send."""

import pytest
from chat_server import Plan, ThreadedChatServer


@pytest.fixture
def asked(counting, monkeypatch):
    """`asked(plan, number, **options)`: the record of a run of four workers, and what the server has seen."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def ask(plan, number, **options):
        with ThreadedChatServer(plan) as server:
            sut = f"openai/m?base_url={server.base_url}"
            record = counting.run(f"words?number={number}", sut=sut, workers=4, caching=False, **options)
            return record, server.stats()

    return ask


def seconds_between(seen, first, last):
    times = [request["time"] for request in seen.recent]
    return times[last] - times[first]


def test_requests_a_minute_are_those_of_all_workers(asked):
    record, seen = asked(Plan(), 25, requests_per_minute=600, concurrency=8)
    assert (record.counts.scored, seen.calls) == (25, 25)
    # 24 pauses of 0.1 s; each worker with a rate of its own would take a quarter of them.
    assert seconds_between(seen, 0, -1) > 1.5


def test_tokens_a_minute_are_those_of_all_workers(asked):
    # "word 7" is two tokens, there and back: 4 a call, so 60 fit into the minute, and each further call takes a second.
    record, seen = asked(Plan(), 63, tokens_per_minute=240, concurrency=2)
    assert (record.counts.scored, seen.calls) == (63, 63)
    assert seconds_between(seen, 0, -1) > 2.5


def test_places_adapt_to_a_server_for_all_workers_together(asked):
    record, seen = asked(Plan(latency=0.05, at_once=6), 150)
    assert (record.counts.scored, seen.completed) == (150, 150)
    [changes] = record.concurrency.values()
    assert "rate limited" in [change.why for change in changes]
    # A call may leave the server a moment after its answer; places of each worker's own would be four times as many.
    assert seen.max_in_flight <= 2 * max(change.limit for change in changes)
    assert seen.calls <= 200

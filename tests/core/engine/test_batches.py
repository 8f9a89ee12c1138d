"""SUTs that answer in batches."""

import sys
import threading

import pytest

from modelgauge import FunctionSUT, SUTCompletion, SUTResponse
from modelgauge.errors import DefinitionError


class Batched(FunctionSUT):
    """Answers in batches of three."""

    batch_size = 3
    reply = staticmethod(lambda requests: ["yes"] * len(requests))

    def __init__(self, uid):
        super().__init__(uid, str)
        self.batches = []

    def evaluate_batch(self, requests):
        self.batches.append(list(requests))
        return self.reply(requests)

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


def test_batches_are_full_and_the_last_one_is_sent_too(make_test, run):
    sut = Batched("sut")
    record = run(make_test(11), sut)
    assert record.counts.scored == 11
    assert sorted(map(len, sut.batches)) == [2, 3, 3, 3]
    assert sorted(one for batch in sut.batches for one in batch) == sorted(f"question {n}" for n in range(11))


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (lambda requests: ["yes"], "1 response for 3"),
        (lambda requests: "yes", "str for 3"),
        (lambda requests: 1 / 0, "division"),
        (lambda requests: sys.exit(2), "SystemExit"),
    ],
)
def test_a_batch_that_fails_fails_its_items(reply, said, make_test, run, accounted):
    sut = Batched("sut")
    sut.reply = reply
    record = accounted(run(make_test(3), sut))
    assert record.counts.sut_errors == 3
    assert all(said in failure.message for failure in record.test_item_exceptions)


def test_a_batch_may_be_awaited(make_test, run):
    class Awaited(Batched):
        async def evaluate_batch(self, requests):
            self.batches.append(list(requests))
            return ["yes"] * len(requests)

    sut = Awaited("sut")
    assert run(make_test(4), sut).counts.scored == 4
    assert sorted(map(len, sut.batches)) == [1, 3]


def test_a_batch_that_hangs_is_a_timeout_of_its_items(make_test, run, accounted):
    end = threading.Event()
    sut = Batched("sut")
    sut.reply = lambda requests: end.wait()
    try:
        record = accounted(run(make_test(3), sut, attempt_timeout=0.05, max_retries=0))
    finally:
        end.set()
    assert {failure.error_type for failure in record.test_item_exceptions} == {"CallTimeoutError"}


@pytest.mark.parametrize("name", ["batch_size", "max_concurrency"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "8", True])
def test_a_sut_that_allows_no_calls_is_refused_before_the_first(name, value, make_test, run):
    sut = Batched("sut")
    setattr(sut, name, value)
    with pytest.raises(DefinitionError, match=f"{name} of 'sut' is {value!r}"):
        run(make_test(3), sut)
    assert sut.batches == []

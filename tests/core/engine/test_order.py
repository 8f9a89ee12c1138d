"""Results do not depend on the order in which calls end."""

import asyncio
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelgauge import FunctionSUT


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), items=st.integers(1, 30))
def test_results_do_not_depend_on_the_order_in_which_calls_end(seed, items, make_test, run, tmp_path_factory):
    """Each answer waits for a drawn number of turns of the loop."""
    chance = Random(seed)  # one of hypothesis's own may raise, in the SUT, when it has drawn enough

    async def answer(text):
        for _ in range(chance.randint(0, 30)):
            await asyncio.sleep(0)
        if hash_of(text) % 7 == 0:
            raise ValueError(text)
        return "yes" if hash_of(text) % 2 else "no"

    def hash_of(text):
        return sum(text.encode())

    test = make_test(
        items, aggregate_measurements=lambda measured: {"first": measured[0].measurements["right"]}
    )
    folder = tmp_path_factory.mktemp("run")
    mixed = run(test, FunctionSUT("sut", answer), data_dir=folder, caching=False)
    straight = run(test, FunctionSUT("sut", answer), data_dir=folder, caching=False, concurrency=1)
    assert mixed.result == straight.result
    assert mixed.test_item_records == straight.test_item_records
    assert [failure.test_item for failure in mixed.test_item_exceptions] == [
        failure.test_item for failure in straight.test_item_exceptions
    ]

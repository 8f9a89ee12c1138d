"""Batches by tokens: nothing lost, nothing too large, smaller ones once the memory ends."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import CallError
from modelgauge_transformers.batches import Batches, Size


@dataclass(frozen=True)
class Part:
    rows: int
    length: int

    @property
    def size(self):
        return Size(self.rows, self.length)


PARTS = st.lists(st.builds(Part, st.integers(1, 5), st.integers(1, 50)), max_size=30)


def padded(batch):
    return sum(part.rows for part in batch) * max(part.length for part in batch)


def is_memory(error):
    return isinstance(error, MemoryError)


@given(PARTS, st.integers(1, 200))
def test_results_are_in_order_and_batches_within_the_limit(parts, most):
    batches = []
    results = Batches(most, is_memory).run(parts, lambda batch: batches.append(batch) or list(batch))
    assert results == parts
    assert all(len(batch) == 1 or padded(batch) <= most for batch in batches)
    lengths = [part.length for batch in batches for part in batch]
    assert lengths == sorted(lengths, reverse=True)


@given(PARTS, st.integers(300, 600))
def test_batches_shrink_until_they_fit(parts, memory):
    def work(batch):
        if padded(batch) > memory:
            raise MemoryError
        return batch

    assert Batches(10_000, is_memory).run(parts, work) == parts


def test_part_that_never_fits_is_named():
    def work(batch):
        raise MemoryError

    with pytest.raises(CallError, match="one prompt of 7 tokens"):
        Batches(100, is_memory).run([Part(1, 7)], work)


def test_other_errors_are_raised():
    with pytest.raises(ZeroDivisionError):
        Batches(100, is_memory).run([Part(1, 7)], lambda batch: 1 / 0)

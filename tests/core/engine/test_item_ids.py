"""A set of names that costs a few bytes each."""

from hypothesis import given
from hypothesis import strategies as st

from modelgauge.engine.items.item_ids import DigestSet


@given(st.lists(st.text(max_size=8)))
def test_it_is_a_set(names):
    digests, known = DigestSet(), set()
    for name in names:
        assert digests.add(name) == (name not in known)
        known.add(name)
    assert len(digests) == len(known)


def test_it_grows_and_stays_small():
    digests = DigestSet()
    assert all(digests.add(str(number)) for number in range(20_000))
    assert not any(digests.add(str(number)) for number in range(20_000))
    assert digests._slots.itemsize * len(digests._slots) < 30 * len(digests)

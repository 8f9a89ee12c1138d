"""What calls used: sums, differences, and the parts that records have."""

from hypothesis import given
from hypothesis import strategies as st

from modelgauge.data.results import CallCounts, CallsByKind, Counts, Spent, TotalUsage

NUMBERS = st.integers(0, 2**53)
CALLS = st.builds(CallCounts, paid=NUMBERS, cached=NUMBERS)
USED = st.builds(
    TotalUsage,
    sut_calls=CALLS,
    annotator_calls=CALLS,
    judge_calls=CALLS,
    unkept=NUMBERS,
    attempts=NUMBERS,
    tokens=NUMBERS,
    cost_usd=st.integers(0, 2**40).map(float),  # sums of these are exact
    seconds=st.integers(0, 2**40).map(float),
)


@given(USED, USED)
def test_session_is_difference_of_two(before, session):
    now = before + session
    assert now - before == session
    assert now - session == before


@given(USED)
def test_nothing_used_changes_no_sum(used):
    assert TotalUsage() + used == used + TotalUsage() == used - TotalUsage() == used
    assert used - used == TotalUsage()


@given(USED, USED)
def test_each_field_is_added_to_its_own(one, other):
    both = one + other
    for name in TotalUsage.model_fields:
        assert getattr(both, name) == getattr(one, name) + getattr(other, name), name
    assert both.sut_calls.paid == one.sut_calls.paid + other.sut_calls.paid
    assert both.cached == one.cached + other.cached


@given(USED)
def test_sum_has_fields_of_left_operand(used):
    assert Spent() + used == used.spent == Spent(**{name: getattr(used, name) for name in Spent.model_fields})
    counts = Counts(items=3, scored=2, **dict(CallsByKind() + used))
    assert CallsByKind() + counts == CallsByKind() + used
    assert type(sum([counts, counts], CallsByKind())) is CallsByKind


@given(USED)
def test_used_comes_back_from_json(used):
    assert TotalUsage.load(used.model_dump(mode="json")) == used
